"""Positions for people: text with ANSI colours. Plain Python, without JAX."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from tilewe_jax.draw.theme import COLORS
from tilewe_jax.games.polyomino.notation import column_name
from tilewe_jax.games.polyomino.pieces import Cell

if TYPE_CHECKING:
    from tilewe_jax.games.polyomino.position import PolyominoPosition

_ANSI = ("94", "93", "91", "92")


def text(position: "PolyominoPosition", color: bool = False, marked: Collection[Cell] = ()) -> str:
    """The board, and for each colour the score and the pieces left.

    Args:
      position: the position.
      color: whether to use ANSI colours.
      marked: cells of the last move: small letters, with colours on a coloured ground.
    """
    size = position.config.size
    board = [["."] * size for _ in range(size)]
    marks = [_mark(index, color) for index in range(position.config.colors)]
    for index, mark in enumerate(marks):
        for cell in position.cells(index):
            board[cell[1]][cell[0]] = _mark(index, color, last=True) if cell in marked else mark
    rows = [f"{y + 1:2d} {' '.join(board[y])}" for y in reversed(range(size))]
    rows.append("   " + " ".join(column_name(x)[-1] for x in range(size)))
    rows.append("points and pieces left:")
    for index, mark in enumerate(marks):
        rows.append(f"{mark} {position.position.score(index):3d} {' '.join(position.remaining_pieces(index))}")
    rows += _totals(position)
    rows.append("game over" if position.is_terminal else f"{COLORS[position.current_color]} to move")
    return "\n".join(rows)


def _totals(position: "PolyominoPosition") -> list[str]:
    """A line for each player with several colours: the colours and the points of them together."""
    config = position.config
    if config.colors_per_player == 1:
        return []
    return [f"{' and '.join(COLORS[i :: config.players])}: {score} points" for i, score in enumerate(position.scores())]


def _mark(index: int, color: bool, last: bool = False) -> str:
    letter = COLORS[index][0] if last else COLORS[index][0].upper()
    return f"\x1b[{'7;' if last else ''}{_ANSI[index]}m{letter}\x1b[0m" if color else letter
