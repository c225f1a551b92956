"""Games as environments of Stable-Baselines3: a batch that is stepped in one compiled call. Needs the extra ``[sb3]``.

from sb3_contrib import MaskablePPO
from tilewe_jax.interop.stable_baselines3 import GameVecEnv

MaskablePPO("MlpPolicy", GameVecEnv("santorini", num_envs=256)).learn(1_000_000)
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewe_jax.game import Game
from tilewe_jax.interop.gymnasium import GameVectorEnv
from tilewe_jax.utils.extras import optional_import

VecEnv: Any = optional_import("stable_baselines3.common.vec_env", "sb3").VecEnv


class GameVecEnv(VecEnv):
    """A ``GameVectorEnv`` with the same arguments as a ``VecEnv``, which always restarts games in the step that ends them.

    Learners with action masks call ``action_masks``. To record the returns of games, wrap the environment in ``VecMonitor``.
    """

    def __init__(self, game: Game[Any] | str, /, num_envs: int = 1, **settings: Any) -> None:
        self.envs = GameVectorEnv(game, num_envs, autoreset_mode="SameStep", **settings)
        self._actions: NDArray[Any] = np.zeros(num_envs, np.int64)
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> NDArray[np.float32]:
        """Restart all games, with the seed of the method ``seed`` if it was called since the last reset."""
        observations, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the actions, and return observations, rewards, ends of games, and information about the finished games."""
        observations, rewards, terminated, truncated, info = self.envs.step(self._actions)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for index in np.flatnonzero(ended):
            infos[index] = {
                "terminal_observation": info["final_obs"][index],
                "TimeLimit.truncated": bool(truncated[index]),
            }
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        """Do nothing: the environment holds no resources."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, which is the same for all games."""
        return [getattr(self.envs, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all games, ignoring the indices."""
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **named: Any) -> list[Any]:
        """Call a method of the batch, and return its results for the chosen games."""
        results: Sequence[Any] = getattr(self.envs, method_name)(*arguments, **named)
        return [results[index] for index in self._chosen(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each game: single games are not wrapped."""
        return [False] * len(self._chosen(indices))

    def _chosen(self, indices: int | Iterable[int] | None) -> list[int]:
        return list(self._get_indices(indices))
