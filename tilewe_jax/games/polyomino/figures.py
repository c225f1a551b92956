"""Positions for people: text with ANSI colours, and SVG pictures. Plain Python, without JAX."""

from typing import TYPE_CHECKING

from tilewe_jax.games.polyomino.notation import column_name
from tilewe_jax.render.svg import grid

if TYPE_CHECKING:
    from tilewe_jax.games.polyomino.position import PolyominoPosition

COLORS = ("blue", "yellow", "red", "green")
"""Names of the players."""
_ANSI = ("94", "93", "91", "92")
_FILL = ("#3b6fd4", "#f0c02c", "#d9443f", "#3fa45b")


def text(position: "PolyominoPosition", color: bool = False) -> str:
    """The board, and for each player the score and the pieces left; with ANSI colours where ``color``."""
    size = position.config.size
    board = [["."] * size for _ in range(size)]
    marks = [_mark(player, color) for player in range(position.config.players)]
    for player, mark in enumerate(marks):
        for x, y in position.cells(player):
            board[y][x] = mark
    rows = [f"{y + 1:2d} {' '.join(board[y])}" for y in reversed(range(size))]
    rows.append("   " + " ".join(column_name(x)[-1] for x in range(size)))
    for player, (mark, score) in enumerate(zip(marks, position.scores(), strict=True)):
        rows.append(f"{mark} {score:3d} {' '.join(position.remaining_pieces(player))}")
    rows.append("game over" if position.is_terminal else f"{COLORS[position.current_player]} to move")
    return "\n".join(rows)


def svg(position: "PolyominoPosition") -> str:
    """The board and a legend with scores and pieces left, as the text of an SVG file."""
    config = position.config
    cells = {cell: _FILL[player] for player in range(config.players) for cell in position.cells(player)}
    legend = [
        (_FILL[player], f"{COLORS[player]} {score}, left: {' '.join(position.remaining_pieces(player))}")
        for player, score in enumerate(position.scores())
    ]
    return grid(config.size, cells, [column_name(x) for x in range(config.size)], legend)


def _mark(player: int, color: bool) -> str:
    letter = COLORS[player][0].upper()
    return f"\x1b[{_ANSI[player]}m{letter}\x1b[0m" if color else letter
