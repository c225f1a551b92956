"""Sets of tiles, as words of 32 bits: what they are worth, which of them is highest, and what fits between two numbers."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, popcount, unpack_words
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.tiles import rank, tile_id

Tray = UInt32[Array, "words"]
"""Tile ``t`` is bit ``t % 32`` of word ``t // 32``."""


def num_words(config: Config) -> int:
    """Words in a set."""
    return -(-config.tiles // WORD_BITS)


def pack(tiles: Bool[Array, "N"]) -> Tray:
    """A set of tiles, given as flags."""
    words = -(-tiles.shape[0] // WORD_BITS)
    flags = jnp.pad(tiles, (0, words * WORD_BITS - tiles.shape[0])).reshape(words, WORD_BITS).astype(jnp.uint32)
    return jnp.sum(flags << np.arange(WORD_BITS, dtype=np.uint32)[None], axis=1, dtype=jnp.uint32)


def single(config: Config, tile: Int32[Array, ""]) -> Tray:
    """The tray with this tile."""
    shift = tile - WORD_BITS * np.arange(num_words(config), dtype=np.int32)
    return jnp.where((shift >= 0) & (shift < WORD_BITS), np.uint32(1) << shift.astype(jnp.uint32), np.uint32(0))


def unpack(config: Config, tray: Tray) -> Bool[Array, "N"]:
    """A flag for each tile."""
    return unpack_words(tray, config.tiles)


def count(tray: Tray) -> Int32[Array, ""]:
    """Number of tiles."""
    return jnp.sum(popcount(tray), dtype=jnp.int32)


def value(config: Config, tray: Tray) -> Int32[Array, ""]:
    """The sum of all numbers."""
    values = np.array([sum(tile) for tile in config.tile_list])
    digits = (jnp.sum(popcount(tray & _constant(config, values >> i & 1)), dtype=jnp.int32) << i for i in range(5))
    return sum(digits, start=jnp.int32(0))


def fits(config: Config, tray: Tray) -> UInt32[Array, "pairs"]:
    """For each two numbers, clockwise, the third ones with which they are a tile of the tray, as bits."""
    weights = np.zeros((config.numbers**2, config.tiles), np.float32)
    for tile in config.tile_list:
        for i in range(3):
            third, first, second = tile[i], tile[(i + 1) % 3], tile[(i + 2) % 3]
            weights[first * config.numbers + second, tile_id(tile)] = 1 << third
    held = unpack(config, tray).astype(jnp.float32)
    return jnp.dot(weights, held).astype(jnp.uint32)


def highest(config: Config, tray: Tray) -> Tray:
    """The tiles of a tray of which one must begin, where the highest does: those, and the one of three zeros."""
    best = tray & np.uint32(0)
    for equal in _ranks(config):
        best = jnp.where(jnp.all(best == 0), tray & equal, best)
    return best | (tray & _constant(config, np.arange(config.tiles) == 0))


def best(config: Config, trays: UInt32[Array, "P words"]) -> Bool[Array, "P"]:
    """Whose tiles are highest, compared one by one from the highest down."""
    left = jnp.ones(trays.shape[0], jnp.bool_)
    for equal in _ranks(config):
        # Trays are of one size. So who has more of the highest tiles has the higher tile where two of them first differ.
        held = jnp.where(left, jnp.sum(popcount(trays & equal[None]), axis=1), -1)
        left = held == jnp.max(held)
    return left


def _ranks(config: Config) -> list[np.ndarray]:
    """Tiles of equal rank, from the highest: triples before others, then by their sum."""
    ranks = [rank(tile) for tile in config.tile_list]
    return [_constant(config, np.array([other == one for other in ranks])) for one in sorted(set(ranks), reverse=True)]


def _constant(config: Config, tiles: np.ndarray) -> np.ndarray:
    """These tiles (a flag each), on the host."""
    flags = np.zeros(num_words(config) * WORD_BITS, np.uint64)
    flags[: config.tiles] = tiles
    words: np.ndarray = (flags.reshape(-1, WORD_BITS) << np.arange(WORD_BITS, dtype=np.uint64)).sum(axis=1)
    return words.astype(np.uint32)
