"""Boards of up to 10 x 10 cells as words of 32 bits.

Every word is an array of its own and a scalar, so that a batch of bitboards is the same arrays whether games stand first or
last. Cell (row, column) is bit ``row * stride + column``; the bits between rows are never set.
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

Word = UInt32[Array, ""]
Position = Int32[Array, ""]
"""The bit of a cell; -1 for none."""

WINDOW = 6
"""Bits from one row of a window to the next."""
CENTRE = 2 * WINDOW + 2
"""The bit of the cell that a window surrounds."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bitboard:
    """A set of cells. Operators work cell by cell; a single word stands for a board that repeats it."""

    words: tuple[Word, ...]

    def __and__(self, other: "Bitboard | Word") -> "Bitboard":
        return self._with(operator.and_, other)

    def __or__(self, other: "Bitboard | Word") -> "Bitboard":
        return self._with(operator.or_, other)

    def __invert__(self) -> "Bitboard":
        return Bitboard(tuple(~word for word in self.words))

    def any(self) -> Bool[Array, ""]:
        """Whether there is a cell."""
        return reduce(operator.or_, self.words) != 0

    def _with(self, function: Callable[[Word, Word], Word], other: "Bitboard | Word") -> "Bitboard":
        words = other.words if isinstance(other, Bitboard) else (other,) * len(self.words)
        return Bitboard(tuple(map(function, self.words, words)))


def single(config: Config, position: Position) -> Bitboard:
    """The cell at this bit; none at -1."""
    bit = np.uint32(1) << (position & (WORD_BITS - 1)).astype(jnp.uint32)
    return Bitboard(tuple(jnp.where(position >> 5 == word, bit, np.uint32(0)) for word in range(config.words)))


def every(config: Config) -> Bitboard:
    """All cells."""
    bits = sum(1 << config.bit((row, column)) for row in range(config.size) for column in range(config.size))
    return Bitboard(tuple(jnp.uint32(bits >> WORD_BITS * word & 0xFFFFFFFF) for word in range(config.words)))


def window(config: Config, cells: Bitboard, position: Position) -> Word:
    """The five by five cells around a cell as one word: bit ``6 * row + column``, the cell itself at ``CENTRE``.

    The first cell off the board, in any direction, is zero here. What lies beyond is meaningless, and so are the other bits.
    """
    words = cells.words
    if config.stride == WINDOW:
        shift = position - CENTRE
        return words[0] >> jnp.maximum(shift, 0).astype(jnp.uint32) << jnp.maximum(-shift, 0).astype(jnp.uint32)

    def rows(first: int, count: int) -> Word:
        """So many rows, the first of them counted from the centre."""
        start = position + (WORD_BITS + first * config.stride - 2)
        index, shift = start >> 5, (start & (WORD_BITS - 1)).astype(jnp.uint32)
        nothing = jnp.zeros_like(words[0])
        padded = [nothing, *words, nothing, nothing]
        low, high = padded[:2]
        for i in range(1, len(padded) - 1):
            low, high = jnp.where(index == i, padded[i], low), jnp.where(index == i, padded[i + 1], high)
        bits = (low >> shift) | (high << (np.uint32(WORD_BITS - 1) - shift) << np.uint32(1))
        cells = ((row, column) for row in range(count) for column in range(5))
        return move_bits(bits, ((row * config.stride + column, (2 + first + row) * WINDOW + column) for row, column in cells))

    return rows(-2, 3) | rows(1, 2)


def bit_of(config: Config, cell: Int32[Array, ""]) -> Position:
    """The bit of a cell, given as ``row * size + column``."""
    return cell // config.size * config.stride + cell % config.size


def cell_of(config: Config, position: Position) -> Int32[Array, ""]:
    """The inverse of ``bit_of``; what it gives for -1 means nothing."""
    return position // config.stride * config.size + position % config.stride


def pack(config: Config, cells: Bool[Array, "size size"]) -> Bitboard:
    """The cells that are set."""
    rows = jnp.pad(cells, ((0, 0), (0, config.stride - config.size))).ravel()
    bits = jnp.pad(rows, (0, config.words * WORD_BITS - rows.size)).reshape(config.words, WORD_BITS).astype(jnp.uint32)
    words = jnp.sum(bits << jnp.arange(WORD_BITS, dtype=jnp.uint32)[None], axis=1, dtype=jnp.uint32)
    return Bitboard(tuple(words))


def dense(config: Config, cells: Bitboard) -> Bool[Array, "size size"]:
    """The inverse of ``pack``."""
    bits = unpack_words(jnp.stack(cells.words), config.size * config.stride)
    return bits.reshape(config.size, config.stride)[:, : config.size]
