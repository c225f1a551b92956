"""Views: agreement with positions, and hidden information."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tilewe_jax.test_host_games import DEAL
from tilewe_jax.host import HostPosition, IllegalActionError
from tilewe_jax.host_games import make_host_game

GAMES: list[tuple[str, dict[str, Any], Any]] = [
    ("tilewe", {"players": 3, "size": 8}, None),
    ("duo", {"voluntary_pass": True}, None),
    ("duo_official", {"size": 9}, None),
    ("classic_2", {"size": 10, "start_piece": "I2"}, None),
    ("santorini", {"size": 4, "placement": "chosen"}, None),
    ("triominos", {"tiles": 10, "tray": 3}, DEAL),
]


def played(name: str, given: dict[str, Any], deal: Any, seed: int = 0) -> Iterator[tuple[HostPosition, int | None]]:
    """Play a random game; yield positions with the next action."""
    position, rng = make_host_game(name, **given).init_from_deal(deal), random.Random(seed)
    while not position.is_terminal:
        action = rng.choice(position.legal_actions())
        yield position, action
        position = position.after(action)
    yield position, None


@pytest.mark.parametrize(("name", "given", "deal"), GAMES)
def test_views_are_json_and_agree_with_positions(name: str, given: dict[str, Any], deal: Any) -> None:
    for position, action in played(name, given, deal):
        view = position.view()
        assert json.loads(json.dumps(view)) == view
        assert view["scores"] == list(position.scores())
        assert view["terminal"] == position.is_terminal
        assert view["current_player"] == position.current_player
        assert view["num_players"] == len(position.scores())
        if action is None:
            continue
        action_view = position.action_view(action)
        assert json.loads(json.dumps(action_view)) == action_view
        assert (action_view["id"], action_view["name"]) == (action, position.action_name(action))
        illegal = next(other for other in range(10**6) if position.explain(other))
        with pytest.raises(IllegalActionError):
            position.action_view(illegal)
        with pytest.raises(ValueError, match="seat"):
            position.view(seat=len(position.scores()))


@pytest.mark.parametrize(("name", "given", "deal"), GAMES[:4])
def test_polyomino_views_agree_with_texts(name: str, given: dict[str, Any], deal: Any) -> None:
    letters = {"B": "0", "Y": "1", "R": "2", "G": "3"}
    for position, action in played(name, given, deal):
        view = position.view()
        size = view["size"]
        rows = [view["cells"][y * size : (y + 1) * size] for y in reversed(range(size))]
        assert rows == [
            "".join(letters.get(mark, mark) for mark in line.split()[1:]) for line in position.text().split("\n")[:size]
        ]
        assert view["empty"] == view["cells"].count(".")
        for color, summary in enumerate(view["colors"]):
            assert summary["void"] == void_cells(view["cells"], size, str(color))
        by_player = [0] * view["num_players"]
        for summary in view["colors"]:
            by_player[summary["player"]] += summary["score"]
        assert by_player == view["scores"]
        if action is not None and (move := position.action_view(action))["kind"] == "place":
            after = position.after(action).view()
            changed = [[i % size, i // size] for i in range(size * size) if after["cells"][i] != view["cells"][i]]
            assert sorted(changed) == sorted(move["cells"])
            assert {after["cells"][y * size + x] for x, y in changed} == {str(move["color"])}
            pieces_before, pieces_after = (set(board["colors"][move["color"]]["pieces"]) for board in (view, after))
            assert pieces_before - pieces_after == {move["piece"]}


def void_cells(cells: str, size: int, color: str) -> int:
    """Count the empty cells with an orthogonal neighbour of a colour, as the original visualizer does."""
    at = {(i % size, i // size): mark for i, mark in enumerate(cells)}
    beside = ((1, 0), (-1, 0), (0, 1), (0, -1))
    return sum(mark == "." and any(at.get((x + dx, y + dy)) == color for dx, dy in beside) for (x, y), mark in at.items())


def test_start_cells_close_and_stay_open() -> None:
    official = make_host_game("duo_official").init_from_deal(None)
    assert official.view()["start_cells"] == [[4, 9]]
    action = official.legal_actions()[0]
    assert official.after(action).view()["start_cells"] == [[9, 4]]
    duo = make_host_game("duo").init_from_deal(None)
    for _ in range(2):
        duo = duo.after(duo.legal_actions()[0])
    assert len(duo.view()["start_cells"]) == 1


def test_santorini_views_show_the_board() -> None:
    board = make_host_game("santorini").init_from_deal(None)
    assert board.view()["workers"] == [[2, 3], [2, 1], [1, 2], [3, 2]]
    move = board.action_view(board.action_of_name("c4-d4*e3"))
    assert (move["kind"], move["worker"], move["name"]) == ("turn", 0, "c4-d4*e3")
    assert (move["from"], move["to"], move["build"]) == ([2, 3], [3, 3], [4, 2])
    after = board.after(move["id"]).view()
    assert after["heights"] == "0000000000000010000000000"
    assert after["workers"][0] == [3, 3]
    for position, action in played("santorini", {"size": 4, "placement": "chosen"}, None):
        view = position.view()
        assert view["placing"] == (None in view["workers"])
        if action is None:
            assert view["scores"][view["winner"]] == 1
        elif (move := position.action_view(action))["kind"] == "place":
            assert view["workers"][move["worker"]] is None
            assert position.after(action).view()["workers"][move["worker"]] == move["to"]
        else:
            assert view["workers"][move["worker"]] == move["from"]


def test_views_hide_trays_from_other_seats() -> None:
    for seed in range(5):
        for position, action in played("triominos", {"tiles": 10, "tray": 3}, DEAL, seed):
            full = position.view(open=True)
            hidden = {tile for tray in full["trays"] for tile in tray}
            assert len(hidden) == sum(map(len, full["trays"]))
            for seat in (None, 0, 1):
                view = position.view(seat=seat)
                if position.is_terminal:
                    assert view == full
                    continue
                own = set() if seat is None else set(full["trays"][seat])
                assert [len(tray) if isinstance(tray, list) else tray for tray in view["trays"]] == [*map(len, full["trays"])]
                text = json.dumps({**view, "tiles": [{**tile, "points": None} for tile in view["tiles"]], "frontier": None})
                for tile in hidden - own:
                    assert f'"{tile}"' not in text
                for tile in own:
                    assert f'"{tile}"' in text
            if action is not None and (move := position.action_view(action))["kind"] == "place":
                after = position.after(action)
                placed = {tile["tile"]: tile for tile in after.view()["tiles"]}[move["tile"]]
                assert placed == {key: move[key] for key in ("tile", "cell", "points", "numbers")}
                assert move["cell"] in [cell["cell"] for cell in position.view()["frontier"]]
                if not after.is_terminal:
                    assert after.scores()[position.current_player] - position.scores()[position.current_player] == move["gain"]


def test_gains_have_reasons() -> None:
    reasons = {
        position.action_view(action).get("reason")
        for seed in range(8)
        for position, action in played("triominos", {"tiles": 35, "tray": 9, "start": "highest"}, deal(35, seed), seed)
        if action is not None
    }
    assert {"", None, "bridge +40", "hexagon +50"} <= reasons
    assert reasons & {"triple first +10", "zeros first +40"}


def deal(tiles: int, seed: int) -> dict[str, Any]:
    """Return a deal with the holder of the highest tile as the starting player."""
    from tilewe_jax.games.triominos.config import Config
    from tilewe_jax.games.triominos.tiles import digits

    names = random.Random(seed).sample([digits(tile) for tile in Config(tiles=tiles, tray=9).tile_list], tiles)
    for starter in (0, 1):
        given = {"tiles": names, "starter": starter, "seed": [1, 2]}
        try:
            make_host_game("triominos", tiles=tiles, tray=9, start="highest").init_from_deal(given)
        except ValueError:
            continue
        return given
    raise AssertionError


def test_third_party_games_have_text_views() -> None:
    import jax

    from tests.search.tictactoe import TicTacToe

    game = TicTacToe()
    position = game.host(game.init(jax.random.key(0)))
    view = position.view(seat=1)
    assert view["kind"] == "text"
    assert view["text"] == position.text()
    assert json.loads(json.dumps(view)) == view
    assert position.action_view(4) == {"id": 4, "name": position.action_name(4), "kind": "other"}
    with pytest.raises(IllegalActionError):
        position.action_view(9)


def test_views_need_no_jax() -> None:
    code = (
        "import sys; from tilewe_jax.host_games import make_host_game\n"
        "for name in ('duo', 'santorini'): make_host_game(name).init_from_deal(None).view()\n"
        "print('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
