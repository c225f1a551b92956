"""The settings of a game of Santorini, and the numbering of its actions. Pure Python.

Cells are (row, column) with (0, 0) at the top left, as in the arrays of alpha-zero-general.
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
"""Number of actions that move and build, ``64 * worker + 8 * move + build``; the ids of those that place a worker follow."""
TURN_162 = tuple(81 * (a >> 6) + 9 * ((a >> 3 & 7) + (a >> 5 & 1)) + (a & 7) + (a >> 2 & 1) for a in range(NUM_TURNS))
"""The number of each turn in the other numbering in use, ``81 * worker + 9 * move + build`` with nine directions (row by row,
the middle included): ``logits162[..., TURN_162]`` are logits of these actions."""
DOME = 4
"""Height of a cell with a dome."""
SIZES = range(3, 11)
"""Supported board sizes."""


@dataclass(frozen=True)
class Config:
    """The settings of a game. Raises ``ValueError`` for values outside of the ranges described here."""

    size: int = 5
    """Rows and columns of the board, 3 to 10."""
    placement: Placement = "default"
    """Initial cells of the workers: in the middle of the board ("default"), drawn uniformly ("random"), or chosen by the
    players, who place one worker each in turns ("chosen")."""

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            why = " (four workers fill a board of 2 x 2, and nobody could move)" if self.size == 2 else ""
            raise ValueError(f"size must be {SIZES[0]} to {SIZES[-1]}, not {self.size}{why}")
        if self.placement not in get_args(Placement):
            raise ValueError(f"placement must be one of {', '.join(get_args(Placement))}, not {self.placement!r}")

    @property
    def num_actions(self) -> int:
        """Number of action ids."""
        return NUM_TURNS + (self.size**2 if self.placement == "chosen" else 0)

    @property
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game: every turn builds one of at most 4 blocks per cell."""
        return DOME * self.size**2 + (4 if self.placement == "chosen" else 0)

    @property
    def start(self) -> tuple[Cell, Cell, Cell, Cell]:
        """Cells of the workers in the default placement: the first player's two, then the second's."""
        m = self.size // 2
        if self.size % 2:
            return (m - 1, m), (m + 1, m), (m, m - 1), (m, m + 1)
        return (m, m), (m - 1, m - 1), (m, m - 1), (m - 1, m)

    @property
    def stride(self) -> int:
        """Bits from one row of a bitboard to the next; at least one bit between rows is unused.

        Boards up to 5 x 5 fit one word, with the stride of a window (``bitboard.WINDOW``).
        """
        return max(6, self.size + 1)

    @property
    def words(self) -> int:
        """Number of 32-bit words of a bitboard."""
        return -(-self.size * self.stride // 32)

    def bit(self, cell: Cell) -> int:
        """The bit of a cell in a bitboard."""
        return cell[0] * self.stride + cell[1]


def santorini(size: int = 5, placement: Placement = "default") -> Config:
    """Santorini on n x n cells: workers move and build, and win on level 3."""
    return Config(size, placement)
