"""Positions for people: text with ANSI colours, and SVG pictures. Plain Python, without JAX."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from tilewe_jax.games.polyomino.notation import column_name
from tilewe_jax.games.polyomino.pieces import Cell
from tilewe_jax.render.svg import grid

if TYPE_CHECKING:
    from tilewe_jax.games.polyomino.position import PolyominoPosition

COLORS = ("blue", "yellow", "red", "green")
"""Names of the players."""
_ANSI = ("94", "93", "91", "92")
_FILL = ("#3b6fd4", "#f0c02c", "#d9443f", "#3fa45b")


def text(position: "PolyominoPosition", color: bool = False, marked: Collection[Cell] = ()) -> str:
    """The board, and for each player the score and the pieces left.

    Args:
      position: the position.
      color: whether to use ANSI colours.
      marked: cells of the last move: small letters, with colours on a coloured ground.
    """
    size = position.config.size
    board = [["."] * size for _ in range(size)]
    marks = [_mark(player, color) for player in range(position.config.players)]
    for player, mark in enumerate(marks):
        for cell in position.cells(player):
            board[cell[1]][cell[0]] = _mark(player, color, last=True) if cell in marked else mark
    rows = [f"{y + 1:2d} {' '.join(board[y])}" for y in reversed(range(size))]
    rows.append("   " + " ".join(column_name(x)[-1] for x in range(size)))
    rows.append("points and pieces left:")
    for player, (mark, score) in enumerate(zip(marks, position.scores(), strict=True)):
        rows.append(f"{mark} {score:3d} {' '.join(position.remaining_pieces(player))}")
    rows.append("game over" if position.is_terminal else f"{COLORS[position.current_player]} to move")
    return "\n".join(rows)


def svg(position: "PolyominoPosition", marked: Collection[Cell] = ()) -> str:
    """The board and a legend with scores and pieces left, as the text of an SVG file; ``marked`` cells have a dot."""
    config = position.config
    cells = {cell: _FILL[player] for player in range(config.players) for cell in position.cells(player)}
    legend = [
        (
            _FILL[player],
            f"{COLORS[player]}: {score} points, pieces left: {' '.join(position.remaining_pieces(player)) or 'none'}",
        )
        for player, score in enumerate(position.scores())
    ]
    return grid(config.size, cells, [column_name(x) for x in range(config.size)], legend, marked=marked)


def _mark(player: int, color: bool, last: bool = False) -> str:
    letter = COLORS[player][0] if last else COLORS[player][0].upper()
    return f"\x1b[{'7;' if last else ''}{_ANSI[player]}m{letter}\x1b[0m" if color else letter
