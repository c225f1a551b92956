"""PPO: returns by seat, the clipped objective, the inputs of the critic, and learning."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments.ppo import __main__ as ppo
from experiments.ppo.__main__ import Settings
from tests.search.tictactoe import TicTacToe
from tests.support import assert_same
from tilewe_jax.game import state_shapes
from tilewe_jax.networks import weights

TICTACTOE = "tests.search.tictactoe:TicTacToe"


def settings(folder: Path, game: str, **given: Any) -> Settings:
    sizes: dict[str, Any] = {
        "num_games": 8,
        "unroll_length": 12,
        "num_candidates": 9,
        "batch_size": 16,
        "chunk": 8,
        "eval_games": 64,
    }
    return replace(Settings(folder, game, size="tiny", critic_size="tiny", **sizes), **given)


def test_returns_are_generalized_advantage_estimates_by_seat() -> None:
    rng = np.random.default_rng(0)
    steps, games, players, decay = 9, 4, 3, 0.8
    values = rng.random((steps + 1, games, 2, players)).astype(np.float32)
    outcome = rng.random((steps, games, 2, players)).astype(np.float32)
    ended = rng.random((steps, games)) < 0.3
    ended[5, 0] = True
    expected = np.zeros((steps, games, 2, players))
    advantage = np.zeros((games, 2, players))
    for step in reversed(range(steps)):
        over = ended[step, :, None, None]
        error = np.where(over, outcome[step], values[step + 1]) - values[step]
        expected[step] = advantage = error + np.where(over, 0.0, decay * advantage)
    given = jnp.asarray(values[:-1]), jnp.asarray(values[-1]), jnp.asarray(ended), jnp.asarray(outcome)
    np.testing.assert_allclose(ppo.lambda_returns(*given, decay) - values[:-1], expected, atol=1e-5)

    whole = np.asarray(ppo.lambda_returns(*given, 1.0))
    first = int(np.argmax(ended[:, 0]))
    np.testing.assert_allclose(whole[: first + 1, 0], np.broadcast_to(outcome[first, 0], whole[: first + 1, 0].shape))


def test_objective_is_clipped() -> None:
    cases = [(1.5, 2.0, 2.4), (1.5, -2.0, -3.0), (0.5, 2.0, 1.0), (0.5, -2.0, -1.6), (1.1, 2.0, 2.2)]
    for ratio, advantage, objective in cases:
        assert float(ppo.clipped_surrogate(jnp.float32(ratio), jnp.float32(advantage), 0.2)) == pytest.approx(objective)


def test_learning_starts_at_the_policy_that_played(tmp_path: Path) -> None:
    """Before the first step, ratios are 1, the magnet equals the policy, and returns are outcomes for the mover."""
    given = settings(tmp_path, TICTACTOE, iterations=0, gae_lambda=1.0)
    learner, game = ppo.learn(given), TicTacToe()
    _, positions, ended = jax.jit(partial(ppo.play, game, given))(learner, jax.random.key(0))
    assert int(ended) > 4
    parts = jax.jit(jax.vmap(lambda position: ppo.loss(game, given, learner.models, position)[1]))(positions)
    np.testing.assert_allclose(parts["surrogate"], positions.advantage, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts["magnet"], 0, atol=1e-5)

    action = jnp.take_along_axis(positions.candidates, positions.choice[:, None], axis=1)[:, 0]
    after = jax.vmap(game.apply)(positions.state, action)
    over = np.asarray(jax.vmap(game.is_terminal)(after))
    outcome, mover = jax.vmap(game.returns)(after), positions.state.current_player
    own = jnp.take_along_axis(outcome, mover[:, None].astype(jnp.int32), axis=1)[:, 0]
    np.testing.assert_allclose(positions.values[over, 0, 0], own[over])
    learned = np.asarray(ppo.has_choice(positions))
    assert abs(np.asarray(positions.advantage)[learned].mean()) < 1e-4


def test_critic_observes_all_trays_and_actor_its_own() -> None:
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=3)

    @jax.jit
    def look() -> Any:
        state = game.init(jax.random.key(0))
        player = game.current_player(state)
        states = state, game.determinize(state, player, jax.random.key(1))
        inputs = [[ppo.critic_input(game, critic, state) for state in states] for critic in ("full", "observed")]
        return [game.observe(state, player) for state in states], *inputs

    observations, full, observed = jax.device_get(look())
    np.testing.assert_array_equal(*observations)
    np.testing.assert_array_equal(*observed)
    assert (full[0] != full[1]).any()
    np.testing.assert_array_equal(full[0][0], observations[0])
    assert len(full[0]) == 3
    santorini = tilewe_jax.make("santorini")  # hides nothing
    assert jax.eval_shape(partial(ppo.critic_input, santorini, "full"), state_shapes(santorini)).shape[0] == 1


def test_resumed_run_is_bit_exact(tmp_path: Path) -> None:
    whole = ppo.learn(settings(tmp_path / "whole", TICTACTOE, iterations=2))
    ppo.learn(settings(tmp_path / "parts", TICTACTOE, iterations=1))
    again = ppo.learn(settings(tmp_path / "parts", TICTACTOE, iterations=2))
    assert_same(again, whole)
    assert any(bool(jnp.any(a != b)) for a, b in zip(*map(jax.tree.leaves, (whole.models[0], whole.magnet)), strict=True))


def test_network_learns_to_beat_random_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "--size tiny --critic-size tiny --num-games 128 --unroll-length 16 --num-candidates 9 --batch-size 128 --chunk 128"
    text += " --entropy-weight 0.05 --learning-rate 0.003 --iterations 30 --opponent random --eval-every 30 --eval-games 256"
    ppo.main(["--out", str(tmp_path), "--game", TICTACTOE, *text.split()])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if " wins " in line)
    assert float(line.split(" wins ")[1].split()[0]) > 0.85
    assert weights.find(str(tmp_path)) == tmp_path / "weights" / "000030.npz"
