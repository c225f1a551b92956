"""Packed boards with lanes: ``uint32[words, lanes]``, cell (x, y) of lane ``l`` bit ``y * size + x`` of column ``l``."""

from collections.abc import Iterable
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, Cell

Board = UInt32[Array, "words lanes"]
Hand = UInt32[Array, "lanes"]
"""A set of pieces, bit ``p`` for piece ``p``."""


def words(config: Config) -> int:
    """Words of a board."""
    return -(-config.cells // WORD_BITS)


def reach(config: Config) -> int:
    """Words of a board with empty ones after it, for looking up the cells of a piece from its anchor."""
    farthest = max(config.bit(cell) for orientation in ORIENTATIONS for cell in orientation.cells)
    return words(config) + farthest // WORD_BITS + 1


def pack(config: Config, cells: Iterable[Cell]) -> np.ndarray:
    """These cells as a board; uint32[reach]."""
    board = np.zeros(reach(config), np.uint32)
    for cell in cells:
        word, bit = divmod(config.bit(cell), WORD_BITS)
        board[word] |= np.uint32(1 << bit)
    return board


def columns(config: Config, first: int, last: int) -> np.ndarray:
    """The cells with ``first <= x <= last`` as a board; uint32[reach]."""
    return pack(config, ((x, y) for y in range(config.size) for x in range(first, last + 1)))


def window(board: UInt32[Array, "longer lanes"], start: int, count: int) -> Board:
    """``count`` words of a board from bit ``start`` on."""
    whole, part = divmod(start, WORD_BITS)
    near = board[whole : whole + count]
    if not part:
        return near
    return (near >> np.uint32(part)) | (board[whole + 1 : whole + 1 + count] << np.uint32(WORD_BITS - part))


def pick(rows: list[UInt32[Array, "*shape"]], index: Int32[Array, "lanes"]) -> UInt32[Array, "*shape"]:
    """``rows[index]``, lane by lane."""
    picked = rows[-1]
    for i, row in enumerate(rows[:-1]):
        picked = jnp.where(index == i, row, picked)
    return picked


def around(config: Config, board: Board) -> tuple[Board, Board]:
    """The cells with an edge in common with a cell of a board, and those diagonal to one, as boards of ``reach`` words.

    Both contain more cells than that: cells of the board itself, and such as lie off it.
    """
    size, length = config.size, reach(config)
    below = (size + 1) // WORD_BITS + 1
    padded = jnp.pad(board[: words(config)], ((below, length + below - words(config)), (0, 0)))

    def moved(bits: int) -> Board:
        return window(padded, below * WORD_BITS - bits, length)

    # Moving sideways must not carry a cell into the next row.
    not_left, not_right = columns(config, 1, size - 1)[:, None], columns(config, 0, size - 2)[:, None]
    edges = (moved(1) & not_left) | (moved(-1) & not_right) | moved(size) | moved(-size)
    diagonals = ((moved(size + 1) | moved(1 - size)) & not_left) | ((moved(size - 1) | moved(-1 - size)) & not_right)
    return edges, diagonals


def planes(
    config: Config,
    occupied: UInt32[Array, "players words lanes"],
    hands: UInt32[Array, "players lanes"],
    player: Int32[Array, "lanes"],
) -> tuple[Board, Board, Hand]:
    """What decides where a player may place, as boards of ``reach`` words.

    Returns the cells free to the player (on the board, empty, no edge in common with an own cell), the cells of which a
    placement must cover one (diagonal to an own cell, or the start cells; whether free or not), and the player's hand.
    """
    own, hand = pick(list(occupied), player[None]), pick(list(hands), player)
    edges, diagonals = around(config, own)
    taken = reduce(jnp.bitwise_or, list(occupied))
    board = jnp.asarray(columns(config, 0, config.size - 1))[:, None]
    free = board & ~(jnp.pad(taken, ((0, reach(config) - words(config)), (0, 0))) | edges)

    starts = [jnp.asarray(pack(config, cells))[:, None] for cells in config.start_cells]
    start = starts[0] if len(set(config.start_cells)) == 1 else pick(starts, player[None])
    corners = (
        diagonals | start
        if config.starts_stay_open
        else jnp.where((hand == np.uint32(config.full_hand))[None], start, diagonals)
    )
    return free, corners, hand
