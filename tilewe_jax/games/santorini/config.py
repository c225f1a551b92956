"""Settings of Santorini and numbering of its actions. Pure Python.

Cells are (row, column) from the top left, as in the arrays of alpha-zero-general.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Cell = tuple[int, int]
Placement = Literal["default", "random", "chosen"]

VERSION = 1
"""Version of the rules, see ``Game.version``."""
DIRECTIONS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""NW, N, NE, W, E, SW, S, SE as (rows, columns)."""
NUM_TURNS = 2 * len(DIRECTIONS) ** 2
"""Number of turns, ``64 * worker + 8 * move + build``; the ids of placements follow."""
TURN_162 = tuple(81 * (a >> 6) + 9 * ((a >> 3 & 7) + (a >> 5 & 1)) + (a & 7) + (a >> 2 & 1) for a in range(NUM_TURNS))
"""Index of each turn in the numbering ``81 * worker + 9 * move + build`` of alpha-zero-general, with nine directions row by
row, including the middle: ``logits162[..., TURN_162]`` are the logits of the turns here."""
DOME = 4
"""Height of a cell with a dome."""
SIZES = range(3, 11)
"""Supported board sizes."""


@dataclass(frozen=True)
class Config:
    """Santorini on n x n cells: move, build, and reach level 3 first.

    Raises ``ValueError`` for invalid settings.
    """

    size: int = 5
    """Rows and columns of the board, 3 to 10."""
    placement: Placement = "default"
    """Initial cells of the workers: the middle of the board ("default"), random cells ("random"), or cells chosen by the
    players, who take turns to place one worker ("chosen")."""

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise ValueError(f"size must be {SIZES[0]} to {SIZES[-1]}, got {self.size}")
        if self.placement not in get_args(Placement):
            raise ValueError(f"placement must be one of {', '.join(get_args(Placement))}, got {self.placement!r}")

    @property
    def num_actions(self) -> int:
        """Number of action ids."""
        return NUM_TURNS + (self.size**2 if self.placement == "chosen" else 0)

    @property
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game: every turn adds one of at most four levels of a cell."""
        return DOME * self.size**2 + (4 if self.placement == "chosen" else 0)

    @property
    def start(self) -> tuple[Cell, Cell, Cell, Cell]:
        """Cells of the workers in the default placement: two of the first player, then two of the second."""
        m = self.size // 2
        if self.size % 2:
            return (m - 1, m), (m + 1, m), (m, m - 1), (m, m + 1)
        return (m, m), (m - 1, m - 1), (m, m - 1), (m - 1, m)

    @property
    def stride(self) -> int:
        """Number of bits between rows of a bitboard, of which at least one is unused.

        Boards up to 5 x 5 have the stride of a window (``bitboard.WINDOW``) and fit into one word.
        """
        return max(6, self.size + 1)

    @property
    def words(self) -> int:
        """Number of 32-bit words of a bitboard."""
        return -(-self.size * self.stride // 32)

    def bit(self, cell: Cell) -> int:
        """The bit of a cell in a bitboard."""
        return cell[0] * self.stride + cell[1]
