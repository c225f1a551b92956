"""The 32 symmetries of Santorini: eight of the square, times swapping the numbers of the two workers of each player.

Symmetry ``k`` rotates or reflects the board by ``k % 8``, swaps the workers of the player to move if ``k & 8``, and the workers
of the opponent if ``k & 16``; 0 is the identity. With ``placement="chosen"`` only the first eight are symmetries, because
workers are numbered in the order of placement.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32
from numpy.typing import NDArray

from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.config import DIRECTIONS, NUM_TURNS, Cell, Config
from tilewe_jax.games.santorini.rules import State

NUM_SYMMETRIES = 32
NUM_BOARD_SYMMETRIES = 8


def num_symmetries(config: Config) -> int:
    """Number of symmetries: 8 with ``placement="chosen"``, otherwise 32."""
    return NUM_BOARD_SYMMETRIES if config.placement == "chosen" else NUM_SYMMETRIES


def transform(config: Config, state: State, index: Int32[Array, ""]) -> State:
    """Apply symmetry ``index`` to a state."""
    pieces, heights = rules.board_of(config, state).reshape(2, -1)[:, jnp.asarray(_source_cells(config))[index % 8]]
    numbers = jnp.abs(pieces)
    is_exchanged = jnp.where(pieces > 0, index & 8, index & 16) != 0
    pieces = jnp.where(is_exchanged & (numbers > 0), jnp.sign(pieces) * (3 - numbers), pieces)
    board = jnp.stack([pieces, heights]).reshape(2, config.size, config.size)
    return rules.state_of(config, board, state.current_player)


@cache
def action_symmetries(config: Config) -> NDArray[np.int32]:
    """The id of each action after each symmetry, ``int32[num_symmetries, num_actions]``."""
    table = np.zeros((num_symmetries(config), config.num_actions), np.int32)
    for index, row in enumerate(table):
        direction_after = [DIRECTIONS.index(_map(offset, index % 8)) for offset in DIRECTIONS]
        for action in range(NUM_TURNS):
            worker, move, build = action >> 6, action >> 3 & 7, action & 7
            row[action] = 64 * (worker ^ (index >> 3 & 1)) + 8 * direction_after[move] + direction_after[build]
        for cell in range(config.num_actions - NUM_TURNS):
            row[NUM_TURNS + cell] = NUM_TURNS + _target_cell(config, cell, index % 8)
    return table


@cache
def _source_cells(config: Config) -> NDArray[np.int32]:
    """The preimage of each cell under each symmetry of the board, ``int32[8, size * size]``."""
    table = np.zeros((NUM_BOARD_SYMMETRIES, config.size**2), np.int32)
    for index, row in enumerate(table):
        for cell in range(config.size**2):
            row[_target_cell(config, cell, index)] = cell
    return table


def _target_cell(config: Config, cell: int, index: int) -> int:
    """The image of a cell, ``row * size + column``, under a symmetry of the board."""
    last = config.size - 1  # twice the distance from the middle is an integer
    row, column = _map((2 * (cell // config.size) - last, 2 * (cell % config.size) - last), index)
    return (row + last) // 2 * config.size + (column + last) // 2


def _map(offset: Cell, index: int) -> Cell:
    """Rotate (row, column), relative to the middle, by 90 degrees ``index % 4`` times, then reflect it if ``index >= 4``."""
    row, column = offset
    for _ in range(index % 4):
        row, column = -column, row
    return (row, -column) if index >= 4 else (row, column)
