"""Games for the learners of PufferLib: a batch that is stepped in one compiled call.

    import pufferlib.vector
    from tilewe_jax.interop.pufferlib import GamePufferEnv

    envs = pufferlib.vector.make(GamePufferEnv, env_args=["santorini"], env_kwargs={"num_envs": 1024})

No extra installs PufferLib 3, which asks for older versions of NumPy and Gymnasium than the adapters do, see docs/interop.md.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewe_jax.game import Game
from tilewe_jax.interop.gymnasium import GameVectorEnv
from tilewe_jax.utils.extras import optional_import

PufferEnv: Any = optional_import("pufferlib", install="--no-deps pufferlib, see docs/interop.md").PufferEnv


class GamePufferEnv(PufferEnv):
    """A ``GameVectorEnv`` as a ``PufferEnv``, whose agents are the learners of ``num_envs`` games.

    Games that end begin anew in the same step. Where some have ended, the information of the step has the lists ``score`` and
    ``episode_return`` of their rewards, the first from 0 for a loss to 1 for a win alone; ``illegal`` is the fraction of
    illegal actions. Policies of PufferLib know no action masks; ``action_masks`` has them for those of yours.

    Args:
      game: a game, or its name.
      num_envs: number of games.
      buf: the arrays that steps write to, where PufferLib shares them among processes.
      seed: seed of the first reset, where that has none.
      **settings: further arguments of ``GameVectorEnv``: the opponent, ``illegal``, options of the game.
    """

    def __init__(self, game: Game[Any] | str, /, num_envs: int = 1, *, buf: Any = None, seed: int = 0, **settings: Any) -> None:
        self.envs = GameVectorEnv(game, num_envs, autoreset_mode="SameStep", **settings)
        self.render_mode = self.envs.render_mode
        self.single_observation_space = self.envs.single_observation_space
        self.single_action_space = self.envs.single_action_space
        self.num_agents = num_envs
        self._seed = seed
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], list[dict[str, Any]]]:
        """Start all games anew."""
        self.observations[:], _ = self.envs.reset(seed=self._seed if seed is None else seed)
        self.rewards[:], self.terminals[:], self.truncations[:], self.masks[:] = 0, False, False, True
        return self.observations, []

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play an action in each game, and those of the opponents until the learner is to move again."""
        actions = np.asarray(actions)
        if actions.size == self.num_agents:  # PufferLib gives [num_agents] or [num_agents, 1]
            actions = actions.reshape(self.num_agents)
        observations, rewards, terminated, truncated, info = self.envs.step(actions)
        self.observations[:], self.rewards[:] = observations, rewards
        self.terminals[:], self.truncations[:] = terminated, truncated
        ended = terminated | truncated
        if not ended.any():
            return self.observations, self.rewards, self.terminals, self.truncations, []
        returns = rewards[ended]
        infos = [
            {
                "score": ((returns + 1) / 2).tolist(),
                "episode_return": returns.tolist(),
                "illegal": float(info["illegal"].mean()),
            }
        ]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions, ``[num_agents, num_actions]``."""
        return self.envs.action_masks()

    def render(self) -> Any:
        """The first game as its learner sees it: a text, or the pixels of a picture."""
        frames = self.envs.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Nothing is held open."""
