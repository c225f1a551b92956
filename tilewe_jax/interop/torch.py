"""Games stepped on the device for learners in PyTorch: tensors that share the memory of JAX's arrays, by DLPack.

    from tilewe_jax.interop.torch import TorchEnvironment

    environment = TorchEnvironment("duo", batch=4096)
    observation, action_mask = environment.reset(seed=0)
    transition = environment.step(policy(observation, action_mask))

Needs the extra ``[torch]``. PyTorch is imported with the first environment.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from tilewe_jax.batching.environment import Environment, EnvironmentState, Transition
from tilewe_jax.game import Game, observation_shape
from tilewe_jax.interop import single
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count, shown
from tilewe_jax.utils.extras import optional_import


@dataclass(frozen=True)
class TorchTransition:
    """What a step gives back, as tensors; see ``batching.Transition``. They are to be read, not written to."""

    player: Any
    """``int32[batch]``: the player who was to move."""
    illegal: Any
    """``bool[batch]``: whether the action was illegal, and so left the game as it was."""
    terminated: Any
    """``bool[batch]``: whether the step ended the game by its rules."""
    truncated: Any
    """``bool[batch]``: whether the step ended the game by a cap."""
    rewards: Any
    """``float32[batch, players]``: outcomes by seat of the games that ended, see ``single.zero_sum``; else zero."""
    scores: Any
    """``int32[batch, players]``: scores after the step, before any reset."""
    final_observation: Any
    """``float32[batch, ...]``: observation of ``player`` after the step, before any reset."""
    observation: Any
    """``float32[batch, ...]``: observation of the player now to move, after any reset."""
    action_mask: Any
    """``bool[batch, num_actions]``: legal actions of that player."""
    next_player: Any
    """``int32[batch]``: that player."""


class TorchEnvironment:
    """A batch of games, all seats of which are played from outside; each is restarted as soon as it is over.

    Tensors live where JAX computes. Nothing is copied between the two, and no step waits for the device: PyTorch and JAX order
    their work on a GPU by its streams.

    Args:
      game: a game, or its name.
      batch: number of games.
      **options: the options of the game, where it is given by name.
    """

    def __init__(self, game: Game[Any] | str, /, batch: int, **options: Any) -> None:
        optional_import("torch", "torch")
        self.game = single.as_game(game, options)
        self.batch = check_count("batch", batch)
        self._games: EnvironmentState[Any] | None = None

    @property
    def _torch(self) -> Any:  # a module, which cannot be pickled
        return optional_import("torch", "torch")

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of an observation of one game."""
        return observation_shape(self.game)

    def reset(self, seed: int = 0) -> tuple[Any, Any]:
        """Start all games anew: the observations of the players to move, and their legal actions."""
        require_backend()
        reset, _ = _compiled(self.game, self.batch)
        self._games, observation, action_mask = reset(jax.random.key(seed))
        return self._tensor(observation), self._tensor(action_mask)

    @property
    def current_player(self) -> Any:
        """``int32[batch]``: the players to move."""
        return self._tensor(jax.vmap(self.game.current_player)(self._started().state))

    def step(self, action: Any) -> TorchTransition:
        """Play one action in every game.

        Args:
          action: a tensor of integers, ``[batch]``, on the device of the games. An integer outside of the range of actions is
            an illegal action like others, because a look at the values would wait for the device.

        Raises ``ValueError`` or ``TypeError`` for other tensors, ``RuntimeError`` before the first ``reset``.
        """
        games, torch = self._started(), self._torch
        if not isinstance(action, torch.Tensor):
            raise TypeError(f"action must be a tensor of integers [{self.batch}], got {shown(action)}")
        if action.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            raise TypeError(f"action must be integers, not {action.dtype}")
        if action.shape != (self.batch,):
            raise ValueError(f"action must be integers [{self.batch}], not {action.dtype}{list(action.shape)}")
        if action.dtype == torch.int64:  # which a cast alone would wrap
            action = action.clamp(-1, self.game.num_actions)
        actions = jnp.from_dlpack(action.detach().to(torch.int32).contiguous())
        _, step = _compiled(self.game, self.batch)
        self._games, transition, rewards, action_mask, player = step(games, actions)
        return TorchTransition(
            player=self._tensor(transition.player),
            illegal=self._tensor(transition.illegal),
            terminated=self._tensor(transition.terminated),
            truncated=self._tensor(transition.truncated),
            rewards=self._tensor(rewards),
            scores=self._tensor(transition.scores),
            final_observation=self._tensor(transition.final_observation),
            observation=self._tensor(transition.observation),
            action_mask=self._tensor(action_mask),
            next_player=self._tensor(player),
        )

    def _started(self) -> EnvironmentState[Any]:
        require_backend()
        if self._games is None:
            raise RuntimeError("call reset before step")
        return self._games

    def _tensor(self, array: jax.Array) -> Any:
        return self._torch.from_dlpack(array)


@lru_cache(maxsize=8)
def _compiled(game: Game[Any], batch: int) -> tuple[Any, Any]:
    environment = Environment(game)

    def legal(games: EnvironmentState[Any]) -> jax.Array:
        return jax.vmap(game.legal_action_mask)(games.state)

    def reset(key: jax.Array) -> tuple[EnvironmentState[Any], jax.Array, jax.Array]:
        games = environment.reset(key, batch)
        observation = jax.vmap(lambda state: game.observe(state, game.current_player(state)))(games.state)
        return games, observation, legal(games)

    def step(
        games: EnvironmentState[Any], action: jax.Array
    ) -> tuple[EnvironmentState[Any], Transition, jax.Array, jax.Array, jax.Array]:
        games, transition = environment.step(games, action)
        ended = (transition.terminated | transition.truncated).astype(jnp.float32)
        rewards = single.zero_sum(transition.returns, ended)
        return games, transition, rewards, legal(games), jax.vmap(game.current_player)(games.state)

    return jax.jit(reset), jax.jit(step)
