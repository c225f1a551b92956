"""Sets of tiles as words of 32 bits: packing, values, highest tiles, and completions of two numbers to a tile.

Batching (see ``tilewe_jax.lanes``): unbatched, as in ``rules``.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, popcount, unpack_words
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.tiles import rank, tile_id

TileSet = UInt32[Array, "words"]
"""A set of tiles: tile ``t`` is bit ``t % 32`` of word ``t // 32``."""


def num_words(config: Config) -> int:
    """Number of words of a set."""
    return -(-config.tiles // WORD_BITS)


def pack(tiles: Bool[Array, "N"]) -> TileSet:
    """The set of the tiles with a true flag."""
    words = -(-tiles.shape[0] // WORD_BITS)
    flags = jnp.pad(tiles, (0, words * WORD_BITS - tiles.shape[0])).reshape(words, WORD_BITS).astype(jnp.uint32)
    return jnp.sum(flags << np.arange(WORD_BITS, dtype=np.uint32)[None], axis=1, dtype=jnp.uint32)


def singleton(config: Config, tile: Int32[Array, ""]) -> TileSet:
    """The set of one tile."""
    shift = tile - WORD_BITS * np.arange(num_words(config), dtype=np.int32)
    return jnp.where((shift >= 0) & (shift < WORD_BITS), np.uint32(1) << shift.astype(jnp.uint32), np.uint32(0))


def unpack(config: Config, tiles: TileSet) -> Bool[Array, "N"]:
    """A flag for each tile, the inverse of ``pack``."""
    return unpack_words(tiles, config.tiles)


def count(tiles: TileSet) -> Int32[Array, ""]:
    """Number of tiles in a set."""
    return jnp.sum(popcount(tiles), dtype=jnp.int32)


def value(config: Config, tiles: TileSet) -> Int32[Array, ""]:
    """Sum of all numbers on the tiles of a set."""
    values = np.array([sum(tile) for tile in config.tile_list])
    digits = (jnp.sum(popcount(tiles & _constant(config, values >> i & 1)), dtype=jnp.int32) << i for i in range(5))
    return sum(digits, start=jnp.int32(0))


def completions(config: Config, tiles: TileSet) -> UInt32[Array, "pairs"]:
    """For each pair of numbers, a bit mask of the third numbers that complete it to a tile of the set.

    The pair ``first * numbers + second`` follows the third number clockwise: third, first, second.
    """
    weights = np.zeros((config.numbers**2, config.tiles), np.float32)
    for tile in config.tile_list:
        for i in range(3):
            third, first, second = tile[i], tile[(i + 1) % 3], tile[(i + 2) % 3]
            weights[first * config.numbers + second, tile_id(tile)] = 1 << third
    held = unpack(config, tiles).astype(jnp.float32)
    return jnp.dot(weights, held).astype(jnp.uint32)


def openers(config: Config, tray: TileSet) -> TileSet:
    """The tiles of a tray that may be placed first with ``start="highest"``: its highest tiles and the tile of three zeros."""
    highest = tray & np.uint32(0)
    for equals in _tiles_by_rank(config):
        highest = jnp.where(jnp.all(highest == 0), tray & equals, highest)
    return highest | (tray & _constant(config, np.arange(config.tiles) == 0))


def holds_highest(config: Config, trays: UInt32[Array, "P words"]) -> Bool[Array, "P"]:
    """The players with the highest tiles, compared tile by tile from the highest down; several players if they tie."""
    is_candidate = jnp.ones(trays.shape[0], jnp.bool_)
    for equals in _tiles_by_rank(config):
        # All trays have the same size, so the tray with more tiles of this rank has the higher tile at the first difference.
        held = jnp.where(is_candidate, jnp.sum(popcount(trays & equals[None]), axis=1, dtype=jnp.int32), -1)
        is_candidate = held == jnp.max(held)
    return is_candidate


def _tiles_by_rank(config: Config) -> list[np.ndarray]:
    """Sets of tiles of equal rank (``tiles.rank``) from the highest rank down, as NumPy arrays."""
    ranks = [rank(tile) for tile in config.tile_list]
    return [_constant(config, np.array([r == level for r in ranks])) for level in sorted(set(ranks), reverse=True)]


def _constant(config: Config, tiles: np.ndarray) -> np.ndarray:
    """The set of the tiles with a true flag, as a NumPy array."""
    flags = np.zeros(num_words(config) * WORD_BITS, np.uint64)
    flags[: config.tiles] = tiles
    words: np.ndarray = (flags.reshape(-1, WORD_BITS) << np.arange(WORD_BITS, dtype=np.uint64)).sum(axis=1)
    return words.astype(np.uint32)
