"""Replay buffer: a ring of positions on the device, with one column per game played in parallel.

It stores states, because observations would take a hundred times the memory, and only the candidate actions of a search. The
outcome of a game is written to all its positions when the game ends.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game, state_bytes, state_shapes

State = TypeVar("State")

UNKNOWN = -1.0
"""Value of ``Positions.root_value`` without a search, and of ``Positions.returns`` until the game has ended."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Positions(Generic[State]):
    """Positions with their search targets; K candidates, P players.

    The leading axes are T moves in G parallel games, or any others.
    """

    state: State
    """States, ``[T, G, ...]``."""
    candidates: Int32[Array, "*axes K"]
    """Candidate actions of the search, padded with -1."""
    policy: Float32[Array, "*axes K"]
    """Improved policy over the candidates. With a single candidate the policy loss is 0."""
    root_value: Float32[Array, "*axes P"]
    """Value of the root by absolute seat; ``UNKNOWN`` without a search."""
    surprise: Float32[Array, "*axes"]
    """Divergence of the improved policy from the prior, in nats; -1 after a fast search, which is excluded from learning."""
    game_index: Int32[Array, "*axes"]
    """Index of the game in its column; -1 in empty rows."""
    returns: Float32[Array, "*axes P"]
    """Outcome of the game by absolute seat; ``UNKNOWN`` until the game has ended, which excludes the position from learning."""
    outcome_target: Float32[Array, "*axes P"]
    """TD(lambda) target of the outcome by absolute seat: a weighted mean of the root values of later positions and the outcome.
    The outcome is the result of the game, or the exact outcome of the position or of the first later solved position. Until the
    game ends, the entries sum to 1 minus the weight of the unknown outcome."""
    score_value: Float32[Array, "*axes P"]
    """``Game.heuristic_value`` at the end of the game; zeros exclude the score from learning."""
    final: State | None = None
    """State at the end of the game, ``[T, G, ...]``, not terminal after a resignation; ``None`` if it is not recorded."""

    @property
    def finished(self) -> Any:
        """Whether the game has ended and the last four fields are known, ``[T, G]``."""
        return self.returns[..., 0] >= 0

    @property
    def is_solved(self) -> Any:
        """Whether new positions, which are not in a buffer yet, have an exact outcome, ``[T, G]``; see ``training.endings``."""
        return self.outcome_target.sum(axis=-1) > 0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replay(Generic[State]):
    """The ring buffer."""

    positions: Positions[State]
    """All positions, ``[replay_size, num_games, ...]``."""
    row: Int32[Array, ""]
    """Row of the next positions."""


def empty(game: Game[State], rows: int, num_games: int, num_candidates: int, final_states: bool = False) -> Replay[State]:
    """Create an empty buffer. With ``final_states``, positions have the last state of their game."""

    def full(dtype: Any, *shape: int, value: float = 0) -> Array:
        return jnp.full((rows, num_games, *shape), value, dtype)

    def states() -> State:
        state: State = jax.tree.map(lambda leaf: full(leaf.dtype, *leaf.shape), state_shapes(game))
        return state

    players = game.num_players
    positions = Positions(
        state=states(),
        candidates=full(jnp.int32, num_candidates, value=-1),
        policy=full(jnp.float32, num_candidates),
        root_value=full(jnp.float32, players),
        surprise=full(jnp.float32, value=-1),
        game_index=full(jnp.int32, value=-1),
        returns=full(jnp.float32, players, value=UNKNOWN),
        outcome_target=full(jnp.float32, players),
        score_value=full(jnp.float32, players),
        final=states() if final_states else None,
    )
    return Replay(positions, jnp.int32(0))


def bytes_per_position(game: Game[Any], num_candidates: int, final_states: bool = False) -> int:
    """Return the size of a position in the buffer, in bytes."""
    return state_bytes(game) * (1 + final_states) + 8 * num_candidates + 16 * game.num_players + 8


class _Ending(NamedTuple):
    """The fields of ``Positions`` that a row passes to the previous row: how G games end."""

    returns: Float32[Array, "G P"]
    score_value: Float32[Array, "G P"]
    outcome_target: Float32[Array, "G P"]
    final: Any


def _choose(condition: Bool[Array, "*axes"], new: Any, old: Any) -> Any:
    """Select between the leaves of two trees, by a condition of their leading axes."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(condition.reshape(*condition.shape, *[1] * (old.ndim - condition.ndim)), new, old)

    return jax.tree.map(choose, new, old)


def add(replay: Replay[State], new: Positions[State], td_lambda: float = 1.0) -> Replay[State]:
    """Replace the oldest T positions of each column by new ones.

    Args:
        replay: the buffer; its number of rows is a multiple of T.
        new: positions, ``[T, G, ...]``. The last position of a game has the outcome, which is copied to its other positions.
            Solved positions have their exact outcome as ``outcome_target``; the others have 0.
        td_lambda: lambda of the outcome targets.
    """

    def earlier(later: _Ending, row: Positions[State]) -> tuple[_Ending, _Ending]:
        known: _Ending = _choose(row.finished, _Ending(row.returns, row.score_value, row.returns, row.final), later)
        known = known._replace(outcome_target=_choose(row.is_solved, row.outcome_target, known.outcome_target))
        mixed = (1 - td_lambda) * row.root_value + td_lambda * known.outcome_target
        before = jnp.where(row.is_solved[:, None] | (row.root_value == UNKNOWN), known.outcome_target, mixed)
        return known._replace(outcome_target=before), known

    none = jnp.zeros_like(new.returns[0])
    start = _Ending(none + UNKNOWN, none, none, jax.tree.map(lambda leaf: leaf[-1], new.final))
    # In reverse, each row gets the outcome of the next end of a game.
    first, endings = lax.scan(earlier, start, new, reverse=True)
    new = replace(new, **endings._asdict())

    # Update the older positions of the games that continue in the new rows.
    old = replay.positions
    goes_on = (old.game_index == new.game_index[:1]) & ~old.finished
    rest = jnp.where(goes_on[..., None], 1 - jnp.sum(old.outcome_target, axis=-1, keepdims=True), 0.0)
    target = old.outcome_target + rest * first.outcome_target[None]
    known = goes_on & (first.returns[:, 0] >= 0)[None]
    returns, score_value, _, final = jax.tree.map(lambda leaf: leaf[None], first)
    ended = _choose(known, (returns, score_value, final), (old.returns, old.score_value, old.final))
    old = replace(old, returns=ended[0], score_value=ended[1], final=ended[2], outcome_target=target)
    num_rows, more = len(old.game_index), len(new.game_index)
    positions = jax.tree.map(lambda leaf, fresh: lax.dynamic_update_slice_in_dim(leaf, fresh, replay.row, 0), old, new)
    return Replay(positions, (replay.row + more) % num_rows)


def sample(replay: Replay[State], key: PRNGKeyArray, count: int, surprise_fraction: float) -> Int32[Array, "count"]:
    """Sample indices of positions, ``row * num_games + column``; -1 if the buffer has none to learn from.

    A fraction of them is sampled in proportion to the surprise (Wu 2019), the others uniformly.
    """
    positions = replay.positions
    available = (positions.finished & (positions.surprise >= 0)).ravel()
    number = jnp.maximum(jnp.sum(available, dtype=jnp.int32), 1).astype(jnp.float32)
    surprise = jnp.where(available, positions.surprise.ravel(), 0.0)
    total = jnp.sum(surprise)
    uniform = jnp.where(available, (1 - surprise_fraction) / number, 0.0)
    probability = uniform + surprise_fraction * surprise / jnp.maximum(total, 1e-9)
    # ``jnp.cumsum`` takes quadratic time on a CPU.
    cumulative = lax.associative_scan(jnp.add, probability)
    drawn = jnp.searchsorted(cumulative, jax.random.uniform(key, (count,), jnp.float32) * cumulative[-1], side="right")
    index = jnp.minimum(drawn, cumulative.shape[0] - 1).astype(jnp.int32)
    return jnp.where(available[index], index, -1)


def take(replay: Replay[State], index: Int32[Array, "count"]) -> Positions[State]:
    """Return the positions at indices, ``[count, ...]``; positions at -1 have no outcome."""

    def rows(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])[jnp.maximum(index, 0)]

    taken: Positions[State] = jax.tree.map(rows, replay.positions)
    return replace(taken, returns=jnp.where(index[:, None] >= 0, taken.returns, UNKNOWN))
