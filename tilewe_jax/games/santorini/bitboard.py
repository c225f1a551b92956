"""Bitboards: sets of cells of boards up to 10 x 10, as one to four words of 32 bits.

Cell (row, column) is bit ``row * stride + column`` (``Config.bit``); the bits between rows are never set. Each word is a
separate array, and all operations except ``pack`` and ``unpack`` are elementwise, so that the same functions serve one game
(scalars) and many games (lanes last), and XLA fuses them into one loop over games.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, move_bits, unpack_words
from tilewe_jax.games.santorini.config import Config

Word = UInt32[Array, "*lanes"]
BitIndex = Int32[Array, "*lanes"]
"""The bit of a cell in a bitboard; -1 for the empty set."""

WINDOW = 6
"""Number of bits between rows of a window."""
CENTRE = 2 * WINDOW + 2
"""Window bit of the cell in the middle."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bitboard:
    """A set of cells. Operators are bitwise; an operand that is a single word applies to every word."""

    words: tuple[Word, ...]
    """``Config.words`` words, ``uint32`` each: bit ``i`` of the board is bit ``i % 32`` of word ``i // 32``."""

    def __and__(self, other: "Bitboard | Word") -> "Bitboard":
        return self._with(operator.and_, other)

    def __or__(self, other: "Bitboard | Word") -> "Bitboard":
        return self._with(operator.or_, other)

    def __invert__(self) -> "Bitboard":
        return Bitboard(tuple(~word for word in self.words))

    def any(self) -> Bool[Array, "*lanes"]:
        """Return whether the set is not empty."""
        return reduce(operator.or_, self.words) != 0

    def _with(self, function: Callable[[Word, Word], Word], other: "Bitboard | Word") -> "Bitboard":
        words = other.words if isinstance(other, Bitboard) else (other,) * len(self.words)
        return Bitboard(tuple(map(function, self.words, words)))


def singleton(config: Config, index: BitIndex) -> Bitboard:
    """The set of one cell given by its bit; empty for -1."""
    bit = np.uint32(1) << (index & (WORD_BITS - 1)).astype(jnp.uint32)
    return Bitboard(tuple(jnp.where(index >> 5 == word, bit, np.uint32(0)) for word in range(config.words)))


def shifted(config: Config, cells: Bitboard, offset: int) -> Bitboard:
    """Shift a set by ``offset`` bits, less than a word, up or (if negative) down.

    Cells shifted off the board become unused bits between or after rows, never other cells of the board.
    """
    words, zero = cells.words, jnp.zeros_like(cells.words[0])
    shift = np.uint32(abs(offset))
    if len(words) == 1:
        return Bitboard((words[0] << shift if offset > 0 else words[0] >> shift,))
    rest = np.uint32(WORD_BITS) - shift
    if offset > 0:
        return Bitboard(tuple((word << shift) | (low >> rest) for low, word in zip((zero, *words), words, strict=False)))
    return Bitboard(tuple((word >> shift) | (high << rest) for word, high in zip(words, (*words[1:], zero), strict=True)))


def neighbours(config: Config, cells: Bitboard) -> Bitboard:
    """The cells of the board that have a neighbour in the set, including cells of the set."""
    beside = shifted(config, cells, 1) | shifted(config, cells, -1)
    rows = beside | cells
    around = beside | shifted(config, rows, config.stride) | shifted(config, rows, -config.stride)
    return around & full_board(config)


def full_board(config: Config) -> Bitboard:
    """The set of all cells, as words of shape ``()``."""
    bits = sum(1 << config.bit((row, column)) for row in range(config.size) for column in range(config.size))
    return Bitboard(tuple(jnp.uint32(bits >> WORD_BITS * word & 0xFFFFFFFF) for word in range(config.words)))


def window(config: Config, cells: Bitboard, centre: BitIndex) -> Word:
    """The five by five cells around a cell as one word: bit ``6 * row + column``, the cell itself at ``CENTRE``.

    Off-board cells next to the edge are zero. Bits of cells further out and unused bits are arbitrary.

    Args:
      config: the settings.
      cells: the set of cells.
      centre: bit of the cell in the middle; for -1 the result is arbitrary.
    """
    words = cells.words
    if config.stride == WINDOW:
        shift = centre - CENTRE
        return words[0] >> jnp.maximum(shift, 0).astype(jnp.uint32) << jnp.maximum(-shift, 0).astype(jnp.uint32)

    def rows(first: int, count: int) -> Word:
        """``count`` rows of the window from row ``first``, relative to the centre."""
        start = centre + (WORD_BITS + first * config.stride - 2)
        index, shift = start >> 5, (start & (WORD_BITS - 1)).astype(jnp.uint32)
        zero = jnp.zeros_like(words[0])
        padded = [zero, *words, zero, zero]
        low, high = padded[:2]
        for i in range(1, len(padded) - 1):
            low, high = jnp.where(index == i, padded[i], low), jnp.where(index == i, padded[i + 1], high)
        bits = (low >> shift) | (high << (np.uint32(WORD_BITS - 1) - shift) << np.uint32(1))
        cells = ((row, column) for row in range(count) for column in range(5))
        return move_bits(bits, ((row * config.stride + column, (2 + first + row) * WINDOW + column) for row, column in cells))

    return rows(-2, 3) | rows(1, 2)


def bit_of(config: Config, cell: Int32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """The bit of a cell given by its number ``row * size + column``."""
    return cell // config.size * config.stride + cell % config.size


def cell_of(config: Config, index: Int32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """The inverse of ``bit_of``; arbitrary for -1."""
    return index // config.stride * config.size + index % config.stride


def pack(config: Config, cells: Bool[Array, "size size"]) -> Bitboard:
    """The set of the cells with a true flag. For one game."""
    rows = jnp.pad(cells, ((0, 0), (0, config.stride - config.size))).ravel()
    bits = jnp.pad(rows, (0, config.words * WORD_BITS - rows.size)).reshape(config.words, WORD_BITS).astype(jnp.uint32)
    words = jnp.sum(bits << jnp.arange(WORD_BITS, dtype=jnp.uint32)[None], axis=1, dtype=jnp.uint32)
    return Bitboard(tuple(words))


def unpack(config: Config, cells: Bitboard) -> Bool[Array, "size size"]:
    """A flag for each cell, the inverse of ``pack``. For one game."""
    bits = unpack_words(jnp.stack(cells.words), config.size * config.stride)
    return bits.reshape(config.size, config.stride)[:, : config.size]
