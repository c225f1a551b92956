"""The symmetries of the square board that leave every player's start cells where they are: eight in Tilewe, fewer elsewhere."""

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
    """Those of the game, as indices of ``ROTATION_NAMES``; the identity first."""
    starts = [frozenset(cells) for cells in config.start_cells]
    return tuple(
        turn
        for turn in range(len(ROTATION_NAMES))
        if all(frozenset(_moved(config, cell, turn) for cell in start) == start for start in starts)
    )


def turned(config: Config, occupied: UInt32[Array, "players words"], index: Int32[Array, ""]) -> UInt32[Array, "players words"]:
    """Boards seen through a symmetry."""
    sources = jnp.asarray(_sources(config))[index]
    return jax.vmap(lambda words: pack_words(unpack_words(words, config.cells)[sources]))(occupied)


@cache
def actions(config: Config) -> NDArray[np.int32]:
    """``int32[symmetries, num_actions]``: what each action becomes; placements that do not lie on the board stay."""
    count = config.num_placements + config.voluntary_pass
    table = np.tile(np.arange(count, dtype=np.int32), (len(symmetries(config)), 1))
    for row, turn in zip(table, symmetries(config), strict=True):
        for i in config.orientations:
            cells = ORIENTATIONS[i].cells
            became = ORIENTATION_OF_CELLS[normalize(_moved(config, cell, turn) for cell in cells)]
            for y in range(config.size):
                for x in range(config.size):
                    if config.fits(ORIENTATIONS[i], (x, y)):
                        placed = [_moved(config, (x + dx, y + dy), turn) for dx, dy in cells]
                        anchor = min(x for x, _ in placed), min(y for _, y in placed)
                        row[i * config.cells + config.bit((x, y))] = became * config.cells + config.bit(anchor)
    return table


@cache
def _sources(config: Config) -> NDArray[np.int32]:
    """For each symmetry and each cell after it, which cell that was before."""
    table = np.zeros((len(symmetries(config)), config.cells), np.int32)
    for row, turn in zip(table, symmetries(config), strict=True):
        for y in range(config.size):
            for x in range(config.size):
                row[config.bit(_moved(config, (x, y), turn))] = config.bit((x, y))
    return table


def _moved(config: Config, cell: Cell, turn: int) -> Cell:
    """Where a cell comes to lie when the board is turned as pieces are, see ``pieces.rotate``."""
    x, y = cell
    last = config.size - 1
    for _ in range(turn % 4):
        x, y = y, last - x
    return (last - x, y) if turn >= 4 else (x, y)
