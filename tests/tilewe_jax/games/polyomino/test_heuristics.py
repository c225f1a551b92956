"""Features of placements against counting on sets of cells, and the strength of the heuristic policy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched, rows, slow
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES
from tilewe_jax.games.polyomino import heuristics
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.observation import unpack_boards
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.search.evaluators import best_of

SIZE = 9
SIDES, DIAGONALS = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))


def beside(cells: set[tuple[int, int]], steps: Any = SIDES) -> set[tuple[int, int]]:
    near = {(x + dx, y + dy) for x, y in cells for dx, dy in steps}
    return {(x, y) for x, y in near if 0 <= x < SIZE and 0 <= y < SIZE}


def features_by_counting(config: Config, state: Any, action: int) -> np.ndarray:
    """Count the features of a placement on sets of cells; append them times the fraction of pieces placed."""
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
    opponents = [color for color in range(len(pieces)) if color % config.players != mover % config.players]
    others = set().union(*map(open_to, opponents))
    enemies = set().union(*(pieces[color] for color in opponents))
    free = {(x, y) for x in range(config.size) for y in range(config.size)} - taken - beside(pieces[mover])
    edges = beside(cells) - cells
    new = (beside(cells, DIAGONALS) & free) - cells - edges - before

    def free_neighbors(corner: tuple[int, int]) -> int:
        return len(beside({corner}) & free)

    def is_far(corner: tuple[int, int]) -> bool:
        return all(max(abs(corner[0] - x), abs(corner[1] - y)) > 3 for x, y in mine)

    away = max(abs(along + 1 - (config.size - 1) / 2) for along in at)
    plies = sum(bin(config.full_hand & ~int(hand)).count("1") for hand in state.hands)
    features = heuristics.Features(
        opponent_corners_covered=len(cells & others),
        cells_beside_opponent_corners=len(cells & beside(others)),
        cells_near_opponent_corners=len(
            {cell for cell in cells if any(abs(cell[0] - x) + abs(cell[1] - y) <= 2 for x, y in others)}
        ),
        cells_beside_opponents=len(cells & beside(enemies)),
        edges_on_opponents=len(edges & enemies),
        corners_opened=len(new),
        corners_with_a_free_neighbor=sum(free_neighbors(corner) >= 1 for corner in new),
        corners_with_two_free_neighbors=sum(free_neighbors(corner) >= 2 for corner in new),
        corners_with_three_free_neighbors=sum(free_neighbors(corner) >= 3 for corner in new),
        corners_in_new_area=sum(map(is_far, new)),
        corners_beside_opponents=len(new & beside(enemies)),
        own_corners_covered=len(cells & mine),
        own_corners_wasted=len(edges & mine),
        free_cells_wasted=len(edges & free),
        centrality=-away * np.exp(-plies / (2 * len(pieces))),
    )
    one_hot = np.arange(len(PIECE_NAMES)) == ORIENTATIONS[orientation].piece
    phase = bin(config.full_hand & ~int(state.hands[mover])).count("1") / len(config.pieces)
    return np.outer([1, phase], [*features, *one_hot]).ravel()


@pytest.mark.parametrize(
    ("name", "options"),
    [slow("tilewe", {"players": 3}), slow("classic_2", {}), ("classic_2", {"pieces": FEW_PIECES})],
    ids=str,
)
def test_features_and_logits_equal_counts(name: str, options: dict[str, Any]) -> None:
    game = tilewe_jax.make(name, size=SIZE, **options)
    sample = jax.jit(jax.vmap(lambda state, key: game.sample_actions(state, key, 6)))
    evaluate = jax.jit(
        jax.vmap(lambda state, actions: (game.heuristic_features(state, actions), game.heuristic_logits(state, actions)))
    )
    weights = np.array(list(game.heuristic_weights.values())).T.ravel()
    state, compared = batched(game).init(jax.random.split(jax.random.key(0), 8)), 0
    for ply in range(14):
        keys = jax.random.split(jax.random.key(ply), 8)
        actions = sample(state, keys)
        if ply % 4 == 0:
            features, logits = map(np.asarray, evaluate(state, actions))
            for lane, place in np.argwhere(np.asarray(actions) >= 0):
                expected = features_by_counting(game.config, rows(state, lane), int(actions[lane, place]))
                np.testing.assert_allclose(features[lane, place], expected, atol=1e-5)
                np.testing.assert_allclose(logits[lane, place], expected @ weights, atol=1e-3)
                compared += 1
        state = batched(game).step(state, actions[:, ply % 3])
    assert compared > 100


@pytest.mark.parametrize("options", [slow({}), {"size": 8, "pieces": (*FEW_PIECES, "I3", "V5")}], ids=str)
def test_the_best_logit_of_a_sample_beats_random_play(options: dict[str, Any]) -> None:
    game = tilewe_jax.make("duo_official", **options)
    choose = best_of(game, 16)

    def play(key: Any) -> Any:
        def move(state: Any, step_key: Any) -> Any:
            key_best, key_random = jax.random.split(step_key)
            action = jnp.where(game.current_player(state) == 0, choose(state, key_best), game.sample_action(state, key_random))
            return game.apply(state, action), None

        state, _ = jax.lax.scan(move, game.init(key), jax.random.split(key, game.max_steps))
        return game.returns(state)

    assert float(jnp.mean(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), 64))[:, 0])) > 0.65
