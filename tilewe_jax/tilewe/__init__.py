"""A drop-in replacement of the package ``tilewe``: use ``from tilewe_jax import tilewe`` instead of ``import tilewe``.

Plain Python, without compilation. As in the package, ``tilewe.engine``, ``tilewe.tournament`` and ``tilewe.elo`` must be
imported explicitly. The README in this folder lists the differences from version 0.0.3.
"""

from tilewe_jax.tilewe.board import Board as Board
from tilewe_jax.tilewe.board import IllegalMoveError as IllegalMoveError
from tilewe_jax.tilewe.constants import *  # noqa: F403
from tilewe_jax.tilewe.move import Move as Move

print_color = True
"""``str`` of a board marks the players in colour."""


def play_random_game() -> None:
    """Play a game of four random players and print the final board."""
    board = Board()
    while not board.finished:
        board.push(board.random_legal_move())
    print(board)
