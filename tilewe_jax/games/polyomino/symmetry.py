"""The symmetries of the square board that preserve the start cells of every colour: eight in Tilewe, fewer in other variants.

A symmetry is an index into the tuple ``host_symmetry.symmetries(config)``, which holds indices into ``pieces.ROTATION_NAMES``.
Tables are computed with NumPy, once for each variant; ``transform_boards`` is a function of one game.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32
from numpy.typing import NDArray

from tilewe_jax.bits import pack_words, unpack_words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host_symmetry import images, symmetries
from tilewe_jax.games.polyomino.pieces import ORIENTATION_OF_CELLS, ORIENTATIONS, normalize


def transform_boards(
    config: Config, occupied: UInt32[Array, "colors words"], index: Int32[Array, ""]
) -> UInt32[Array, "colors words"]:
    """Apply symmetry number ``index`` to boards."""
    sources = jnp.asarray(_sources(config))[index]
    return jax.vmap(lambda words: pack_words(unpack_words(words, config.cells)[sources]))(occupied)


@cache
def action_table(config: Config) -> NDArray[np.int32]:
    """Return the image of each action, ``int32[symmetries, num_actions]``; ids beyond the board map to themselves."""
    count = config.num_placements + config.voluntary_pass
    table = np.tile(np.arange(count, dtype=np.int32), (len(symmetries(config)), 1))
    for i in config.orientations:
        cells = np.array(ORIENTATIONS[i].cells)
        anchors = _cells(np.maximum(config.size - cells.max(axis=0), 0))
        ids = i * config.cells + _bits(config, anchors)
        for row, rotation in zip(table, symmetries(config), strict=True):
            new_orientation = ORIENTATION_OF_CELLS[normalize(images(config, map(tuple, cells.tolist()), rotation))]
            new_anchors = _image(config, anchors[:, None] + cells, rotation).min(axis=1)
            row[ids] = new_orientation * config.cells + _bits(config, new_anchors)
    return table


@cache
def _sources(config: Config) -> NDArray[np.int32]:
    """Return the preimage of each cell, ``int32[symmetries, cells]``."""
    cells = _cells((config.size, config.size))
    table = np.zeros((len(symmetries(config)), config.cells), np.int32)
    for row, rotation in zip(table, symmetries(config), strict=True):
        row[_bits(config, _image(config, cells, rotation))] = _bits(config, cells)
    return table


def _image(config: Config, cells: NDArray[Any], rotation: int) -> NDArray[Any]:
    """Rotate cells ``[..., 2]`` with the board, as ``pieces.rotate`` rotates pieces."""
    x, y = cells[..., 0], cells[..., 1]
    last = config.size - 1
    for _ in range(rotation % 4):
        x, y = y, last - x
    return np.stack([last - x, y] if rotation >= 4 else [x, y], axis=-1)


def _bits(config: Config, cells: NDArray[Any]) -> NDArray[Any]:
    """Return the indices of the bits of cells ``[..., 2]``."""
    return np.asarray(cells[..., 1] * config.size + cells[..., 0])


def _cells(shape: Any) -> NDArray[Any]:
    """Return all cells of a rectangle of ``shape`` (columns, rows), ``[cells, 2]``."""
    return np.argwhere(np.ones(shape))
