"""Games to be stepped from outside, thousands at a time, with auto-reset that keeps the last observation."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.batching.reset import auto_reset, init_batch
from tilewe_jax.game import Game, check_state
from tilewe_jax.lanes import typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count

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
class Transition:
    """What one step of an ``Environment`` gives back."""

    player: Int32[Array, "batch"]
    """The player who was to move."""
    illegal: Bool[Array, "batch"]
    """Whether the action was illegal, and so left the game as it was."""
    terminated: Bool[Array, "batch"]
    """Whether the step ended the game by its rules."""
    truncated: Bool[Array, "batch"]
    """Whether the step ended the game by a cap."""
    returns: Float32[Array, "batch players"]
    """Returns of the games that ended with this step, else zero."""
    scores: Int32[Array, "batch players"]
    """Scores after the step, before any reset."""
    final_observation: Float32[Array, "batch ..."]
    """Observation of ``player`` after the step, before any reset; at the end of a game its last one."""
    observation: Float32[Array, "batch ..."]
    """Observation of the player now to move, after any reset."""


@dataclass(frozen=True)
class Environment(Generic[S]):
    """A batch of games to be stepped from outside, each restarted as soon as it is over.

    Both methods are pure functions, to be compiled by the caller.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> environment = tilewe_jax.Environment(game)
    >>> games = environment.reset(jax.random.key(0), batch=4)
    >>> actions = jax.vmap(game.sample_action)(games.state, jax.random.split(jax.random.key(1), 4))
    >>> games, transition = jax.jit(environment.step)(games, actions)
    >>> transition.player.tolist(), transition.illegal.any().item()
    ([0, 0, 0, 0], False)
    """

    game: Game[S]

    def reset(self, key: PRNGKeyArray, batch: int) -> EnvironmentState[S]:
        """Start ``batch`` new games. Raises ``ValueError`` for fewer than one, ``TypeError`` for other values than integers."""
        require_backend()
        batch = check_count("batch", batch)
        key, init_key = jax.random.split(typed_key(key))
        return EnvironmentState(init_batch(self.game, init_key, batch), jnp.zeros(batch, jnp.int32), key)

    def step(self, games: EnvironmentState[S], action: Int32[Array, "batch"]) -> tuple[EnvironmentState[S], Transition]:
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
        truncated = ended & jax.vmap(game.is_truncated)(state)

        key, reset_key = jax.random.split(games.key)
        restarted = auto_reset(game, jax.random.split(reset_key, batch), ended, state)
        transition = Transition(
            player=player,
            illegal=~legal,
            terminated=ended & ~truncated,
            truncated=truncated,
            returns=jax.vmap(game.returns)(state),  # zero before the end
            scores=jax.vmap(game.scores)(state),
            final_observation=jax.vmap(game.observe)(state, player),
            observation=jax.vmap(lambda state: game.observe(state, game.current_player(state)))(restarted),
        )
        return EnvironmentState(restarted, jnp.where(ended, 0, games.steps + legal.astype(jnp.int32)), key), transition
