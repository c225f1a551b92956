import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import assert_same, batched, rows
from tilewe_jax import env

GAME = tilewe_jax.make("duo_official")
BATCH = 16


@pytest.fixture(scope="module")
def trajectory() -> env.Trajectory:
    return jax.jit(lambda key: env.trajectories(GAME, key, BATCH))(jax.random.key(5))


def test_a_rollout_plays_every_game_to_its_end() -> None:
    play = jax.jit(lambda key: env.rollout(GAME, key, BATCH))
    games = play(jax.random.key(5))
    functions = batched(GAME)
    assert bool(jnp.all(functions.is_terminal(games.state)))
    assert not np.any(np.asarray(games.state.legal_counts))
    assert_same(functions.scores(games.state), games.scores)
    assert_same(functions.returns(games.state), games.returns)
    placed = GAME.num_players * 21 - np.asarray(jax.lax.population_count(games.state.hands)).sum(axis=1)
    np.testing.assert_array_equal(games.lengths, placed)
    assert_same(play(jax.random.key(5)), games)
    assert not np.array_equal(np.asarray(play(jax.random.key(6)).lengths), np.asarray(games.lengths))


def test_trajectories_replay(trajectory: env.Trajectory) -> None:
    functions = batched(GAME)
    state = trajectory.first
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


def test_a_policy_chooses() -> None:
    def lowest(state, key):
        del key
        return GAME.legal_list(state, 1)[0]

    games = jax.jit(lambda key: env.trajectories(GAME, key, 4, lowest))(jax.random.key(0))
    assert (np.asarray(games.actions) == np.asarray(games.actions)[:1]).all()
    assert GAME.piece_of(int(games.actions[0, 0])) == "O1"


def test_an_illegal_choice_is_refused_and_cannot_hang() -> None:
    def stubborn(state, key):
        del key
        first = jnp.all(state.hands[0] == state.hands[1])
        return jnp.where(first, GAME.legal_list(state, 1)[0], 7)

    games = jax.jit(lambda key: env.trajectories(GAME, key, 2, stubborn))(jax.random.key(0))
    assert (np.asarray(games.rollout.lengths) == 1).all()
    assert (np.asarray(games.rollout.refused) == GAME.max_steps - 1).all()
    assert (np.asarray(games.rollout.returns) == 0).all()
    assert (np.asarray(games.actions)[:, 1:] == -1).all()


def test_a_stream_restarts_and_hands_out_no_blocked_player() -> None:
    lanes, quota = 12, np.array([0, 1, 2, 3] * 3, np.int32)
    start = jax.jit(lambda key: env.stream(GAME, key, lanes, jnp.asarray(quota)))
    play = jax.jit(lambda stream: env.play(GAME, stream, 40))
    positions = jax.jit(lambda stream: env.positions(GAME, stream))
    stream = start(jax.random.key(1))
    ended, moves, scores = np.zeros(lanes, int), np.zeros(lanes, int), []
    for _ in range(4):
        stream, played = play(stream)
        state = positions(stream)
        np.testing.assert_array_equal(batched(GAME).num_legal(state) == 0, batched(GAME).is_terminal(state))
        ended += np.asarray(played.ended).sum(axis=0)
        moves += (np.asarray(played.actions) >= 0).sum(axis=0)
        finished = np.asarray(played.ended)
        scores.append(np.asarray(played.scores)[:, finished])
        assert (np.asarray(played.scores)[:, ~finished] == 0).all()
        np.testing.assert_allclose(np.asarray(played.returns).sum(axis=0), finished, rtol=1e-6)
    np.testing.assert_array_equal(ended, quota)
    assert (np.asarray(stream.action) == -1).all()
    assert (np.asarray(stream.left) == 0).all()
    assert ((moves == 0) == (quota == 0)).all()
    assert np.concatenate(scores, axis=1).min() > 0


def test_stream_and_rollout_play_the_same_kind_of_game() -> None:
    """Mean score and length of both agree within 4 standard errors."""
    games = jax.jit(lambda key: env.rollout(GAME, key, 512))(jax.random.key(0))
    stream = jax.jit(lambda key: env.stream(GAME, key, 512, 1))(jax.random.key(1))
    _, played = jax.jit(lambda stream: env.play(GAME, stream, 2 * GAME.max_steps))(stream)
    lengths = (np.asarray(played.actions) >= 0).sum(axis=0)
    scores = np.asarray(played.scores).sum(axis=1)[0]
    for one, other in ((games.lengths, lengths), (games.scores[:, 0], scores)):
        error = np.hypot(np.std(one) / 512**0.5, np.std(other) / 512**0.5)
        assert abs(np.mean(one) - np.mean(other)) < 4 * error


@pytest.mark.parametrize("fresh", [None, 2])
def test_the_environment_restarts_and_keeps_the_last_of_each_game(fresh: int | None) -> None:
    chex.clear_trace_counter()
    environment = env.Environment(GAME, fresh=fresh)
    batch, functions = 8, batched(GAME)
    lanes = jax.jit(environment.reset, static_argnums=1)(jax.random.key(0), batch)
    step = jax.jit(chex.assert_max_traces(environment.step, n=1))
    sample = jax.jit(jax.vmap(GAME.sample_action))
    initial = GAME.init(jax.random.key(0))
    ends = np.zeros(batch, int)
    for i in range(90):
        before = lanes
        action = sample(lanes.state, jax.random.split(jax.random.key(i), batch))
        lanes, told = step(lanes, action)
        after = functions.step(before.state, action)
        over, waiting = np.asarray(functions.is_terminal(after)), np.asarray(before.waiting)
        np.testing.assert_array_equal(told.terminated, over & ~waiting)
        assert not np.asarray(told.truncated).any()
        assert not np.asarray(told.illegal).any()
        np.testing.assert_array_equal(told.player, before.state.current_player)
        returns = np.asarray(functions.returns(after))
        np.testing.assert_array_equal(told.returns, np.where(waiting[:, None], 0, returns))
        assert_same(told.last_observation, functions.observe(after, told.player))
        assert_same(told.observation, functions.observe(lanes.state, lanes.state.current_player))
        assert_same(told.scores, functions.scores(after))
        restarted = over & ~np.asarray(lanes.waiting)
        assert restarted.sum() == min(over.sum(), fresh or batch)
        for lane in range(batch):
            expected = initial if restarted[lane] else rows(after, lane)
            assert_same(rows(lanes.state, lane), expected)
            assert int(lanes.steps[lane]) == (0 if restarted[lane] else int(before.steps[lane]) + (not waiting[lane]))
        ends += np.asarray(told.terminated)
    assert (ends >= 2).all()


def test_the_environment_reports_illegal_actions_and_refuses_nonsense() -> None:
    environment = env.Environment(GAME)
    lanes = environment.reset(jax.random.key(0), 4)
    legal = int(GAME.legal_list(GAME.init(jax.random.key(0)), 1)[0])
    after, told = jax.jit(environment.step)(lanes, jnp.array([legal, -1, GAME.num_actions, 0], jnp.int32))
    assert told.illegal.tolist() == [False, True, True, True]
    assert after.steps.tolist() == [1, 0, 0, 0]
    assert_same(rows(after.state, slice(1, None)), rows(lanes.state, slice(1, None)))
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        environment.step(lanes, jnp.zeros(3, jnp.int32))
    with pytest.raises(TypeError, match="must be int32, not float32"):
        environment.step(lanes, jnp.zeros(4, jnp.float32))
    for batch, fresh in ((0, None), (4, 5), (4, 0)):
        with pytest.raises(ValueError, match="must be positive"):
            env.Environment(GAME, fresh=fresh).reset(jax.random.key(0), batch)


def test_several_devices_play_what_one_plays() -> None:
    def play(key):
        return env.rollout(GAME, key, 4)

    keys = jax.random.split(jax.random.key(2), 4)
    games = jax.jit(env.over_devices(play, 4))(keys)
    assert games.lengths.shape == (4, 4)
    assert len(games.lengths.sharding.device_set) == 4
    alone = jax.jit(play)
    for device in range(4):
        assert_same(jax.device_get(rows(games, device)), jax.device_get(alone(keys[device])))
    with pytest.raises(ValueError, match="devices must be 1 to 4"):
        env.over_devices(play, 5)
