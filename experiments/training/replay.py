"""The replay buffer: a ring of positions on the device, one column for each game that is played at once.

It keeps states and not observations, which would take a hundred times as much, and the candidate actions of the search only.
The outcome of a game is known only at its end, and is then written to all positions of the game.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game, state_shapes, state_bytes

State = TypeVar("State")

UNKNOWN = -1.0
"""Stands in ``Positions.root_value`` where nothing was searched."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Positions(Generic[State]):
    """Positions of T moves in G games at once, each with what a search made of it; K candidates, P players."""

    state: State
    """States, ``[T, G, ...]``."""
    candidates: Int32[Array, "T G K"]
    """Candidate actions of the search; -1 in unused places."""
    policy: Float32[Array, "T G K"]
    """Improved policy over the candidates."""
    root_value: Float32[Array, "T G P"]
    """Value of the root by absolute seat; ``UNKNOWN`` where nothing was searched."""
    surprise: Float32[Array, "T G"]
    """Divergence of the improved policy from the prior, in nats; -1 after a fast search, which is not learned from."""
    game_index: Int32[Array, "T G"]
    """Index of the game in its column; -1 where there is no position yet."""
    returns: Float32[Array, "T G P"]
    """Outcome of the game by absolute seat."""
    score_value: Float32[Array, "T G P"]
    """``Game.heuristic_value`` at the end of the game."""
    finished: Bool[Array, "T G"]
    """Whether the game has ended, so that the two fields above are known."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replay(Generic[State]):
    """The ring buffer."""

    positions: Positions[State]
    """All positions, ``[replay_size, num_games, ...]``."""
    row: Int32[Array, ""]
    """Row to which the next positions are written."""


def empty(game: Game[State], rows: int, num_games: int, num_candidates: int) -> Replay[State]:
    """A buffer without positions."""

    def full(dtype: Any, *shape: int, value: float = 0) -> Array:
        return jnp.full((rows, num_games, *shape), value, dtype)

    players = game.num_players
    positions = Positions(
        state=jax.tree.map(lambda leaf: full(leaf.dtype, *leaf.shape), state_shapes(game)),
        candidates=full(jnp.int32, num_candidates, value=-1),
        policy=full(jnp.float32, num_candidates),
        root_value=full(jnp.float32, players),
        surprise=full(jnp.float32, value=-1),
        game_index=full(jnp.int32, value=-1),
        returns=full(jnp.float32, players),
        score_value=full(jnp.float32, players),
        finished=full(jnp.bool_),
    )
    return Replay(positions, jnp.int32(0))


def bytes_per_position(game: Game[Any], num_candidates: int) -> int:
    """Bytes that a position takes in the buffer."""
    return state_bytes(game) + 8 * num_candidates + 12 * game.num_players + 9


def add(replay: Replay[State], new: Positions[State], ended: Bool[Array, "T G"]) -> Replay[State]:
    """Replace the oldest T positions of each column by new ones.

    Args:
        replay: the buffer; its number of rows is a multiple of T.
        new: positions that have the outcome of a game in the row of its last move; the game's other rows get it here.
        ended: whether each row is the last of its game.
    """

    def earlier(later: _Outcome, row: _Outcome) -> tuple[_Outcome, _Outcome]:
        ends = row[0]
        outcome = ends | later[0], jnp.where(ends[:, None], row[1], later[1]), jnp.where(ends[:, None], row[2], later[2])
        return outcome, outcome

    none = jnp.zeros_like(new.returns[0])
    start = (jnp.zeros_like(ended[0]), none, none)
    # Backwards: a row's outcome is that of the first end from that row on.
    first, (finished, returns, score_value) = lax.scan(earlier, start, (ended, new.returns, new.score_value), reverse=True)
    new = replace(new, finished=finished, returns=returns, score_value=score_value)

    # Older positions of the games that have ended in the new rows.
    old = replay.positions
    mine = (old.game_index == new.game_index[:1]) & first[0][None] & ~old.finished
    old = replace(
        old,
        finished=old.finished | mine,
        returns=jnp.where(mine[..., None], first[1][None], old.returns),
        score_value=jnp.where(mine[..., None], first[2][None], old.score_value),
    )
    rows, more = old.finished.shape[0], ended.shape[0]
    positions = jax.tree.map(lambda leaf, fresh: lax.dynamic_update_slice_in_dim(leaf, fresh, replay.row, 0), old, new)
    return Replay(positions, (replay.row + more) % rows)


def sample(replay: Replay[State], key: PRNGKeyArray, count: int, surprise_fraction: float) -> Int32[Array, "count"]:
    """Indices, ``row * num_games + column``, of positions to learn from; -1 where the buffer has none.

    All are equally likely, except that the given fraction of them is drawn in proportion to their surprise (Wu 2019).
    """
    positions = replay.positions
    available = (positions.finished & (positions.surprise >= 0)).ravel()
    number = jnp.maximum(jnp.sum(available), 1).astype(jnp.float32)
    surprise = jnp.where(available, positions.surprise.ravel(), 0.0)
    total = jnp.sum(surprise)
    uniform = jnp.where(available, (1 - surprise_fraction) / number, 0.0)
    probability = uniform + surprise_fraction * surprise / jnp.maximum(total, 1e-9)
    # A scan in a tree; XLA's own cumulative sum takes quadratic time on a CPU.
    cumulative = lax.associative_scan(jnp.add, probability)
    drawn = jnp.searchsorted(cumulative, jax.random.uniform(key, (count,)) * cumulative[-1], side="right")
    index = jnp.minimum(drawn, cumulative.shape[0] - 1).astype(jnp.int32)
    return jnp.where(available[index], index, -1)


_Outcome = tuple[Array, Array, Array]
"""Whether a game has ended, its returns, and its final ``heuristic_value``."""


def take(replay: Replay[State], index: Int32[Array, "count"]) -> Positions[State]:
    """The positions at these indices, ``[count, ...]``; those at -1 are not finished."""

    def rows(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])[jnp.maximum(index, 0)]

    taken: Positions[State] = jax.tree.map(rows, replay.positions)
    return replace(taken, finished=taken.finished & (index >= 0))
