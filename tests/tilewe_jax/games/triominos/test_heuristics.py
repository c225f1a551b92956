"""The heuristics of Triominos against features counted by trying all placements on the host."""

from collections.abc import Collection
from copy import deepcopy
from typing import Any

import jax
import numpy as np

import tilewe_jax
from tests.support import rows
from tilewe_jax.games.triominos.figure import Figure, read_placement
from tilewe_jax.games.triominos.tiles import ORIENTATIONS, Tile, corners, neighbours

GAME = tilewe_jax.make("triominos", tiles=20, tray=4)
PLIES, BATCH, ACTIONS = 9, 6, 12


def num_places(figure: Figure, tiles: Collection[Tile]) -> int:
    """Number of distinct placements of tiles."""
    frontier = {cell for taken in figure.tiles for cell in neighbours(taken)} - figure.tiles.keys()
    return len(
        {
            (cell, corners(tile, orientation))
            for cell in frontier
            for tile in tiles
            for orientation in range(len(ORIENTATIONS))
            if figure.broken_rule(tile, orientation, cell) is None
        }
    )


def features(position: Any, action: int) -> list[float]:
    """The ``heuristics.LOGIT_FEATURES`` of an action."""
    what = position.describe(action)
    if isinstance(what, str):
        draws = what == "draw"
        return [0, 0, 0, 0, 0, draws, draws * position.draws, what == "pass"]
    mover = position.current_player
    tile, orientation, cell = read_placement(what)
    figure = deepcopy(position.figure)
    figure.place(tile, orientation, cell)
    own = set(position.trays[mover]) - {tile}
    unseen = {*position.pile, *(tile for seat, tray in enumerate(position.trays) if seat != mover for tile in tray)}
    after, gained = position.after(action), 0
    if not after.is_terminal:  # the end of a round scores further points
        gained = after.scores()[mover] - position.scores()[mover]
    places = num_places(figure, unseen)
    kept = {1: 6, 2: 3, 3: 0}[len(set(tile))]
    return [gained / 10, kept / 3, num_places(figure, own) / 10, places / 100, places / max(len(unseen), 1), 0, 0, 0]


def test_features_of_actions() -> None:
    sample = jax.jit(jax.vmap(lambda state, key: GAME.sample_actions(state, key, ACTIONS)))
    look = jax.jit(
        jax.vmap(lambda state, actions: (GAME.heuristic_features(state, actions), GAME.heuristic_logits(state, actions)))
    )
    step = jax.jit(jax.vmap(lambda state, key: GAME.step(state, GAME.sample_action(state, key))))
    states = jax.jit(jax.vmap(GAME.init))(jax.random.split(jax.random.key(0), BATCH))
    weights = np.array(list(GAME.heuristic_weights.values())).T.ravel()
    kinds = set()
    for ply in range(PLIES):
        keys = jax.random.split(jax.random.key(ply + 1), BATCH)
        actions = sample(states, keys)
        both, logits = jax.device_get(look(states, actions))
        for lane, index in zip(*np.nonzero(np.asarray(actions) >= 0), strict=True):
            position = GAME.host(rows(states, lane))
            action = int(actions[lane, index])
            expected = features(position, action)
            start, slope = np.split(both[lane, index], 2)
            if position.after(action).is_terminal:
                expected[0] = start[0]
            np.testing.assert_allclose(start, expected, atol=1e-5)
            np.testing.assert_allclose(slope, start * len(position.placements) / 20, atol=1e-5)
            np.testing.assert_allclose(logits[lane, index], both[lane, index] @ weights, rtol=1e-4, atol=1e-3)
            kinds.add(str(position.describe(action)) if isinstance(position.describe(action), str) else "place")
        states = step(states, keys)
    assert kinds >= {"place", "draw"}


def test_playout_action_is_the_best_of_few_actions() -> None:
    def play(state: Any, key: Any) -> tuple[Any, Any]:
        action, legal = GAME.playout_action(state, key), GAME.legal_list(state, 8)
        return GAME.step(state, action), (action, GAME.num_legal(state), legal, GAME.heuristic_logits(state, legal))

    step = jax.jit(jax.vmap(play))
    states = jax.jit(jax.vmap(GAME.init))(jax.random.split(jax.random.key(0), 32))
    num_legal = set()
    for ply in range(25):
        states, (actions, counts, legal, logits) = jax.device_get(step(states, jax.random.split(jax.random.key(ply + 1), 32)))
        for lane in np.flatnonzero(counts <= 8):
            if counts[lane] == 0:
                assert actions[lane] == -1
                continue
            index = list(legal[lane]).index(actions[lane])
            assert logits[lane, index] == max(logits[lane, : counts[lane]])
            num_legal.add(int(counts[lane]))
    assert num_legal >= {1, 2, 3, 4}
