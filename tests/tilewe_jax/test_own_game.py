"""A user-supplied game in one file: on the page, in pictures, in records and in OpenSpiel."""

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tests.search.tictactoe import TicTacToe
from tests.tilewe_jax.web.support import joined, new_game, play_out, serving
from tilewe_jax import registry
from tilewe_jax.chance import Chance
from tilewe_jax.device_position import DevicePosition
from tilewe_jax.draw import draw, pictures
from tilewe_jax.draw.shapes import Scene, el
from tilewe_jax.host import Offer, Rounds
from tilewe_jax.host_games import OFFERS, asked_on_device, offer
from tilewe_jax.web.catalog import Agent, games_script


class Position(DevicePosition):
    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        return {**super().view(seat=seat, open=open), "kind": "begun", "cells": self.state.cells.tolist()}


@dataclass(frozen=True)
class FirstStone(Chance):
    def deal_outcomes(self, dealt):
        return [] if dealt else list(range(9))

    def start(self, dealt):
        return self.game.init_from_deal(dealt[0])

    def name(self, event):
        return f"stone on {event.action}"


class Begun(TicTacToe):
    """Tic-tac-toe with a random first stone."""

    id = "begun"
    fixed_start = False

    def init(self, key):
        return self._begun(jax.random.randint(key, (), 0, 9))

    def _begun(self, cell):
        return super().apply(super().init(jax.random.key(0)), jnp.asarray(cell, jnp.int32))

    def deal(self, state):
        return state.cells.tolist().index(0)

    def init_from_deal(self, deal):
        return self._begun(deal)

    def host(self, state):
        return Position(self, state)

    def action_name(self, action, state):
        return "abc"[action % 3] + str(action // 3 + 1)

    def chance(self):
        return FirstStone(self, 9, 1)


def host_game(game: Begun) -> Any:
    first = ({"round": 0, "points": [{}, {}]},)
    return replace(asked_on_device(game), rounds=Rounds(lambda start: first, lambda table, *_: table))


def board(view: Any, options: Any) -> Scene:
    return Scene(9, 9, [el("circle", {"class": "stone"}) for cell in view["cells"] if cell >= 0])


@pytest.fixture(autouse=True, scope="module")
def _declared() -> None:
    pictures.register("begun", pictures.Drawing(board, lambda *_: Scene(0, 0, []), lambda view: "A board"))
    registry.register("begun", Begun)
    rules = ("Three in a row win.",)
    offer("begun", Offer("Begun", (2, 2), rules=rules, settings=Begun, host_game=host_game))


def test_the_page_serves_the_game(tmp_path: Path) -> None:
    assert "Three in a row win." in games_script()
    agents = {"begun": [Agent("level:1", "beginner", 0)]}
    with serving(tmp_path / "games", agents=agents) as client:
        (listed,) = [game for game in client.get("/api/catalog").json()["games"] if game["id"] == "begun"]
        assert (listed["title"], listed["hidden"], len(listed["levels"])) == ("Begun", False, 1)
        created = new_game(client, "begun")
        with joined(client, created, 0, 1) as players:
            state = players[0].state
            assert (state["view"]["kind"], state["view"]["current_player"], len(state["rounds"])) == ("begun", 1, 1)
            play_out(players, random.Random(0))
            state = players[0].state
        assert sum(state["over"]["returns"]) == 1
        assert client.get(f"/api/games/{created['id']}/picture").text.count('"stone"') > 3
        record = client.get(f"/api/games/{created['id']}/record").text
        assert client.post("/api/studies", content=record.encode()).status_code == 201


def test_the_game_is_drawn() -> None:
    position = OFFERS["begun"].host_game(Begun()).init_from_deal(4)
    assert draw(position.after(0).view()).count('"stone"') == 2
    with pytest.raises(ValueError, match="kind 'other'"):
        draw({"kind": "other"})


def test_open_spiel_deals_the_game() -> None:
    pytest.importorskip("pyspiel")
    from tilewe_jax.interop import open_spiel

    state = open_spiel.load_game(Begun()).new_initial_state()
    assert state.is_chance_node()
    assert [outcome for outcome, _ in state.chance_outcomes()] == list(range(9))
    state.apply_action(4)
    assert state.current_player() == 1
    assert 4 not in state.legal_actions()
