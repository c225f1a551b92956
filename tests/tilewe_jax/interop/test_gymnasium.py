"""Games in Gymnasium: single and batched, against the rules in plain Python, and with learners of other packages."""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

peer = pytest.importorskip("gymnasium")

import jax
import jax.numpy as jnp
from gymnasium.utils.env_checker import check_env

import tilewe_jax
from tests.support import zero_sum_rewards
from tilewe_jax.interop import gymnasium
from tilewe_jax.interop.gymnasium import GameEnv, GameVectorEnv

SANTORINI = tilewe_jax.make("santorini", size=3)
TILEWE = tilewe_jax.make("tilewe", size=5, players=3, pieces=["O1", "I2", "I3", "L3"])
BATCH = 5


@lru_cache
def lowest(game: Any) -> Any:
    """A policy that plays the lowest legal action."""
    return lambda state, key: jnp.argmax(game.legal_action_mask(state)).astype(jnp.int32)


def test_check_env_passes() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box observation space (min|max)imum value is")  # points have no bounds
        env = peer.make("tilewe_jax/santorini-v1", size=3, illegal="random", render_mode="ansi")
        check_env(env.unwrapped)
        env.reset(seed=0)
        env.step(env.action_space.sample(env.unwrapped.action_masks().astype(np.int8)))
    assert "to move" in env.render()


@pytest.mark.parametrize(
    ("game", "mode"),
    [(TILEWE, "SameStep"), *((SANTORINI, mode) for mode in gymnasium.AUTORESET_MODES)],
    ids=lambda value: getattr(value, "id", value),
)
def test_batches_follow_the_rules(game: Any, mode: str) -> None:
    """Every observation, mask, reward and reset, against the game in plain Python with the same opponents."""
    seat = game.num_players - 1
    envs = GameVectorEnv(game, BATCH, opponent=lowest(game), seat=seat, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"].value == mode

    def opened(position: Any) -> Any:
        while not position.is_terminal and position.current_player != seat:
            position = position.after(position.legal_actions()[0])
        return position

    start = opened(game.host(game.init(jax.random.key(0))))
    random = np.random.default_rng(0)
    positions, over = [start] * BATCH, np.zeros(BATCH, np.bool_)
    observations, info = envs.reset(seed=0)
    first = observations[0]
    num_ended = 0
    for _ in range(2 * game.max_steps // game.num_players):
        assert envs.observation_space.contains(observations)
        for position, is_over, mask in zip(positions, over, info["action_mask"], strict=True):
            if is_over:
                assert mask.all()
            else:
                assert np.flatnonzero(mask).tolist() == position.legal_actions()
        actions = np.array([random.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        observations, rewards, terminated, truncated, info = envs.step(actions)
        assert not truncated.any()
        assert not info["illegal"].any()
        for i, action in enumerate(actions.tolist()):
            if over[i]:  # NextStep
                positions[i], over[i] = start, False
                assert (rewards[i], terminated[i]) == (0, False)
                np.testing.assert_array_equal(observations[i], first)
                continue
            positions[i] = opened(positions[i].after(action))
            assert terminated[i] == positions[i].is_terminal
            expected = zero_sum_rewards(positions[i].scores())[seat] if positions[i].is_terminal else 0
            assert rewards[i] == pytest.approx(expected)
            if terminated[i]:
                num_ended += 1
                if mode == "SameStep":
                    np.testing.assert_array_equal(observations[i], first)
                    assert info["_final_obs"][i]
                    assert info["final_obs"][i].shape == first.shape
                    assert not np.array_equal(info["final_obs"][i], first)
                    positions[i] = start
                else:
                    over[i] = True
        if mode == "Disabled" and over.any():
            with pytest.raises(ValueError, match="reset_mask"):
                envs.step(actions)
            observations, info = envs.reset(options={"reset_mask": over})
            for i in np.flatnonzero(over):
                positions[i], over[i] = start, False
                np.testing.assert_array_equal(observations[i], first)
    assert num_ended > BATCH


def test_seeds_determine_games() -> None:
    def play(envs: GameVectorEnv) -> list[Any]:
        _, info = envs.reset(seed=3)
        values = [info["seat"]]
        for _ in range(12):
            observations, rewards, *_, info = envs.step(np.argmax(info["action_mask"], axis=1))
            values += [observations, rewards, info["seat"]]
        return values

    envs = GameVectorEnv(SANTORINI, BATCH)
    first, second = play(envs), play(envs)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(np.unique(np.concatenate(first[::3]))) == 2  # both seats occur


@pytest.mark.parametrize("illegal", gymnasium.ILLEGAL)
def test_illegal_actions(illegal: str) -> None:
    envs = GameVectorEnv(SANTORINI, BATCH, illegal=illegal)
    _, info = envs.reset(seed=0)
    actions = np.argmin(info["action_mask"], axis=1)
    actions[0] = np.argmax(info["action_mask"][0])
    _, rewards, terminated, _, info = envs.step(actions)
    assert info["illegal"].tolist() == [False] + [True] * (BATCH - 1)
    assert rewards.tolist() == [0.0] + [-1.0 if illegal == "lose" else 0.0] * (BATCH - 1)
    assert terminated.tolist() == [False] + [illegal == "lose"] * (BATCH - 1)


def test_masks_are_appended() -> None:
    apart, together = GameVectorEnv(SANTORINI, BATCH), GameVectorEnv(SANTORINI, BATCH, append_mask=True)
    observations, info = apart.reset(seed=2)
    appended, _ = together.reset(seed=2)
    assert together.single_observation_space.shape == (observations[0].size + SANTORINI.num_actions,)
    num_ended = 0
    for _ in range(12):
        flat = observations.reshape(BATCH, -1)
        np.testing.assert_array_equal(appended, np.concatenate([flat, info["action_mask"]], axis=1))
        actions = np.argmax(info["action_mask"], axis=1)
        observations, _, terminated, _, info = apart.step(actions)
        appended, *_, other = together.step(actions)
        for i in np.flatnonzero(terminated):
            last = info["final_obs"][i].ravel()
            np.testing.assert_array_equal(other["final_obs"][i], [*last, *np.ones(SANTORINI.num_actions)])
            num_ended += 1
    assert num_ended


def test_wrappers_of_gymnasium_work() -> None:
    envs = peer.make_vec("tilewe_jax/santorini-v1", num_envs=BATCH, size=3)
    assert isinstance(envs.unwrapped, GameVectorEnv)
    envs = peer.wrappers.vector.DictInfoToList(peer.wrappers.vector.RecordEpisodeStatistics(envs))
    _, infos = envs.reset(seed=0)
    returns = []
    for _ in range(20):
        actions = np.array([np.argmax(info["action_mask"]) for info in infos])
        *_, infos = envs.step(actions)
        returns += [float(info["episode"]["r"]) for info in infos if "episode" in info]
    assert returns
    assert set(returns) <= {-1.0, 1.0}


def test_hidden_trays_stay_hidden() -> None:
    """Resampled trays of the others change neither the observation nor the text of the learner."""
    envs = GameVectorEnv("triominos", 3, render_mode="ansi", tiles=4, tray=1, game="single")
    game = envs.game
    observations, _ = envs.reset(seed=0)
    texts = envs.render()
    games = envs._games
    assert games is not None
    resample = jax.jit(jax.vmap(game.determinize))
    resampled = resample(games.state, games.seat, jax.random.split(jax.random.key(1), 3))
    assert (resampled.trays != games.state.trays).any()
    envs._games = gymnasium.Games(resampled, games.seat, games.ended)
    np.testing.assert_array_equal(np.asarray(gymnasium._compiled(envs._rules)[2](envs._games)[0]), observations)
    assert envs.render() == texts


def test_invalid_arguments() -> None:
    with pytest.raises(ValueError, match=r".*random.*"):
        GameVectorEnv("santorini", 2, opponent="nobody")
    with pytest.raises(ValueError, match="num_envs"):
        GameVectorEnv("santorini", 0)
    with pytest.raises(ValueError, match="seat must"):
        GameVectorEnv("santorini", 2, seat=2)
    with pytest.raises(ValueError, match="NextStep, SameStep"):
        GameVectorEnv("santorini", 2, autoreset_mode="never")
    envs = GameVectorEnv(SANTORINI, BATCH)
    with pytest.raises(peer.error.ResetNeeded):
        envs.step(np.zeros(BATCH, np.int32))
    envs.reset()
    with pytest.raises(TypeError, match=r"float64\[5\]"):
        envs.step(np.zeros(BATCH))
    with pytest.raises(ValueError, match="reset_mask must be"):
        envs.reset(options={"reset_mask": np.ones(2, np.bool_)})


@pytest.mark.filterwarnings("ignore")
def test_stable_baselines_trains() -> None:
    """A learner with masks on a batch of games, and one without on single games; some steps, with all illegal actions lost."""
    sb3 = pytest.importorskip("stable_baselines3")
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.vec_env import VecMonitor

    from tilewe_jax.interop.stable_baselines3 import GameVecEnv

    env = VecMonitor(GameVecEnv(SANTORINI, BATCH))
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=40, n_epochs=1, seed=0)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(160)
    assert model.num_timesteps == 160
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    assert {episode["r"] for episode in model.ep_info_buffer} == {-1.0, 1.0}
    masks = np.stack(env.env_method("action_masks"))
    actions, _ = model.predict(env.reset(), action_masks=masks)
    assert masks[np.arange(BATCH), actions].all()
    assert env.get_attr("game", [0, 1]) == [SANTORINI, SANTORINI]
    alone = GameEnv(SANTORINI)
    sb3.DQN("MlpPolicy", alone, learning_starts=8, batch_size=8, seed=0).learn(24)
    assert alone.reset(seed=0)[0].shape == env.observation_space.shape


def test_batches_of_stable_baselines_are_those_of_gymnasium() -> None:
    pytest.importorskip("stable_baselines3")
    from tilewe_jax.interop.stable_baselines3 import GameVecEnv

    envs, env = GameVectorEnv(SANTORINI, BATCH), GameVecEnv(SANTORINI, BATCH)
    env.seed(3)
    observations, info = envs.reset(seed=3)
    np.testing.assert_array_equal(env.reset(), observations)
    ended = 0
    for _ in range(12):
        actions = np.argmax(info["action_mask"], axis=1)
        observations, rewards, terminated, _, info = envs.step(actions)
        result = env.step(actions)
        for value, expected in zip(result, (observations, rewards, terminated), strict=False):
            np.testing.assert_array_equal(value, expected)
        for i in np.flatnonzero(terminated):
            np.testing.assert_array_equal(result[3][i]["terminal_observation"], info["final_obs"][i])
            assert not result[3][i]["TimeLimit.truncated"]
            ended += 1
    assert ended
