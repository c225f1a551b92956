"""Legal placements on packed boards, for 32 anchors at a time: every orientation is grown from a smaller shape plus a cell.

The *anchor* of a placement is the cell at the bottom left of its bounding box. A placement is legal if all its cells are free
to the colour and at least one of them is a corner. For a single cell at offset (dx, dy) from the anchor, the anchors that meet
each condition are the board of free cells, or of corners, shifted by the offset; for a shape they are the AND, or the OR, over
its cells. Shapes share their parts, so that growing a shape from a smaller one costs two operations.

There are three views of the same masks: ``placements`` stacks them, ``counts`` reduces them to a number per word and never
writes them, ``placements_at`` computes one word. All take the results of ``boards.planes``, with lanes last. ``movegen_conv``
has the same three.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32

from tilewe_jax.bits import popcount_sum
from tilewe_jax.games.polyomino.boards import Board, Hand, columns, reach, window, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS, PIECE_SIZES, Cell
from tilewe_jax.lanes import materialize

Shape = frozenset[Cell]
T = TypeVar("T")


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of legal placements anchored in each word of the board."""
    # The order saves a fifth of the time: a shape is summed while the shapes that share its parts are in registers.
    return popcount_sum(list(reversed(by_orientation(config, free, corners, hand).values())))


def by_orientation(
    config: Config, free: Board, corners: Board, hand: Hand, orientations: tuple[int, ...] | None = None
) -> dict[int, Board]:
    """The anchors of the legal placements by orientation, by default all in play; not stacked, so that XLA fuses reductions."""
    return _grow(config, free, corners, hand, words(config), room(config), orientations)


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
    rooms = room(config)
    free, corners, *local = materialize(lambda *args: _words_from(config, *args), word, free, corners, *rooms.values())
    hand = jnp.broadcast_to(hand.reshape(*[1] * (word.ndim - 1), -1), word.shape).ravel()
    legal = _grow(config, free, corners, hand, 1, dict(zip(rooms, local, strict=True)))
    return {orientation: mask[0].reshape(word.shape) for orientation, mask in legal.items()}


def _words_from(
    config: Config, word: Int32[Array, "*several lanes"], *boards: UInt32[Array, "_ #lanes"]
) -> list[UInt32[Array, "ahead flat"]]:
    """The words of boards from ``word`` on that a piece anchored there can reach; other axes are flattened."""
    ahead = reach(config) - words(config) + 1

    def pick_word(board: UInt32[Array, "_ #lanes"]) -> UInt32[Array, "ahead flat"]:
        board = board.reshape(board.shape[0], *[1] * (word.ndim - 1), -1)
        picked = jnp.broadcast_to(board[:ahead], (ahead, *word.shape))
        for i in range(1, words(config)):
            picked = jnp.where((word == i)[None], board[i : i + ahead], picked)
        return picked.reshape(ahead, -1)

    return [pick_word(board) for board in boards]


def room(config: Config) -> dict[int, np.ndarray]:
    """Map each offset ``dx`` from 1 on to the anchors with a cell of the same row ``dx`` to their right, without lanes."""
    widest = max(x for orientation in ORIENTATIONS for x, _ in orientation.cells)
    return {dx: columns(config, 0, config.size - 1 - dx)[:, None] for dx in range(1, widest + 1)}


def _grow(
    config: Config,
    free: Board,
    corners: Board,
    hand: Hand,
    count: int,
    rooms: Mapping[int, Board | np.ndarray],
    orientations: tuple[int, ...] | None = None,
) -> dict[int, Board]:
    """The anchors of the legal placements by orientation, ``count`` words each, in the order of growth."""

    def cell(cell: Cell) -> tuple[Board, Board]:
        return _cell(config, free, corners, cell, count, rooms)

    def join(a: tuple[Board, Board], b: tuple[Board, Board]) -> tuple[Board, Board]:
        return a[0] & b[0], a[1] | b[1]

    grown = grow(config.orientations if orientations is None else orientations, cell, join)
    held = in_hand(hand)
    return {i: fit & touch & held[i][None] for i, (fit, touch) in grown.items()}


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
    of_shape = {frozenset(ORIENTATIONS[i].cells): i for i in orientations}
    return {of_shape[shape]: value for shape, value in grown.items() if shape in of_shape}


def _cell(
    config: Config, free: Board, corners: Board, cell: Cell, count: int, rooms: Mapping[int, Board | np.ndarray]
) -> tuple[Board, Board]:
    """Shift the free and corner planes by a cell offset, giving masks of ``count`` words indexed by anchor."""
    fit, touch = (window(board, config.bit(cell), count) for board in (free, corners))
    return (fit & rooms[cell[0]][:count] if cell[0] else fit), touch


def in_hand(hand: Hand) -> list[UInt32[Array, "lanes"]]:
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
