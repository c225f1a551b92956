"""The engine of Triominos against a slow reference, recorded rounds, and what players may and may not know."""

import random
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests import triominos_reference as reference
from tests.support import rows
from tilewe_jax.games.triominos.tiles import corners, tile_id

LANES = 16
# All numbers of players, both sets, every way to start, single rounds and whole games.
VARIANTS = [
    {"players": 2, "tiles": 56, "start": "random"},
    {"players": 2, "tiles": 84, "start": "winner", "game": "target"},
    {"players": 3, "tiles": 56, "start": "highest", "game": "target"},
    {"players": 4, "tiles": 84, "start": "highest"},
    {"players": 5, "tiles": 56, "start": "winner", "game": "target"},
    {"players": 6, "tiles": 84, "start": "random", "game": "target"},
    {"players": 6, "tiles": 56, "start": "highest", "hex_scores": (50, 60, 70)},
]


@cache
def compiled(game: Any) -> SimpleNamespace:
    """What the tests ask of a batch of games."""

    def look(state: Any) -> tuple[Any, ...]:
        return game.compact_mask(state), game.compact_actions(state), game.is_terminal(state), game.returns(state)

    return SimpleNamespace(init=jax.jit(jax.vmap(game.init)), look=jax.jit(jax.vmap(look)), step=jax.jit(jax.vmap(game.step)))


def action_of(game: Any, played: reference.Round, placement: reference.Placement) -> int:
    """The number of a placement, from the written definition of actions."""
    config, (tile, orientation, cell) = game.config, placement
    if not played.board:
        return config.first + tile_id(tile)
    free = 2 if played.neighbour(cell, "left") else 0 if played.neighbour(cell, "right") else 1
    return config.wrapped(cell) * config.numbers + corners(tile, orientation)[free]


def legal(game: Any, played: reference.Round) -> dict[int, Any]:
    """The legal actions of the reference. The first tile lies on (0, 0) as ABC; a triple has one action a cell."""
    found: dict[int, Any] = {
        action_of(game, played, placement): placement
        for placement in played.placements()
        if played.board or placement[1:] == (0, (0, 0))
    }
    if played.may_draw:
        found[game.config.draw] = "draw"
    if played.may_pass:
        found[game.config.pass_] = "pass"
    return found


def round_of(game: Any, state: Any, scores: list[int]) -> reference.Round:
    """The reference at the start of a round of the engine."""
    config = game.config
    order = [config.tile_list[tile] for tile in np.argsort(state.order)]
    hands = [order[i * config.dealt : (i + 1) * config.dealt] for i in range(config.players)]
    played = reference.Round(
        hands, order[: config.players * config.dealt - 1 : -1], int(state.starter), config.start == "highest", config.hex_scores
    )
    played.scores = list(scores)
    return played


def play(played: reference.Round, what: Any) -> None:
    if what == "draw":
        played.draw()
    elif what == "pass":
        played.pass_()
    else:
        played.place(what)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_whole_games_against_the_reference(options: dict[str, Any]) -> None:
    """Legal actions, players, trays, scores, ends, the next round and its starter, in every position."""
    game = tilewe_jax.make("triominos", **options)
    config, functions, rng = game.config, compiled(game), random.Random(0)
    state = functions.init(jax.random.split(jax.random.key(1), LANES))
    host = jax.device_get(state)
    games = [round_of(game, rows(host, lane), [0] * config.players) for lane in range(LANES)]
    numbers, over, positions, rounds = [0] * LANES, [False] * LANES, 0, 0
    while not all(over):
        masks, actions, ended, returns = jax.device_get(functions.look(state))
        host, chosen = jax.device_get(state), np.full(LANES, -1, np.int32)
        for lane, played in enumerate(games):
            assert host.scores[lane].tolist() == played.scores
            if over[lane]:
                assert ended[lane]
                assert not masks[lane].any()
                continue
            expected = legal(game, played)
            found = actions[lane][masks[lane]].tolist()
            assert len(found) == len(set(found))
            assert set(found) == set(expected)
            assert not ended[lane]
            assert not returns[lane].any()
            assert host.current_player[lane] == played.player
            assert sum(int(row).bit_count() for row in host.trays[lane].ravel()) == sum(map(len, played.hands))
            assert config.tiles - host.drawn[lane] == len(played.pile)
            positions += 1
            placements = [action for action in expected if action < config.draw]
            chosen[lane] = rng.choice(placements if placements and rng.random() < 0.7 else list(expected))
            play(played, expected[int(chosen[lane])])
        state = functions.step(state, chosen)
        host, ended, returns = jax.device_get((state, *functions.look(state)[2:]))
        for lane, played in enumerate(games):
            if over[lane] or not played.reason:
                continue
            rounds += 1
            best = max(played.scores)
            over[lane] = config.game == "single" or best >= config.target or numbers[lane] == config.max_rounds - 1
            if over[lane]:
                assert ended[lane]
                winners = [score == best for score in played.scores]
                np.testing.assert_allclose(returns[lane], np.array(winners) / sum(winners), rtol=1e-6)
                continue
            numbers[lane] += 1
            after = rows(host, lane)
            assert int(after.round) == numbers[lane]
            games[lane] = round_of(game, after, played.scores)
            if config.start != "random":
                may = played.winners if config.start == "winner" else reference.starters(games[lane].hands)
                assert games[lane].player in may
    assert positions > 600
    assert rounds >= (LANES if config.game == "single" else 2 * LANES)
