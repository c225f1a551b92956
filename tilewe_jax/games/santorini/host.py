"""Santorini in plain Python: host positions that explain why a move is illegal. Imports no JAX."""

import operator
import random
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewe_jax.draw.pictures import draw, register
from tilewe_jax.draw.shapes import Options
from tilewe_jax.games.santorini.config import DIRECTIONS, DOME, NUM_TURNS, SIZES, VERSION, Cell, Config, Placement
from tilewe_jax.games.santorini.drawing import DRAWING
from tilewe_jax.host import HostGame, IllegalActionError, Symmetries, common_view, require_legal, require_no_deal
from tilewe_jax.utils.checks import action_id, out_of_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

register("santorini", DRAWING)

PIECES = (1, 2, -1, -2)
"""Values of the workers in arrays: 1 and 2 for the first player, -1 and -2 for the second."""
PLACING_ORDER = (1, -1, 2, -2)
SYMBOLS = "OUXY"
"""Symbols of the workers in texts, in the order of ``PIECES``."""
_NAME = re.compile(r"([a-j]\d+)(?:-([a-j]\d+)\*([a-j]\d+))?")
_ANSI_COLORS = ("94", "94", "91", "91")
_TAKEN = DOME
"""Added to the height of a cell with a worker, so that nobody can step or build there."""


class Turn(NamedTuple):
    """A move of a worker, followed by a build."""

    start: Cell
    to: Cell
    build: Cell


class Place(NamedTuple):
    """The placement of a worker."""

    cell: Cell


Move = Turn | Place


@dataclass(frozen=True)
class SantoriniBoard:
    """An immutable position of Santorini, a ``tilewe_jax.host.HostPosition``.

    A move is a ``Turn`` or a ``Place`` with its cells; an action is the id of a move, the same as on the device. Cells are
    (row, column) from the top left. Players are 1, who moves first, and -1, except in ``current_player`` and ``scores``,
    which count from 0.

    Raises ``ValueError`` for an invalid position.

    >>> board = SantoriniBoard.start()
    >>> len(board.legal_moves)
    68
    >>> after = board.push("c4-d4*e3")
    >>> after.current_player, after.heights[2]
    (1, (0, 0, 0, 0, 1))
    >>> board.explain(64)
    'a worker cannot move to (2, 1): worker -1 stands there'
    """

    heights: tuple[tuple[int, ...], ...]
    """Heights of the cells by row, 0 to 4; 4 is a dome."""
    workers: tuple[Cell | None, Cell | None, Cell | None, Cell | None]
    """Cells of the workers, in the order of ``PIECES``; ``None`` for a worker not yet placed."""
    player: int = 1
    """The player to move, 1 or -1."""

    def __post_init__(self) -> None:
        if len(self.heights) not in SIZES or any(len(row) != len(self.heights) for row in self.heights):
            lengths = [len(row) for row in self.heights]
            raise ValueError(f"the board must be square with {SIZES[0]} to {SIZES[-1]} rows, got rows of lengths {lengths}")
        if self.player not in (1, -1):
            raise ValueError(f"player must be 1 or -1, got {self.player!r}")
        for cell, height in self._cells():
            if height not in range(DOME + 1):
                raise ValueError(f"the height of {cell} must be 0 to {DOME}, got {height}")
        for piece, cell in self._placed().items():
            if rule := self._off_board(cell):
                raise ValueError(rule)
            if self.workers.count(cell) > 1:
                raise ValueError(f"two workers stand on {cell}")
            if self.height(cell) == DOME:
                raise ValueError(f"worker {piece} stands on a dome, at {cell}")
            if self.height(cell) == DOME - 1 and piece * self.player > 0:
                raise ValueError(f"worker {piece} stands on level 3, at {cell}: its player has won and cannot be to move")
        if self.placing:
            self._require_opening()

    # ---- Making positions

    @classmethod
    def start(cls, size: int = 5, placement: Placement = "default", rng: random.Random | None = None) -> "SantoriniBoard":
        """The initial position of a game.

        Args:
          size: rows and columns of the board.
          placement: initial placement of the workers, see ``Config``.
          rng: random generator for the placement "random"; by default seeded by the system.

        Raises ``ValueError`` like ``make("santorini")``.
        """
        config = Config(size, placement)
        cells: Sequence[Cell | None] = config.start
        if placement == "random":
            cells = (rng or random.Random()).sample([(row, column) for row in range(size) for column in range(size)], 4)
        elif placement == "chosen":
            cells = (None,) * 4
        return cls(((0,) * size,) * size, (cells[0], cells[1], cells[2], cells[3]))

    @classmethod
    def from_deal(cls, config: Config, deal: Any) -> "SantoriniBoard":
        """The initial position of a deal, see ``SantoriniGame.deal``. Raises ``ValueError`` for an invalid deal."""
        if config.placement != "random":
            require_no_deal("santorini", deal)
            return cls.start(config.size, config.placement)
        try:
            first, second, third, fourth = ((operator.index(row), operator.index(column)) for row, column in deal)
        except (TypeError, ValueError):
            raise ValueError(f"a deal must be the cells of four workers, [[row, column], ...], got {deal!r}") from None
        return cls(((0,) * config.size,) * config.size, (first, second, third, fourth))

    @classmethod
    def from_array(cls, array: Any, player: int = 1) -> "SantoriniBoard":
        """The position of an integer array of shape ``(2, n, n)``: pieces 0, 1, 2, -1, -2, and heights.

        Raises ``ValueError`` for an invalid position.
        """
        import numpy as np

        array = np.asarray(array)
        if array.ndim != 3 or array.shape[0] != 2 or array.shape[1] != array.shape[2]:
            raise ValueError(f"a board must have shape (2, n, n), pieces and heights, got {array.shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"a board must be an array of integers, got {array.dtype}")
        pieces, heights = array
        if unknown := sorted(set(pieces.ravel().tolist()) - {0, *PIECES}):
            raise ValueError(f"pieces must be 0, 1, 2, -1 or -2, got {unknown[0]}")
        workers: list[Cell | None] = []
        for piece in PIECES:
            cells = [(int(row), int(column)) for row, column in np.argwhere(pieces == piece)]
            if len(cells) > 1:
                raise ValueError(f"worker {piece} stands on {len(cells)} cells: {cells}")
            workers.append(cells[0] if cells else None)
        return cls(tuple(map(tuple, heights.tolist())), (workers[0], workers[1], workers[2], workers[3]), player)

    def to_array(self) -> "NDArray[np.int8]":
        """The inverse of ``from_array``, ``int8[2, n, n]``."""
        import numpy as np

        pieces = np.zeros_like(self.heights, np.int8)
        for piece, cell in self._placed().items():
            pieces[cell] = piece
        return np.stack([pieces, np.array(self.heights, np.int8)])

    # ---- Methods of ``HostPosition``, with action ids

    @property
    def current_player(self) -> int:
        """The player to move, 0 or 1; at the end, the loser."""
        return 0 if self.player == 1 else 1

    @property
    def is_terminal(self) -> bool:
        """True if the game is over."""
        return not self._moves

    def scores(self) -> tuple[int, int]:
        """1 for the winner, otherwise 0, by seat."""
        return int(self.winner == 1), int(self.winner == -1)

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""
        return [*self._moves]

    def explain(self, action: int) -> str | None:
        """The rule that an action breaks, in words; ``None`` if the action is legal."""
        action = action_id(action)
        decoded = self._decode(action)
        return decoded if isinstance(decoded, str) else self._broken_rule(decoded)

    def after(self, action: int) -> "SantoriniBoard":
        """The position after an action. Raises ``IllegalActionError``."""
        return self._made(self.move(action))

    # ---- Moves

    @property
    def size(self) -> int:
        """Rows and columns."""
        return len(self.heights)

    @property
    def placing(self) -> bool:
        """True if the player to move must place a worker."""
        return None in self.workers

    @property
    def winner(self) -> int | None:
        """The winner, 1 or -1; ``None`` before the end."""
        return -self.player if self.is_terminal else None

    def height(self, cell: Cell) -> int:
        """Height of a cell."""
        return self.heights[cell[0]][cell[1]]

    @cached_property
    def legal_moves(self) -> tuple[Move, ...]:
        """The legal moves by ascending action id; empty at the end."""
        return tuple(self._moves.values())

    @cached_property
    def _moves(self) -> dict[int, Move]:
        """The legal moves by action id, ascending."""
        size = self.size
        if self.placing:
            return {
                NUM_TURNS + row * size + column: Place((row, column))
                for (row, column), _ in self._cells()
                if (row, column) not in self.workers
            }
        if self._opponent_has_climbed:
            return {}
        # The rules of ``_rule_against_moving`` and ``_rule_against_building`` without sentences, which searches need fast.
        levels = [height for row in self.heights for height in row]
        for cell in filter(None, self.workers):
            levels[_number(cell, size)] += _TAKEN
        moves: dict[int, Move] = {}
        for first_id, cell in zip((0, NUM_TURNS // 2), self._own_workers, strict=True):
            start = _number(cell, size)
            levels[start] -= _TAKEN  # A worker may build on the cell that it leaves.
            reach = min(levels[start] + 1, DOME - 1)
            for to, builds in _steps(size)[start]:
                if levels[to] <= reach:
                    for build, action, turn in builds:
                        if levels[build] < DOME:
                            moves[first_id + action] = turn
            levels[start] += _TAKEN
        return moves

    def push(self, move: Move | Sequence[Cell] | str) -> "SantoriniBoard":
        """The position after a move.

        Args:
          move: a ``Turn`` or ``Place``, a sequence of three cells or one cell, or a name as returned by ``name``.

        Raises ``IllegalActionError``.
        """
        return self._made(self.check(move))

    def _made(self, move: Move) -> "SantoriniBoard":
        """The position after a legal move, which needs no validation."""
        workers, heights = list(self.workers), self.heights
        if isinstance(move, Place):
            workers[PIECES.index(PLACING_ORDER[4 - workers.count(None)])] = move.cell
        else:
            workers[workers.index(move.start)] = move.to
            row, column = move.build
            built = (*heights[row][:column], heights[row][column] + 1, *heights[row][column + 1 :])
            heights = (*heights[:row], built, *heights[row + 1 :])
        after = object.__new__(SantoriniBoard)
        after.__dict__.update(heights=heights, workers=tuple(workers), player=-self.player)
        return after

    def check(self, move: Move | Sequence[Cell] | str) -> Move:
        """Convert a legal move in any form that ``push`` accepts to a ``Turn`` or ``Place``. Raises ``IllegalActionError``."""
        move = self._parse(move)
        if rule := self._broken_rule(move):
            raise IllegalActionError(rule)
        return move

    def action(self, move: Move | Sequence[Cell] | str) -> int:
        """The action id of a legal move in any form that ``push`` accepts. Raises ``IllegalActionError``."""
        return self._encode(self.check(move))

    def move(self, action: int) -> Move:
        """The move of a legal action, the inverse of ``action``. Raises ``IllegalActionError``."""
        return self._moves.get(action_id(action)) or self._moves[require_legal(self, action)]

    def name(self, move: Move) -> str:
        """The name of a move: ``c3-b2*b3`` moves from c3 to b2 and builds on b3; ``c3`` places a worker.

        Columns are letters from the left, rows are numbers from the bottom.
        """
        first, *others = (f"{chr(ord('a') + column)}{self.size - row}" for row, column in move)
        return first + "".join(mark + cell for mark, cell in zip("-*", others, strict=False))

    def action_name(self, action: int) -> str:
        """The name of a legal action, see ``name``. Raises ``IllegalActionError``."""
        return self.name(self.move(action))

    def action_of_name(self, name: str) -> int:
        """The inverse of ``action_name``. Raises ``IllegalActionError`` for an illegal action or an invalid name."""
        return self.action(name)

    def text(
        self,
        color: bool = False,
        symbols: str = SYMBOLS,
        *,
        last_action: int | None = None,
        seat: int | None = None,
        open: bool = True,
    ) -> str:
        """The position as text: each cell shows its worker and its height.

        Args:
          color: whether to use ANSI colours.
          symbols: one character per worker, in the order of ``PIECES``.
          last_action: the previous action: its start is shown in parentheses, its target and build in brackets.
          seat: ignored, because nothing is hidden.
          open: ignored, because nothing is hidden.

        Raises ``ValueError`` unless there are four symbols.
        """
        del seat, open
        if len(symbols) != len(PIECES):
            raise ValueError(f"symbols must be {len(PIECES)} characters, one per worker, got {symbols!r}")
        marks = [f"\x1b[{code}m{mark}\x1b[0m" if color else mark for mark, code in zip(symbols, _ANSI_COLORS, strict=True)]
        mark_on = dict(zip(self.workers, marks, strict=True))
        around = dict.fromkeys(self._last_cells(last_action), ("[", "]"))
        if len(around) > 1:
            around[next(iter(around))] = "(", ")"
        lines = []
        for row, heights in enumerate(self.heights):
            line = f"{self.size - row:2d} "
            for column, height in enumerate(heights):
                left, right = around.get((row, column), (" ", " "))
                line += f"{left}{mark_on.get((row, column), '.')}{height or ' '}{right}"
            lines.append(line.removesuffix(" "))
        lines.append("    " + "   ".join(chr(ord("a") + column) for column in range(self.size)))
        lines.append(self._status(marks))
        return "\n".join(lines)

    def svg(self, *, last_action: int | None = None) -> str:
        """The position as an SVG document; the cells of ``last_action``, the previous action, are highlighted."""
        cells = [self._point(cell) for cell in self._last_cells(last_action)]
        names = ("from", "to", "build") if len(cells) > 1 else ("to",)
        return draw(self.view(), Options(last=dict(zip(names, cells, strict=False))))

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """The board as JSON values, see ``tilewe_jax.draw``. Cells are (x, y) from the bottom left."""
        del open
        return common_view(self, "santorini", seat) | {
            "size": self.size,
            "heights": "".join(str(height) for row in reversed(self.heights) for height in row),
            "workers": [None if cell is None else self._point(cell) for cell in self.workers],
            "placing": self.placing,
            "winner": None if self.winner is None else int(self.winner != 1),
        }

    def action_view(self, action: int) -> dict[str, Any]:
        """A legal turn or placement, with the index of its worker in ``workers``. Raises ``IllegalActionError``."""
        move = self.move(action)
        view = {"id": action_id(action), "name": self.name(move)}
        if isinstance(move, Place):
            worker = PIECES.index(PLACING_ORDER[4 - self.workers.count(None)])
            return view | {"kind": "place", "worker": worker, "to": self._point(move.cell)}
        start, to, build = map(self._point, move)
        return view | {"kind": "turn", "worker": self.workers.index(move.start), "from": start, "to": to, "build": build}

    def __str__(self) -> str:
        return self.text()

    # ---- Rules

    def _broken_rule(self, move: Move) -> str | None:
        """The rule that a move breaks; ``None`` if it is legal."""
        if rule := next(filter(None, map(self._off_board, move)), None):
            return rule
        return self._rule_against_placing(move.cell) if isinstance(move, Place) else self._rule_against_turn(move)

    def _rule_against_placing(self, cell: Cell) -> str | None:
        if not self.placing:
            return "all workers are placed: a move must be three cells (start, to, build)"
        if cell in self.workers:
            return f"a worker cannot be placed on {cell}: {self._worker_on(cell)} stands there"
        return None

    def _rule_against_turn(self, move: Turn) -> str | None:
        if self.placing:
            return "not all workers are placed: a move must be one cell"
        if self._opponent_has_climbed:
            return f"the game is over: player {-self.player} has won"
        if move.start not in self._own_workers:
            holder = f"{self._worker_on(move.start)} stands there" if move.start in self.workers else "nobody stands there"
            return f"player {self.player} has no worker on {move.start}: {holder}"
        return self._rule_against_moving(move.start, move.to) or self._rule_against_building(*move)

    def _rule_against_moving(self, start: Cell, to: Cell) -> str | None:
        if to not in self._neighbours(start):
            return f"a worker moves to one of the eight cells around it, not from {start} to {to}"
        if to in self.workers:
            return f"a worker cannot move to {to}: {self._worker_on(to)} stands there"
        if self.height(to) == DOME:
            return f"a worker cannot move to {to}: there is a dome"
        if self.height(to) > self.height(start) + 1:
            return f"a worker climbs at most one level, not from {start} ({self.height(start)}) to {to} ({self.height(to)})"
        return None

    def _rule_against_building(self, start: Cell, to: Cell, build: Cell) -> str | None:
        if build not in self._neighbours(to):
            return f"a worker builds on one of the eight cells around it, not from {to} on {build}"
        if build in self.workers and build != start:
            return f"a worker cannot build on {build}: {self._worker_on(build)} stands there"
        if self.height(build) == DOME:
            return f"a worker cannot build on {build}: there is a dome"
        return None

    def _off_board(self, cell: Cell) -> str | None:
        if all(0 <= coordinate < self.size for coordinate in cell):
            return None
        return f"{tuple(cell)} is off the board; rows and columns are 0 to {self.size - 1}"

    def _require_opening(self) -> None:
        """Check that missing workers are the last of ``PLACING_ORDER``, before the first turn. Raises ``ValueError``."""
        placed = self._placed()
        is_opening = set(placed) == set(PLACING_ORDER[: len(placed)]) and self.player == (1, -1)[len(placed) % 2]
        if not is_opening or any(height for _, height in self._cells()):
            missing = ", ".join(str(piece) for piece in PIECES if piece not in placed)
            raise ValueError(
                f"worker {missing} is missing: workers are placed in the order {', '.join(map(str, PLACING_ORDER))},"
                " before the first turn"
            )

    @property
    def _own_workers(self) -> tuple[Cell, Cell]:
        """Cells of workers 0 and 1 of the player to move, both placed."""
        first, second = self.workers[:2] if self.player == 1 else self.workers[2:]
        assert first is not None
        assert second is not None
        return first, second

    @property
    def _opponent_has_climbed(self) -> bool:
        """True if the opponent has won by standing on level 3."""
        opponents = self.workers[2:] if self.player == 1 else self.workers[:2]
        return any(cell is not None and self.height(cell) == DOME - 1 for cell in opponents)

    # ---- Cells, ids and names

    def _last_cells(self, action: int | None) -> tuple[Cell, ...]:
        """The start, target and build of the previous action, or the cell of its placement; empty for ``None``."""
        if action is None:
            return ()
        if action >= NUM_TURNS:
            row, column = divmod(action - NUM_TURNS, self.size)
            return ((row, column),)
        to = (self.workers[2:] if self.player == 1 else self.workers[:2])[action // 64]
        assert to is not None
        rows, columns = DIRECTIONS[action // 8 % 8]
        return (to[0] - rows, to[1] - columns), to, _neighbour(to, action % 8)

    def _point(self, cell: Cell) -> list[int]:
        """A cell as [x, y] from the bottom left."""
        return [cell[1], self.size - 1 - cell[0]]

    def _placed(self) -> dict[int, Cell]:
        """Cells of the placed workers, by piece."""
        return {piece: cell for piece, cell in zip(PIECES, self.workers, strict=True) if cell is not None}

    def _cells(self) -> Iterator[tuple[Cell, int]]:
        """Yield all cells with their heights, row by row."""
        return (((row, column), height) for row, heights in enumerate(self.heights) for column, height in enumerate(heights))

    def _neighbours(self, cell: Cell) -> list[Cell]:
        """The neighbours of a cell on the board, in the order of ``DIRECTIONS``."""
        return _neighbours(self.size).get(cell, [])

    def _worker_on(self, cell: Cell) -> str:
        return f"worker {PIECES[self.workers.index(cell)]}"

    def _encode(self, move: Move) -> int:
        """The action id of a legal move."""
        if isinstance(move, Place):
            return NUM_TURNS + move.cell[0] * self.size + move.cell[1]
        worker = self._own_workers.index(move.start)
        return NUM_TURNS // 2 * worker + 8 * _direction(move.start, move.to) + _direction(move.to, move.build)

    def _decode(self, action: int) -> Move | str:
        """The move of an action, legal or not; or the reason why the action has no move."""
        if not 0 <= action < NUM_TURNS + self.size**2:
            return out_of_range(NUM_TURNS + self.size**2)
        if action >= NUM_TURNS:
            row, column = divmod(action - NUM_TURNS, self.size)
            return Place((row, column))
        if self.placing:
            return f"not all workers are placed: an action must be at least {NUM_TURNS}"
        start = self._own_workers[action // 64]
        to = _neighbour(start, action // 8 % 8)
        return Turn(start, to, _neighbour(to, action % 8))

    def _parse(self, move: Move | Sequence[Cell] | str) -> Move:
        """Parse a move, legal or not, in any form that ``push`` accepts. Raises ``IllegalActionError`` for other values."""
        try:
            if isinstance(move, str):
                names = [name for name in _NAME.fullmatch(move).groups() if name]  # type: ignore[union-attr]
                cells = [(self.size - int(name[1:]), ord(name[0]) - ord("a")) for name in names]
            else:
                cells = [(operator.index(row), operator.index(column)) for row, column in move]
            return Turn(*cells) if len(cells) == 3 else Place(*cells)
        except (AttributeError, TypeError, ValueError):
            raise IllegalActionError(
                f"invalid move {move!r}; a move is three cells (start, to, build), one cell to place a worker, or like c3-b2*b3"
            ) from None

    def _status(self, marks: Sequence[str]) -> str:
        """A line with the player to move, or with the winner and the reason."""

        def player(sign: int) -> str:
            own = marks[:2] if sign == 1 else marks[2:]
            return f"player {1 if sign == 1 else 2} ({' '.join(own)})"

        if self.winner is None:
            return f"{player(self.player)} to {'place a worker' if self.placing else 'move'}"
        reason = "stands on level 3" if self._opponent_has_climbed else f"{player(self.player)} cannot move"
        return f"{player(self.winner)} wins: {reason}"


def _neighbour(cell: Cell, direction: int) -> Cell:
    rows, columns = DIRECTIONS[direction]
    return cell[0] + rows, cell[1] + columns


@lru_cache(maxsize=len(SIZES))
def _neighbours(size: int) -> dict[Cell, list[Cell]]:
    """The neighbours of each cell on the board, in the order of ``DIRECTIONS``."""
    cells = [(row, column) for row in range(size) for column in range(size)]
    around = {cell: [_neighbour(cell, direction) for direction in range(len(DIRECTIONS))] for cell in cells}
    return {cell: [neighbour for neighbour in near if neighbour in around] for cell, near in around.items()}


@lru_cache(maxsize=len(SIZES))
def _steps(size: int) -> list[list[tuple[int, list[tuple[int, int, Turn]]]]]:
    """For each cell, the cells around it, each with the builds around that one: cell, action id of worker 0, and turn.

    Cells are numbers, row by row.
    """
    around = _neighbours(size)
    return [
        [
            (
                _number(to, size),
                [
                    (_number(build, size), 8 * _direction(start, to) + _direction(to, build), Turn(start, to, build))
                    for build in around[to]
                ],
            )
            for to in near
        ]
        for start, near in around.items()
    ]


def _number(cell: Cell, size: int) -> int:
    return cell[0] * size + cell[1]


def _direction(start: Cell, to: Cell) -> int:
    return DIRECTIONS.index((to[0] - start[0], to[1] - start[1]))


def host_game(config: Config) -> HostGame:
    """Make the host form of the game."""
    return HostGame(
        id="santorini",
        version=VERSION,
        num_players=2,
        num_actions=config.num_actions,
        max_steps=config.max_steps,
        init_from_deal=partial(SantoriniBoard.from_deal, config),
        new_deal=partial(_new_deal, config),
        symmetries=Symmetries(_images, _move_images),
    )


def _turned(size: int, cell: Cell, symmetry: int) -> Cell:
    """Rotate a cell by ``symmetry % 4`` quarter turns; from 4 on, reflect it too."""
    row, column = cell
    for _ in range(symmetry % 4):
        row, column = column, size - 1 - row
    return (row, size - 1 - column) if symmetry >= 4 else (row, column)


def _images(board: SantoriniBoard) -> list[Hashable]:
    """The images of a position under the symmetries of the square; the two workers of a player are alike."""
    size, cells = board.size, [cell for cell, _ in board._cells()]
    result: list[Hashable] = []
    for symmetry in range(8):
        heights = sorted((_turned(size, cell, symmetry), board.height(cell)) for cell in cells)
        workers = [None if cell is None else _turned(size, cell, symmetry) for cell in board.workers]
        pairs = [tuple(sorted(cell for cell in pair if cell)) for pair in (workers[:2], workers[2:])]
        result.append((tuple(height for _, height in heights), *pairs, board.player))
    return result


def _move_images(board: SantoriniBoard, action: int) -> list[Hashable]:
    """The cells of a move under the symmetries of the square."""
    return [tuple(_turned(board.size, cell, symmetry) for cell in board.move(action)) for symmetry in range(8)]


def _new_deal(config: Config, chance: random.Random) -> list[list[int]] | None:
    if config.placement != "random":
        return None
    return [list(cell) for cell in SantoriniBoard.start(config.size, "random", chance).workers if cell]
