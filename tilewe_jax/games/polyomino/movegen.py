"""Legal placements on packed boards, for 32 anchors at a time: every orientation is grown from a smaller shape plus a cell.

The *anchor* of a placement is the cell at the bottom left of its bounding box. A placement is legal if all its cells are free
to the colour and at least one of them is a corner. For a single cell at offset (dx, dy) from the anchor, the anchors that meet
each condition are the board of free cells, or of corners, shifted by the offset; for a shape they are the AND, or the OR, over
its cells. Shapes share their parts, so that growing a shape from a smaller one costs two operations.

There are four views of the same masks: ``placements`` stacks them, ``counts`` and ``anchors`` reduce them to a number per word
and never write them, ``placements_at`` computes one word. All take the results of ``boards.planes``, with lanes last.
``movegen_conv`` has the same four.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial, reduce
from itertools import groupby, pairwise
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt16, UInt32

from tilewe_jax.bits import WORD_BITS, popcount, popcount_sum
from tilewe_jax.games.polyomino.boards import Board, Hand, columns, reach, window, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS, PIECE_SIZES, Cell
from tilewe_jax.lanes import materialize

Shape = frozenset[Cell]
Word = UInt32[Array, "..."]
"""Words of boards, of any shape."""
T = TypeVar("T")


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of legal placements anchored in each word of the board."""
    return _by_word(config, popcount_sum, free, corners, hand)


def anchors(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of cells in each word of the board that are the anchor of a legal placement; cheaper than ``counts``."""
    return _by_word(config, union_size, free, corners, hand)


def union_size(masks: list[Word]) -> Int32[Array, "..."]:
    """Number of bits that are set in any of some words."""
    return popcount(reduce(jnp.bitwise_or, masks))


def _by_word(
    config: Config, count: Callable[[list[Word]], Array], free: Board, corners: Board, hand: Hand
) -> Int32[Array, "words lanes"]:
    """Reduce the masks of all orientations in each word of the board to a number."""
    by_span = [materialize(partial(_in_span, config, span, count), free, corners, hand) for span in _spans(config)]
    return jnp.concatenate(by_span).astype(jnp.int32)


class _Span(NamedTuple):
    """Consecutive words of a board in which the same orientations can be anchored."""

    first: int
    last: int
    orientations: tuple[int, ...]


@cache
def _spans(config: Config) -> list[_Span]:
    """Split the words of a board into spans. High orientations do not fit at the top, where the last words are."""
    anchored: list[list[int]] = [[] for _ in range(words(config))]
    for i in config.orientations:
        cells = [(x, y) for y in range(config.size) for x in range(config.size) if config.fits(ORIENTATIONS[i], (x, y))]
        for word in {config.bit(cell) // WORD_BITS for cell in cells}:
            anchored[word].append(i)
    groups = [(orientations, list(group)) for orientations, group in groupby(range(len(anchored)), anchored.__getitem__)]
    return [_Span(group[0], group[-1] + 1, tuple(orientations)) for orientations, group in groups]


def _in_span(
    config: Config, span: _Span, count: Callable[[list[Word]], Array], free: Board, corners: Board, hand: Hand
) -> UInt16[Array, "_ lanes"]:
    """``_by_word`` for the words of a span."""
    if not span.orientations:
        return jnp.zeros((span.last - span.first, *hand.shape), jnp.uint16)
    legal = by_orientation(config, free, corners, hand, span.orientations, span.first, span.last)
    # The order saves a fifth of the time: a shape is summed while the shapes that share its parts are in registers.
    return count(list(reversed(legal.values()))).astype(jnp.uint16)


def by_orientation(
    config: Config,
    free: Board,
    corners: Board,
    hand: Hand,
    orientations: tuple[int, ...] | None = None,
    first: int = 0,
    last: int | None = None,
) -> dict[int, Board]:
    """The anchors of the legal placements by orientation, in the order of growth; not stacked, so that XLA fuses reductions.

    Args:
      config: the variant.
      free: see ``boards.planes``.
      corners: see ``boards.planes``.
      hand: see ``boards.planes``.
      orientations: the orientations; by default all in play.
      first: index of the first word of the results.
      last: index after the last word; by default the number of words.
    """
    count = (words(config) if last is None else last) - first
    rooms = {dx: board[first:] for dx, board in room(config).items()}

    def cell(cell: Cell) -> tuple[Board, Board]:
        return _cell(config, free[first:], corners[first:], cell, count, rooms)

    grown = grow(config.orientations if orientations is None else orientations, cell, _join)
    held = in_hand(hand)
    return {i: fit & touch & held[i][None] for i, (fit, touch) in grown.items()}


def placements(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "orientations words lanes"]:
    """The anchors of the legal placements of each of the 91 orientations; empty for orientations that are not in play."""
    # All shapes of one size are grown together. Stacked one by one they would be 91 loops that recompute their parts.
    parts = dict(growth(config.orientations))
    levels = [[shape for shape in parts if len(shape) == size] for size in range(1, MAX_PIECE_SIZE + 1)]
    cells = [_cell(config, free, corners, cell, words(config), room(config)) for (cell,) in levels[0]]
    fit_cell, touch_cell = (jnp.stack(boards) for boards in zip(*cells, strict=True))
    fits, touches = [fit_cell], [touch_cell]
    for smaller, level in pairwise(levels):
        halves = [parts[shape] for shape in level]
        rest = np.array([smaller.index(half[0]) for half in halves if half], np.int32)
        cell = np.array([levels[0].index(half[1]) for half in halves if half], np.int32)
        fits.append(fits[-1][rest] & fit_cell[cell])
        touches.append(touches[-1][rest] | touch_cell[cell])
    row = {shape: i for i, shape in enumerate(shape for level in levels for shape in level)}
    rows = np.array([row.get(frozenset(orientation.cells), 0) for orientation in ORIENTATIONS], np.int32)
    held = jnp.stack(in_hand(hand))
    return jnp.concatenate(fits)[rows] & jnp.concatenate(touches)[rows] & held[:, None]


def placements_at(
    config: Config, free: Board, corners: Board, hand: Hand, word: Int32[Array, "*several lanes"]
) -> dict[int, UInt32[Array, "*several lanes"]]:
    """Return ``placements(...)[:, word]`` by orientation in play; ``word`` is one index, or several, per lane."""
    ahead, last = reach(config) - words(config) + 1, words(config) - 1

    def look_up(board: Board | np.ndarray, count: int) -> list[UInt32[Array, "*several lanes"]]:
        rows = [jnp.broadcast_to(row.reshape(*[1] * (word.ndim - 1), -1), word.shape) for row in jnp.asarray(board)]
        return _rows_from(rows, word, count, last)

    rooms = [look_up(board, 1)[0] for board in room(config).values()]
    hand = jnp.broadcast_to(hand.reshape(*[1] * (word.ndim - 1), -1), word.shape)
    boards = LocalBoards(look_up(free, ahead), look_up(corners, ahead), rooms, hand)
    return local_placements(config, config.orientations, boards)


def _rows_from(rows: list[Word], index: Int32[Array, "..."], count: int, last: int) -> list[Word]:
    """Return ``count`` rows from an index on, which is at most ``last``, in each lane; by a barrel shifter."""
    for bit in reversed(range(last.bit_length())):
        distance = 1 << bit
        is_shifted = index >> bit & 1 != 0
        # Later distances sum to less than this one.
        needed = min(len(rows), count + distance - 1)
        rows = [jnp.where(is_shifted, rows[min(i + distance, len(rows) - 1)], rows[i]) for i in range(needed)]
    return rows[:count]


class LocalBoards(NamedTuple):
    """The words that decide which anchors in one word are legal, each a separate array, so that XLA fuses their windows."""

    free: list[Word]
    """The plane of free cells (``boards.planes``), from that word on as far as a piece reaches."""
    corners: list[Word]
    """The same words of the plane of corners."""
    rooms: list[Word]
    """That word of the boards of ``room``."""
    hand: Word
    """The pieces that may be placed."""


def local_placements(config: Config, orientations: tuple[int, ...], boards: LocalBoards) -> dict[int, Word]:
    """The anchors of the legal placements in one word, by orientation, in the order of growth."""

    def cell(cell: Cell) -> tuple[Word, Word]:
        fit, touch = (_window(words, config.bit(cell)) for words in (boards.free, boards.corners))
        return (fit & boards.rooms[cell[0] - 1] if cell[0] else fit), touch

    grown = grow(orientations, cell, _join)
    held = in_hand(boards.hand)
    return {i: fit & touch & held[i] for i, (fit, touch) in grown.items()}


def _window(rows: list[Word], start: int) -> Word:
    """Return 32 bits of consecutive words from bit ``start`` on."""
    whole, part = divmod(start, WORD_BITS)
    return (rows[whole] >> np.uint32(part)) | (rows[whole + 1] << np.uint32(WORD_BITS - part)) if part else rows[whole]


def _join(a: tuple[Word, Word], b: tuple[Word, Word]) -> tuple[Word, Word]:
    """Combine two parts of a shape: all cells of both must be free, and a cell of either must be a corner."""
    return a[0] & b[0], a[1] | b[1]


def room(config: Config) -> dict[int, np.ndarray]:
    """Map each offset ``dx`` from 1 on to the anchors with a cell of the same row ``dx`` to their right, without lanes."""
    widest = max(x for orientation in ORIENTATIONS for x, _ in orientation.cells)
    return {dx: columns(config, 0, config.size - 1 - dx)[:, None] for dx in range(1, widest + 1)}


def grow(orientations: tuple[int, ...], cell: Callable[[Cell], T], join: Callable[[T, T], T]) -> dict[int, T]:
    """Reduce over the cells of each orientation, sharing the results of common parts.

    Args:
      orientations: indices of the orientations.
      cell: maps a cell, by its offset from the anchor, to a value.
      join: combines two values; associative and commutative.

    Returns:
      The reduction by orientation, in the order of growth.
    """
    grown: dict[Shape, T] = {}
    for shape, parts in growth(orientations):
        if parts:
            grown[shape] = join(grown[parts[0]], grown[parts[1]])
        else:
            grown[shape] = cell(*shape)
    return {i: grown[frozenset(ORIENTATIONS[i].cells)] for i in growth_order(orientations)}


def growth_order(orientations: tuple[int, ...]) -> list[int]:
    """Return orientations in the order in which ``grow`` returns them."""
    of_shape = {frozenset(ORIENTATIONS[i].cells): i for i in orientations}
    return [of_shape[shape] for shape, _ in growth(orientations) if shape in of_shape]


def _cell(
    config: Config, free: Board, corners: Board, cell: Cell, count: int, rooms: Mapping[int, Board | np.ndarray]
) -> tuple[Board, Board]:
    """Shift the free and corner planes by a cell offset, giving masks of ``count`` words indexed by anchor."""
    fit, touch = (window(board, config.bit(cell), count) for board in (free, corners))
    return (fit & rooms[cell[0]][:count] if cell[0] else fit), touch


def in_hand(hand: UInt32[Array, "*shape"]) -> list[UInt32[Array, "*shape"]]:
    """Return a mask for each orientation: all ones if its piece is in the hand, otherwise zero."""
    # Shift the bit of the piece to the top, and back arithmetically.
    masks = [((hand << np.uint32(31 - i)).astype(jnp.int32) >> 31).astype(jnp.uint32) for i in range(len(PIECE_SIZES))]
    return [masks[orientation.piece] for orientation in ORIENTATIONS]


@cache
def growth(orientations: tuple[int, ...]) -> list[tuple[Shape, tuple[Shape, Shape] | None]]:
    """Return a schedule that grows the shapes of orientations from smaller ones.

    It lists shapes with their two parts, which precede them, and single cells with ``None``. The order is depth first, so that
    shapes closely follow the shape from which they grow.
    """
    parts: dict[Shape, tuple[Shape, Shape] | None] = {}
    anchored = {frozenset(orientation.cells) for orientation in ORIENTATIONS}

    def make(shape: Shape) -> None:
        if shape in parts:
            return
        if len(shape) == 1:
            parts[shape] = None
            return
        # Prefer parts that are computed anyway.
        cell = min(
            shape,
            key=lambda cell: (
                shape - {cell} not in anchored and shape - {cell} not in parts,
                sum(x + y for x, y in shape - {cell}),
                cell,
            ),
        )
        make(shape - {cell})
        make(frozenset([cell]))
        parts[shape] = shape - {cell}, frozenset([cell])

    for i in sorted(orientations, key=lambda i: len(ORIENTATIONS[i].cells)):
        make(frozenset(ORIENTATIONS[i].cells))

    grown_from: dict[Shape, list[Shape]] = {shape: [] for shape in parts}
    for shape, halves in parts.items():
        if halves:
            grown_from[halves[0]].append(shape)

    def follow(shape: Shape) -> Iterator[Shape]:
        for whole in grown_from[shape]:
            yield whole
            yield from follow(whole)

    cells = [shape for shape, halves in parts.items() if not halves]
    return [(shape, parts[shape]) for shape in [*cells, *(whole for cell in cells for whole in follow(cell))]]
