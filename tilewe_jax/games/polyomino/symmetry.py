"""The symmetries of the square board that map the start cells of every colour to themselves: eight in Tilewe, else fewer.

A symmetry is one of the eight rotations and reflections ``pieces.ROTATION_NAMES``, by its position among those of the variant.
Tables are computed with NumPy, once for each variant; ``transform_boards`` is a function of one game.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32
from numpy.typing import NDArray

from tilewe_jax.bits import pack_words, unpack_words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATION_OF_CELLS, ORIENTATIONS, ROTATION_NAMES, Cell, normalize


@cache
def symmetries(config: Config) -> tuple[int, ...]:
    """The symmetries of a variant, as indices into ``ROTATION_NAMES``; the identity first."""
    starts = [frozenset(cells) for cells in config.start_cells]
    return tuple(
        rotation
        for rotation in range(len(ROTATION_NAMES))
        if all(frozenset(_image(config, cell, rotation) for cell in start) == start for start in starts)
    )


def transform_boards(
    config: Config, occupied: UInt32[Array, "colors words"], index: Int32[Array, ""]
) -> UInt32[Array, "colors words"]:
    """Apply symmetry number ``index`` to boards."""
    sources = jnp.asarray(_sources(config))[index]
    return jax.vmap(lambda words: pack_words(unpack_words(words, config.cells)[sources]))(occupied)


@cache
def action_table(config: Config) -> NDArray[np.int32]:
    """``int32[symmetries, num_actions]``: the image of each action; ids that do not lie on the board map to themselves."""
    count = config.num_placements + config.voluntary_pass
    table = np.tile(np.arange(count, dtype=np.int32), (len(symmetries(config)), 1))
    for row, rotation in zip(table, symmetries(config), strict=True):
        for i in config.orientations:
            cells = ORIENTATIONS[i].cells
            new_orientation = ORIENTATION_OF_CELLS[normalize(_image(config, cell, rotation) for cell in cells)]
            for y in range(config.size):
                for x in range(config.size):
                    if config.fits(ORIENTATIONS[i], (x, y)):
                        placed = [_image(config, (x + dx, y + dy), rotation) for dx, dy in cells]
                        anchor = min(x for x, _ in placed), min(y for _, y in placed)
                        row[i * config.cells + config.bit((x, y))] = new_orientation * config.cells + config.bit(anchor)
    return table


@cache
def _sources(config: Config) -> NDArray[np.int32]:
    """``int32[symmetries, cells]``: for each symmetry the cell that each cell comes from."""
    table = np.zeros((len(symmetries(config)), config.cells), np.int32)
    for row, rotation in zip(table, symmetries(config), strict=True):
        for y in range(config.size):
            for x in range(config.size):
                row[config.bit(_image(config, (x, y), rotation))] = config.bit((x, y))
    return table


def _image(config: Config, cell: Cell, rotation: int) -> Cell:
    """The image of a cell under a rotation of the board, as ``pieces.rotate`` rotates pieces."""
    x, y = cell
    last = config.size - 1
    for _ in range(rotation % 4):
        x, y = y, last - x
    return (last - x, y) if rotation >= 4 else (x, y)
