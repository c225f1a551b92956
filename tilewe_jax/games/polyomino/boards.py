"""Bitboards: sets of cells packed into words, and the planes that decide which placements are legal.

A board is ``uint32[words, lanes]``: cell (x, y) is bit ``y * size + x``, and bit ``i`` is bit ``i % 32`` of word ``i // 32``.
All functions of boards are functions of lanes, see ``tilewe_jax.lanes``.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import groupby

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Shaped, UInt32

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, Cell

Board = UInt32[Array, "_ lanes"]
"""A set of cells. Boards that are read relative to an anchor are padded to ``reach`` words."""
Hand = UInt32[Array, "lanes"]
"""A set of pieces, bit ``p`` for piece ``p`` of ``pieces.PIECE_NAMES``."""
BESIDE = (1, 0), (-1, 0), (0, 1), (0, -1)
"""The steps from a cell to its edge neighbours."""
DIAGONALLY = (1, 1), (1, -1), (-1, 1), (-1, -1)
"""The steps from a cell to its diagonal neighbours."""


def words(config: Config) -> int:
    """Number of words of a board."""
    return -(-config.cells // WORD_BITS)


def reach(config: Config) -> int:
    """Number of words of a board that is padded so that every cell of a piece can be read relative to any anchor."""
    farthest = max(config.bit(cell) for orientation in ORIENTATIONS for cell in orientation.cells)
    return words(config) + farthest // WORD_BITS + 1


def pack(config: Config, cells: Iterable[Cell]) -> np.ndarray:
    """Pack cells into a board, ``uint32[reach]``, without lanes."""
    board = np.zeros(reach(config), np.uint32)
    for cell in cells:
        word, bit = divmod(config.bit(cell), WORD_BITS)
        board[word] |= np.uint32(1 << bit)
    return board


def pad_to_reach(config: Config, board: UInt32[Array, "words lanes"]) -> Board:
    """Pad a board to ``reach`` words."""
    return jnp.pad(board, ((0, reach(config) - words(config)), (0, 0)))


def columns(config: Config, first: int, last: int) -> np.ndarray:
    """Pack the cells with ``first <= x <= last``, ``uint32[reach]``, without lanes."""
    return pack(config, ((x, y) for y in range(config.size) for x in range(first, last + 1)))


def window(board: UInt32[Array, "longer lanes"], start: int, count: int) -> Board:
    """Shift a board down: return ``count`` words from bit ``start`` on, all within the board."""
    whole, part = divmod(start, WORD_BITS)
    low = board[whole : whole + count]
    if not part:
        return low
    return (low >> np.uint32(part)) | (board[whole + 1 : whole + 1 + count] << np.uint32(WORD_BITS - part))


def pick(rows: list[Shaped[Array, "*row"]], index: Int32[Array, "*index"]) -> Shaped[Array, "..."]:
    """Return ``rows[index]`` in each lane, by selects, which are cheaper than a gather for a few rows."""
    picked = rows[-1]
    for i, row in enumerate(rows[:-1]):
        picked = jnp.where(index == i, row, picked)
    return picked


def neighbours(config: Config, board: Board) -> tuple[Board, Board]:
    """Return the edge neighbours and the diagonal neighbours of a set of cells, as boards of ``reach`` words.

    Both may contain cells of the set itself.
    """
    edges, diagonals = (moved(config, board[: words(config)], steps, reach(config)) for steps in (BESIDE, DIAGONALLY))
    return edges, diagonals


def moved(config: Config, board: UInt32[Array, "words lanes"], steps: Iterable[Cell], count: int | None = None) -> Board:
    """Return the union of a set of cells moved by each of some steps (dx, dy), without cells that leave the board.

    Args:
      config: the variant.
      board: the set of cells.
      steps: the steps.
      count: number of words of the result, by default ``words``.
    """
    size, count = config.size, words(config) if count is None else count
    steps = sorted(steps)
    farthest = max(abs(dy * size + dx) for dx, dy in steps) // WORD_BITS + 1
    padded = jnp.pad(board, ((farthest, farthest + 1 + count - words(config)), (0, 0)))
    united = []
    for dx, group in groupby(steps, key=lambda step: step[0]):
        shifted = [window(padded, farthest * WORD_BITS - dy * size - dx, count) for _, dy in group]
        # A step sideways must not carry a cell into the next row.
        inside = columns(config, max(dx, 0), size - 1 + min(dx, 0))[:count, None]
        united.append(reduce(jnp.bitwise_or, shifted) & inside)
    return reduce(jnp.bitwise_or, united)


def playable(config: Config, hand: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Return the pieces that may be placed next: only the start piece of a full hand, if the variant has a start piece."""
    if config.start_piece is None:
        return hand
    return jnp.where(hand == np.uint32(config.full_hand), np.uint32(config.first_hand), hand)


def planes(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
) -> tuple[Board, Board, Hand]:
    """Compute the planes that decide which placements of a colour are legal, in every variant.

    Args:
      config: the variant.
      occupied: cells of each colour.
      hands: pieces of each colour that are not yet placed.
      color: the colour, not necessarily the one to move.

    Returns:
      Two boards of ``reach`` words and a hand: the cells free to the colour (on the board, empty, sharing no edge with an own
      cell); the corners, of which a placement must cover one (diagonal to an own cell, or start cells; free or not); and the
      pieces that the colour may place next.
    """
    own, hand = pick(list(occupied), color[None]), pick(list(hands), color)
    return planes_of(config, own, reduce(jnp.bitwise_or, list(occupied)), hand, color)


def planes_of(
    config: Config,
    own: UInt32[Array, "words lanes"],
    taken: UInt32[Array, "words lanes"],
    hand: Hand,
    color: Int32[Array, "lanes"],
) -> tuple[Board, Board, Hand]:
    """Compute ``planes`` from the cells of the colour, the cells of all colours, and the pieces of the colour."""
    edges, diagonals = neighbours(config, own)
    board = jnp.asarray(columns(config, 0, config.size - 1))[:, None]
    free = board & ~(pad_to_reach(config, taken) | edges)

    starts = [jnp.asarray(pack(config, cells))[:, None] for cells in config.start_cells]
    start = starts[0] if len(set(config.start_cells)) == 1 else pick(starts, color[None])
    corners = (
        diagonals | start
        if config.starts_stay_open
        else jnp.where((hand == np.uint32(config.full_hand))[None], start, diagonals)
    )
    return free, corners, playable(config, hand)
