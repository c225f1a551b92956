"""The heuristics on host positions equal those on the device."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.games.polyomino.host_heuristics import heuristic_value, room_value
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.host import Position
from tilewe_jax.host_games import OFFERS, make_host_game

GAMES = [
    ("duo_official", {"size": 9}),
    ("duo", {"size": 8, "voluntary_pass": True}),
    ("classic_2", {"size": 10}),
    ("tilewe", {"players": 3, "size": 8}),
    ("santorini", {}),
    ("santorini", {"size": 4, "placement": "chosen"}),
]
MOST = 48
"""Number of actions that are compared at a position, so that the device compiles one function."""


@pytest.mark.parametrize(("name", "options"), GAMES, ids=[f"{name}-{len(options)}" for name, options in GAMES])
def test_logits_and_values_equal_those_on_the_device(name: str, options: dict[str, Any]) -> None:
    device, game, heuristics = tilewe_jax.make(name, **options), make_host_game(name, **options), OFFERS[name].heuristics
    assert heuristics is not None
    logits, values, apply = jax.jit(device.heuristic_logits), jax.jit(device.heuristic_value), jax.jit(device.apply)
    chance = random.Random(3)
    state, position = device.init(jax.random.key(0)), game.init_from_deal(None)
    compared = 0
    while not position.is_terminal:
        actions = position.legal_actions()
        chance.shuffle(actions)
        actions = actions[:MOST]
        padded = jnp.array(actions + actions[:1] * (MOST - len(actions)), jnp.int32)
        np.testing.assert_allclose(heuristics.logits(position, actions), logits(state, padded)[: len(actions)], atol=1e-4)
        value = heuristics.value if name == "santorini" else heuristic_value
        np.testing.assert_allclose(value(position), values(state), atol=1e-6)
        assert sum(heuristics.value(position)) == pytest.approx(1)
        state, position = apply(state, jnp.int32(actions[0])), position.after(actions[0])
        compared += len(actions)
    assert compared > 200


def test_triominos_prefers_points_and_sees_only_its_own_tray() -> None:
    heuristics = OFFERS["triominos"].heuristics
    assert heuristics is not None
    assert heuristics.determinize is not None
    position = Position.start(Config(players=3), seed=(1, 2))
    chance = random.Random(1)
    while position.round == 0 and not position.is_terminal:
        actions = position.legal_actions()
        best = max(zip(heuristics.logits(position, actions), actions, strict=True))[1]
        gains = {action: position.action_view(action)["gain"] for action in actions}
        placements = [gain for action, gain in gains.items() if action < position.config.draw]
        assert gains[best] == max(placements or gains.values())
        seed, mover = chance.getrandbits(32), position.current_player
        world = heuristics.determinize(position, random.Random(seed))
        assert world.trays[mover] == position.trays[mover]
        assert [len(tray) for tray in world.trays] == [len(tray) for tray in position.trays]
        assert sorted(tile for tray in (*world.trays, world.pile) for tile in tray) == sorted(
            tile for tray in (*position.trays, position.pile) for tile in tray
        )
        assert world.legal_actions() == actions
        # Another deal of the hidden tiles gives the same worlds, so that nothing leaks.
        assert heuristics.determinize(world, random.Random(seed)) == world
        position = position.after(chance.choice(actions))


def test_room_counts_for_the_colour_with_more_corners() -> None:
    position = make_host_game("duo_official").init_from_deal(None)
    assert room_value(position) == pytest.approx([0.5, 0.5])
    cells = [(4, 9), (5, 9), (6, 9), (7, 9)]
    actions = {frozenset(map(tuple, position.action_view(action)["cells"])): action for action in position.legal_actions()}
    after = position.after(actions[frozenset(cells)])
    assert sum(room_value(after)) == pytest.approx(1)
    assert room_value(after) != heuristic_value(after)
