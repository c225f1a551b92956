"""The sampling of candidate actions against the distributions that it must have."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import BATCH, TicTacToe, opening
from tests.support import assert_same, rows
from tilewe_jax.search import dense_logits, sample_candidates, uniform_logits
from tilewe_jax.search.candidates import Widening


def drawn(logits: Any, k: int, draws: int, pool: int = 9) -> tuple[np.ndarray, Any]:
    """Return the legal actions of a position with seven, and many draws of its candidates."""
    game = TicTacToe()
    state = rows(opening(game, 2, 5), 0)
    many = jax.jit(jax.vmap(lambda key: sample_candidates(game, state, logits, key, k, pool)))
    return np.flatnonzero(np.asarray(game.legal_action_mask(state))), many(jax.random.split(jax.random.key(0), draws))


def assert_drawn(counts: np.ndarray, share: Any, draws: int) -> None:
    assert np.abs((counts / draws - share) / (share * (1 - share) / draws) ** 0.5).max() < 4.5


def test_candidates_are_sampled_by_priors_without_replacement() -> None:
    logits, draws = 0.4 * jnp.arange(9.0), 4000
    legal, candidates = drawn(dense_logits(logits), 3, draws)
    actions = np.asarray(candidates.actions)
    assert np.isin(actions, legal).all()
    assert all(len(set(row)) == 3 for row in actions.tolist())
    np.testing.assert_array_equal(candidates.logits, np.asarray(logits)[actions])
    weights = np.exp(np.asarray(logits))
    np.testing.assert_allclose(candidates.truncated_prior, 1 - weights[actions].sum(axis=1) / weights[legal].sum(), atol=1e-5)
    assert (np.asarray(candidates.num_truncated) == 4).all()
    assert_drawn(np.bincount(actions[:, 0], minlength=9)[legal], weights[legal] / weights[legal].sum(), draws)
    _, same = drawn(lambda actions: 0.4 * actions.astype(jnp.float32), 3, draws)
    np.testing.assert_allclose(same.logits, candidates.logits, rtol=1e-6)


def test_uniform_candidates_are_equally_likely() -> None:
    legal, candidates = drawn(uniform_logits, 3, 4000)
    actions = np.asarray(candidates.actions)
    assert all(len(set(row)) == 3 for row in actions.tolist())
    assert_drawn(np.bincount(actions.ravel(), minlength=9)[legal], 3 / 7, 4000)
    np.testing.assert_allclose(candidates.truncated_prior, 4 / 7, rtol=1e-5)
    assert (np.asarray(candidates.num_truncated) == 4).all()


def test_all_actions_are_candidates_if_they_fit() -> None:
    for logits in (uniform_logits, dense_logits(jnp.arange(9.0))):
        legal, candidates = drawn(logits, 9, 2)
        for actions, values in zip(np.asarray(candidates.actions), np.asarray(candidates.logits), strict=True):
            assert sorted(actions.tolist()) == sorted([*legal.tolist(), -1, -1])
            assert (np.isinf(values) == (actions < 0)).all()
        assert np.abs(np.asarray(candidates.truncated_prior)).max() < 1e-6
        assert not np.asarray(candidates.num_truncated).any()


@pytest.mark.parametrize(("node", "root"), [(4, 9), (5, 9), (9, 4), (3, 3)])
def test_roots_have_a_pool_of_their_own(node: int, root: int) -> None:
    """Pools of different sizes are scored in parts; the candidates are those of the pool alone, of the larger one at roots."""

    @partial(jax.jit, static_argnums=0)
    def candidates(pools: tuple[int, ...], is_wide: Any) -> Any:
        def sample(state: Any, key: Any) -> Any:
            return sample_candidates(
                game, state, logits, key, 3, pools[0], False, *(Widening(size, is_wide) for size in pools[1:])
            )

        return jax.vmap(sample)(states, jax.random.split(jax.random.key(0), BATCH))

    game = tilewe_jax.make("santorini", size=3)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(1), BATCH))
    logits = dense_logits(jnp.linspace(0, 1, game.num_actions))
    legal = np.asarray(jax.vmap(game.num_legal)(states))
    for is_wide, pool in ((False, node), (True, max(node, root))):
        chosen = candidates((node, root), is_wide)
        np.testing.assert_array_equal(chosen.is_narrow, (legal > node) & (node < root) & (not is_wide))
        assert_same(chosen._replace(is_narrow=None), candidates((pool,), False)._replace(is_narrow=None))


def test_kept_candidates_keep_their_places() -> None:
    """The free places get the best of the other actions; kept actions outside of the pool get its lowest logit."""
    game, states, kept = TicTacToe(), opening(TicTacToe(), 2, 5), jnp.array([-1, 4, -1, 7], jnp.int32)
    states = jax.tree.map(lambda leaf: leaf[(states.cells[:, 4] < 0) & (states.cells[:, 7] < 0)], states)
    logits = 100.0 * jnp.arange(9.0)  # more than the noise of the sample

    def sample(state: Any, key: Any, root: int = 9) -> Any:
        return sample_candidates(game, state, dense_logits(logits), key, 4, 4, False, Widening(root, True, kept))

    keys = jax.random.split(jax.random.key(0), len(states.cells))
    for cells, actions, values in zip(states.cells, *jax.vmap(sample)(states, keys)[:2], strict=True):
        others = [action for action in range(8, -1, -1) if cells[action] < 0 and action not in (4, 7)]
        assert actions.tolist() == [others[0], 4, others[1], 7]
        np.testing.assert_array_equal(values, logits[actions])
    actions, values = jax.vmap(partial(sample, root=5))(states, keys)[:2]
    assert (np.asarray(actions)[:, [1, 3]] == [4, 7]).all()
    assert all(len(set(row)) == 4 for row in actions.tolist())
    assert np.isfinite(np.asarray(values)).all()


def test_candidate_pool_is_a_uniform_sample() -> None:
    """Five of seven actions are scored; the mass of all actions is estimated as 7/5 of the mass of the pool."""
    logits, draws = 0.4 * jnp.arange(9.0), 4000
    legal, candidates = drawn(dense_logits(logits), 2, draws, pool=5)
    actions, weights = np.asarray(candidates.actions), np.exp(np.asarray(logits))
    assert np.isin(actions, legal).all()
    assert (actions[:, 0] != actions[:, 1]).all()
    exact = 1 - weights[actions].sum(axis=1) / weights[legal].sum()
    assert abs(float(np.mean(candidates.truncated_prior)) - exact.mean()) < 0.02
    assert (np.asarray(candidates.num_truncated) == 5).all()
