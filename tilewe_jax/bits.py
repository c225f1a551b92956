"""Words of 32 bits: population counts, selection, packing, printing, bit-sliced sums, hashing, bounded random numbers.

All functions are elementwise over words of any shape, unless their shapes say otherwise.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, UInt32
from numpy.typing import ArrayLike

from tilewe_jax.utils.loops import by_platform

WORD_BITS = 32
"""Bits of a word."""


def popcount(words: UInt32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Number of set bits of each word."""
    return lax.population_count(words).astype(jnp.int32)


def kth_set_bit(word: UInt32[Array, "*shape"], k: Int32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Return the index of the ``k``-th set bit of a word, from 0 at the lowest; unspecified if the word has at most ``k``.

    The *select* operation of succinct data structures, by binary search over population counts of halves.
    """
    index = jnp.zeros_like(k)
    for half in (16, 8, 4, 2, 1):
        low = word & np.uint32((1 << half) - 1)
        below = popcount(low)
        high = k >= below
        k = jnp.where(high, k - below, k)
        word = jnp.where(high, word >> np.uint32(half), low)
        index = index + jnp.where(high, half, 0)
    return index


def unpack_words(words: UInt32[Array, "words"], size: int) -> Bool[Array, "size"]:
    """Unpack words into flags: flag ``i`` is bit ``i % 32`` of word ``i // 32``.

    Args:
      words: packed flags.
      size: number of flags, at most 32 per word.
    """
    bits = (words[:, None] >> np.arange(WORD_BITS, dtype=np.uint32)[None]) & np.uint32(1)
    return bits.ravel()[:size] != 0


def pack_words(flags: Bool[Array, "size"]) -> UInt32[Array, "words"]:
    """Pack flags into words, the inverse of ``unpack_words``; unused bits are zero."""
    words = -(-flags.shape[0] // WORD_BITS)
    rows = jnp.pad(flags, (0, words * WORD_BITS - flags.shape[0])).reshape(words, WORD_BITS).astype(jnp.uint32)
    return jnp.bitwise_or.reduce(rows << np.arange(WORD_BITS, dtype=np.uint32)[None], axis=1)


def pretty(words: ArrayLike | Sequence[Any], width: int, height: int, stride: int | None = None, origin: str = "lower") -> str:
    """Format a packed board as lines of text, ``#`` for set bits and ``.`` for others; for debugging, on the host.

    Under ``jit`` or ``vmap``, call it with ``jax.debug.callback``.

    Args:
      words: 32-bit words, an array ``[words]`` or a sequence of integers. Cell (x, y) is bit ``y * stride + x``; bits outside
        the board are not shown.
      width: columns.
      height: rows.
      stride: bits from row to row, by default ``width``; ``config.stride`` in Santorini.
      origin: "lower" if row 0 is the last line, as on the polyomino boards, or "upper" if it is the first.

    Raises ``ValueError`` for a batch of boards, too few words, or an invalid stride or origin.

    >>> print(pretty([0b011_001_001], width=3, height=3))
    ##.
    #..
    #..
    """
    board = np.asarray(words)
    stride = width if stride is None else stride
    if board.ndim != 1:
        raise ValueError(f"words must be one board of shape (words,), got shape {board.shape}; index the batch first")
    if width < 1 or height < 1 or stride < width:
        raise ValueError(f"width and height must be positive and stride at least width, got {width}, {height} and {stride}")
    if origin not in ("lower", "upper"):
        raise ValueError(f'origin must be "lower" or "upper", got {origin!r}')
    if len(board) * WORD_BITS < (height - 1) * stride + width:
        raise ValueError(f"{height} rows of {width} cells, {stride} bits apart, do not fit in {len(board)} words of 32 bits")
    flags = sum((int(word) & 0xFFFFFFFF) << WORD_BITS * i for i, word in enumerate(board))
    lines = ["".join(".#"[flags >> y * stride + x & 1] for x in range(width)) for y in range(height)]
    return "\n".join(lines[::-1] if origin == "lower" else lines)


def column_sums(rows: list[UInt32[Array, "*shape"]]) -> list[UInt32[Array, "*shape"]]:
    """Compute bit-sliced sums: the number of words in which each bit position is set, as binary digits.

    Carry-save adders (the Harley-Seal population count: Warren, Hacker's Delight, section 5-1) take five cheap operations per
    word.

    Args:
      rows: words, at least one.

    Returns:
      Digits from the lowest: the sum of bit position ``j`` is ``sum(2**i * (digits[i] >> j & 1))``.
    """
    digits = []
    while rows:
        total, carries = rows[0], []
        for a, b in zip(rows[1::2], rows[2::2], strict=False):
            half = total ^ a
            carries.append((total & a) | (half & b))
            total = half ^ b
        if len(rows) % 2 == 0:
            carries.append(total & rows[-1])
            total = total ^ rows[-1]
        digits.append(total)
        rows = carries
    return digits


def popcount_sum(rows: list[UInt32[Array, "*shape"]]) -> Int32[Array, "*shape"]:
    """Return ``sum(popcount(row) for row in rows)``; at least one row.

    On CPUs it adds the population counts of the rows. On GPUs these are expensive, and bit-sliced sums are faster.
    """
    return by_platform(_sum_of_popcounts, _popcount_of_column_sums, rows)


def _sum_of_popcounts(rows: list[UInt32[Array, "*shape"]]) -> Int32[Array, "*shape"]:
    counts = [popcount(row) for row in rows]
    return sum(counts[1:], start=counts[0])


def _popcount_of_column_sums(rows: list[UInt32[Array, "*shape"]]) -> Int32[Array, "*shape"]:
    counts = [popcount(digit) << i for i, digit in enumerate(column_sums(rows))]
    return sum(counts[1:], start=counts[0])


def find_interval(sizes: list[Int32[Array, "*#shape"]], rank: Int32[Array, "*shape"]) -> tuple[Array, Array]:
    """Find a rank in consecutive intervals: return the index of its interval, and the total size of the intervals before."""
    index, before, total = jnp.zeros_like(rank), jnp.zeros_like(rank), jnp.zeros_like(rank)
    for size in sizes:
        total = total + size
        is_later = total <= rank
        index, before = index + is_later.astype(jnp.int32), jnp.where(is_later, total, before)
    return index, before


def uniform_below(bits: UInt32[Array, "*shape"], bound: UInt32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Draw a number in ``[0, bound)`` from 32 random bits: ``floor(bits * bound / 2**32)`` (Lemire 2019, without rejection).

    The probabilities of two numbers differ by at most one part in ``2**32 / bound``.

    Args:
      bits: random words.
      bound: 1 to 2**16, so that the product fits into two words; 0 gives 0.
    """
    low = (bits & np.uint32(0xFFFF)) * bound
    return (((bits >> np.uint32(16)) * bound + (low >> np.uint32(16))) >> np.uint32(16)).astype(jnp.int32)


def systematic_sample(
    bits: UInt32[Array, "*shape"],
    total: Int32[Array, "*shape"],
    count: int | Int32[Array, ""],
    members: Int32[Array, "members"] | None = None,
) -> Int32[Array, "members *shape"]:
    """Draw ``count`` different numbers in ``[0, total)`` with equal inclusion probabilities.

    Systematic sampling (Madow 1949): equidistant numbers from a random start, ascending. They are not independent.

    Args:
      bits: one random word per sample.
      total: number of numbers to draw from, at most 2**16 and below ``2**31 / count``.
      count: size of the sample.
      members: indices of the members of the sample to compute; ``None`` means all, and then ``count`` is not traced.

    Returns:
      The numbers on a new leading axis; if ``total <= count``, all of them, padded with -1.
    """
    members = jnp.arange(count, dtype=jnp.int32) if members is None else members
    number = members.reshape(-1, *[1] * total.ndim)
    start = uniform_below(bits, jnp.maximum(total, 1).astype(jnp.uint32))
    start, total = start[None], total[None]
    drawn = jnp.where(total > count, (number * total + start) // count, number)
    return jnp.where(number < jnp.minimum(total, count), drawn, -1)


def hash32(bits: UInt32[Array, "*#shape"], number: Int32[Array, "*#shape"]) -> UInt32[Array, "..."]:
    """Hash a number with a seed into 32 pseudorandom bits, at a fraction of the cost of a PRNG key per number.

    The integer hash `lowbias32` (Wellons 2018, "Prospecting for Hash Functions") of the seed XOR the number times 2**32 over
    the golden ratio.

    Args:
      bits: seeds.
      number: any integers, such as counters.
    """
    x = bits ^ (number.astype(jnp.uint32) * np.uint32(0x9E3779B9))
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def move_bits(word: UInt32[Array, "*shape"], places: Iterable[tuple[int, int]]) -> UInt32[Array, "*shape"]:
    """Move bits of a word to other positions, by masked shifts: two or three operations per distinct distance.

    Args:
      word: the word.
      places: (source, target) positions, 0 to 31; at least one. A source may have several targets, a target one source.

    Returns:
      The word with bit ``source`` at position ``target`` for each pair, and zeros elsewhere.
    """
    masks: dict[int, int] = {}
    for source, target in places:
        masks[target - source] = masks.get(target - source, 0) | 1 << target
    moved = [
        (word << np.uint32(distance) if distance >= 0 else word >> np.uint32(-distance)) & np.uint32(mask)
        for distance, mask in masks.items()
    ]
    return reduce(jnp.bitwise_or, moved)
