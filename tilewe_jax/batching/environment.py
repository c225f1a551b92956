"""Games to be stepped from outside, thousands at a time, with auto-reset that keeps the last observation."""

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
    """The games of an ``Environment``."""

    state: S
    """States of the game, ``[batch, ...]``."""
    steps: Int32[Array, "batch"]
    """Actions played in the present game."""
    key: PRNGKeyArray
    """PRNG key of the games to come."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TimeStep:
    """The result of a reset or a step. Under ``jit`` a loop pays only for the fields that it uses."""

    observation: Float32[Array, "batch ..."]
    """Observation of ``current_player``, after any reset."""
    legal_action_mask: Bool[Array, "batch num_actions"]
    """The legal actions of that player."""
    current_player: Int32[Array, "batch"]
    """The player to move, from 0."""
    rewards: Float32[Array, "batch players"]
    """Outcomes by seat of the games that ended with this step, see ``Environment.rewards``; zero in all others."""
    terminated: Bool[Array, "batch"]
    """Whether the step ended the game by its rules."""
    truncated: Bool[Array, "batch"]
    """Whether the step ended the game by a cap."""
    last_observation: Float32[Array, "batch ..."]
    """Observation of the player who has just moved, before any reset; the last one of a game that ended."""
    illegal: Bool[Array, "batch"]
    """Whether the action was illegal, which leaves the game unchanged."""
    scores: Int32[Array, "batch players"]
    """Points of the game by seat, before any reset."""


def zero_sum(returns: Any, is_terminal: Any) -> Any:
    """Convert ``Game.returns`` into outcomes by seat that sum to 0, as most packages define them; NumPy or JAX arrays.

    Among several players a win alone is 1, a loss -1 / (players - 1), and ties lie between, so that two players have 1, 0 and
    -1. A single player has the fraction of the best possible score, as in ``returns``.

    Args:
      returns: ``[..., players]``.
      is_terminal: whether the game is over, ``[...]``; before the end the outcome is 0.
    """
    players = returns.shape[-1]
    outcome = returns if players == 1 else (players * returns - 1) / (players - 1)
    return outcome * is_terminal[..., None]


@dataclass(frozen=True)
class Environment(Generic[S]):
    """A batch of games to be stepped from outside, each restarted as soon as it is over.

    Both methods are pure functions, to be compiled by the caller.

    >>> import jax, tilewe_jax
    >>> environment = tilewe_jax.Environment(tilewe_jax.make("santorini", size=3))
    >>> games, timestep = environment.reset(jax.random.key(0), batch=4)
    >>> games, timestep = jax.jit(environment.step)(games, timestep.legal_action_mask.argmax(axis=1))
    >>> timestep.current_player.tolist(), timestep.illegal.any().item()
    ([1, 1, 1, 1], False)
    """

    game: Game[S]
    rewards: Literal["zero_sum", "win_shares"] = "zero_sum"
    """Rewards at the end of a game: ``zero_sum``, between -1 and 1, or the shares of one win, ``Game.returns``."""

    def __post_init__(self) -> None:
        check_choice("rewards", self.rewards, ("zero_sum", "win_shares"))

    def reset(self, key: PRNGKeyArray, batch: int) -> tuple[EnvironmentState[S], TimeStep]:
        """Start ``batch`` new games. Raises ``ValueError`` for fewer than one, ``TypeError`` for other values than integers."""
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

        Raises ``ValueError`` or ``TypeError`` for actions of another shape or dtype than ``int32[batch]``, and for states of
        another game.
        """
        game, batch = self.game, games.steps.shape[0]
        check_state(game, games.state, (batch,))
        action = jnp.asarray(action)
        if action.shape != (batch,):
            raise ValueError(f"action must have shape ({batch},), one for each game, not {action.shape}")
        if action.dtype != jnp.int32:
            raise TypeError(f"action must be int32, not {action.dtype}")

        legal = jax.vmap(game.is_legal)(games.state, action)
        player = jax.vmap(game.current_player)(games.state)
        state = jax.vmap(game.apply)(games.state, jnp.where(legal, action, -1))
        ended = jax.vmap(game.is_terminal)(state)

        key, reset_key = jax.random.split(games.key)
        restarted = auto_reset(game, jax.random.split(reset_key, batch), ended, state)
        steps = jnp.where(ended, 0, games.steps + legal.astype(jnp.int32))
        return EnvironmentState(restarted, steps, key), self._timestep(restarted, state, player, ended, ~legal)

    def _timestep(self, state: S, last: S, mover: Array, ended: Array, illegal: Array) -> TimeStep:
        """The timestep of states after any reset, and of the ``last`` ones before it, which ``mover`` has led to."""
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
