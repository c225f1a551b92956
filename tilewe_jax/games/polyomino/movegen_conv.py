"""Legal placements by convolution over dense planes: a direct statement of the rule, to test ``movegen`` against.

A placement is legal if the convolution of the piece with the blocked cells is zero and its convolution with the corners is not.
On GPUs they are channels of one convolution, for the tensor cores. Much slower than ``movegen`` on a CPU;
``experiments/gpu/README.md`` compares them on GPUs. The functions take the results of ``boards.planes``, with lanes last.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from tilewe_jax.bits import pack_words, popcount, unpack_words
from tilewe_jax.games.polyomino.boards import Board, Hand
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.movegen import union_size
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS
from tilewe_jax.utils.loops import by_platform

_BLOCKED = 8
"""Weight of a blocked cell relative to a corner: more than the number of corners that a piece can cover."""


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of legal placements anchored in each word of the board."""
    return jnp.sum(popcount(placements(config, free, corners, hand)), axis=0, dtype=jnp.int32)


def anchors(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of cells in each word of the board that are the anchor of a legal placement."""
    return union_size(list(placements(config, free, corners, hand)))


def placements(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "orientations words lanes"]:
    """The anchors of the legal placements of each of the 91 orientations."""
    fits = by_platform(_fits, _fits_on_gpu, ~_dense(config, free), _dense(config, corners))
    piece = np.array([orientation.piece for orientation in ORIENTATIONS], np.uint32)
    in_hand = (hand[:, None] >> piece[None]) & np.uint32(1) != 0
    legal = fits & in_hand[:, :, None, None]
    return _pack(config, legal)


def placements_at(
    config: Config, free: Board, corners: Board, hand: Hand, word: Int32[Array, "*several lanes"]
) -> dict[int, UInt32[Array, "*several lanes"]]:
    """Return ``placements(...)[:, word]`` by orientation in play; ``word`` is one index, or several, per lane."""
    index = word.reshape(1, -1, word.shape[-1])
    masks = jnp.take_along_axis(placements(config, free, corners, hand), index, axis=1, mode="clip")
    return {orientation: masks[orientation].reshape(word.shape) for orientation in config.orientations}


def _fits(blocked: Bool[Array, "lanes y x"], corners: Bool[Array, "lanes y x"]) -> Bool[Array, "lanes orientations y x"]:
    """Return whether each orientation, anchored at each cell, covers a corner and only free cells of the board."""
    return (_convolve(blocked, outside=True) == 0) & (_convolve(corners, outside=False) > 0)


def _fits_on_gpu(blocked: Bool[Array, "lanes y x"], corners: Bool[Array, "lanes y x"]) -> Bool[Array, "lanes orientations y x"]:
    """``_fits`` by one convolution in bfloat16, which represents its small integers exactly."""
    kernels = np.zeros((MAX_PIECE_SIZE, MAX_PIECE_SIZE, 2, len(ORIENTATIONS)), np.float32)
    for i, orientation in enumerate(ORIENTATIONS):
        for x, y in orientation.cells:
            kernels[y, x, :, i] = -_BLOCKED, 1
    around = (0, 0), (0, MAX_PIECE_SIZE - 1), (0, MAX_PIECE_SIZE - 1)
    images = jnp.stack([jnp.pad(blocked, around, constant_values=True), jnp.pad(corners, around)], axis=-1)
    sums = lax.conv_general_dilated(
        images.astype(jnp.bfloat16),
        jnp.asarray(kernels, jnp.bfloat16),
        (1, 1),
        "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return jnp.moveaxis(sums > 0, -1, 1)


def _convolve(planes: Bool[Array, "lanes y x"], outside: bool) -> Float32[Array, "lanes orientations y x"]:
    """Number of set cells under each orientation anchored at each cell; ``outside`` is the value of cells off the board."""
    kernels = np.zeros((len(ORIENTATIONS), 1, MAX_PIECE_SIZE, MAX_PIECE_SIZE), np.float32)
    for kernel, orientation in zip(kernels, ORIENTATIONS, strict=True):
        for x, y in orientation.cells:
            kernel[0, y, x] = 1
    padded = jnp.pad(planes, ((0, 0), (0, MAX_PIECE_SIZE - 1), (0, MAX_PIECE_SIZE - 1)), constant_values=outside)
    return lax.conv(padded[:, None].astype(jnp.float32), jnp.asarray(kernels), (1, 1), "VALID")


def _dense(config: Config, board: Board) -> Bool[Array, "lanes y x"]:
    cells = jax.vmap(lambda words: unpack_words(words, config.cells), in_axes=-1)(board)
    return cells.reshape(-1, config.size, config.size)


def _pack(config: Config, dense: Bool[Array, "lanes orientations y x"]) -> UInt32[Array, "orientations words lanes"]:
    cells = dense.reshape(*dense.shape[:2], config.cells)
    return jax.vmap(jax.vmap(pack_words), out_axes=-1)(cells)
