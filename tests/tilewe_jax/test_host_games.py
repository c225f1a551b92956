"""Host forms of games by name agree with the games of ``make``."""

import random
from typing import Any

import pytest

from tilewe_jax import make
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.tiles import digits
from tilewe_jax.host_games import make_host_game
from tilewe_jax.registry import options

TILES = [digits(tile) for tile in Config(tiles=10, tray=3).tile_list]
DEAL = {"tiles": random.Random(1).sample(TILES, len(TILES)), "starter": 1, "seed": [3, 4]}


@pytest.mark.parametrize(
    ("name", "given", "deal"),
    [
        ("tilewe", {"players": 3, "size": 8}, None),
        ("duo", {"voluntary_pass": True}, None),
        ("duo_official", {}, None),
        ("classic", {"size": 10, "pieces": ["O1", "I2"]}, None),
        ("classic_2", {"size": 10, "pieces": ["O1", "I2"], "start_piece": "I2"}, None),
        ("santorini", {}, None),
        ("santorini", {"size": 4, "placement": "chosen"}, None),
        ("santorini", {"placement": "random"}, [[0, 1], [2, 2], [4, 4], [3, 0]]),
        ("triominos", {"tiles": 10, "tray": 3}, DEAL),
    ],
)
def test_host_forms_match_games(name: str, given: dict[str, Any], deal: Any) -> None:
    game, host = make(name, **given), make_host_game(name, **given)
    for field in ("id", "version", "num_players", "num_actions", "max_steps"):
        assert getattr(host, field) == getattr(game, field)
    position, expected = host.init_from_deal(deal), game.host(game.init_from_deal(deal))
    assert position.current_player == expected.current_player
    assert position.legal_actions() == expected.legal_actions()
    assert position.text() == expected.text()
    with pytest.raises(ValueError, match="deal"):
        host.init_from_deal(7)


@pytest.mark.parametrize(("name", "given"), [("tilewe", {"seats": 3}), ("duo", {"size": "8"}), ("chess", {})])
def test_invalid_options_have_the_same_messages(name: str, given: dict[str, Any]) -> None:
    messages = []
    for maker in (make, make_host_game):
        with pytest.raises(ValueError, match=name) as error:
            maker(name, **given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_the_first_player_of_a_deal_holds_the_highest_tile() -> None:
    given = {"tiles": 10, "tray": 3, "start": "highest"}
    accepted = []
    for starter in (0, 1):
        messages = set()
        for maker in (make, make_host_game):
            try:
                maker("triominos", **given).init_from_deal({**DEAL, "starter": starter})
                messages.add("")
            except ValueError as error:
                messages.add(str(error))
        (message,) = messages
        accepted.append(not message)
    assert sorted(accepted) == [False, True]


def test_options_of_games() -> None:
    assert list(options("santorini")) == ["size", "placement"]
    assert next(iter(options("triominos"))) == "players"


def test_last_moves_are_highlighted() -> None:
    position = make_host_game("santorini").init_from_deal(None)
    action = next(action for action in position.legal_actions() if position.action_name(action) == "c4-d4*e3")
    after = position.after(action)
    assert after.text(last_action=action).splitlines()[1:3] == [" 4  .   .  (. )[O ] . ", " 3  .   X   .   Y  [.1]"]
    assert after.svg(last_action=action).count('class="tilewe-last"') == 7
    assert after.svg().count('class="tilewe-last"') == 0
    table = make_host_game("triominos", tiles=10, tray=3).init_from_deal(DEAL)
    first = table.legal_actions()[0]
    assert table.after(first).text(last_action=first).count("*") == 1
    assert table.after(first).svg(last_action=first).count('class="tilewe-last"') == 1
    assert "*" not in table.after(first).text()
