"""Exact endings: the result of a position under best play, by depth-first search with a bounded number of nodes.

The search answers questions of the form "can seat 0 reach a margin of at least g?", each by an alpha-beta search with a null
window: first for the outcome, then for the exact margin (MTD(f), Plaat et al. 1996). A node has an interval that certainly
contains its margin. The interval comes from the bounds of the game, from a transposition table that all questions share, and
from the children, so that an interrupted search still returns a correct interval. The stack is an array, and a step of the loop
plays one move or returns from one node.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.endings import MAX_MARGIN, Endings, as_words, from_words
from tilewe_jax.game import Game, check_own_game, check_state
from tilewe_jax.lanes import any_lane
from tilewe_jax.settings import check_number
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.loops import cond, switch, while_loop

DEFAULT_MAX_NODES = 100_000
DEFAULT_MAX_MOVES = 1024
_TABLE_BITS = (8, 17)
"""Smallest and largest size of the transposition table, as logarithms to base 2."""
_FIRST_DEPTH = 2
"""First depth limit of games that deepen."""
_ROOT = 1
"""Level of the root in the stack; level 0 receives its result."""


class Solution(NamedTuple):
    """The result of ``solve``."""

    is_exact: Bool[Array, ""]
    """True if the outcome is proven and, with ``margin``, the margin too."""
    has_outcome: Bool[Array, ""]
    """True if the outcome is proven."""
    returns: Float32[Array, "2"]
    """The outcome by seat as in ``Game.returns``: 1, 0.5 or 0; both 0 if the outcome is not proven."""
    low: Int32[Array, ""]
    """Proven lower bound of the margin: the points of seat 0 minus the points of seat 1 at the end, under best play. In games
    without points, 1 if seat 0 wins and -1 if seat 1 wins. Its sign is the outcome."""
    high: Int32[Array, ""]
    """Proven upper bound of the margin; equal to ``low`` if the margin is proven."""
    action: Int32[Array, ""]
    """The action with the best proven bound for the player to move: a best action if the result is exact. -1 if the game is
    over."""
    num_nodes: Int32[Array, ""]
    """Number of positions visited, at most ``max_nodes``."""
    is_supported: Bool[Array, ""]
    """False if the position was not searched because it has more than ``max_moves`` moves, or by the argument ``where``."""


def solve(
    game: Game[Any],
    state: Any,
    *,
    max_nodes: int = DEFAULT_MAX_NODES,
    margin: bool = True,
    max_moves: int = DEFAULT_MAX_MOVES,
    where: Bool[Array, ""] | bool = True,
    without: Int32[Array, ""] | int = -1,
) -> Solution:
    """Solve a position of a two-player game without hidden information.

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import solve
    >>> game = tilewe_jax.make("tilewe", players=2, size=4, pieces=["I2", "L3"])
    >>> solution = jax.jit(lambda state: solve(game, state, max_nodes=1_000, max_moves=128))(game.init(jax.random.key(0)))
    >>> bool(solution.is_exact), int(solution.low), int(solution.high), solution.returns.tolist()
    (True, 0, 0, [0.5, 0.5])

    Args:
        game: the game.
        state: the position.
        max_nodes: maximum number of positions to visit. It also sets the size of the transposition table.
        margin: whether to prove the margin too, and not only the outcome.
        max_moves: in the polyomino games, maximum number of placements of both players that can still be reached; positions
            with more are not searched. Fewer make each node cheaper.
        where: whether to search the position, for batches of which only some positions are to be solved.
        without: an action that the player to move must not play, for example to prove that no other action wins; -1 for none.
            A player without another action loses by ``MAX_MARGIN``.

    Raises ``ValueError`` for another number of players, hidden information or numbers out of range. Raises like ``Game.step``
    for a state of another game.
    """
    check_solvable(game)
    check_number("max_nodes", max_nodes, 1)
    check_number("max_moves", max_moves, 1)
    require_backend()
    check_own_game(game)
    check_state(game, state)
    without = jnp.asarray(without, jnp.int32)
    return _Solver(game.endings(max_moves), state, max_nodes, margin, jnp.asarray(where), without).run()


def check_solvable(game: Game[Any]) -> None:
    """Check that ``solve`` supports a game. Raises ``ValueError``."""
    if game.num_players != 2:
        raise ValueError(f"only games for two players can be solved, but {game.id} has {game.num_players}")
    if game.has_hidden_information:
        raise ValueError(f"games with hidden information cannot be solved, and {game.id} has it")


class _Node(NamedTuple):
    """A node of the current line, apart from its position and the moves that are left."""

    low: Array
    """Lower bound of the margin that does not depend on the children searched so far; ``high`` likewise."""
    high: Array
    child_low: Array
    """The best lower bound of the children searched so far, for the player to move; ``child_high`` likewise."""
    child_high: Array
    best: Array
    """The move to the best child so far; -1 without one."""
    first: Array
    """The move to try first; -1 without one."""
    move: Array
    """The move that leads here."""
    player: Array
    depth: Array
    """Number of moves that may follow."""
    offset: Array
    """See ``Endings.key``."""


class _Progress(NamedTuple):
    """A search under way."""

    stack: UInt32[Array, "levels row"]
    """The nodes of the current line: position, moves that are left, priorities of moves, ``_Node``, and key."""
    table: Int32[Array, "entries 7"]
    """Transposition table: two words of the key, bounds minus the offset, best move, depth, and goal minus the offset."""
    level: Int32[Array, ""]
    goal: Int32[Array, ""]
    """The current question is whether the margin is at least this."""
    depth: Int32[Array, ""]
    """The depth limit."""
    low: Int32[Array, ""]
    high: Int32[Array, ""]
    best: Int32[Array, ""]
    """The move of the root with the best proven bound for its player; -1 without one."""
    best_value: Int32[Array, ""]
    num_nodes: Int32[Array, ""]
    done: Bool[Array, ""]


class _Change(NamedTuple):
    """The result of a step: the scalars of ``_Progress``, and what to write to its arrays."""

    scalars: _Progress
    level: Array
    """Level of ``row``."""
    row: Array
    next_level: Array
    """Level of ``next_row``."""
    next_row: Array
    slot: Array
    """Index of ``entry``."""
    entry: Array


class _Found(NamedTuple):
    """An entry of the transposition table."""

    slot: Array
    entry: Array
    low: Array
    high: Array
    move: Array
    is_searched: Array
    """True if the question was already searched to this depth, without an answer."""


class _Solver:
    """The search of one position, traced once."""

    def __init__(
        self, endings: Endings[Any, Any], state: Any, max_nodes: int, margin: bool, where: Array, without: Array
    ) -> None:
        self.endings, self.max_nodes, self.margin, self.without = endings, max_nodes, margin, without
        self.tables, self.root, is_supported = endings.start(state)
        self.is_supported = is_supported & where
        self.like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), self.root)
        self.table_bits = min(max(max_nodes.bit_length(), _TABLE_BITS[0]), _TABLE_BITS[1])
        self.root_player = endings.player(self.tables, self.root)
        self.root_moves = endings.moves_without(self.tables, self.root, without)
        self.root_order = self.order(self.root)
        self.root_key, self.root_offset = endings.key(self.tables, self.root)
        sizes = as_words(self.root).size, endings.num_words, self.root_order.size, len(_Node._fields), 3
        self.parts = np.cumsum(sizes).tolist()
        """End of each part of a row, see ``pack``."""

    def run(self) -> Solution:
        """Search, and return the result."""
        endings = self.endings
        low, high = endings.bounds(self.tables, self.root)
        is_restricted = self.without >= 0  # the bounds of the game assume that all actions are allowed
        low, high = jnp.where(is_restricted, -MAX_MARGIN, low), jnp.where(is_restricted, MAX_MARGIN, high)
        goal, is_answered = self.next_goal(low, high, jnp.asarray(False))
        depth = jnp.int32(min(_FIRST_DEPTH, endings.max_plies) if endings.deepens else endings.max_plies)
        row = self.root_row(low, high, jnp.int32(-1), depth)
        progress = _Progress(
            stack=jnp.zeros((endings.max_plies + 3, row.size), jnp.uint32).at[_ROOT].set(row),
            table=jnp.zeros((1 << self.table_bits, 7), jnp.int32),
            level=jnp.int32(_ROOT),
            goal=goal,
            depth=depth,
            low=low,
            high=high,
            best=jnp.int32(-1),
            best_value=_worst(self.root_player),
            num_nodes=jnp.int32(1),
            done=is_answered | ~self.is_supported | (self.max_nodes <= 1),
        )
        end: _Progress = while_loop(lambda progress: any_lane(~progress.done), self.step, progress)
        has_outcome = self.is_supported & _has_outcome(end.low, end.high)
        sign = jnp.where(end.low > 0, 1, jnp.where(end.high < 0, -1, 0)).astype(jnp.float32)
        returns = jnp.where(has_outcome, jnp.stack([1 + sign, 1 - sign]) / 2, 0.0)
        move = jnp.where(end.best >= 0, end.best, self.pick(self.root_moves, self.root_order, jnp.int32(-1)))
        return Solution(
            is_exact=has_outcome & ((end.low == end.high) | (not self.margin)),
            has_outcome=has_outcome,
            returns=returns,
            low=end.low,
            high=end.high,
            action=jnp.where(jnp.any(self.root_moves != 0), endings.action(self.tables, move), -1).astype(jnp.int32),
            num_nodes=end.num_nodes,
            is_supported=self.is_supported,
        )

    def step(self, progress: _Progress) -> _Progress:
        """Play a move at the current node, or return from it to its parent."""
        _, moves, _, node, _ = self.unpack(_at(progress.stack, progress.level))
        leaves = self.is_refuted(node, progress.goal) | jnp.all(moves == 0)
        branch = jnp.where(progress.done, 2, jnp.where(leaves, 1, 0))
        # The branches read the stack and the table, and the writes come after them. Otherwise XLA would copy both arrays.
        change: _Change = switch(branch, [self.play, self.leave, self.stay], progress)
        put = lax.dynamic_update_index_in_dim
        stack = put(put(progress.stack, change.row, change.level, 0), change.next_row, change.next_level, 0)
        return change.scalars._replace(stack=stack, table=put(progress.table, change.entry, change.slot, 0))

    def play(self, progress: _Progress) -> _Change:
        """Play the next move at the current node. A child whose interval does not answer the question is the next node."""
        endings, tables, goal = self.endings, self.tables, progress.goal
        words, moves, order, node, key = self.unpack(_at(progress.stack, progress.level))
        position = from_words(words, self.like)
        move = self.pick(moves, order, node.first)
        moves = moves & ~_one(move, endings.num_words) & ~endings.dominated(tables, position, move)
        child = endings.play(tables, position, move)
        player, depth = endings.player(tables, child), node.depth - 1
        (low, high), (child_key, offset) = endings.bounds(tables, child), endings.key(tables, child)
        found = self.look_up(progress, child_key, offset, depth)
        low, high = jnp.maximum(low, found.low), jnp.minimum(high, found.high)
        returns = (low >= goal) | (high < goal) | (depth <= 0) | found.is_searched
        after = _with_child(node, move, low, high)
        node = jax.tree.map(lambda new, old: jnp.where(returns, new, old), after, node)
        worst = _worst(player)
        child_node = _Node(low, high, worst, worst, jnp.int32(-1), found.move, move, player, depth, offset)
        num_nodes = progress.num_nodes + 1
        scalars = self.with_best(progress, returns & (progress.level == _ROOT), move, low, high)._replace(
            level=jnp.where(returns, progress.level, progress.level + 1),
            num_nodes=num_nodes,
            done=num_nodes >= self.max_nodes,
        )

        def child_row() -> Array:
            return self.pack(as_words(child), endings.moves(tables, child), self.order(child), child_node, child_key)

        # The order of the moves is expensive, and most children return immediately.
        next_row = cond(returns, lambda: jnp.zeros(self.parts[-1], jnp.uint32), child_row)
        row = self.pack(words, moves, order, node, key)
        return _Change(scalars, progress.level, row, progress.level + 1, next_row, found.slot, found.entry)

    def leave(self, progress: _Progress) -> _Change:
        """Return the interval of the current node to its parent. From the root, go on with the next question or depth limit."""
        goal, level = progress.goal, progress.level
        _, _, _, node, key = self.unpack(_at(progress.stack, level))
        is_max, is_refuted = node.player == 0, self.is_refuted(node, goal)
        low = jnp.maximum(node.low, jnp.where(is_max | ~is_refuted, node.child_low, -MAX_MARGIN))
        high = jnp.minimum(node.high, jnp.where(~is_max | ~is_refuted, node.child_high, MAX_MARGIN))
        found = self.look_up(progress, key, node.offset, node.depth)
        low, high = jnp.maximum(low, found.low), jnp.minimum(high, found.high)
        numbers = jnp.stack([low - node.offset, high - node.offset, node.best, node.depth, _odd(goal - node.offset)])
        entry = jnp.concatenate([lax.bitcast_convert_type(key[:2], jnp.int32), numbers])

        words, moves, order, parent, parent_key = self.unpack(_at(progress.stack, level - 1))
        parent_row = self.pack(words, moves, order, _with_child(parent, node.move, low, high), parent_key)
        scalars = self.with_best(progress, level == _ROOT + 1, node.move, low, high)

        is_root = level == _ROOT
        low = jnp.where(is_root, jnp.maximum(progress.low, low), progress.low)
        high = jnp.where(is_root, jnp.minimum(progress.high, high), progress.high)
        is_answered = (low >= goal) | (high < goal)
        next_goal, is_finished = self.next_goal(low, high, low >= goal)
        depth = jnp.where(is_root & ~is_answered, progress.depth + 1, progress.depth)
        scalars = scalars._replace(
            level=jnp.where(is_root, level, level - 1),
            goal=jnp.where(is_root & is_answered, next_goal, goal),
            depth=depth,
            low=low,
            high=high,
            done=is_root & jnp.where(is_answered, is_finished, depth > self.endings.max_plies),
        )
        next_row = self.root_row(low, high, scalars.best, depth)
        next_level = jnp.where(is_root, level, level + 1)
        return _Change(scalars, level - 1, parent_row, next_level, next_row, found.slot, entry)

    def stay(self, progress: _Progress) -> _Change:
        """Change nothing, in a batch whose other games are not done."""
        row, next_row = _at(progress.stack, progress.level), _at(progress.stack, progress.level + 1)
        scalars = progress._replace(stack=jnp.uint32(0), table=jnp.int32(0))
        slot = jnp.int32(0)
        return _Change(scalars, progress.level, row, progress.level + 1, next_row, slot, _at(progress.table, slot))

    def next_goal(self, low: Array, high: Array, succeeded: Array) -> tuple[Array, Array]:
        """Return the goal of the next question, and whether all questions are answered."""
        has_outcome = _has_outcome(low, high)
        for_margin = jnp.where(succeeded, low + 1, high)
        goal = jnp.where(has_outcome, for_margin, jnp.where(high > 0, 1, 0))
        return goal.astype(jnp.int32), (low >= high) | (has_outcome & (not self.margin))

    def is_refuted(self, node: _Node, goal: Array) -> Array:
        """Return whether a child answers the question, so that the other moves need not be searched."""
        return jnp.where(node.player == 0, node.child_low >= goal, node.child_high < goal)

    def with_best(self, progress: _Progress, is_child: Array, move: Array, low: Array, high: Array) -> _Progress:
        """Return the scalars of the search after a child of the root returned, if ``is_child``."""
        is_max = self.root_player == 0
        value = jnp.where(is_max, low, high)
        improves = is_child & jnp.where(is_max, value > progress.best_value, value < progress.best_value)
        return progress._replace(
            stack=jnp.uint32(0),
            table=jnp.int32(0),
            best=jnp.where(improves, move, progress.best),
            best_value=jnp.where(improves, value, progress.best_value),
        )

    def look_up(self, progress: _Progress, key: Array, offset: Array, depth: Array) -> _Found:
        """Find a position in the transposition table."""
        slot = (key[2] & np.uint32((1 << self.table_bits) - 1)).astype(jnp.int32)
        entry = _at(progress.table, slot)
        is_hit = jnp.all(entry[:2] == lax.bitcast_convert_type(key[:2], jnp.int32)) & (entry[6] != 0)
        return _Found(
            slot,
            entry,
            low=jnp.where(is_hit, entry[2] + offset, -MAX_MARGIN),
            high=jnp.where(is_hit, entry[3] + offset, MAX_MARGIN),
            move=jnp.where(is_hit, entry[4], -1),
            is_searched=is_hit & (entry[5] >= depth) & (entry[6] == _odd(progress.goal - offset)),
        )

    def order(self, position: Any) -> Int32[Array, "all"]:
        """Return a number for each move in the order of the priorities; ``pick`` restores the move from it."""
        endings = self.endings
        index = jnp.arange(endings.num_moves, dtype=jnp.int32)
        order = endings.priorities(self.tables, position) * endings.num_moves + (endings.num_moves - 1 - index)
        return jnp.pad(order, (0, endings.num_words * WORD_BITS - endings.num_moves))

    def pick(self, moves: UInt32[Array, "words"], order: Int32[Array, "all"], first: Array) -> Int32[Array, ""]:
        """Return the next move of a set: ``first`` if the set contains it, otherwise the move of highest priority."""
        flags = (moves[:, None] >> np.arange(WORD_BITS, dtype=np.uint32)[None]) & np.uint32(1) != 0
        last = self.endings.num_moves - 1
        best = last - jnp.max(jnp.where(flags.ravel(), order, -1)) % (last + 1)
        has_first = (first >= 0) & jnp.any(moves & _one(first, moves.shape[0]) != 0)
        return jnp.where(has_first, first, best).astype(jnp.int32)

    def root_row(self, low: Array, high: Array, first: Array, depth: Array) -> Array:
        """Return the row of the root before its first move."""
        worst = _worst(self.root_player)
        node = _Node(low, high, worst, worst, jnp.int32(-1), first, jnp.int32(-1), self.root_player, depth, self.root_offset)
        return self.pack(as_words(self.root), self.root_moves, self.root_order, node, self.root_key)

    def pack(self, words: Array, moves: Array, order: Array, node: _Node, key: Array) -> UInt32[Array, "row"]:
        """Pack a node into a row of the stack."""
        numbers = lax.bitcast_convert_type(jnp.concatenate([order, jnp.stack(node)]), jnp.uint32)
        return jnp.concatenate([words, moves, numbers, key])

    def unpack(self, row: UInt32[Array, "row"]) -> tuple[Array, Array, Array, _Node, Array]:
        """Unpack a row of the stack, the inverse of ``pack``."""
        words, moves, order, node, key = jnp.split(row, self.parts[:-1])
        as_numbers = partial(lax.bitcast_convert_type, new_dtype=jnp.int32)
        return words, moves, as_numbers(order), _Node(*as_numbers(node)), key


def _with_child(node: _Node, move: Array, low: Array, high: Array) -> _Node:
    """Return a node after a move with the interval of its child."""
    is_max = node.player == 0
    is_better = jnp.where(is_max, low > node.child_low, high < node.child_high)
    return node._replace(
        child_low=jnp.where(is_max, jnp.maximum(node.child_low, low), jnp.minimum(node.child_low, low)),
        child_high=jnp.where(is_max, jnp.maximum(node.child_high, high), jnp.minimum(node.child_high, high)),
        best=jnp.where(is_better, move, node.best),
    )


def _has_outcome(low: Array, high: Array) -> Array:
    return (low > 0) | (high < 0) | (low == high)


def _worst(player: Array) -> Array:
    """The worst margin for a player."""
    return jnp.where(player == 0, -MAX_MARGIN, MAX_MARGIN).astype(jnp.int32)


def _odd(number: Array) -> Array:
    """Encode a goal as a number that is not 0, which marks an empty entry."""
    return 2 * number + 1


def _at(array: Array, index: Array) -> Array:
    row: Array = lax.dynamic_index_in_dim(array, index, 0, keepdims=False)
    return row


def _one(move: Array, num_words: int) -> UInt32[Array, "words"]:
    """The set of one move."""
    is_word = jnp.arange(num_words, dtype=jnp.int32) == move // WORD_BITS
    return jnp.where(is_word, np.uint32(1) << (move % WORD_BITS).astype(jnp.uint32), np.uint32(0))
