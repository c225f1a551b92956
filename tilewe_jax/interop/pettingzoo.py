"""Games as environments of PettingZoo (AEC), with one agent per seat. Needs the extra ``[interop]``.

    from tilewe_jax.interop import pettingzoo

    env = pettingzoo.env("duo", size=8)

With PettingZoo 1.27 or newer, importing this module registers all games, and
``pettingzoo.make("aec", "tilewe_jax/duo-v1", size=8)`` makes the same environment.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewe_jax.game import Game, observation_shape
from tilewe_jax.host import IllegalActionError
from tilewe_jax.interop import single
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_choice, checked_action, shown
from tilewe_jax.utils.extras import optional_import

spaces = optional_import("gymnasium.spaces")
pettingzoo = optional_import("pettingzoo")
AECEnv: Any = pettingzoo.AECEnv
wrappers = optional_import("pettingzoo.utils.wrappers")
BaseWrapper: Any = wrappers.BaseWrapper

RENDER_MODES = ("human", "ansi", "rgb_array")
ILLEGAL_REWARD = -1.0
"""Reward of an agent for an illegal action, see ``env``."""


def env(game: Game[Any] | str, /, *, render_mode: str | None = None, **options: Any) -> Any:
    """Return an environment with the wrappers of PettingZoo's classic games.

    An illegal action ends the game with a reward of -1 for its agent and 0 for the others. Calls in the wrong order and values
    that are not action ids raise.

    Args:
      game: a game or its name.
      render_mode: see ``GameEnv.render``.
      **options: options of a game given by name.
    """
    wrapped = wrappers.TerminateIllegalWrapper(GameEnv(game, render_mode=render_mode, **options), ILLEGAL_REWARD)
    return wrappers.OrderEnforcingWrapper(_CheckActions(wrapped))


class _CheckActions(BaseWrapper):
    """Like ``AssertOutOfBoundsWrapper``, but with the errors of the other adapters."""

    def step(self, action: Any) -> None:
        """Play an action id; ``None`` for an agent whose game is over."""
        agent = self.agent_selection
        if not (action is None and (self.terminations[agent] or self.truncations[agent])):
            action = checked_action(action, self.action_space(agent).n)
        super().step(action)

    def __str__(self) -> str:
        return str(self.env)


class GameEnv(AECEnv):
    """A game as an AEC environment, without wrappers.

    Agents are ``player_0``, ``player_1`` and so on, by seat; only the player to move is selected. Observations are
    ``{"observation": float32[...], "action_mask": int8[num_actions]}``, from the seat of the agent; hidden information
    stays hidden, and the mask is zero for agents who are not to move. Rewards are given at the end, see
    ``batching.zero_sum``. A game ended by a cap is truncated, others are terminated.

    Unlike in ``env``, an illegal action raises ``IllegalActionError`` and leaves the game unchanged.
    """

    def __init__(self, game: Game[Any] | str, /, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__()
        check_choice("render_mode", render_mode, (*RENDER_MODES, None))
        self.game = single.as_game(game, options)
        self.render_mode = render_mode
        self.metadata = {
            "name": f"{self.game.id}_v{self.game.version}",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": False,
            "render_fps": 2,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.num_players)]
        self.agents: list[str] = []
        shape, actions = observation_shape(self.game), self.game.num_actions
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(-np.inf, np.inf, shape, np.float32),
                    "action_mask": spaces.Box(0, 1, (actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(actions) for agent in self.possible_agents}
        self._chance = np.random.default_rng()
        self._last_action: int | None = None

    def observation_space(self, agent: str) -> Any:
        """Return the observation space of an agent, the same object in every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the action space of an agent, the same object in every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start a new game. A seed determines the chance of all later games."""
        del options
        if seed is not None:
            self._chance = np.random.default_rng(seed)
        self._position = single.init(self.game, int(self._chance.integers(2**63)))
        self._last_action = None
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._show_position()

    def step(self, action: Any) -> None:
        """Play an action of the selected agent; ``None`` if its game is over.

        Raises ``IllegalActionError`` with the violated rule, ``TypeError`` for values other than one integer, and
        ``RuntimeError`` before the first ``reset``.
        """
        self._started()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        action = checked_action(action, self.game.num_actions)
        if not self._position.legal[action]:
            rule = self.game.host(self._position.state).explain(action)
            raise IllegalActionError(f"action {action} is illegal: {rule}")
        self._position = single.apply(self.game, self._position.state, action)
        self._last_action = action
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.agents, self._position.rewards.tolist(), strict=True))
        self._show_position()
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """Return the observation and action mask of an agent, see ``GameEnv``."""
        self._started()
        if agent not in self.possible_agents:
            raise ValueError(f"agent must be one of {', '.join(self.possible_agents)}, got {shown(agent)}")
        seat = self.possible_agents.index(agent)
        is_mover = not self._position.is_terminal and seat == self._position.current_player
        mask = self._position.legal if is_mover else np.zeros_like(self._position.legal)
        observation = single.observe(self.game, self._position.state, seat)
        return {"observation": observation, "action_mask": mask.astype(np.int8)}

    def render(self) -> str | NDArray[np.uint8] | None:
        """Render the position; hidden information is only visible at the end.

        Returns:
          A text with "ansi", pixels ``uint8[height, width, 3]`` with "rgb_array" (needs the extra ``[render]``). "human", which
          renders after each step, prints the text and returns ``None``.
        """
        self._started()
        position = self.game.host(self._position.state)
        if self.render_mode == "rgb_array":
            return single.pixels(position.view())
        text = position.text(last_action=self._last_action, open=False)
        if self.render_mode == "human":
            print(text)
            return None
        return text

    def close(self) -> None:
        """Do nothing: the environment holds no resources."""

    def _started(self) -> None:
        require_backend()
        if not hasattr(self, "_position"):
            raise RuntimeError("call reset first")

    def _show_position(self) -> None:
        position = self._position
        self.terminations = dict.fromkeys(self.agents, position.is_terminal and not position.is_truncated)
        self.truncations = dict.fromkeys(self.agents, position.is_truncated)
        self.agent_selection = self.possible_agents[position.current_player]


def _register() -> None:
    for name, registered_id in single.registered_ids():
        pettingzoo.register("aec", registered_id, entry_point=partial(env, name))


if hasattr(pettingzoo, "register"):
    _register()
