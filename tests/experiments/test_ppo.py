"""PPO: returns by seat, the clipped objective, what the critic sees, and that it learns."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments.ppo import policy_gradient, ppo
from experiments.ppo.policy_gradient import Settings
from tests.support import assert_same
from tilewe_jax import agents, arena
from tilewe_jax.game import state_shapes
from tilewe_jax.networks import weights

TICTACTOE = "tests.search.tictactoe:TicTacToe"
TRIOMINOS = ("players=3", "tiles=20", "tray=3")


def settings(folder: Path, game: str, **given: Any) -> Settings:
    tiny = Settings(
        folder,
        game,
        size="tiny",
        critic_size="tiny",
        num_games=8,
        unroll_length=12,
        num_candidates=9,
        batch_size=16,
        chunk=8,
        eval_games=64,
    )
    return replace(tiny, **given)


def test_returns_are_generalized_advantage_estimates_by_seat() -> None:
    rng = np.random.default_rng(0)
    steps, games, players, decay = 9, 4, 3, 0.8
    values = rng.random((steps + 1, games, 2, players)).astype(np.float32)
    outcome = rng.random((steps, games, 2, players)).astype(np.float32)
    ended = rng.random((steps, games)) < 0.3
    ended[5, 0] = True
    expected = np.zeros((steps, games, 2, players))
    for game in range(games):
        for head in range(2):
            for seat in range(players):
                advantage = 0.0
                for step in reversed(range(steps)):
                    after = outcome[step, game, head, seat] if ended[step, game] else values[step + 1, game, head, seat]
                    error = after - values[step, game, head, seat]
                    advantage = error + (0.0 if ended[step, game] else decay * advantage)
                    expected[step, game, head, seat] = advantage
    given = jnp.asarray(values[:-1]), jnp.asarray(values[-1]), jnp.asarray(ended), jnp.asarray(outcome)
    returns = policy_gradient.lambda_returns(*given, decay)
    np.testing.assert_allclose(returns - values[:-1], expected, atol=1e-5)

    whole = np.asarray(policy_gradient.lambda_returns(*given, 1.0))
    first = int(np.argmax(ended[:, 0]))
    np.testing.assert_allclose(whole[: first + 1, 0], np.broadcast_to(outcome[first, 0], whole[: first + 1, 0].shape))


@pytest.mark.parametrize(
    ("ratio", "advantage", "objective", "is_clipped"),
    [(1.5, 2.0, 2.4, True), (1.5, -2.0, -3.0, False), (0.5, 2.0, 1.0, False), (0.5, -2.0, -1.6, True), (1.1, 2.0, 2.2, False)],
)
def test_the_objective_is_clipped(ratio: float, advantage: float, objective: float, is_clipped: bool) -> None:
    value, clipped = policy_gradient.clipped_surrogate(jnp.float32(ratio), jnp.float32(advantage), 0.2)
    assert float(value) == pytest.approx(objective)
    assert bool(clipped) == is_clipped


def test_learning_begins_at_the_policy_that_played(tmp_path: Path) -> None:
    """Before the first step ratios are 1 and the magnet is the policy; advantages are those of the mover, from its outcome."""
    given = settings(tmp_path, "triominos", options=TRIOMINOS, unroll_length=48, gae_lambda=1.0)
    given = replace(given, opponent="greedy_hoard", opponent_fraction=0.5)
    program = ppo.Program(given)
    game, learner = program.game, program.begin()
    _, positions, numbers = program.play(learner, jax.random.key(0), program.opponent)
    assert int(numbers["games"]) > 8
    shape = given.unroll_length, given.num_games
    assert positions.choice.shape == (shape[0] * shape[1],)

    models = learner.actor, learner.critic
    loss = jax.jit(jax.vmap(lambda position: policy_gradient.position_loss(game, given, models, position)[1]))
    metrics = loss(positions)
    np.testing.assert_allclose(metrics.surrogate, positions.advantage, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(metrics.magnet, 0, atol=1e-5)
    assert not bool(jnp.any(metrics.clipped > 0))
    count = np.asarray(jnp.sum(positions.candidates >= 0, axis=1))
    assert (np.asarray(metrics.entropy) <= np.log(count) + 1e-5).all()

    # The action drawn leads from each position to the next in the same game, where it was the policy's move.
    action = jnp.take_along_axis(positions.candidates, positions.choice[:, None], axis=1)[:, 0]
    after = jax.jit(jax.vmap(game.apply))(positions.state, action)
    ended = np.asarray(jax.vmap(game.is_terminal)(after)).reshape(shape)
    seats = np.asarray(positions.state.current_player).reshape(shape)
    is_opponent = (np.arange(8) < 4) & (seats != np.arange(8) % 3)
    scores, following = (np.asarray(state.scores).reshape(*shape, -1) for state in (after, positions.state))
    goes_on = ~ended & ~is_opponent
    np.testing.assert_array_equal(scores[:-1][goes_on[:-1]], following[1:][goes_on[:-1]])
    assert (following[1:][(ended & ~is_opponent)[:-1]] == 0).all()
    # The opponent draws a tile wherever it may.
    legal = np.asarray(jax.vmap(partial(game.is_legal, action=game.config.draw))(positions.state)).reshape(shape)
    drawn = np.asarray(positions.state.drawn).reshape(shape)
    hoards = (legal & is_opponent)[:-1]
    assert hoards.sum() > 10
    np.testing.assert_array_equal(drawn[1:][hoards], drawn[:-1][hoards] + 1)

    # All moves of a finished game have its outcome as return, from the mover's seat on.
    returns, outcome = np.asarray(positions.returns).reshape(*shape, 2, 3), np.asarray(jax.vmap(game.returns)(after))
    lane, end = next(place for place in np.argwhere(ended.T) if place[0] >= 4)
    for step in range(end + 1):
        np.testing.assert_allclose(returns[step, lane, 0], np.roll(outcome.reshape(*shape, 3)[end, lane], -seats[step, lane]))

    learned = (count > 1) & ~is_opponent.ravel()
    np.testing.assert_array_equal(positions.learned, learned)
    advantage = np.asarray(positions.advantage)[learned]
    assert abs(advantage.mean()) < 1e-4
    assert advantage.std() == pytest.approx(1, abs=1e-3)
    batches = ppo.batches(np.flatnonzero(learned), given, 0)
    assert batches.shape == (learned.sum() // 16, 16)
    assert len(np.unique(batches)) == batches.size
    assert learned[batches].all()


def test_the_critic_sees_all_trays_and_the_actor_its_own() -> None:
    game = settings(Path(), "triominos", options=TRIOMINOS).make_game()

    @jax.jit
    def look() -> Any:
        state = game.init(jax.random.key(0))
        player = game.current_player(state)
        states = state, game.determinize(state, player, jax.random.key(1))
        inputs = [[policy_gradient.critic_input(game, critic, state) for state in states] for critic in ("full", "observed")]
        return [state.trays for state in states], [game.observe(state, player) for state in states], *inputs

    trays, observations, full, observed = jax.device_get(look())
    assert (trays[0] != trays[1]).any()
    np.testing.assert_array_equal(*observations)
    np.testing.assert_array_equal(*observed)
    assert (full[0] != full[1]).any()
    np.testing.assert_array_equal(full[0][0], observations[0])
    assert len(full[0]) == 3
    # Where nothing is hidden there is nothing more to be seen.
    santorini = tilewe_jax.make("santorini")
    everything = partial(policy_gradient.critic_input, santorini, "full")
    assert jax.eval_shape(everything, state_shapes(santorini)).shape[0] == 1


def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    whole = ppo.learn(settings(tmp_path / "whole", TICTACTOE, iterations=4))
    ppo.learn(settings(tmp_path / "parts", TICTACTOE, iterations=2))
    again = ppo.learn(settings(tmp_path / "parts", TICTACTOE, iterations=4, eval_every=1))
    assert_same(again, whole)
    assert int(again.iteration) == 4
    assert any(bool(jnp.any(a != b)) for a, b in zip(*map(jax.tree.leaves, (whole.actor, whole.magnet)), strict=True))
    with pytest.raises(ValueError, match="other settings: chunk, seed"):
        ppo.learn(settings(tmp_path / "parts", TICTACTOE, seed=1, chunk=4))
    (tmp_path / "parts" / ppo.FILE).write_bytes(b"")
    with pytest.raises(ValueError, match=r"ppo\.npz is not what this program has written, or is damaged"):
        ppo.learn(settings(tmp_path / "parts", TICTACTOE))


def test_it_learns_to_beat_random_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {
        "game": TICTACTOE,
        "size": "tiny",
        "critic-size": "tiny",
        "num-games": 128,
        "unroll-length": 16,
        "num-candidates": 9,
        "batch-size": 128,
        "chunk": 128,
        "entropy-weight": 0.05,
        "learning-rate": 0.003,
        "iterations": 30,
        "opponent": "random",
        "eval-every": 30,
        "eval-games": 256,
    }
    ppo.main(["--out", str(tmp_path), *(text for name, value in given.items() for text in (f"--{name}", str(value)))])
    printed = [line for line in capsys.readouterr().out.splitlines() if " wins " in line]
    before, after = (float(line.split(" wins ")[1].split()[0]) for line in printed)
    assert before < 0.7
    assert after > 0.85

    # The folder is a network for agents; without search it plays what is evaluated.
    game = ppo.Program(settings(tmp_path / "another", TICTACTOE)).game
    assert weights.find(str(tmp_path)) == tmp_path / "weights" / "000030.npz"
    searching = agents.agent(f"puct:num_simulations=16,network={tmp_path}", game)
    results = arena.play_match(game, [searching, agents.agent("random", game)], games=32, batch=32, seed=0)
    assert results.shares().mean() > 0.85


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-size", "100"], "batch_size must be a multiple of chunk, 32, not 100"),
        (["--critic-size", "huge"], "critic_size must be one of tiny, nano"),
        (["--critic", "both"], "--critic must be one of full, observed, not 'both'"),
        (["--game", "tilewe", "--options", "players=1"], "tilewe has a single player here"),
        (["--opponent-fraction", "0.5"], "opponent_fraction is that of the games against opponent"),
        (["--init", "nowhere"], "init 'nowhere': not found"),
        (["--opponent", "nobody"], "triominos has no agent 'nobody'"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        ppo.main(["--out", str(tmp_path), *arguments])
    assert not any(tmp_path.iterdir())
