"""The replay buffer: a ring of positions on the device, one column for each lane of self-play.

It keeps states and not observations, which would take a hundred times as much, and the few actions that a search looked at. The
outcome of a game is known only at its end, and is then written to all positions of the game.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game, state_bytes, state_shapes

State = TypeVar("State")

UNKNOWN = -1.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Positions(Generic[State]):
    """Positions of T moves in L lanes, each with what a search made of it; K candidates, P players."""

    state: State
    """``[T, L, ...]``"""
    actions: Int32[Array, "T L K"]
    """The candidates; -1 in places left over."""
    policy: Float32[Array, "T L K"]
    """The improved policy over them."""
    values: Float32[Array, "T L P"]
    """What the search expected of the game, by seat; ``UNKNOWN`` where nothing was searched."""
    surprise: Float32[Array, "T L"]
    """By how much the search changed the policy, in nats; -1 where it was a fast one, not to be learned from."""
    game: Int32[Array, "T L"]
    """The number of the game in its lane; -1 where there is no position yet."""
    returns: Float32[Array, "T L P"]
    """The shares of the win at the end of the game."""
    margin: Float32[Array, "T L P"]
    """``Game.heuristic_value`` at its end."""
    known: Bool[Array, "T L"]
    """Whether it has ended."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replay(Generic[State]):
    """The ring."""

    positions: Positions[State]
    row: Int32[Array, ""]
    """Where the next positions go."""


def empty(game: Game[State], rows: int, lanes: int, candidates: int) -> Replay[State]:
    """A ring without positions."""

    def room(dtype: Any, *shape: int, value: float = 0) -> Array:
        return jnp.full((rows, lanes, *shape), value, dtype)

    players = game.num_players
    positions = Positions(
        state=jax.tree.map(lambda leaf: room(leaf.dtype, *leaf.shape), state_shapes(game)),
        actions=room(jnp.int32, candidates, value=-1),
        policy=room(jnp.float32, candidates),
        values=room(jnp.float32, players),
        surprise=room(jnp.float32, value=-1),
        game=room(jnp.int32, value=-1),
        returns=room(jnp.float32, players),
        margin=room(jnp.float32, players),
        known=room(jnp.bool_),
    )
    return Replay(positions, jnp.int32(0))


def bytes_per_position(game: Game[Any], candidates: int) -> int:
    """Bytes that a position takes in the ring."""
    return state_bytes(game) + 8 * candidates + 12 * game.num_players + 9


def add(replay: Replay[State], new: Positions[State], ended: Bool[Array, "T L"]) -> Replay[State]:
    """Put the newest T positions of each lane in the place of the oldest; the ring's rows are a multiple of T.

    ``new`` has the outcome of a game in the row of its last move, where ``ended``; the other rows of the game get it here.
    """

    def earlier(later: _Outcome, row: _Outcome) -> tuple[_Outcome, _Outcome]:
        ends = row[0]
        outcome = ends | later[0], jnp.where(ends[:, None], row[1], later[1]), jnp.where(ends[:, None], row[2], later[2])
        return outcome, outcome

    none = jnp.zeros_like(new.returns[0])
    start = (jnp.zeros_like(ended[0]), none, none)
    # Backwards: a row's outcome is that of the first end from there on.
    first, (known, returns, margin) = lax.scan(earlier, start, (ended, new.returns, new.margin), reverse=True)
    new = replace(new, known=known, returns=returns, margin=margin)

    # The games that were under way before, and have ended now.
    old = replay.positions
    mine = (old.game == new.game[:1]) & first[0][None] & ~old.known
    old = replace(
        old,
        known=old.known | mine,
        returns=jnp.where(mine[..., None], first[1][None], old.returns),
        margin=jnp.where(mine[..., None], first[2][None], old.margin),
    )
    rows, more = old.known.shape[0], ended.shape[0]
    positions = jax.tree.map(lambda leaf, fresh: lax.dynamic_update_slice_in_dim(leaf, fresh, replay.row, 0), old, new)
    return Replay(positions, (replay.row + more) % rows)


def sample(replay: Replay[State], key: PRNGKeyArray, count: int, surprise: float) -> Int32[Array, "count"]:
    """Indices, ``row * L + lane``, of positions to learn from; -1 where there are none.

    All are equally likely, except that the share ``surprise`` of them is drawn in proportion to their surprise.
    """
    positions = replay.positions
    there = (positions.known & (positions.surprise >= 0)).ravel()
    number = jnp.maximum(jnp.sum(there), 1).astype(jnp.float32)
    found = jnp.where(there, positions.surprise.ravel(), 0.0)
    total = jnp.sum(found)
    chance = jnp.where(there, (1 - surprise) / number, 0.0) + surprise * found / jnp.maximum(total, 1e-9)
    # A scan in a tree; XLA's own cumulative sum takes quadratic time on a CPU.
    upto = lax.associative_scan(jnp.add, chance)
    drawn = jnp.searchsorted(upto, jax.random.uniform(key, (count,)) * upto[-1], side="right")
    index = jnp.minimum(drawn, upto.shape[0] - 1).astype(jnp.int32)
    return jnp.where(there[index], index, -1)


_Outcome = tuple[Array, Array, Array]
"""Whether a game has ended, the shares of the win, and the margin."""


def take(replay: Replay[State], index: Int32[Array, "count"]) -> Positions[State]:
    """The positions at these indices, ``[count, ...]``."""

    def rows(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])[jnp.maximum(index, 0)]

    taken: Positions[State] = jax.tree.map(rows, replay.positions)
    return replace(taken, known=taken.known & (index >= 0))
