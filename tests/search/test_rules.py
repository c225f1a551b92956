"""The exploration of PUCT, and the order in which Gumbel visits its actions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.search.tictactoe import State, TicTacToe
from tilewe_jax.search import Evaluation, PuctRule, Search, SearchSettings, dense_logits
from tilewe_jax.search.gumbel import schedule


def test_sequential_halving_table() -> None:
    table = schedule(4, 16)
    assert table[1].tolist() == list(range(16))
    assert table[4].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert table[2].tolist() == [n // 2 for n in range(16)]


def test_noise_temperature_and_forced_playouts() -> None:
    game = TicTacToe()
    state, keys = game.init(None), jax.random.split(jax.random.key(0), 64)

    def evaluate(params: Any, state: State, key: Any) -> Evaluation:
        return Evaluation(dense_logits(jnp.zeros(9).at[4].set(2.0)), jnp.full(2, 0.5))

    def run(rule: PuctRule) -> Any:
        return jax.jit(jax.vmap(Search(game, evaluate, rule, SearchSettings(40, 9)), in_axes=(None, 0)))(state, keys)

    plain = run(PuctRule())
    assert (np.asarray(plain.action) == 4).all()
    assert len({tuple(sorted(row)) for row in np.asarray(plain.visits).tolist()}) == 1
    noisy = run(PuctRule(dirichlet_alpha=0.3, temperature=1.0))
    assert len({tuple(sorted(row)) for row in np.asarray(noisy.visits).tolist()}) > 10
    assert len(set(np.asarray(noisy.action).tolist())) > 3
    forced = run(PuctRule(forced_playouts=2.0, dirichlet_alpha=0.3))
    shares = np.asarray(forced.policy)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    visited = np.asarray(forced.visits) / np.asarray(forced.visits).sum(axis=1, keepdims=True)
    assert (shares.max(axis=1) >= visited.max(axis=1) - 1e-6).all()
    assert (shares.max(axis=1) > visited.max(axis=1) + 1e-3).any()
