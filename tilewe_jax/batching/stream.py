"""Streams of consecutive games, the fastest form of random play."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.batching.reset import auto_reset_lanes, batch_first
from tilewe_jax.batching.rollout import choose_and_move
from tilewe_jax.game import Game, Policy, check_own_game, check_state
from tilewe_jax.lanes import each, subkey, subkeys, typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count
from tilewe_jax.utils.loops import scan

S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stream(Generic[S]):
    """A batch of games, each followed by the next game when it ends. ``stream_states`` returns the states."""

    _deferred: S
    """States with deferred passes (``Game.apply_deferred``), batch axis last."""
    action: Int32[Array, "batch"]
    """The next action; -1 for none."""
    games_left: Int32[Array, "batch"]
    """Number of unfinished games, including the current one."""
    key: PRNGKeyArray
    """PRNG key for later steps."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StreamSteps:
    """T steps of a stream."""

    actions: Int32[Array, "batch T"]
    """Actions played; -1 if no game is left, a blocked player was passed over, or the policy chose an illegal action."""
    ended: Bool[Array, "batch T"]
    """Mask of the actions that ended a game."""
    scores: Int32[Array, "batch T players"]
    """Scores of games that ended; zero for other games."""
    returns: Float32[Array, "batch T players"]
    """Returns of games that ended; zero for other games."""


def init_stream(
    game: Game[S], key: PRNGKeyArray, batch: int, num_games: Int32[Array, "batch"] | int, policy: Policy | None = None
) -> Stream[S]:
    """Start a stream.

    Args:
      game: the game.
      key: PRNG key, consumed.
      batch: number of parallel games.
      num_games: number of consecutive games in each place of the batch, one number for all places or one per place.
      policy: chooses every action; by default actions are uniformly random.

    Raises ``ValueError`` or ``TypeError`` unless ``batch`` is an integer of at least 1.
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
    """Play ``num_steps`` steps of every game; the next game follows a finished game without an idle step.

    Statistics of the games that *ended* within a span of steps overrepresent short games. To avoid this bias, limit
    ``num_games`` and play until all games have ended.

    Args:
      game: the game.
      stream: the stream, from ``init_stream`` or this function.
      num_steps: number of steps, T.
      policy: chooses every action, as for ``init_stream``.

    Returns:
      The stream and the T steps.

    Raises ``ValueError`` or ``TypeError`` unless ``num_steps`` is an integer of at least 1, and for another game.
    """
    batch = stream.action.shape[0]
    num_steps = check_count("num_steps", num_steps)
    check_state(game, jax.eval_shape(batch_first, stream._deferred), (batch,))
    choose, move = choose_and_move(game, policy)

    def keys(key: PRNGKeyArray, number: Int32[Array, ""]) -> Key[Array, "batch"]:
        """Derive the keys of a step by hashing; to split a key takes a third of the time of a step of Santorini."""
        return subkeys(subkey(key, number), batch)

    def step(stream: Stream[S], number: Int32[Array, ""]) -> tuple[Stream[S], StreamSteps]:
        state = move(stream._deferred, stream.action)
        ended = each(game.is_terminal)(state) & (stream.games_left > 0)
        steps = StreamSteps(
            stream.action,
            ended,
            jnp.where(ended[None], each(game.scores)(state), 0),
            jnp.where(ended[None], each(game.returns)(state), 0.0),
        )
        left = stream.games_left - ended.astype(jnp.int32)
        state = auto_reset_lanes(game, keys(reset_key, number), ended & (left > 0), state)
        action = choose(state, keys(action_key, number))
        return Stream(state, jnp.where(left > 0, action, -1), left, stream.key), steps

    key, reset_key, action_key = jax.random.split(stream.key, 3)
    stream, steps = scan(step, replace(stream, key=key), jnp.arange(num_steps, dtype=jnp.int32))
    # [T, batch] and [T, players, batch] to batch-first.
    return stream, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), steps)
