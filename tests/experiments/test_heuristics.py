"""Learning linear heuristics in a game whose best weights are known."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.heuristics.__main__ import Settings, learn, natural_gradient, table
from tests.search.tictactoe import TicTacToe

PLANTED = np.array([1.0, -2.0, 0.0, 0.5], np.float32)
PLIES, ACTIONS = 8, 6


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    ply: Any
    points: Any
    key: Any


class Draft:
    """Two players take turns to pick one of six vectors; the larger sum along ``PLANTED`` wins."""

    id = "draft"
    num_players = 2

    @property
    def heuristic_weights(self) -> dict[str, tuple[float, ...]]:
        return dict.fromkeys("abcd", (0.0,))

    def init(self, key: Any) -> State:
        return State(jnp.int32(0), jnp.zeros(2), key)

    def vectors(self, state: State) -> Any:
        return jax.random.normal(jax.random.fold_in(state.key, state.ply), (ACTIONS, len(PLANTED)))

    def sample_actions(self, state: State, key: Any, k: int) -> Any:
        available = jnp.where(jnp.arange(k) < ACTIONS, jnp.arange(k), -1)
        return jnp.where(self.is_terminal(state), -1, available)

    def heuristic_features(self, state: State, actions: Any) -> Any:
        return self.vectors(state)[jnp.clip(actions, 0, ACTIONS - 1)]

    def apply_deferred(self, state: State, action: Any) -> State:
        gain = self.vectors(state)[action] @ PLANTED
        return replace(state, ply=state.ply + 1, points=state.points.at[state.ply % 2].add(gain))

    def current_player(self, state: State) -> Any:
        return state.ply % 2

    def is_terminal(self, state: State) -> Any:
        return state.ply >= PLIES

    def returns(self, state: State) -> Any:
        return (state.points == jnp.max(state.points)).astype(jnp.float32)

    def heuristic_value(self, state: State) -> Any:
        return jax.nn.softmax(state.points)


def settings(folder: Path, steps: int) -> Settings:
    return Settings(folder, steps=steps, games=512, batch=256, num_samples=8, random_plies=1, pool_interval=2)


@pytest.mark.untyped  # its game has only what the learner asks for
def test_planted_weights_are_recovered_and_a_stopped_run_continues_as_if_it_had_not(tmp_path: Path) -> None:
    given = settings(tmp_path / "whole", 6)
    learned = learn(Draft(), given)
    cosine = learned.weights @ PLANTED / np.linalg.norm(learned.weights) / np.linalg.norm(PLANTED)
    assert cosine > 0.98, learned.weights
    assert len(learned.pool) == 4

    learn(Draft(), settings(tmp_path / "parts", 3))
    again = learn(Draft(), settings(tmp_path / "parts", 6))
    np.testing.assert_array_equal(again.weights, learned.weights)
    np.testing.assert_array_equal(again.pool, learned.pool)

    numbers = ast.literal_eval(table(Draft(), given, learned))
    np.testing.assert_allclose(np.ravel([*numbers.values()]), learned.weights * 2.7 / learned.spread, atol=0.006)


def test_the_natural_gradient_is_a_regression_and_is_kept_within_the_divergence() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 4)) * np.array([1, 2, 1, 0])  # the last feature never differs
    outcomes = scores @ PLANTED + rng.normal(size=4000)
    free = Settings(Path(), learning_rate=1, max_divergence=100)
    step, divergence = natural_gradient(scores, outcomes, free)
    np.testing.assert_allclose(step, PLANTED * [1, 1, 1, 0], atol=0.06)
    kept, _ = natural_gradient(scores, outcomes, replace(free, max_divergence=divergence / 4))
    np.testing.assert_allclose(kept, step / 2)


def test_games_without_linear_heuristics_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not linear"):
        learn(TicTacToe(), settings(tmp_path, 1))
