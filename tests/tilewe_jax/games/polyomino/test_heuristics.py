"""Features of placements against counting on sets of cells, and the strength of choosing by them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from search.evaluators import best_of
from tests.support import batched, rows
from tilewe_jax.games.polyomino import heuristics
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.observation import unpack_boards
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.lanes import per_lane

SIZE = 9
SIDES, DIAGONALS = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))


def beside(cells: set[tuple[int, int]], steps: Any = SIDES) -> set[tuple[int, int]]:
    near = {(x + dx, y + dy) for x, y in cells for dx, dy in steps}
    return {(x, y) for x, y in near if 0 <= x < SIZE and 0 <= y < SIZE}


def features_by_counting(config: Config, state: Any, action: int) -> heuristics.Features[float]:
    """The features of a placement, counted on sets of cells."""
    mover = int(state.current_color)
    pieces = [{(int(x), int(y)) for y, x in np.argwhere(board)} for board in np.asarray(unpack_boards(config, state.occupied))]
    taken, fresh = set().union(*pieces), int(state.hands[mover]) == config.full_hand

    def open_to(color: int) -> set[tuple[int, int]]:
        corners = beside(pieces[color], DIAGONALS)
        if int(state.hands[color]) == config.full_hand:
            corners = set(config.start_cells[color])
        return corners - taken - beside(pieces[color])

    orientation, cell = divmod(action, config.cells)
    at = cell % config.size, cell // config.size
    cells = {(at[0] + x, at[1] + y) for x, y in ORIENTATIONS[orientation].cells}
    mine = open_to(mover)
    before = set(config.start_cells[mover]) if fresh else beside(pieces[mover], DIAGONALS)
    closed = cells | beside(cells)
    opponents = [color for color in range(len(pieces)) if color % config.players != mover % config.players]
    others = set().union(*map(open_to, opponents))
    enemies = set().union(*(pieces[color] for color in opponents))
    free = {(x, y) for x in range(config.size) for y in range(config.size)} - taken - beside(pieces[mover])
    away = max(abs(along + 1 - (config.size - 1) / 2) for along in at)
    plies = sum(bin(config.full_hand & ~int(hand)).count("1") for hand in state.hands)
    return heuristics.Features(
        piece_size=len(cells),
        corners_opened=len((beside(cells, DIAGONALS) & free) - closed - before),
        corners_closed=len(mine & closed),
        opponent_corners_covered=len(cells & others),
        cells_beside_opponent_corners=len(cells & beside(others)),
        cells_beside_opponents=len(cells & beside(enemies)),
        centrality=-away * np.exp(-plies / (2 * len(pieces))),
    )


@pytest.mark.parametrize(
    ("name", "options"), [pytest.param("tilewe", {"players": 3}, marks=pytest.mark.slow), ("classic_2", {})]
)
def test_features_are_what_counting_finds(name: str, options: dict[str, int]) -> None:
    game = tilewe_jax.make(name, size=SIZE, **options)
    sample = jax.jit(jax.vmap(lambda state, key: game.sample_actions(state, key, 6)))
    weighted = per_lane(lambda state, actions, weights: heuristics.weighted_features(game.config, state, actions, weights))
    features = jax.jit(jax.vmap(jax.vmap(weighted, in_axes=(None, None, 0)), in_axes=(0, 0, None)))
    one_hot = jnp.eye(len(heuristics.Features._fields))
    state, compared = batched(game).init(jax.random.split(jax.random.key(0), 8)), 0
    for ply in range(14):
        keys = jax.random.split(jax.random.key(ply), 8)
        actions = sample(state, keys)
        if ply % 4 == 0:
            values = np.asarray(features(state, actions, one_hot))
            for lane in range(8):
                for place, action in enumerate(np.asarray(actions)[lane]):
                    if action >= 0:
                        expected = features_by_counting(game.config, rows(state, lane), int(action))
                        np.testing.assert_allclose(values[lane, :, place], expected, atol=1e-5)
                        compared += 1
        state = batched(game).step(state, actions[:, ply % 3])
    assert compared > 120


def test_the_best_logit_of_a_sample_beats_random_play() -> None:
    game = tilewe_jax.make("duo_official")
    choose = best_of(game, 16)

    def play(key: Any) -> Any:
        def move(state: Any, step_key: Any) -> Any:
            key_best, key_random = jax.random.split(step_key)
            action = jnp.where(game.current_player(state) == 0, choose(state, key_best), game.sample_action(state, key_random))
            return game.apply(state, action), None

        state, _ = jax.lax.scan(move, game.init(key), jax.random.split(key, game.max_steps))
        return game.returns(state)

    assert float(jnp.mean(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), 64))[:, 0])) > 0.8
