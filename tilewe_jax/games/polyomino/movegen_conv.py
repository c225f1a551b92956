"""Legal placements by convolution over dense planes: the rule as it is stated, to test ``movegen`` against.

A placement is legal where the convolution of the piece with the cells that are not free is zero and that with the corners is
not. Much slower than ``movegen`` on a CPU. The functions take the results of ``boards.planes``, with lanes last.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, popcount
from tilewe_jax.games.polyomino.boards import Board, Hand, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of legal placements anchored in each word of the board."""
    return jnp.sum(popcount(placements(config, free, corners, hand)), axis=0)


def placements(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "orientations words lanes"]:
    """The anchors of the legal placements of each of the 91 orientations."""
    blocked = _convolve(~_dense(config, free), outside=True)
    touching = _convolve(_dense(config, corners), outside=False)
    piece = np.array([orientation.piece for orientation in ORIENTATIONS], np.uint32)
    in_hand = (hand[:, None] >> piece[None]) & np.uint32(1) != 0
    legal = (blocked == 0) & (touching > 0) & in_hand[:, :, None, None]
    return _pack(config, legal)


def placements_at(
    config: Config, free: Board, corners: Board, hand: Hand, word: Int32[Array, "*several lanes"]
) -> dict[int, UInt32[Array, "*several lanes"]]:
    """``placements(...)[:, word]`` by orientation, for those in play; one or several words per lane."""
    index = word.reshape(1, -1, word.shape[-1])
    masks = jnp.take_along_axis(placements(config, free, corners, hand), index, axis=1, mode="clip")
    return {orientation: masks[orientation].reshape(word.shape) for orientation in config.orientations}


def _convolve(planes: Bool[Array, "lanes y x"], outside: bool) -> Float32[Array, "lanes orientations y x"]:
    """Number of set cells under each orientation anchored at each cell; cells off the board are set where ``outside``."""
    kernels = np.zeros((len(ORIENTATIONS), 1, MAX_PIECE_SIZE, MAX_PIECE_SIZE), np.float32)
    for kernel, orientation in zip(kernels, ORIENTATIONS, strict=True):
        for x, y in orientation.cells:
            kernel[0, y, x] = 1
    padded = jnp.pad(planes, ((0, 0), (0, MAX_PIECE_SIZE - 1), (0, MAX_PIECE_SIZE - 1)), constant_values=outside)
    return lax.conv(padded[:, None].astype(jnp.float32), jnp.asarray(kernels), (1, 1), "VALID")


def _dense(config: Config, board: Board) -> Bool[Array, "lanes y x"]:
    bits = (board[:, None] >> np.arange(WORD_BITS, dtype=np.uint32)[None, :, None]) & np.uint32(1) != 0
    cells = bits.reshape(-1, board.shape[1])[: config.cells]
    return cells.T.reshape(-1, config.size, config.size)


def _pack(config: Config, dense: Bool[Array, "lanes orientations y x"]) -> UInt32[Array, "orientations words lanes"]:
    lanes, orientations = dense.shape[:2]
    cells = dense.reshape(lanes, orientations, config.cells)
    cells = jnp.pad(cells, ((0, 0), (0, 0), (0, words(config) * WORD_BITS - config.cells)))
    bits = cells.reshape(lanes, orientations, words(config), WORD_BITS).astype(jnp.uint32)
    weights = np.arange(WORD_BITS, dtype=np.uint32)[None, None, None]
    return jnp.transpose(jnp.sum(bits << weights, axis=-1, dtype=jnp.uint32), (1, 2, 0))
