"""Streams: games that follow one another without end, the fastest form of random play."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.batching.reset import auto_reset_lanes, batch_first
from tilewe_jax.batching.rollout import choose_and_move, each
from tilewe_jax.game import Game, Policy, check_own_game, check_state
from tilewe_jax.lanes import typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count
from tilewe_jax.utils.loops import scan

S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stream(Generic[S]):
    """A batch of games, each followed by another one as soon as it ends. Opaque: ``stream_states`` gives its states."""

    _deferred: S
    """States with deferred passes (``Game.apply_deferred``), games on the last axis."""
    action: Int32[Array, "batch"]
    """The action about to be played; -1 where there is none."""
    games_left: Int32[Array, "batch"]
    """Games still to be finished, the present one included."""
    key: PRNGKeyArray
    """PRNG key of the steps to come."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StreamSteps:
    """T steps of a stream."""

    actions: Int32[Array, "batch T"]
    """Actions played; -1 where no game is left, a blocked player was passed over, or a policy chose an illegal action."""
    ended: Bool[Array, "batch T"]
    """Whether the action ended a game."""
    scores: Int32[Array, "batch T players"]
    """Scores of the games that ended, else zero."""
    returns: Float32[Array, "batch T players"]
    """Returns of the games that ended, else zero."""


def init_stream(
    game: Game[S], key: PRNGKeyArray, batch: int, num_games: Int32[Array, "batch"] | int, policy: Policy | None = None
) -> Stream[S]:
    """Start a stream.

    Args:
      game: the game.
      key: PRNG key, consumed.
      batch: number of games at a time.
      num_games: how many games are played one after another, in all or in each place of the batch.
      policy: chooses every action; by default actions are uniformly random.

    Raises ``ValueError`` or ``TypeError`` for a batch that is not an integer of at least 1.
    """
    require_backend()
    check_own_game(game)
    batch = check_count("batch", batch)
    key, init_key, action_key = jax.random.split(typed_key(key), 3)
    state = jax.vmap(game.init, out_axes=-1)(jax.random.split(init_key, batch))
    left = jnp.broadcast_to(jnp.asarray(num_games, jnp.int32), (batch,))
    choose, _ = choose_and_move(game, policy)
    action = choose(state, jax.random.split(action_key, batch))
    return Stream(state, jnp.where(left > 0, action, -1), left, key)


def stream_states(game: Game[S], stream: Stream[S]) -> S:
    """The states of a stream, ``[batch, ...]``, with all forced passes made."""
    resolved: S = batch_first(each(game.resolve_passes)(stream._deferred))
    return resolved


def run_stream(game: Game[S], stream: Stream[S], num_steps: int, policy: Policy | None = None) -> tuple[Stream[S], StreamSteps]:
    """Play ``num_steps`` steps of every game; a game that ends is followed by the next one at once.

    Statistics of the games that *ended* within a span count too many short ones. Where that matters, limit ``num_games`` and
    play until all have ended.

    Args:
      game: the game.
      stream: the stream, as ``init_stream`` or this function gave it.
      num_steps: steps to play, T.
      policy: chooses every action, as for ``init_stream``.

    Returns:
      The stream and the T steps.

    Raises ``ValueError`` or ``TypeError`` for a number of steps that is not an integer of at least 1, and for another game.
    """
    batch = stream.action.shape[0]
    num_steps = check_count("num_steps", num_steps)
    check_state(game, jax.eval_shape(batch_first, stream._deferred), (batch,))
    choose, move = choose_and_move(game, policy)

    def step(stream: Stream[S], keys: tuple[Key[Array, "batch"], Key[Array, "batch"]]) -> tuple[Stream[S], StreamSteps]:
        state = move(stream._deferred, stream.action)
        ended = each(game.is_terminal)(state) & (stream.games_left > 0)
        steps = StreamSteps(
            stream.action,
            ended,
            jnp.where(ended[None], each(game.scores)(state), 0),
            jnp.where(ended[None], each(game.returns)(state), 0.0),
        )
        left = stream.games_left - ended.astype(jnp.int32)
        state = auto_reset_lanes(game, keys[0], ended & (left > 0), state)
        action = choose(state, keys[1])
        return Stream(state, jnp.where(left > 0, action, -1), left, stream.key), steps

    key, reset_key, action_key = jax.random.split(stream.key, 3)
    # All keys at once: a loop iteration of its own for each would cost more than the keys themselves. In two arrays, so that
    # the first is never made for games that start without chance.
    keys = jax.random.split(reset_key, (num_steps, batch)), jax.random.split(action_key, (num_steps, batch))
    stream, steps = scan(step, replace(stream, key=key), keys)
    # [T, batch] and [T, players, batch] to batch-first.
    return stream, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), steps)
