"""A position of Santorini on the host: plain Python that says in words why a move is illegal. Needs no JAX."""

import operator
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewe_jax.games.santorini.config import DIRECTIONS, DOME, NUM_TURNS, SIZES, Cell, Config, Placement

PIECES = (1, 2, -1, -2)
"""What stands for the workers in arrays: 1 and 2 are the first player's, -1 and -2 the second's."""
PLACING_ORDER = (1, -1, 2, -2)
SYMBOLS = "OUXY"
"""The workers in texts, in the order of ``PIECES``."""
_NAME = re.compile(r"([a-j]\d+)(?:-([a-j]\d+)\*([a-j]\d+))?")
_COLORS = ("94", "94", "91", "91")


class IllegalMoveError(ValueError):
    """A move against the rules; the message says against which."""


class Turn(NamedTuple):
    """A worker moves, then builds."""

    start: Cell
    to: Cell
    build: Cell


class Place(NamedTuple):
    """A worker is put on the board."""

    cell: Cell


Move = Turn | Place


@dataclass(frozen=True)
class SantoriniBoard:
    """A position. Raises ``ValueError`` for what is none.

    Cells are (row, column) from the top left; the players are 1, who moves first, and -1, as in the arrays.
    """

    heights: tuple[tuple[int, ...], ...]
    """Rows of cells, 0 to 4 high; 4 is a dome."""
    workers: tuple[Cell | None, Cell | None, Cell | None, Cell | None]
    """Where each of ``PIECES`` stands; ``None`` where it is not placed yet."""
    player: int = 1
    """Who is to move, 1 or -1."""

    def __post_init__(self) -> None:
        if len(self.heights) not in SIZES or any(len(row) != len(self.heights) for row in self.heights):
            raise ValueError(f"a board is square with {SIZES[0]} to {SIZES[-1]} rows, not {[len(row) for row in self.heights]}")
        if self.player not in (1, -1):
            raise ValueError(f"the player to move is 1 or -1, not {self.player!r}")
        for cell, height in self._cells():
            if height not in range(DOME + 1):
                raise ValueError(f"{cell} is {height} high; cells are 0 to {DOME} high, and {DOME} is a dome")
        for piece, cell in self._standing().items():
            self._require_on_board(cell, ValueError)
            if self.workers.count(cell) > 1:
                raise ValueError(f"two workers stand on {cell}")
            if self.height(cell) == DOME:
                raise ValueError(f"worker {piece} stands on a dome, at {cell}")
            if self.height(cell) == DOME - 1 and piece * self.player > 0:
                raise ValueError(f"worker {piece} stands on level 3, at {cell}, and its player is to move, but has won already")
        if self.placing:
            self._require_opening()

    @classmethod
    def start(cls, size: int = 5, placement: Placement = "default", rng: random.Random | None = None) -> "SantoriniBoard":
        """A new game. Raises ``ValueError`` as ``make("santorini")`` does."""
        config = Config(size, placement)
        cells: Sequence[Cell | None] = config.start
        if placement == "random":
            cells = (rng or random.Random()).sample([(row, column) for row in range(size) for column in range(size)], 4)
        elif placement == "chosen":
            cells = (None,) * 4
        return cls(((0,) * size,) * size, (cells[0], cells[1], cells[2], cells[3]))

    @classmethod
    def from_array(cls, array: Any, player: int = 1) -> "SantoriniBoard":
        """The position of an array of shape ``(2, n, n)``: pieces 0, 1, 2, -1, -2, and heights. Raises ``ValueError``."""
        array = np.asarray(array)
        if array.ndim != 3 or array.shape[0] != 2 or array.shape[1] != array.shape[2]:
            raise ValueError(f"a board is an array of shape (2, n, n), pieces and heights, not {array.shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"a board is an array of integers, not of {array.dtype}")
        pieces, heights = array
        if strange := sorted(set(pieces.ravel().tolist()) - {0, *PIECES}):
            raise ValueError(f"pieces are 0, 1, 2, -1 and -2, not {strange[0]}")
        workers: list[Cell | None] = []
        for piece in PIECES:
            found = [(int(row), int(column)) for row, column in np.argwhere(pieces == piece)]
            if len(found) > 1:
                raise ValueError(f"worker {piece} stands on {len(found)} cells: {found}")
            workers.append(found[0] if found else None)
        return cls(tuple(map(tuple, heights.tolist())), (workers[0], workers[1], workers[2], workers[3]), player)

    def to_array(self) -> NDArray[np.int8]:
        """The inverse of ``from_array``: ``int8[2, n, n]``."""
        pieces = np.zeros_like(self.heights, np.int8)
        for piece, cell in self._standing().items():
            pieces[cell] = piece
        return np.stack([pieces, np.array(self.heights, np.int8)])

    @property
    def size(self) -> int:
        """Rows and columns."""
        return len(self.heights)

    @property
    def placing(self) -> bool:
        """Whether a worker is to be placed."""
        return None in self.workers

    @cached_property
    def legal_moves(self) -> tuple[Move, ...]:
        """The legal moves by ascending action number; none when the game is over."""
        if self.placing:
            return tuple(Place(cell) for cell, _ in self._cells() if cell not in self.workers)
        if self._climbed:
            return ()
        return tuple(
            Turn(start, to, build)
            for start in self._own
            for to in self._around(start)
            if self._why_not_to(start, to) is None
            for build in self._around(to)
            if self._why_not_build(start, to, build) is None
        )

    @property
    def winner(self) -> int | None:
        """1 or -1 when the game is over: a worker stands on level 3, or the player to move has no legal move."""
        return None if self.legal_moves else -self.player

    def push(self, move: Move | Sequence[Cell] | str) -> "SantoriniBoard":
        """The position after a move: a ``Turn`` or ``Place``, three cells or one, or the name of one.

        Raises ``IllegalMoveError``, which says what rule the move is against.
        """
        move = self.check(move)
        workers, heights = list(self.workers), [list(row) for row in self.heights]
        if isinstance(move, Place):
            workers[PIECES.index(PLACING_ORDER[4 - workers.count(None)])] = move.cell
        else:
            workers[workers.index(move.start)] = move.to
            heights[move.build[0]][move.build[1]] += 1
        return SantoriniBoard(tuple(map(tuple, heights)), (workers[0], workers[1], workers[2], workers[3]), -self.player)

    def check(self, move: Move | Sequence[Cell] | str) -> Move:
        """The move itself, if it is legal. Raises ``IllegalMoveError``."""
        move = self._parse(move)
        if isinstance(move, Place):
            self._require_on_board(move.cell)
            if not self.placing:
                raise IllegalMoveError("all workers are placed: a move is a turn, three cells (start, to, build)")
            if move.cell in self.workers:
                raise IllegalMoveError(f"a worker cannot be placed on {move.cell}: {self._worker_on(move.cell)} stands there")
            return move
        for cell in move:
            self._require_on_board(cell)
        if self.placing:
            raise IllegalMoveError("workers are still being placed: a move is one cell")
        if self._climbed:
            raise IllegalMoveError(f"the game is over: player {-self.player} has won")
        start, to, build = move
        if start not in self._own:
            there = f"{self._worker_on(start)} stands there" if start in self.workers else "nobody stands there"
            raise IllegalMoveError(f"player {self.player} has no worker on {start}: {there}")
        if why := self._why_not_to(start, to) or self._why_not_build(start, to, build):
            raise IllegalMoveError(why)
        return move

    def action(self, move: Move | Sequence[Cell] | str) -> int:
        """The number of a legal move. Raises ``IllegalMoveError``."""
        move = self.check(move)
        if isinstance(move, Place):
            return NUM_TURNS + move.cell[0] * self.size + move.cell[1]
        worker = self._own.index(move.start)
        return 64 * worker + 8 * _direction(move.start, move.to) + _direction(move.to, move.build)

    def move(self, action: int) -> Move:
        """The inverse of ``action``. Raises ``IllegalMoveError`` where it is not legal, ``ValueError`` where it is none."""
        if not 0 <= action < NUM_TURNS + self.placing * self.size**2:
            raise ValueError(f"{action} is no action here; actions are 0 to {NUM_TURNS + self.placing * self.size**2 - 1}")
        if action >= NUM_TURNS:
            return self.check(Place(divmod(action - NUM_TURNS, self.size)))
        if self.placing:
            raise IllegalMoveError(f"workers are still being placed: actions are {NUM_TURNS} and up, not {action}")
        start = self._own[action // 64]
        to = _step(start, action // 8 % 8)
        return self.check(Turn(start, to, _step(to, action % 8)))

    def name(self, move: Move) -> str:
        """A move for people: ``c3-b2*b3`` goes from c3 to b2 and builds on b3; ``c3`` places a worker.

        Columns are letters from the left, rows numbers from the bottom.
        """
        first, *others = (f"{chr(ord('a') + column)}{self.size - row}" for row, column in move)
        return first + "".join(mark + cell for mark, cell in zip("-*", others, strict=False))

    def text(self, symbols: str = SYMBOLS, color: bool = False) -> str:
        """The position for people: each cell shows who stands there and how high it is.

        ``symbols`` are one character a worker, in the order of ``PIECES``. Raises ``ValueError`` for other than four.
        """
        if len(symbols) != len(PIECES):
            raise ValueError(f"symbols are {len(PIECES)} characters, one a worker, not {symbols!r}")
        marks = [f"\x1b[{code}m{symbol}\x1b[0m" if color else symbol for symbol, code in zip(symbols, _COLORS, strict=True)]
        who = dict(zip(self.workers, marks, strict=True))
        lines = []
        for row, heights in enumerate(self.heights):
            cells = (f"{who.get((row, column), '.')}{height or ' '}" for column, height in enumerate(heights))
            lines.append(f"{self.size - row:2d}  {'  '.join(cells)}")
        lines.append("    " + "   ".join(chr(ord("a") + column) for column in range(self.size)))
        lines.append(self._verdict(marks))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def _verdict(self, marks: Sequence[str]) -> str:
        def player(sign: int) -> str:
            own = marks[:2] if sign == 1 else marks[2:]
            return f"player {1 if sign == 1 else 2} ({' '.join(own)})"

        if self.winner is None:
            return f"{player(self.player)} to {'place a worker' if self.placing else 'move'}"
        how = "stands on level 3" if self._climbed else f"{player(self.player)} cannot move"
        return f"{player(self.winner)} wins: {how}"

    @property
    def _own(self) -> tuple[Cell, Cell]:
        """Workers 1 and 2 of the player to move, who has both."""
        first, second = self.workers[:2] if self.player == 1 else self.workers[2:]
        assert first is not None
        assert second is not None
        return first, second

    @property
    def _climbed(self) -> bool:
        """Whether the player who moved last has won by climbing."""
        others = self.workers[2:] if self.player == 1 else self.workers[:2]
        return any(cell is not None and self.height(cell) == DOME - 1 for cell in others)

    def height(self, cell: Cell) -> int:
        """Height of a cell."""
        return self.heights[cell[0]][cell[1]]

    def _why_not_to(self, start: Cell, to: Cell) -> str | None:
        """The rule against a move, if there is one."""
        if to not in self._around(start):
            return f"a worker moves to one of the eight cells around it, not from {start} to {to}"
        if to in self.workers:
            return f"a worker cannot move to {to}: {self._worker_on(to)} stands there"
        if self.height(to) == DOME:
            return f"a worker cannot move to {to}: there is a dome"
        if self.height(to) > self.height(start) + 1:
            return (
                f"a worker climbs one level at a time, not from {start}, {self.height(start)} high, to {to}, {self.height(to)}"
            )
        return None

    def _why_not_build(self, start: Cell, to: Cell, build: Cell) -> str | None:
        """The rule against a build, if there is one."""
        if build not in self._around(to):
            return f"a worker builds on one of the eight cells around it, not from {to} on {build}"
        if build in self.workers and build != start:
            return f"a worker cannot build on {build}: {self._worker_on(build)} stands there"
        if self.height(build) == DOME:
            return f"a worker cannot build on {build}: there is a dome"
        return None

    def _require_on_board(self, cell: Cell, error: type[ValueError] = IllegalMoveError) -> None:
        if not all(0 <= place < self.size for place in cell):
            raise error(f"{tuple(cell)} is off the board; rows and columns are 0 to {self.size - 1}")

    def _require_opening(self) -> None:
        """Workers are only missing before the first turn."""
        placed = self._standing()
        opening = set(placed) == set(PLACING_ORDER[: len(placed)]) and self.player == (1, -1)[len(placed) % 2]
        if not opening or any(height for _, height in self._cells()):
            missing = ", ".join(str(piece) for piece in PIECES if piece not in placed)
            raise ValueError(
                f"worker {missing} is missing: a position has four workers, but while they are being placed,"
                f" in the order {', '.join(map(str, PLACING_ORDER))} and by turns"
            )

    def _standing(self) -> dict[int, Cell]:
        """Where the pieces that are placed stand."""
        return {piece: cell for piece, cell in zip(PIECES, self.workers, strict=True) if cell is not None}

    def _cells(self) -> Iterator[tuple[Cell, int]]:
        return (((row, column), height) for row, heights in enumerate(self.heights) for column, height in enumerate(heights))

    def _around(self, cell: Cell) -> list[Cell]:
        """The cells around a cell that are on the board, in the order of ``DIRECTIONS``."""
        steps = (_step(cell, direction) for direction in range(len(DIRECTIONS)))
        return [step for step in steps if all(0 <= place < self.size for place in step)]

    def _worker_on(self, cell: Cell) -> str:
        return f"worker {PIECES[self.workers.index(cell)]}"

    def _parse(self, move: Move | Sequence[Cell] | str) -> Move:
        try:
            if isinstance(move, str):
                names = [name for name in _NAME.fullmatch(move).groups() if name]  # type: ignore[union-attr]
                cells = [(self.size - int(name[1:]), ord(name[0]) - ord("a")) for name in names]
            else:
                cells = [(operator.index(row), operator.index(column)) for row, column in move]
            return Turn(*cells) if len(cells) == 3 else Place(*cells)
        except (AttributeError, TypeError, ValueError):
            raise IllegalMoveError(
                f"{move!r} is no move; moves are three cells (start, to, build), or one to place a worker, or like c3-b2*b3"
            ) from None


def _step(cell: Cell, direction: int) -> Cell:
    rows, columns = DIRECTIONS[direction]
    return cell[0] + rows, cell[1] + columns


def _direction(start: Cell, to: Cell) -> int:
    return DIRECTIONS.index((to[0] - start[0], to[1] - start[1]))
