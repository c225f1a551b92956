"""Games in PettingZoo: the checkers of PettingZoo, and the rules in plain Python."""

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import pettingzoo as peer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it uses a deprecated import itself
    from pettingzoo.test import api_test, render_test, seed_test

import tilewe_jax
from tests.support import slow, zero_sum_rewards
from tilewe_jax.interop import pettingzoo, single
from tilewe_jax.utils.extras import MissingExtraError, optional_import

SMALL: dict[str, dict[str, Any]] = {
    "tilewe": {"size": 5, "players": 4, "pieces": ["O1", "I2", "I3", "L3"]},
    "santorini": {"size": 3, "placement": "random"},
    "triominos": {"tiles": 10, "tray": 2, "players": 3},
}
"""Options of a small game of each kind."""
games = pytest.mark.parametrize("name", ["triominos", slow("tilewe"), slow("santorini")])

ACCEPTED = (
    "Observation space for each agent probably should be",  # also for games of Farama with action masks
    "Observation is not a NumPy array",
    "Action mask numpy array is all zeros",  # of agents who are not to move
)


@games
def test_api_test_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    env = pettingzoo.env(name, **SMALL[name])
    with warnings.catch_warnings():
        for message in ACCEPTED:
            warnings.filterwarnings("ignore", message=message)
        api_test(env, num_cycles=60)
    assert "Passed" in capsys.readouterr().out


@games
def test_seed_test_passes(name: str) -> None:
    seed_test(lambda: pettingzoo.env(name, **SMALL[name]), num_cycles=30)


@games
def test_render_test_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    render_test(lambda render_mode: pettingzoo.env(name, render_mode=render_mode, **SMALL[name]))
    assert capsys.readouterr().out  # the mode "human" prints


@pytest.mark.parametrize("name", SMALL)
def test_games_follow_the_rules(name: str) -> None:
    """Actions, agents and rewards of whole games against positions in plain Python."""
    env = pettingzoo.GameEnv(name, **SMALL[name])
    random = np.random.default_rng(0)
    for seed in range(2):
        env.reset(seed=seed)
        position = env.game.host(env._position.state)
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, _ = env.last()
            if terminated or truncated:
                assert position.is_terminal
                assert reward == pytest.approx(zero_sum_rewards(position.scores())[env.possible_agents.index(agent)])
                env.step(None)
                continue
            assert agent == f"player_{position.current_player}"
            legal = np.flatnonzero(observation["action_mask"]).tolist()
            assert legal == position.legal_actions()
            action = int(random.choice(legal))
            position = position.after(action)
            env.step(action)
        assert not env.agents


def test_illegal_actions_raise_or_lose() -> None:
    bare = pettingzoo.GameEnv("santorini", size=3)
    bare.reset(seed=0)
    illegal = int(np.flatnonzero(bare.observe("player_0")["action_mask"] == 0)[0])
    with pytest.raises(tilewe_jax.IllegalActionError, match=f"action {illegal} is illegal: "):
        bare.step(illegal)
    assert bare.agent_selection == "player_0"
    wrapped = pettingzoo.env("santorini", size=3)
    wrapped.reset(seed=0)
    wrapped.step(illegal)
    assert wrapped.terminations == {"player_0": True, "player_1": True}
    assert wrapped.rewards["player_0"] == -1


def test_hidden_trays_stay_hidden() -> None:
    """Observations and texts are independent of hidden information."""
    env = pettingzoo.GameEnv("triominos", render_mode="ansi", tiles=20, tray=4)
    env.reset(seed=1)
    before, picture = env.observe("player_0")["observation"], env.render()
    import jax

    resampled = single.determinize(env.game, env._position.state, 0, jax.random.key(5))
    assert (resampled.trays != env._position.state.trays).any()
    env._position = single.of_state(env.game, resampled)
    np.testing.assert_array_equal(env.observe("player_0")["observation"], before)
    assert env.render() == picture
    assert picture.count(", 4 tiles") == 2


def test_games_are_registered() -> None:
    env = peer.make("aec", "tilewe_jax/santorini-v1", size=3)
    assert str(env) == "santorini_v1"
    assert env.unwrapped.game == tilewe_jax.make("santorini", size=3)


def test_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="render_mode"):
        pettingzoo.env("santorini", render_mode="gif")
    with pytest.raises(ValueError, match="\\(size\\)"):
        pettingzoo.env(tilewe_jax.make("santorini"), size=3)
    with pytest.raises(MissingExtraError, match=r"'tilewe-jax\[interop\]'"):
        optional_import("not_a_package.module")
