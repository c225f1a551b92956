"""The encoding for small networks, and logits of features, against counting single placements."""

from dataclasses import replace

import jax
import numpy as np

import tilewe_jax
from tests.support import batched, positions, rows
from tests.tilewe_jax.games.polyomino.reference import SMALL
from tilewe_jax.bits import unpack_words
from tilewe_jax.games.polyomino import heuristics
from tilewe_jax.games.polyomino.heuristics import Features, PerceptronWeights
from tilewe_jax.games.polyomino.pieces import PIECE_NAMES
from tilewe_jax.lanes import rule_per_lane
from tilewe_jax.networks.polyomino_mlp import PerceptronPolicy

GAME = tilewe_jax.make(SMALL[0], **SMALL[1])


def test_encoded_placements_equal_listed_placements() -> None:
    config, encode = GAME.config, jax.jit(jax.vmap(GAME.encode))
    to_cells = jax.jit(jax.vmap(lambda words: unpack_words(words, config.cells)))
    num_checked = 0
    for ply, (state, _) in enumerate(positions(GAME, 4)):
        if ply % 3 or bool(np.all(np.asarray(state.out))):
            continue
        encoding = encode(state)
        np.testing.assert_array_equal(encoding.color, state.current_color)
        for seat in range(config.colors):
            color = (state.current_color + seat) % config.colors
            # The mask reads the colour to move, but not the counts, which belong to another colour.
            legal = np.array(batched(GAME).legal_action_mask(replace(state, current_color=color)))
            legal[np.take_along_axis(np.asarray(state.out), np.asarray(color)[:, None], axis=1)[:, 0]] = False
            reachable = to_cells(encoding.reachable[:, seat])
            for lane in range(4):
                union, counts = np.zeros(config.cells, bool), np.zeros(len(PIECE_NAMES), int)
                for action in np.flatnonzero(legal[lane]).tolist():
                    union[[config.bit(cell) for cell in GAME.cells_of(action)]] = True
                    counts[PIECE_NAMES.index(GAME.piece_of(action))] += 1
                np.testing.assert_array_equal(reachable[lane], union)
                np.testing.assert_array_equal(encoding.legal[lane, seat], counts[list(config.pieces)])
                num_checked += counts.sum()
                own = int(color[lane])
                assert encoding.hands[lane, seat] == state.hands[lane, own]
                np.testing.assert_array_equal(encoding.cells[lane, seat], state.occupied[lane, own])
    assert num_checked > 500


def test_logits_equal_products_of_features() -> None:
    state = rows(next(state for ply, (state, _) in enumerate(positions(GAME, 4)) if ply == 6), slice(4))
    actions = jax.jit(jax.vmap(lambda state, key: GAME.sample_actions(state, key, 9)))(
        state, jax.random.split(jax.random.key(0), 4)
    )
    num_weights, hidden = len(GAME.heuristic_weights), 5
    shapes = (num_weights,), (len(Features._fields), hidden), (len(PIECE_NAMES), hidden), (hidden,)
    keys = jax.random.split(jax.random.key(1), len(shapes))
    weights = PerceptronWeights(*(jax.random.normal(key, (4, *shape)) for key, shape in zip(keys, shapes, strict=True)))
    linear = jax.jit(jax.vmap(rule_per_lane(heuristics.linear_logits, GAME.config)))(state, actions, weights.linear)
    logits = jax.jit(jax.vmap(rule_per_lane(heuristics.perceptron_logits, GAME.config)))(state, actions, weights)
    features = np.asarray(jax.jit(jax.vmap(GAME.heuristic_features))(state, actions))[..., :num_weights]
    units = np.einsum("bkf,bfh->bkh", features, np.concatenate([weights.features, weights.pieces], axis=1))
    expected = np.einsum("bkf,bf->bk", features, weights.linear)
    is_placement = np.asarray(actions >= 0)
    assert is_placement.sum() > 20
    np.testing.assert_allclose(linear[is_placement], expected[is_placement], atol=1e-3)
    expected += np.einsum("bkh,bh->bk", np.maximum(units, 0), weights.out)
    np.testing.assert_allclose(logits[is_placement], expected[is_placement], atol=1e-3)


def test_maps_add_their_values_at_cells_and_corners() -> None:
    config, interface = GAME.config, PerceptronPolicy(GAME, hidden=1)
    legal = np.flatnonzero(batched(GAME).legal_action_mask(jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 1)))[0])
    actions = [-1, *legal.tolist()]
    maps = np.random.default_rng(0).normal(size=(2, config.size, config.size)).astype(np.float32)
    state, others = GAME.init(jax.random.key(0)), np.zeros(interface.num_logits - maps.size, np.float32)
    gather = jax.jit(interface.gather_logits)
    with_maps = gather(state, np.concatenate([others, maps.ravel()]), np.array(actions, np.int32))
    without = gather(state, np.concatenate([others, np.zeros(maps.size, np.float32)]), np.array(actions, np.int32))

    def value(action: int) -> float:
        if action < 0:
            return 0.0
        cells = set(GAME.cells_of(action))
        beside = {(x + dx, y + dy) for x, y in cells for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        diagonal = {(x + dx, y + dy) for x, y in cells for dx in (1, -1) for dy in (1, -1)} - cells - beside
        on_board = [(x, y) for x, y in diagonal if 0 <= x < config.size and 0 <= y < config.size]
        return float(sum(maps[0, y, x] for x, y in cells) + sum(maps[1, y, x] for x, y in on_board))

    assert len(actions) > 10
    np.testing.assert_allclose(with_maps - without, [value(action) for action in actions], atol=1e-4)
