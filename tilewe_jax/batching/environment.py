"""Batched stepping environment with auto-reset that keeps the last observation."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.batching.reset import auto_reset, init_batch
from tilewe_jax.game import Game, check_own_game, check_state
from tilewe_jax.lanes import typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_choice, check_count

S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EnvironmentState(Generic[S]):
    """State of an ``Environment``."""

    state: S
    """States of the game, ``[batch, ...]``."""
    steps: Int32[Array, "batch"]
    """Number of actions played in each current game."""
    key: PRNGKeyArray
    """PRNG key for later resets."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TimeStep:
    """Result of a reset or a step. Under ``jit``, unused fields are not computed."""

    observation: Float32[Array, "batch ..."]
    """Observation of ``current_player``, after any reset."""
    legal_action_mask: Bool[Array, "batch num_actions"]
    """Mask of the legal actions of ``current_player``."""
    current_player: Int32[Array, "batch"]
    """The player to move, from 0."""
    rewards: Float32[Array, "batch players"]
    """Outcomes by seat of the games that this step ended, see ``Environment.rewards``; zero for other games."""
    terminated: Bool[Array, "batch"]
    """Mask of the games that the step ended by the rules."""
    truncated: Bool[Array, "batch"]
    """Mask of the games that the step ended by a cap on the length."""
    last_observation: Float32[Array, "batch ..."]
    """Observation of the player who has just moved, before any reset: the final observation of a game that ended."""
    illegal: Bool[Array, "batch"]
    """Mask of the illegal actions, which leave their games unchanged."""
    scores: Int32[Array, "batch players"]
    """Points by seat, before any reset."""


def zero_sum(returns: Any, is_terminal: Any) -> Any:
    """Convert ``Game.returns`` to zero-sum outcomes by seat; accepts NumPy or JAX arrays.

    A sole winner gets 1, losers -1 / (players - 1), tied winners values in between; for two players 1, 0 and -1. In a game
    for one player the returns are unchanged.

    Args:
      returns: ``[..., players]``.
      is_terminal: whether the game is over, ``[...]``; before the end the outcome is 0.
    """
    players = returns.shape[-1]
    outcome = returns if players == 1 else (players * returns - 1) / (players - 1)
    return outcome * is_terminal[..., None]


@dataclass(frozen=True)
class Environment(Generic[S]):
    """A batch of games with auto-reset. Both methods are pure functions; compile them with ``jax.jit``.

    >>> import jax, tilewe_jax
    >>> environment = tilewe_jax.Environment(tilewe_jax.make("santorini", size=3))
    >>> games, timestep = environment.reset(jax.random.key(0), batch=4)
    >>> games, timestep = jax.jit(environment.step)(games, timestep.legal_action_mask.argmax(axis=1))
    >>> timestep.current_player.tolist(), timestep.illegal.any().item()
    ([1, 1, 1, 1], False)
    """

    game: Game[S]
    rewards: Literal["zero_sum", "win_shares"] = "zero_sum"
    """Rewards at the end of a game: ``zero_sum``, in [-1, 1], or ``win_shares``, which are ``Game.returns``."""

    def __post_init__(self) -> None:
        check_choice("rewards", self.rewards, ("zero_sum", "win_shares"))

    def reset(self, key: PRNGKeyArray, batch: int) -> tuple[EnvironmentState[S], TimeStep]:
        """Start ``batch`` new games. Raises ``ValueError`` or ``TypeError`` unless ``batch`` is an integer of at least 1."""
        require_backend()
        check_own_game(self.game)
        batch = check_count("batch", batch)
        key, init_key = jax.random.split(typed_key(key))
        state = init_batch(self.game, init_key, batch)
        no = jnp.zeros(batch, jnp.bool_)
        timestep = self._timestep(state, state, jax.vmap(self.game.current_player)(state), no, no)
        return EnvironmentState(state, jnp.zeros(batch, jnp.int32), key), timestep

    def step(self, games: EnvironmentState[S], action: Int32[Array, "batch"]) -> tuple[EnvironmentState[S], TimeStep]:
        """Play one action in every game.

        Raises ``ValueError`` or ``TypeError`` if ``action`` is not ``int32[batch]``, and for states of another game.
        """
        game, batch = self.game, games.steps.shape[0]
        check_state(game, games.state, (batch,))
        action = jnp.asarray(action)
        if action.shape != (batch,):
            raise ValueError(f"action must have shape ({batch},), got {action.shape}")
        if action.dtype != jnp.int32:
            raise TypeError(f"action must be int32, got {action.dtype}")

        legal = jax.vmap(game.is_legal)(games.state, action)
        player = jax.vmap(game.current_player)(games.state)
        state = jax.vmap(game.apply)(games.state, jnp.where(legal, action, -1))
        ended = jax.vmap(game.is_terminal)(state)

        key, reset_key = jax.random.split(games.key)
        restarted = auto_reset(game, jax.random.split(reset_key, batch), ended, state)
        steps = jnp.where(ended, 0, games.steps + legal.astype(jnp.int32))
        return EnvironmentState(restarted, steps, key), self._timestep(restarted, state, player, ended, ~legal)

    def _timestep(self, state: S, last: S, mover: Array, ended: Array, illegal: Array) -> TimeStep:
        """Make a timestep.

        Args:
          state: states after any reset.
          last: states before any reset.
          mover: players who made the last moves.
          ended: whether each game ended.
          illegal: whether each action was illegal.
        """
        game = self.game
        truncated = ended & jax.vmap(game.is_truncated)(last)
        returns = jax.vmap(game.returns)(last)  # zero before the end
        player = jax.vmap(game.current_player)(state)
        return TimeStep(
            observation=jax.vmap(game.observe)(state, player),
            legal_action_mask=jax.vmap(game.legal_action_mask)(state),
            current_player=player,
            rewards=zero_sum(returns, ended.astype(jnp.float32)) if self.rewards == "zero_sum" else returns,
            terminated=ended & ~truncated,
            truncated=truncated,
            last_observation=jax.vmap(game.observe)(last, mover),
            illegal=illegal,
            scores=jax.vmap(game.scores)(last),
        )
