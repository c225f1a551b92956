import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import assert_same, batched, rows
from tilewe_jax import batching
from tilewe_jax.game import Game

GAME = tilewe_jax.make("duo_official", size=6, pieces=("O1", "I2", "L3", "T4", "W5", "F5"))
SANTORINI = tilewe_jax.make("santorini", size=3, placement="random")
TICTACTOE = TicTacToe()
BATCH = 16
"""Batch size of most tests, so that functions are compiled once."""


@pytest.fixture(scope="module")
def trajectory() -> batching.Trajectory:
    return jax.jit(lambda key: batching.trajectories(GAME, key, BATCH))(jax.random.key(5))


def test_rollouts_play_games_to_the_end() -> None:
    play = jax.jit(lambda key: batching.rollout(GAME, key, BATCH))
    games = play(jax.random.key(5))
    functions = batched(GAME)
    assert bool(jnp.all(functions.is_terminal(games.state)))
    assert not np.any(np.asarray(games.state.legal_counts))
    assert_same(functions.scores(games.state), games.scores)
    assert_same(functions.returns(games.state), games.returns)
    placed = GAME.num_players * len(GAME.config.pieces) - np.asarray(jax.lax.population_count(games.state.hands)).sum(axis=1)
    np.testing.assert_array_equal(games.lengths, placed)
    assert_same(play(jax.random.key(5)), games)
    assert not np.array_equal(np.asarray(play(jax.random.key(6)).lengths), np.asarray(games.lengths))


def test_trajectories_replay(trajectory: batching.Trajectory) -> None:
    functions = batched(GAME)
    state = trajectory.initial
    actions, players = np.asarray(trajectory.actions).T, np.asarray(trajectory.players).T
    assert actions.shape == players.shape == (GAME.max_steps, BATCH)
    for action, player in zip(actions, players, strict=True):
        played = action >= 0
        assert np.asarray(functions.is_legal(state, action))[played].all()
        np.testing.assert_array_equal(np.asarray(functions.current_player(state))[played], player[played])
        assert (player[~played] == -1).all()
        state = functions.step(state, action)
    assert_same(state, trajectory.rollout.state)
    np.testing.assert_array_equal((actions >= 0).sum(axis=0), trajectory.rollout.lengths)


def test_policies_choose_actions() -> None:
    def lowest(state, key):
        del key
        return GAME.legal_list(state, 1)[0]

    games = jax.jit(lambda key: batching.trajectories(GAME, key, BATCH, lowest))(jax.random.key(0))
    assert (np.asarray(games.actions) == np.asarray(games.actions)[:1]).all()
    assert GAME.piece_of(int(games.actions[0, 0])) == "O1"


def test_illegal_choices_are_counted_and_cannot_hang() -> None:
    def stubborn(state, key):
        del key
        first = jnp.all(state.hands[0] == state.hands[1])
        return jnp.where(first, GAME.legal_list(state, 1)[0], 7)

    games = jax.jit(lambda key: batching.trajectories(GAME, key, BATCH, stubborn))(jax.random.key(0))
    assert (np.asarray(games.rollout.lengths) == 1).all()
    assert (np.asarray(games.rollout.illegal_actions) == GAME.max_steps - 1).all()
    assert (np.asarray(games.rollout.returns) == 0).all()
    assert (np.asarray(games.actions)[:, 1:] == -1).all()


def test_streams_restart_games_and_skip_blocked_players() -> None:
    batch, quota = BATCH, np.array([0, 1, 2, 3] * 4, np.int32)
    start = jax.jit(lambda key: batching.init_stream(GAME, key, batch, jnp.asarray(quota)))
    play = jax.jit(lambda stream: batching.run_stream(GAME, stream, 40))
    states = jax.jit(lambda stream: batching.stream_states(GAME, stream))
    stream = start(jax.random.key(1))
    ended, moves, scores = np.zeros(batch, int), np.zeros(batch, int), []
    for _ in range(4):
        stream, steps = play(stream)
        state = states(stream)
        np.testing.assert_array_equal(batched(GAME).num_legal(state) == 0, batched(GAME).is_terminal(state))
        finished = np.asarray(steps.ended)
        assert finished.shape == np.asarray(steps.actions).shape == (batch, 40)
        ended += finished.sum(axis=1)
        moves += (np.asarray(steps.actions) >= 0).sum(axis=1)
        scores.append(np.asarray(steps.scores)[finished])
        assert (np.asarray(steps.scores)[~finished] == 0).all()
        np.testing.assert_allclose(np.asarray(steps.returns).sum(axis=2), finished, rtol=1e-6)
    np.testing.assert_array_equal(ended, quota)
    assert (np.asarray(stream.action) == -1).all()
    assert (np.asarray(stream.games_left) == 0).all()
    assert ((moves == 0) == (quota == 0)).all()
    assert np.concatenate(scores).min() > 0


def test_statistics_of_streams_and_rollouts_agree() -> None:
    """Mean scores and lengths agree within four standard errors."""
    games = jax.jit(lambda key: batching.rollout(GAME, key, 512))(jax.random.key(0))
    stream = jax.jit(lambda key: batching.init_stream(GAME, key, 512, 1))(jax.random.key(1))
    _, steps = jax.jit(lambda stream: batching.run_stream(GAME, stream, 2 * GAME.max_steps))(stream)
    lengths = (np.asarray(steps.actions) >= 0).sum(axis=1)
    scores = np.asarray(steps.scores).sum(axis=1)[:, 0]
    for by_rollout, by_stream in ((games.lengths, lengths), (games.scores[:, 0], scores)):
        error = np.hypot(np.std(by_rollout) / 512**0.5, np.std(by_stream) / 512**0.5)
        assert abs(np.mean(by_rollout) - np.mean(by_stream)) < 4 * error


@pytest.mark.parametrize("game", [GAME, SANTORINI], ids=lambda game: game.id)
def test_auto_reset_starts_each_finished_game_with_its_key(game: Game) -> None:
    batch = 100  # several rounds of resets for a random start
    keys = jax.random.split(jax.random.key(0), batch)
    state = batched(game).step(batched(game).init(keys), batched(game).sample_action(batched(game).init(keys), keys))
    new = batched(game).init(jax.random.split(jax.random.key(1), batch))
    reset = jax.jit(lambda ended: batching.auto_reset(game, jax.random.split(jax.random.key(1), batch), ended, state))
    for share in (0.0, 0.1, 1.0):
        ended = np.random.default_rng(0).random(batch) < share
        expected = jax.tree.map(
            lambda a, b, ended=ended: np.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b), *jax.device_get((new, state))
        )
        assert_same(reset(ended), expected)


def test_environments_restart_games_and_keep_last_observations() -> None:
    chex.clear_trace_counter()
    game = TICTACTOE
    environment = batching.Environment(game)
    batch, functions = BATCH, batched(game)
    games, timestep = jax.jit(environment.reset, static_argnums=1)(jax.random.key(0), batch)
    step = jax.jit(chex.assert_max_traces(environment.step, n=1))
    initial = game.init(jax.random.key(0))
    ends = np.zeros(batch, int)
    for i in range(60):
        before, mover = games, timestep.current_player
        action = functions.sample_action(games.state, jax.random.split(jax.random.key(i), batch))
        games, timestep = step(games, action)
        after = functions.step(before.state, action)
        over = np.asarray(functions.is_terminal(after))
        np.testing.assert_array_equal(timestep.terminated, over)
        assert not np.asarray(timestep.truncated).any()
        assert not np.asarray(timestep.illegal).any()
        assert_same(timestep.current_player, functions.current_player(games.state))
        np.testing.assert_allclose(timestep.rewards, np.where(over[:, None], 2 * functions.returns(after) - 1, 0), atol=1e-6)
        assert_same(timestep.last_observation, functions.observe(after, mover))
        assert_same(timestep.observation, functions.observe(games.state, timestep.current_player))
        assert_same(timestep.legal_action_mask, functions.legal_action_mask(games.state))
        assert_same(timestep.scores, functions.scores(after))
        for row in range(batch):
            assert_same(rows(games.state, row), initial if over[row] else rows(after, row))
            assert int(games.steps[row]) == (0 if over[row] else int(before.steps[row]) + 1)
        ends += over
    assert (ends >= 2).all()


def test_kinds_of_rewards() -> None:
    returns = np.array([[0.5, 0.5, 0], [1, 0, 0], [0, 0, 0]], np.float32)
    expected = [[0.25, 0.25, -0.5], [1, -0.5, -0.5], [0, 0, 0]]
    np.testing.assert_allclose(batching.zero_sum(returns, np.array([1, 1, 0])), expected)
    for rewards, outcome in (("zero_sum", [1, -1]), ("win_shares", [1, 0])):
        environment = batching.Environment(TICTACTOE, rewards)  # type: ignore[arg-type]
        step = jax.jit(environment.step)
        games, timestep = environment.reset(jax.random.key(0), 1)
        while not timestep.terminated.all():  # the lowest legal actions win for the first player
            games, timestep = step(games, timestep.legal_action_mask.argmax(axis=1))
            assert timestep.rewards.tolist() == ([outcome] if timestep.terminated.all() else [[0, 0]])
    with pytest.raises(ValueError, match="zero_sum, win_shares"):
        batching.Environment(TICTACTOE, rewards="points")  # type: ignore[arg-type]


@pytest.mark.untyped
def test_environments_report_illegal_actions_and_reject_invalid_arguments() -> None:
    game = TICTACTOE
    environment = batching.Environment(game)
    games, timestep = jax.jit(environment.reset, static_argnums=1)(jax.random.key(0), BATCH)
    after, timestep = jax.jit(environment.step)(games, jnp.array([4, -1, game.num_actions] + [99] * 13, jnp.int32))
    assert timestep.illegal.tolist() == [False] + [True] * 15
    assert after.steps.tolist() == [1] + [0] * 15
    assert_same(rows(after.state, slice(1, None)), rows(games.state, slice(1, None)))
    with pytest.raises(ValueError, match=r"shape \(16,\)"):
        environment.step(games, jnp.zeros(3, jnp.int32))
    with pytest.raises(TypeError, match="int32, got float32"):
        environment.step(games, jnp.zeros(BATCH, jnp.float32))
    with pytest.raises(ValueError, match="batch must"):
        environment.reset(jax.random.key(0), 0)


def test_several_devices_match_one_device() -> None:
    def play(key):
        return batching.rollout(SANTORINI, key, 4)

    keys = jax.random.split(jax.random.key(2), 4)
    games = jax.jit(batching.over_devices(play, 4))(keys)
    assert games.lengths.shape == (4, 4)
    assert len(games.lengths.sharding.device_set) == 4
    alone = jax.jit(play)
    for device in range(4):
        assert_same(jax.device_get(rows(games, device)), jax.device_get(alone(keys[device])))
    with pytest.raises(ValueError, match="devices must"):
        batching.over_devices(play, 5)
