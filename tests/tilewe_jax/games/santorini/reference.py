"""Slow reference of Santorini on the (2, n, n) arrays of the traces, written from the rules."""

import itertools
import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Board = NDArray[np.int8]
Turn = tuple[int, int, int, int, int, int]


def around(n: int, row: int, column: int) -> Iterator[tuple[int, int]]:
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        if (down or right) and 0 <= row + down < n and 0 <= column + right < n:
            yield row + down, column + right


def legal(board: Board, player: int) -> list[Turn]:
    """All (from row, column, to row, column, build row, column), by worker, move and build."""
    pieces, heights = board.tolist()
    n = len(pieces)
    turns = []
    for worker in (player, 2 * player):
        row = next(r for r in range(n) if worker in pieces[r])
        column = pieces[row].index(worker)
        for r, c in around(n, row, column):
            if pieces[r][c] or heights[r][c] > 3 or heights[r][c] > heights[row][column] + 1:
                continue
            turns += [
                (row, column, r, c, a, b)
                for a, b in around(n, r, c)
                if heights[a][b] < 4 and (not pieces[a][b] or (a, b) == (row, column))
            ]
    return turns


def play(board: Board, turn: Turn) -> Board:
    after = board.copy()
    row, column, r, c, a, b = turn
    after[0, r, c], after[0, row, column] = after[0, row, column], 0
    after[1, a, b] += 1
    return after


def winner(board: Board, player: int) -> int:
    """The winner with ``player`` to move; 0 before the end."""
    pieces, heights = board
    if np.any((pieces * player < 0) & (heights == 3)) or not legal(board, player):
        return -player
    return 0


def random_start(n: int, rng: random.Random) -> Board:
    board = np.zeros((2, n, n), np.int8)
    for piece, cell in zip((1, 2, -1, -2), rng.sample(range(n * n), 4), strict=True):
        board[0, cell // n, cell % n] = piece
    return board
