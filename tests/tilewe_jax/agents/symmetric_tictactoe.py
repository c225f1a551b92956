"""Tic-tac-toe with its eight symmetries."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from tests.search.tictactoe import TicTacToe

_BOARD = np.arange(9).reshape(3, 3)
SOURCES = np.stack(
    [board.ravel() for turns in range(4) for board in (np.rot90(_BOARD, turns), np.rot90(_BOARD, turns).T)]
).astype(np.int32)
"""The preimage of each cell under each symmetry."""


class SymmetricTicTacToe(TicTacToe):
    num_symmetries = 8

    def transform(self, state, index):
        return replace(state, cells=state.cells[jnp.asarray(SOURCES)[index]])

    @property
    def action_symmetries(self):
        return np.argsort(SOURCES, axis=1).astype(np.int32)
