"""What placements look worth, against counting on sets of cells; and several random actions at once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewe_jax
from search.evaluators import best_of
from tests.support import batched, rows
from tilewe_jax.bits import systematic_sample
from tilewe_jax.games.polyomino import heuristics
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.lanes import per_lane

GAME = tilewe_jax.make("tilewe", players=3, size=9)
SIDES, DIAGONALS = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))


def beside(cells: set[tuple[int, int]], steps: Any = SIDES) -> set[tuple[int, int]]:
    size = GAME.config.size
    near = {(x + dx, y + dy) for x, y in cells for dx, dy in steps}
    return {(x, y) for x, y in near if 0 <= x < size and 0 <= y < size}


def counted(state: Any, action: int) -> list[float]:
    """The signs of a placement, in the order of ``heuristics.weigh``."""
    config, mover = GAME.config, int(state.current_player)
    pieces = [{(int(x), int(y)) for y, x in np.argwhere(board)} for board in np.asarray(GAME._dense(state))]
    taken, fresh = set().union(*pieces), int(state.hands[mover]) == config.full_hand

    def open_to(player: int) -> set[tuple[int, int]]:
        corners = beside(pieces[player], DIAGONALS)
        if int(state.hands[player]) == config.full_hand:
            corners = set(config.start_cells[player])
        return corners - taken - beside(pieces[player])

    orientation, cell = divmod(action, config.cells)
    at = cell % config.size, cell // config.size
    cells = {(at[0] + x, at[1] + y) for x, y in ORIENTATIONS[orientation].cells}
    mine = open_to(mover)
    before = set(config.start_cells[mover]) if fresh else beside(pieces[mover], DIAGONALS)
    closed = cells | beside(cells)
    others = set().union(*(open_to(player) for player in range(config.players) if player != mover))
    enemies = set().union(*(board for player, board in enumerate(pieces) if player != mover))
    free = {(x, y) for x in range(config.size) for y in range(config.size)} - taken - beside(pieces[mover])
    away = max(abs(along + 1 - (config.size - 1) / 2) for along in at)
    plies = sum(bin(config.full_hand & ~int(hand)).count("1") for hand in state.hands)
    return [
        len(cells),
        len((beside(cells, DIAGONALS) & free) - closed - before),
        len(mine & closed),
        len(cells & others),
        len(cells & beside(others)),
        len(cells & beside(enemies)),
        -away * np.exp(-plies / (2 * config.players)),
    ]


def test_signs_are_what_counting_finds() -> None:
    several = jax.jit(jax.vmap(lambda state, key: GAME.sample_actions(state, key, 6)))
    weigh = per_lane(lambda state, actions, worth: heuristics.weigh(GAME.config, state, actions, worth))
    signs = jax.jit(jax.vmap(jax.vmap(weigh, in_axes=(None, None, 0)), in_axes=(0, 0, None)))
    state, seen = batched(GAME).init(jax.random.split(jax.random.key(0), 8)), 0
    for ply in range(14):
        keys = jax.random.split(jax.random.key(ply), 8)
        actions = several(state, keys)
        if ply % 4 == 0:
            found = np.asarray(signs(state, actions, jnp.eye(7)))
            for lane in range(8):
                for place, action in enumerate(np.asarray(actions)[lane]):
                    if action >= 0:
                        np.testing.assert_allclose(found[lane, :, place], counted(rows(state, lane), int(action)), atol=1e-5)
                        seen += 1
        state = batched(GAME).step(state, actions[:, ply % 3])
    assert seen > 120


def test_the_best_at_a_glance_beats_chance() -> None:
    game = tilewe_jax.make("duo_official")
    choose = best_of(game, 16)

    def play(key: Any) -> Any:
        def move(state: Any, now: Any) -> Any:
            one, other = jax.random.split(now)
            action = jnp.where(game.current_player(state) == 0, choose(state, one), game.sample_action(state, other))
            return game.apply(state, action), None

        state, _ = jax.lax.scan(move, game.init(key), jax.random.split(key, game.max_steps))
        return game.returns(state)

    assert float(jnp.mean(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), 64))[:, 0])) > 0.8


_spread = jax.jit(systematic_sample, static_argnums=2)


@settings(max_examples=200, deadline=None)
@given(total=st.integers(0, 5000), count=st.sampled_from([1, 5, 64]), bits=st.integers(0, 2**32 - 1))
def test_spread_numbers_are_different_and_in_range(total: int, count: int, bits: int) -> None:
    numbers = np.asarray(_spread(np.uint32(bits), np.int32(total), count))
    real = numbers[numbers >= 0]
    assert len(real) == len(set(real.tolist())) == min(total, count)
    assert ((real >= 0) & (real < total)).all()
    if total <= count:
        assert real.tolist() == list(range(total))


@pytest.mark.parametrize(("total", "count"), [(7, 3), (10, 4), (9, 8)])
def test_each_number_is_as_likely(total: int, count: int) -> None:
    starts = ((np.arange(total) * 2**32 + 2**31) // total).astype(np.uint32)
    numbers = jax.vmap(lambda bits: systematic_sample(bits, jnp.int32(total), count))(jnp.asarray(starts))
    assert (np.bincount(np.asarray(numbers).ravel(), minlength=total) == count).all()
