"""The host API of the package ``tilewe``, name for name: ``from tilewe_jax import tilewe`` in place of ``import tilewe``.

Plain Python, which starts at once and needs no compilation. ``tilewe.engine``, ``tilewe.tournament`` and ``tilewe.elo`` are
imported by their own names, as there. What differs from version 0.0.3 stands in the README beside this file.
"""

from tilewe_jax.tilewe.board import Board as Board
from tilewe_jax.tilewe.board import IllegalMoveError as IllegalMoveError
from tilewe_jax.tilewe.constants import *  # noqa: F403
from tilewe_jax.tilewe.move import Move as Move

print_color = True
"""Whether ``str`` of a board marks the players in colour."""


def play_random_game() -> None:
    """Play a game of four random players and print its end."""
    board = Board()
    while not board.finished:
        board.push(board.random_legal_move())
    print(board)
