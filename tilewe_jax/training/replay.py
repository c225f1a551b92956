"""The replay buffer: a ring of positions on the device, one column for each game that is played at once.

It keeps states and not observations, which would take a hundred times as much, and the candidate actions of the search only.
The outcome of a game is known only at its end, and is then written to all positions of the game.
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
"""Stands in ``Positions.root_value`` and ``TreeNode.value`` where nothing was searched."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TreeNode(Generic[State]):
    """A position inside of a search tree; with leading axes, many of them."""

    state: State
    value: Float32[Array, "*axes P"]
    """Its mean value in the search, by absolute seat; ``UNKNOWN`` where the tree has none to learn from."""


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
    outcome_target: Float32[Array, "T G P"]
    """TD(lambda) target of the outcome by absolute seat: a mean of the root values of later positions and of the outcome. What
    its sum lacks of 1, before the game has ended, is the weight of what is not known yet."""
    short_term_target: Float32[Array, "T G P"]
    """The same with another lambda, which looks fewer moves ahead."""
    score_value: Float32[Array, "T G P"]
    """``Game.heuristic_value`` at the end of the game."""
    finished: Bool[Array, "T G"]
    """Whether the game has ended, so that the four fields above are known."""
    node: TreeNode[State] | None = None
    """A position inside of the search tree, ``[T, G, ...]``; ``None`` where none are recorded."""
    final: State | None = None
    """The state at the end of the game, ``[T, G, ...]``, known where ``finished`` is set; not terminal where somebody resigned.
    ``None`` where it is not recorded."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replay(Generic[State]):
    """The ring buffer."""

    positions: Positions[State]
    """All positions, ``[replay_size, num_games, ...]``."""
    row: Int32[Array, ""]
    """Row to which the next positions are written."""


def empty(
    game: Game[State],
    rows: int,
    num_games: int,
    num_candidates: int,
    tree_nodes: bool = False,
    final_states: bool = False,
) -> Replay[State]:
    """A buffer without positions.

    Positions have one inside of the search tree with them where ``tree_nodes`` is set, and the last one of the game where
    ``final_states`` is.
    """

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
        returns=full(jnp.float32, players),
        outcome_target=full(jnp.float32, players),
        short_term_target=full(jnp.float32, players),
        score_value=full(jnp.float32, players),
        finished=full(jnp.bool_),
        node=TreeNode(states(), full(jnp.float32, players)) if tree_nodes else None,
        final=states() if final_states else None,
    )
    return Replay(positions, jnp.int32(0))


def bytes_per_position(game: Game[Any], num_candidates: int, tree_nodes: bool = False, final_states: bool = False) -> int:
    """Bytes that a position takes in the buffer."""
    node = state_bytes(game) + 4 * game.num_players if tree_nodes else 0
    states = state_bytes(game) * (1 + final_states)
    return states + 8 * num_candidates + 20 * game.num_players + 9 + node


class _Outcome(NamedTuple):
    """What a row of G games passes on to the row before it."""

    finished: Bool[Array, "G"]
    """Whether the game has ended."""
    returns: Float32[Array, "G P"]
    score_value: Float32[Array, "G P"]
    targets: tuple[Float32[Array, "G P"], ...]
    """The targets of the outcome of the row before, by both lambdas."""
    final: Any
    """The last states of the games, ``[G, ...]``, or ``None``."""


def _choose(condition: Bool[Array, "*axes"], new: Any, old: Any) -> Any:
    """Leaf by leaf, ``new`` where the condition holds and ``old`` elsewhere; the axes of the condition come first."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(condition.reshape(*condition.shape, *[1] * (old.ndim - condition.ndim)), new, old)

    return jax.tree.map(choose, new, old)


def add(
    replay: Replay[State],
    new: Positions[State],
    ended: Bool[Array, "T G"],
    td_lambda: float = 1.0,
    short_term_lambda: float = 1.0,
) -> Replay[State]:
    """Replace the oldest T positions of each column by new ones.

    Args:
        replay: the buffer; its number of rows is a multiple of T.
        new: positions that have the outcome of a game in the row of its last move; the game's other rows get it here.
        ended: whether each row is the last of its game.
        td_lambda: weight of what comes after the next search, against the value of that search, in the target of the outcome.
        short_term_lambda: the same for the short-term target.
    """

    def earlier(later: _Outcome, row: tuple[Any, ...]) -> tuple[_Outcome, tuple[Any, ...]]:
        ends, returns, score_value, root_value, final = row
        last = ends[:, None]
        returns, score_value = jnp.where(last, returns, later.returns), jnp.where(last, score_value, later.score_value)
        targets = tuple(jnp.where(last, returns, target) for target in later.targets)
        before = tuple(
            jnp.where(root_value == UNKNOWN, target, (1 - weight) * root_value + weight * target)
            for weight, target in zip((td_lambda, short_term_lambda), targets, strict=True)
        )
        finished = ends | later.finished
        final = _choose(ends, final, later.final)
        return _Outcome(finished, returns, score_value, before, final), (finished, returns, score_value, targets, final)

    none = jnp.zeros_like(new.returns[0])
    start = _Outcome(jnp.zeros_like(ended[0]), none, none, (none, none), jax.tree.map(lambda leaf: leaf[-1], new.final))
    # Backwards: a row's outcome is that of the first end from that row on.
    rows = ended, new.returns, new.score_value, new.root_value, new.final
    first, (finished, returns, score_value, (outcome, short_term), final) = lax.scan(earlier, start, rows, reverse=True)
    new = replace(new, finished=finished, returns=returns, score_value=score_value, final=final)
    new = replace(new, outcome_target=outcome, short_term_target=short_term)

    # Older positions of the games that go on in the new rows, and of those that have ended there.
    old = replay.positions
    goes_on = (old.game_index == new.game_index[:1]) & ~old.finished
    mine = goes_on & first.finished[None]

    def completed(target: Array, known_now: Array) -> Array:
        rest = jnp.where(goes_on[..., None], 1 - jnp.sum(target, axis=-1, keepdims=True), 0.0)
        return target + rest * known_now[None]

    old = replace(
        old,
        finished=old.finished | mine,
        returns=jnp.where(mine[..., None], first.returns[None], old.returns),
        score_value=jnp.where(mine[..., None], first.score_value[None], old.score_value),
        outcome_target=completed(old.outcome_target, first.targets[0]),
        short_term_target=completed(old.short_term_target, first.targets[1]),
        final=_choose(mine, jax.tree.map(lambda leaf: leaf[None], first.final), old.final),
    )
    num_rows, more = old.finished.shape[0], ended.shape[0]
    positions = jax.tree.map(lambda leaf, fresh: lax.dynamic_update_slice_in_dim(leaf, fresh, replay.row, 0), old, new)
    return Replay(positions, (replay.row + more) % num_rows)


def sample(replay: Replay[State], key: PRNGKeyArray, count: int, surprise_fraction: float) -> Int32[Array, "count"]:
    """Indices, ``row * num_games + column``, of positions to learn from; -1 where the buffer has none.

    All are equally likely, except that the given fraction of them is drawn in proportion to their surprise (Wu 2019).
    """
    positions = replay.positions
    available = (positions.finished & (positions.surprise >= 0)).ravel()
    number = jnp.maximum(jnp.sum(available, dtype=jnp.int32), 1).astype(jnp.float32)
    surprise = jnp.where(available, positions.surprise.ravel(), 0.0)
    total = jnp.sum(surprise)
    uniform = jnp.where(available, (1 - surprise_fraction) / number, 0.0)
    probability = uniform + surprise_fraction * surprise / jnp.maximum(total, 1e-9)
    # A scan in a tree; XLA's own cumulative sum takes quadratic time on a CPU.
    cumulative = lax.associative_scan(jnp.add, probability)
    drawn = jnp.searchsorted(cumulative, jax.random.uniform(key, (count,), jnp.float32) * cumulative[-1], side="right")
    index = jnp.minimum(drawn, cumulative.shape[0] - 1).astype(jnp.int32)
    return jnp.where(available[index], index, -1)


def take(replay: Replay[State], index: Int32[Array, "count"]) -> Positions[State]:
    """The positions at these indices, ``[count, ...]``; those at -1 are not finished."""

    def rows(leaf: Array) -> Array:
        return leaf.reshape(-1, *leaf.shape[2:])[jnp.maximum(index, 0)]

    taken: Positions[State] = jax.tree.map(rows, replay.positions)
    return replace(taken, finished=taken.finished & (index >= 0))
