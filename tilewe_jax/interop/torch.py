"""Games on the device for learners in PyTorch: tensors share memory with JAX arrays through DLPack.

    from tilewe_jax.interop.torch import TorchEnvironment

    environment = TorchEnvironment("duo", batch=4096)
    timestep = environment.reset(seed=0)
    timestep = environment.step(policy(timestep.observation, timestep.legal_action_mask))

Needs the extra ``[torch]``. The first environment imports PyTorch.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from tilewe_jax.batching.environment import Environment, EnvironmentState, TimeStep
from tilewe_jax.game import Game, observation_shape
from tilewe_jax.interop import single
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count, shown
from tilewe_jax.utils.extras import optional_import


class TorchEnvironment:
    """An ``Environment`` whose timesteps hold read-only tensors on the device of JAX.

    Tensors are not copied, and steps do not wait for the device: streams order the work of PyTorch and JAX on a GPU.

    Args:
      game: a game or its name.
      batch: number of games.
      rewards: "zero_sum" or "win_shares", see ``Environment.rewards``.
      **options: options of a game given by name.
    """

    def __init__(self, game: Game[Any] | str, /, batch: int, *, rewards: Any = "zero_sum", **options: Any) -> None:
        optional_import("torch", "torch")
        self.game = single.as_game(game, options)
        self.batch = check_count("batch", batch)
        self._environment = Environment(self.game, rewards)
        self._games: EnvironmentState[Any] | None = None

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of the observation of one game."""
        return observation_shape(self.game)

    def reset(self, seed: int = 0) -> TimeStep:
        """Restart all games."""
        require_backend()
        self._games, timestep = _compiled(self._environment)[0](jax.random.key(seed), self.batch)
        return self._tensors(timestep)

    def step(self, action: Any) -> TimeStep:
        """Play one action in every game.

        Args:
          action: a tensor of integers, ``[batch]``, on the device of the games. Integers that are not action ids are illegal
            actions, not errors, because checking values would wait for the device.

        Raises ``ValueError`` or ``TypeError`` for other shapes or dtypes, ``RuntimeError`` before the first ``reset``.
        """
        require_backend()
        torch = optional_import("torch", "torch")  # not an attribute, because modules cannot be pickled
        if self._games is None:
            raise RuntimeError("call reset before step")
        if not isinstance(action, torch.Tensor):
            raise TypeError(f"action must be a tensor of integers [{self.batch}], got {shown(action)}")
        if action.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            raise TypeError(f"action must have an integer dtype, got {action.dtype}")
        if action.dtype == torch.int64:  # a cast alone would wrap large values
            action = action.clamp(-1, self.game.num_actions)
        actions = jnp.from_dlpack(action.detach().to(torch.int32).contiguous())
        self._games, timestep = _compiled(self._environment)[1](self._games, actions)
        return self._tensors(timestep)

    def _tensors(self, timestep: TimeStep) -> TimeStep:
        tensors: TimeStep = jax.tree.map(optional_import("torch", "torch").from_dlpack, timestep)
        return tensors


@lru_cache(maxsize=8)
def _compiled(environment: Environment[Any]) -> tuple[Any, Any]:
    return jax.jit(environment.reset, static_argnums=1), jax.jit(environment.step)
