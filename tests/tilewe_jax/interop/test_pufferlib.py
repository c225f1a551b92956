"""Games in PufferLib: against the batches of Gymnasium, and with the trainer of PufferLib."""

import contextlib
import tempfile
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("torch")
with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # its import creates a link in the working directory
    pytest.importorskip("pufferlib")

import pufferlib.vector

import tilewe_jax
from tilewe_jax.interop.gymnasium import GameEnv, GameVectorEnv
from tilewe_jax.interop.pufferlib import GamePufferEnv

SANTORINI = tilewe_jax.make("santorini", size=3)
BATCH = 8


def test_batches_equal_those_of_gymnasium() -> None:
    envs = GameVectorEnv(SANTORINI, BATCH)
    env = pufferlib.vector.make(GamePufferEnv, env_args=[SANTORINI], env_kwargs={"num_envs": BATCH})
    assert env.single_action_space == envs.single_action_space
    first, info = envs.reset(seed=3)
    observations, _ = env.reset(3)
    np.testing.assert_array_equal(observations, first)
    num_ended = 0
    for _ in range(12):
        actions = np.argmax(info["action_mask"], axis=1)
        np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
        expected = envs.step(actions)
        *result, infos = env.step(actions)
        for value, wanted in zip(result, expected, strict=False):
            np.testing.assert_array_equal(value, wanted)
        assert result[0] is env.observations  # in place
        info = expected[4]
        num_ended += int(expected[2].sum())
        assert [len(each["episode_return"]) for each in infos] == [int(expected[2].sum())] * bool(expected[2].any())
    assert num_ended


@pytest.mark.filterwarnings("ignore")
def test_single_games_are_emulated() -> None:
    emulated = pufferlib.emulation.GymnasiumPufferEnv(GameEnv(SANTORINI, illegal="random"))
    observation, info = emulated.reset(seed=0)
    assert observation.shape == (1, *emulated.env.observation_space.shape)
    _, reward, *_ = emulated.step(int(np.argmax(info["action_mask"])))
    assert reward == 0


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_pufferlib_trains(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pufferlib._C", reason="PufferLib without its compiled part cannot train")
    from pufferlib import models, pufferl

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train"])  # load_config parses it
    env = pufferlib.vector.make(GamePufferEnv, env_args=[SANTORINI], env_kwargs={"num_envs": BATCH, "illegal": "random"})
    settings = pufferl.load_config("default")["train"] | {
        "env": "santorini",
        "device": "cpu",
        "optimizer": "adam",
        "use_rnn": False,
        "total_timesteps": 3 * 16 * BATCH,
        "bptt_horizon": 16,
        "minibatch_size": 16 * BATCH,
        "data_dir": str(tmp_path),
    }
    policy = models.Default(env)
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    trainer = pufferl.PuffeRL(settings, env, policy)
    returns: list[float] = []
    while trainer.global_step < settings["total_timesteps"]:
        returns += trainer.evaluate()["episode_return"]
        trainer.train()
    trainer.close()
    assert set(returns) == {-1.0, 1.0}
    assert all((a != b).any() for a, b in zip(before, policy.parameters(), strict=True))
