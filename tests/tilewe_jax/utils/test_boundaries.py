"""Trace-time checks of user functions: errors name the function, the expected and the given array."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tilewe_jax.search import Evaluation, puct_policy, uniform_logits
from tilewe_jax.search.evaluators import network_evaluator
from tilewe_jax.utils.boundaries import array, check_tree

GAME = TicTacToe()
KEY = jax.random.key(0)
SIZES = {"num_simulations": 2, "num_candidates": 2}


def bad_shape(params: Any, state: Any, key: Any) -> Evaluation:
    return Evaluation(uniform_logits, jnp.zeros(3, jnp.float32))


def bad_dtype(params: Any, state: Any, key: Any) -> Evaluation:
    return Evaluation(uniform_logits, jnp.zeros(2, jnp.int32))


def bad_logits(params: Any, state: Any, key: Any) -> Evaluation:
    return Evaluation(lambda actions: jnp.zeros(5, jnp.float32), jnp.zeros(2, jnp.float32))


def bad_tree(params: Any, state: Any, key: Any) -> Any:
    return jnp.zeros(2, jnp.float32)


@pytest.mark.untyped
@pytest.mark.parametrize(
    ("evaluator", "error", "message"),
    [
        (bad_shape, ValueError, r"bad_shape: expected value float32\[2\], got float32\[3\]"),
        (bad_dtype, TypeError, r"bad_dtype: expected value float32\[2\], got int32\[2\]"),
        (bad_logits, ValueError, r"bad_logits: expected logits float32\[\d+\], got float32\[5\]"),
        (bad_tree, TypeError, r"bad_tree: expected Evaluation"),
        (network_evaluator(GAME), ValueError, r"bad_network: expected values float32\[2\], got float32\[1\]"),
    ],
)
def test_evaluators_and_networks(evaluator: Any, error: type[Exception], message: str) -> None:
    def search(state: Any, key: Any) -> Any:
        return puct_policy(GAME, evaluator, state, key, params=jax.tree_util.Partial(bad_network), **SIZES)

    with pytest.raises(error, match=message):
        jax.eval_shape(search, GAME.init(KEY), KEY)


def bad_network(observation: Any) -> tuple[Any, Any]:
    return jnp.zeros(9, jnp.bfloat16), jnp.zeros(1, jnp.bfloat16)


def two_actions(state: Any, key: Any) -> Any:
    return jnp.zeros(2, jnp.int32)


class Flawed(TicTacToe):
    def legal_action_mask(self, state: Any) -> Any:
        return super().legal_action_mask(state)[:8]


@pytest.mark.untyped
def test_policies_and_own_games() -> None:
    with pytest.raises(ValueError, match=r"policy .*two_actions: .*shape \(2,\)"):
        jax.eval_shape(lambda key: tilewe_jax.rollout(GAME, key, 2, two_actions), KEY)
    game = Flawed()
    for call in (
        lambda: tilewe_jax.Environment(game).reset(KEY, 2),
        lambda: tilewe_jax.rollout(game, KEY, 2),
        lambda: puct_policy(game, bad_shape, game.init(KEY), KEY, **SIZES),
    ):
        with pytest.raises(ValueError, match=r"Flawed.legal_action_mask"):
            call()


def test_trees() -> None:
    expected = {"a": array(jnp.float32, 2), "key": jax.eval_shape(lambda: KEY)}
    check_tree("x", {"a": jnp.zeros(2), "key": KEY}, expected)
    check_tree("x", {"a": jnp.zeros((3, 2)), "key": jax.random.split(KEY, 3)}, expected, (3,))
    with pytest.raises(TypeError, match=r"x: expected PyTreeDef"):
        check_tree("x", {"a": jnp.zeros(2)}, expected)
