"""Legal placements on packed boards in a form that XLA compiles well for GPUs, with the same results as ``movegen``.

On a CPU all shapes are computed in one loop, in which LLVM shares their common parts. XLA's GPU compiler would write shared
parts to memory, hundreds of megabytes a ply, but fuses an expression tree into one kernel. So the pieces are counted in groups,
each grown from its own copy of the boards behind an ``optimization_barrier``: XLA sees no common parts, and LLVM, which runs
later, still shares them. For the same reason arrays are read at few offsets of their rows, or written to memory once.

Functions of lanes, see ``tilewe_jax.lanes``.
"""

from collections.abc import Iterator, Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int32, UInt16, UInt32

from tilewe_jax.bits import WORD_BITS, find_interval, kth_set_bit, popcount, popcount_sum
from tilewe_jax.games.polyomino import movegen
from tilewe_jax.games.polyomino.boards import Board, Hand, columns, pack, pick, playable, reach, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.movegen import LocalBoards, Word
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS

COUNT_GROUPS = 3
"""Number of groups of pieces in ``counts`` and ``anchors``."""
TOTAL_SIZE = 7
"""Number of orientations that ``nth_placement`` counts together if it takes several ranks."""

_POSITION_BITS = 7
"""Bits of the position of an orientation in the order of growth, at most 127, if packed with other numbers."""
_RANK_BITS = 12
"""Bits of a rank among the placements anchored in a word: at most 32 of each of the 91 orientations."""

_OFFSETS = np.array([[o.cells[min(i, len(o.cells) - 1)] for i in range(MAX_PIECE_SIZE)] for o in ORIENTATIONS], np.int32)
"""The cells of each orientation, padded by repeating the last cell."""
_WIDTHS = _OFFSETS[:, :, 0].max(axis=1)
"""The largest offset to the right of an anchor, by orientation."""


def counts(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
) -> Int32[Array, "words lanes"]:
    """Number of legal placements of a colour anchored in each word of the board."""
    totals = [popcount_sum(masks) for masks in _by_group(config, occupied, hands, color)]
    return sum(totals[1:], start=totals[0])


def anchors(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
) -> Int32[Array, "words lanes"]:
    """Number of cells in each word of the board that are the anchor of a legal placement of a colour."""
    return movegen.union_size([reduce(jnp.bitwise_or, masks) for masks in _by_group(config, occupied, hands, color)])


def _by_group(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
) -> Iterator[list[Board]]:
    """Yield the anchors of the legal placements of a colour by orientation, for each group of pieces."""
    free, corners, hand = lax.optimization_barrier(_planes(config, occupied, hands, color))
    for orientations in _groups(config):
        own_free, own_corners, own_hand = lax.optimization_barrier((free, corners, hand))
        yield list(movegen.by_orientation(config, own_free, own_corners, own_hand, orientations).values())


def _groups(config: Config) -> list[tuple[int, ...]]:
    """Split the orientations in play into groups of whole pieces and about equal sizes."""
    groups: list[tuple[int, ...]] = []
    group: tuple[int, ...] = ()
    for piece in config.pieces:
        group = (*group, *(i for i in config.orientations if ORIENTATIONS[i].piece == piece))
        if len(group) * COUNT_GROUPS >= len(config.orientations):
            groups.append(group)
            group = ()
    return [*groups, group] if group else groups


def _planes(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
) -> tuple[Board, Board, Hand]:
    """Compute ``boards.planes``, reading each colour at few offsets of its rows."""
    length, size = reach(config), words(config)
    below = _rows_below(config)

    def at(offset: int) -> list[Board]:
        """For each colour, the board shifted down by ``offset`` words; 0 beyond its ends."""
        first = max(0, -offset)
        part = occupied[:, max(0, offset) : size]
        padded = jnp.pad(part, ((0, 0), (first, max(0, length - first - part.shape[1])), (0, 0)))
        return list(padded[:, :length])

    nearby = {offset: pick(at(offset), color[None]) for offset in range(-below, below + 1)}
    taken = reduce(jnp.bitwise_or, at(0))
    index = np.arange(length)[:, None]
    hand = pick(list(hands), color)
    return *_planes_of_words(config, nearby, taken, hand, color[None], index), playable(config, hand)


def _rows_below(config: Config) -> int:
    """Number of words before and after a word that can hold neighbours of its cells."""
    return (config.size + 1) // WORD_BITS + 1


def _planes_of_words(
    config: Config,
    own: dict[int, Word],
    taken: Word,
    hand: UInt32[Array, "lanes"],
    color: Int32[Array, "..."],
    index: np.ndarray | Int32[Array, "..."],
) -> tuple[Word, Word]:
    """Compute words of the planes of free cells and of corners, see ``boards.planes``.

    Args:
      config: the variant.
      own: words of the colour, by their distance from ``index``.
      taken: words of all colours together at ``index``.
      hand: the pieces of the colour.
      color: the colour.
      index: indices of the words; may lie beyond the planes.
    """
    size = config.size

    def constant(board: np.ndarray) -> Word:
        return _lookup(board, index)

    def shifted(bits: int) -> Word:
        """The own cells shifted up by a number of bits, or down if it is negative."""
        whole, part = divmod(bits, WORD_BITS)
        low = own[-whole] << np.uint32(part) if part else own[-whole]
        return low | (own[-whole - 1] >> np.uint32(WORD_BITS - part)) if part else low

    not_left, not_right = constant(columns(config, 1, size - 1)), constant(columns(config, 0, size - 2))
    edges = (shifted(1) & not_left) | (shifted(-1) & not_right) | shifted(size) | shifted(-size)
    diagonals = ((shifted(size + 1) | shifted(1 - size)) & not_left) | ((shifted(size - 1) | shifted(-1 - size)) & not_right)
    free = constant(columns(config, 0, size - 1)) & ~(taken | edges)
    starts = [constant(pack(config, cells)) for cells in dict.fromkeys(config.start_cells)]
    start = starts[0] if len(starts) == 1 else pick([constant(pack(config, cells)) for cells in config.start_cells], color)
    if config.starts_stay_open:
        return free, diagonals | start
    is_first = jnp.broadcast_to(hand == np.uint32(config.full_hand), diagonals.shape)
    return free, jnp.where(is_first, start, diagonals)


def _lookup(board: np.ndarray, index: np.ndarray | Int32[Array, "..."]) -> Word:
    """Read words of a constant board; zero beyond its ends."""
    if isinstance(index, np.ndarray):
        return jnp.asarray(board[index])
    return jnp.take(jnp.asarray(board), index, mode="fill", fill_value=0)


def nth_placement(
    config: Config,
    counts: UInt16[Array, "words lanes"],
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
    rank: Int32[Array, "*several lanes"],
) -> Int32[Array, "*several lanes"]:
    """Return the legal placement of a given rank, see ``rules.nth_placement``."""
    word, before = find_interval([count.astype(jnp.int32).reshape(*[1] * (rank.ndim - 1), -1) for count in counts], rank)
    word, left = word.ravel(), (rank - before).ravel()
    order = tuple(movegen.grow(config.orientations, lambda cell: None, lambda a, b: None))
    orientations = jnp.asarray(np.array(order, np.int32))
    if rank.ndim == 1:
        boards = _local_boards(config, occupied, hands, color, word)
        boards, left, word = lax.optimization_barrier((boards, left, word))
        position, left = _find_orientation(config, order, boards, left)
        orientation = jnp.take(orientations, position, mode="clip")
        mask = _anchors(config, orientation, boards)
    else:  # All ranks of a lane share its masks.
        free, corners, hand = lax.optimization_barrier(_planes(config, occupied, hands, color))
        masks = placements(config, free, corners, hand, order)
        lane = jnp.broadcast_to(jnp.arange(rank.shape[-1], dtype=jnp.int32), rank.shape).ravel()
        word, position, left, mask = _look_up_orientation(masks, word, lane, left)
        orientation = jnp.take(orientations, position, mode="clip")
    action: Array = orientation * config.cells + word * WORD_BITS + kth_set_bit(mask, left)
    return action.reshape(rank.shape)


def placements_at(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
    word: Int32[Array, "lanes"],
) -> dict[int, Word]:
    """The anchors of the legal placements of a colour in one word of each lane, by orientation in play."""
    boards = lax.optimization_barrier(_local_boards(config, occupied, hands, color, word))
    return movegen.local_placements(config, config.orientations, boards)


def placements(
    config: Config, free: Board, corners: Board, hand: Hand, orientations: Sequence[int] = range(len(ORIENTATIONS))
) -> UInt32[Array, "orientations words lanes"]:
    """The anchors of the legal placements of the given orientations, see ``movegen.placements``."""
    size, chosen = words(config), np.array(orientations)
    offsets = _OFFSETS[chosen]
    whole, part = divmod(offsets[:, :, 1] * config.size + offsets[:, :, 0], WORD_BITS)
    rooms = np.stack([np.full((size, 1), 0xFFFFFFFF, np.uint32), *(room[:size] for room in movegen.room(config).values())])
    shape = len(chosen), size, free.shape[1]
    fit = jnp.broadcast_to(jnp.asarray(rooms[_WIDTHS[chosen]]), shape)
    touch = jnp.zeros(shape, jnp.uint32)
    for i in range(MAX_PIECE_SIZE):
        rows = whole[:, i, None] + np.arange(size, dtype=np.int32)[None]
        down = jnp.broadcast_to(part[:, i, None, None].astype(np.uint32), shape)
        # Shifts by 32 or more give zero.
        free_here, corners_here = (
            (board[rows] >> down) | lax.shift_left(board[rows + 1], np.uint32(WORD_BITS) - down) for board in (free, corners)
        )
        fit, touch = fit & free_here, touch | corners_here
    pieces = np.array([[ORIENTATIONS[i].piece] for i in orientations], np.uint32)
    in_hand = (hand[None] >> pieces) & np.uint32(1) != 0
    return jnp.where(in_hand[:, None], fit & touch, np.uint32(0))


def _local_boards(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
    word: Int32[Array, "lanes"],
) -> LocalBoards:
    """Compute ``LocalBoards`` for one word of each lane."""
    below, ahead, size = _rows_below(config), reach(config) - words(config) + 1, words(config)
    lanes = word.shape[0]
    lane = jnp.arange(lanes, dtype=jnp.int32)
    # One index, which XLA fuses into the gather; it would write an array of several indices to memory.
    flat = occupied.ravel()

    def look_up(owner: int | Int32[Array, "lanes"], offset: int) -> Word:
        index = word + offset
        content = jnp.take(flat, (owner * size + index) * lanes + lane, mode="clip")
        return jnp.where((index >= 0) & (index < size), content, np.uint32(0))

    own = {offset: look_up(color, offset) for offset in range(-below, ahead + below)}
    taken = [reduce(jnp.bitwise_or, [look_up(i, offset) for i in range(config.colors)]) for offset in range(ahead)]
    hand = pick(list(hands), color)
    planes = [
        _planes_of_words(
            config, {i: own[offset + i] for i in range(-below, below + 1)}, taken[offset], hand, color, word + offset
        )
        for offset in range(ahead)
    ]
    rooms = [_lookup(board[:, 0], word) for board in movegen.room(config).values()]
    return LocalBoards([free for free, _ in planes], [corners for _, corners in planes], rooms, playable(config, hand))


def _window_at(boards: list[Word], start: Int32[Array, "lanes"]) -> Word:
    """``_window`` with a start for each lane."""
    whole, part = start // WORD_BITS, (start % WORD_BITS).astype(jnp.uint32)
    # Shifts by 32 or more give zero.
    high = lax.shift_left(pick(boards[1:], whole), np.uint32(WORD_BITS) - part)
    return (pick(boards[:-1], whole) >> part) | high


def _find_orientation(
    config: Config, order: tuple[int, ...], boards: LocalBoards, left: Int32[Array, "lanes"]
) -> tuple[Int32[Array, "lanes"], Int32[Array, "lanes"]]:
    """Find a rank in a word: return the position of its orientation, and its rank in that orientation."""
    masks = movegen.local_placements(config, order, boards)
    # The numbers of placements and of orientations so far are one integer: with two, XLA would make three kernels.
    end = (left + 1) << _POSITION_BITS
    total, before = jnp.zeros_like(left), jnp.zeros_like(left)
    for orientation in order:
        total = total + (popcount(masks[orientation]) * (1 << _POSITION_BITS) + 1)
        before = jnp.where(total < end, total, before)
    return before & (1 << _POSITION_BITS) - 1, left - (before >> _POSITION_BITS)


def _look_up_orientation(
    masks: UInt32[Array, "orientations words lanes"],
    word: Int32[Array, "flat"],
    lane: Int32[Array, "flat"],
    left: Int32[Array, "flat"],
) -> tuple[Int32[Array, "flat"], Int32[Array, "flat"], Int32[Array, "flat"], Word]:
    """Find a rank in a word: return the word, the position of its orientation, its rank there, and the orientation's anchors.

    The search runs over sums of ``TOTAL_SIZE`` orientations, then within one. Kernels exchange one number for each rank.
    """
    count, size, lanes = masks.shape
    masks = jnp.pad(masks, ((0, -count % TOTAL_SIZE), (0, 0), (0, 0)))
    totals = sum((popcount(masks[i::TOTAL_SIZE]) for i in range(1, TOTAL_SIZE)), start=popcount(masks[::TOTAL_SIZE]))
    masks, totals = lax.optimization_barrier((masks, totals))

    def look_up(table: Array, index: int | Int32[Array, "flat"], word: Int32[Array, "flat"]) -> Array:
        return jnp.take(table.ravel(), (index * size + word) * lanes + lane, mode="clip")

    def in_one_array(word: Array, position: Array, left: Array) -> tuple[Array, Array, Array]:
        """Return the same numbers, packed into one array in memory."""
        bits = lax.optimization_barrier((word << _POSITION_BITS | position) << _RANK_BITS | left)
        positions, ranks = (1 << _POSITION_BITS) - 1, (1 << _RANK_BITS) - 1
        return bits >> (_POSITION_BITS + _RANK_BITS), (bits >> _RANK_BITS) & positions, bits & ranks

    word, _, left = in_one_array(word, jnp.zeros_like(word), left)
    group, before = find_interval([look_up(totals, i, word) for i in range(len(totals))], left)
    word, first, left = in_one_array(word, TOTAL_SIZE * group, left - before)
    index, before = find_interval([popcount(look_up(masks, first + i, word)) for i in range(TOTAL_SIZE)], left)
    word, position, left = in_one_array(word, first + index, left - before)
    return word, position, left, look_up(masks, position, word)


def _anchors(config: Config, orientation: Int32[Array, "lanes"], boards: LocalBoards) -> Word:
    """The anchors in one word at which an orientation fits and touches a corner."""
    bits = _OFFSETS[:, :, 1] * config.size + _OFFSETS[:, :, 0]
    rooms = [jnp.full_like(boards.rooms[0], np.uint32(0xFFFFFFFF)), *boards.rooms]
    fit, touch = pick(rooms, jnp.take(jnp.asarray(_WIDTHS), orientation, mode="clip")), jnp.zeros_like(boards.free[0])
    for i in range(MAX_PIECE_SIZE):
        start = jnp.take(jnp.asarray(bits[:, i]), orientation, mode="clip")
        fit, touch = fit & _window_at(boards.free, start), touch | _window_at(boards.corners, start)
    return fit & touch
