"""Games as environments of PufferLib: a batch that is stepped in one compiled call.

    import pufferlib.vector
    from tilewe_jax.interop.pufferlib import GamePufferEnv

    envs = pufferlib.vector.make(GamePufferEnv, env_args=["santorini"], env_kwargs={"num_envs": 1024})

No extra installs PufferLib 3, which requires older versions of NumPy and Gymnasium than the adapters, see docs/interop.md.
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

    The step that ends a game restarts it. Its information contains the lists ``score`` (0 for a loss to 1 for a win) and
    ``episode_return`` of the finished games, and ``illegal``, the fraction of illegal actions. The policies of PufferLib do not
    support action masks; custom policies can call ``action_masks``.

    Args:
      game: a game or its name.
      num_envs: number of games.
      buf: arrays for the results of steps, if PufferLib shares them among processes.
      seed: default seed of ``reset``.
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
        """Restart all games."""
        self.observations[:], _ = self.envs.reset(seed=self._seed if seed is None else seed)
        self.rewards[:], self.terminals[:], self.truncations[:], self.masks[:] = 0, False, False, True
        return self.observations, []

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play an action in each game, then the opponents until the learner is to move again."""
        actions = np.asarray(actions)
        if actions.size == self.num_agents:  # PufferLib passes [num_agents] or [num_agents, 1]
            actions = actions.reshape(self.num_agents)
        observations, rewards, terminated, truncated, info = self.envs.step(actions)
        self.observations[:], self.rewards[:] = observations, rewards
        self.terminals[:], self.truncations[:] = terminated, truncated
        ended = terminated | truncated
        infos: list[dict[str, Any]] = []
        if ended.any():
            scores = (rewards[ended] + 1) / 2
            illegal = float(info["illegal"].mean())
            infos = [{"score": scores.tolist(), "episode_return": rewards[ended].tolist(), "illegal": illegal}]
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions, ``[num_agents, num_actions]``."""
        return self.envs.action_masks()

    def render(self) -> Any:
        """Return the first game as seen by its learner: a text, or pixels."""
        frames = self.envs.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Do nothing: the environment holds no resources."""
