"""The 32 symmetries of Santorini: eight of the board, times exchanging the numbers of the own or the other's workers.

Symmetry ``k`` turns or mirrors the board by ``k % 8``, exchanges the numbers of the player to move where ``k & 8``, and those
of the other where ``k & 16``; 0 is the identity. While workers are being placed, only the first eight are symmetries, because
numbers are given in the order of placement.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32
from numpy.typing import NDArray

from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.config import DIRECTIONS, NUM_TURNS, Cell, Config
from tilewe_jax.games.santorini.rules import State

COUNT = 32
OF_BOARD = 8


def transform(config: Config, state: State, symmetry: Int32[Array, ""]) -> State:
    """The state seen through a symmetry."""
    pieces, heights = rules.board_of(config, state).reshape(2, -1)[:, jnp.asarray(_sources(config))[symmetry % 8]]
    numbers = jnp.abs(pieces)
    exchanged = jnp.where(pieces > 0, symmetry & 8, symmetry & 16) != 0
    pieces = jnp.where(exchanged & (numbers > 0), jnp.sign(pieces) * (3 - numbers), pieces)
    board = jnp.stack([pieces, heights]).reshape(2, config.size, config.size)
    return rules.state_of(config, board, state.current_player)


@cache
def actions(config: Config) -> NDArray[np.int32]:
    """``int32[32, num_actions]``: what each action is called after each symmetry."""
    table = np.zeros((COUNT, config.num_actions), np.int32)
    for symmetry in range(COUNT):
        turned = [DIRECTIONS.index(_map(cell, symmetry % 8)) for cell in DIRECTIONS]
        for action in range(NUM_TURNS):
            worker, move, build = action >> 6, action >> 3 & 7, action & 7
            table[symmetry, action] = 64 * (worker ^ (symmetry >> 3 & 1)) + 8 * turned[move] + turned[build]
        for place in range(config.num_actions - NUM_TURNS):
            table[symmetry, NUM_TURNS + place] = NUM_TURNS + _target(config, place, symmetry % 8)
    return table


@cache
def _sources(config: Config) -> NDArray[np.int32]:
    """For each symmetry of the board and each cell after it, which cell that was before."""
    table = np.zeros((8, config.size**2), np.int32)
    for symmetry in range(8):
        for cell in range(config.size**2):
            table[symmetry, _target(config, cell, symmetry)] = cell
    return table


def _target(config: Config, cell: int, symmetry: int) -> int:
    """Where a cell comes to lie. Twice the distance from the middle is a whole number."""
    last = config.size - 1
    row, column = _map((2 * (cell // config.size) - last, 2 * (cell % config.size) - last), symmetry)
    return (row + last) // 2 * config.size + (column + last) // 2


def _map(cell: Cell, symmetry: int) -> Cell:
    """A (row, column) counted from the middle, turned by 90 degrees ``symmetry % 4`` times, mirrored from 4 on."""
    row, column = cell
    for _ in range(symmetry % 4):
        row, column = -column, row
    return (row, -column) if symmetry >= 4 else (row, column)
