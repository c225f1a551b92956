"""The explorer against a count over all games in plain Python, with the symmetries of the device."""

import random
from collections import Counter
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax import explorer
from tilewe_jax.agents import book as books
from tilewe_jax.games.polyomino.host_symmetry import action_images
from tilewe_jax.host_games import make_host_game

GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "tilewe": ("tilewe", {"players": 2, "size": 4, "pieces": ["O1", "I2", "L3"]}),
    "three players": ("tilewe", {"players": 3, "size": 4, "pieces": ["O1", "I2"]}),
    "duo": ("duo", {"size": 4, "pieces": ["I2", "L3"], "voluntary_pass": True}),
    "classic_2": ("classic_2", {"size": 5, "pieces": ["I2", "O1"]}),
    "santorini": ("santorini", {"size": 3}),
    "placed workers": ("santorini", {"size": 3, "placement": "chosen"}),
}
Played = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]


def random_games(host: Any, count: int) -> list[Played]:
    """Actions, scores and returns of random games."""
    chance, games = random.Random(0), []
    for _ in range(count):
        position, actions = host.init_from_deal(None), []
        while not position.is_terminal:
            actions.append(chance.choice(position.legal_actions()))
            position = position.after(actions[-1])
        games.append((tuple(actions), tuple(position.scores()), tuple(host.returns(position))))
    return games


class Reference:
    """Symmetric images of positions and moves by the functions of the game on the device."""

    def __init__(self, game: Any) -> None:
        symmetries = np.arange(game.num_symmetries, dtype=np.int32)
        transform = jax.vmap(game.transform, in_axes=(None, 0))
        self.images = jax.jit(lambda state: transform(state, symmetries))
        self.apply = jax.jit(game.apply)
        self.start, self.tables = game.init(jax.random.key(0)), np.asarray(game.action_symmetries)

    def moves(self, actions: tuple[int, ...]) -> list[tuple[bytes, int]]:
        """The canonical position and move of each action of a game."""
        state, result = self.start, []
        for action in actions:
            leaves = jax.tree.leaves(jax.device_get(self.images(state)))
            images = [b"".join(leaf[index].tobytes() for leaf in leaves) for index in range(len(self.tables))]
            smallest = min(images)
            moves = [row[action] for row, image in zip(self.tables, images, strict=True) if image == smallest]
            result.append((smallest, int(min(moves))))
            state = self.apply(state, np.int32(action))
        return result


@pytest.mark.parametrize("case", GAMES)
def test_tables_agree_with_a_count_over_all_games(case: str) -> None:
    name, options = GAMES[case]
    host, reference = make_host_game(name, **options), Reference(tilewe_jax.make(name, **options))
    games, index = random_games(host, 60), explorer.Index(max_plies=3)
    for actions, scores, returns in games:
        index.add(host, None, actions, scores, returns)
    assert index.num_games == len(games)
    canonical = [reference.moves(actions[:4]) for actions, *_ in games]
    compared = 0
    for actions, *_ in games[:25]:
        for ply in range(min(4, len(actions))):
            position = host.init_from_deal(None)
            for action in actions[:ply]:
                position = position.after(action)
            player, (key, _) = position.current_player, reference.moves(actions[: ply + 1])[ply]
            expected: dict[int, Counter[str]] = {}
            for moves, (_, scores, returns) in zip(canonical, games, strict=True):
                for where, move in moves[:3]:
                    if where == key:
                        tally = expected.setdefault(move, Counter())
                        best = max(returns)
                        result = "losses" if returns[player] < best else "draws" if returns.count(best) > 1 else "wins"
                        lead = scores[player] - max(score for seat, score in enumerate(scores) if seat != player)
                        tally.update({"count": 1, result: 1, "points": scores[player], "lead": lead})
            rows = explorer.table(host, position, index)
            compared += len(rows)
            names = ("count", "wins", "draws", "losses")
            found = sorted(tuple(row[name] for name in names) for row in rows)
            assert found == sorted(tuple(tally[name] for name in names) for tally in expected.values())
            if name != "santorini":
                means = sorted(
                    (tally["points"] / tally["count"], tally["lead"] / tally["count"]) for tally in expected.values()
                )
                assert sorted((row["points"], row["lead"]) for row in rows) == means
            legal = position.legal_actions()
            assert all(row["id"] in legal and row == row | position.action_view(row["id"]) for row in rows)
            assert [row["count"] for row in rows] == sorted((row["count"] for row in rows), reverse=True)
    assert compared > 50


@pytest.mark.parametrize("name", ["tilewe", "duo", "duo_official", "classic", "classic_2"])
def test_host_symmetries_are_those_of_the_device(name: str) -> None:
    game: Any = tilewe_jax.make(name)
    table = np.asarray(game.action_symmetries)
    for action in random.Random(1).sample(game.host(game.init(jax.random.key(0))).legal_actions(), 20):
        assert action_images(game.config, action) == tuple(table[:, action].tolist())


def test_a_full_index_counts_on_in_its_positions() -> None:
    host = make_host_game("tilewe", **GAMES["tilewe"][1])
    games = random_games(host, 20)
    full, whole = explorer.Index(max_positions=1), explorer.Index()
    for index in (full, whole):
        for actions, scores, returns in games:
            index.add(host, None, actions, scores, returns)
    start = host.init_from_deal(None)
    assert full.is_full
    assert explorer.table(host, start, full) == explorer.table(host, start, whole)
    after = start.after(games[0][0][0])
    assert explorer.table(host, after, whole)
    assert not explorer.table(host, after, full)


def test_refused_games() -> None:
    triominos = make_host_game("triominos")
    with pytest.raises(ValueError, match="hidden information"):
        explorer.Index().add(triominos, None, (), (0, 0), (0.5, 0.5))
    host = make_host_game("tilewe", **GAMES["tilewe"][1])
    with pytest.raises(ValueError, match="illegal"):
        explorer.Index().add(host, None, (0, 0), (1, 0), (1.0, 0.0))


@cache
def book() -> tuple[books.Book, dict[str, tuple[books.BookMove, ...]]]:
    loaded = books.load(tilewe_jax.make("duo_official"), True)
    return loaded, loaded.evaluated()


@pytest.mark.parametrize("plies", [0, 1, 2])
def test_the_opening_book_is_that_of_the_agents(plies: int) -> None:
    host, (loaded, evaluated) = make_host_game("duo_official"), book()
    for known in [known for known in loaded.positions.values() if len(known.actions) == plies][:3]:
        position = host.init_from_deal(None)
        for action in known.actions:
            position = position.after(action)
        rows = explorer.book_table(host, position)
        moves = loaded.moves_after(known.actions, evaluated)
        player = position.current_player
        assert sorted((row["value"], row["error"], row["visits"]) for row in rows) == sorted(
            (move.value[player], move.error, move.visits) for move in moves
        )
        worths = [row["value"] - row["error"] for row in rows]
        assert worths == sorted(worths, reverse=True)
    assert explorer.book_table(make_host_game("duo"), make_host_game("duo").init_from_deal(None)) == []
