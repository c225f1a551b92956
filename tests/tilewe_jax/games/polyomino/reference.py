"""A slow implementation of the rules on sets of cells, independent except for the drawings of the pieces."""

from dataclasses import dataclass, field

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES, PIECE_SIZES

Cells = frozenset[tuple[int, int]]
FEW_PIECES = ("O1", "I2", "L3", "T4", "W5")
"""Pieces of games that compile quickly."""
SMALL = ("tilewe", {"players": 3, "size": 7, "pieces": FEW_PIECES})
"""A variant that several modules play with batches of 4, so that they share its compiled functions."""


@dataclass
class Board:
    config: Config
    cells: list[set[tuple[int, int]]] = field(default_factory=list)
    hands: list[set[int]] = field(default_factory=list)
    last: list[int | None] = field(default_factory=list)
    out: set[int] = field(default_factory=set)
    color: int = 0

    def __post_init__(self) -> None:
        self.cells = [set() for _ in range(self.config.colors)]
        self.hands = [set(self.config.pieces) for _ in range(self.config.colors)]
        self.last = [None] * self.config.colors

    def corners(self, color: int) -> set[tuple[int, int]]:
        """Return the open corners of a colour."""
        own, side = self.cells[color], range(self.config.size)
        taken = set().union(*self.cells)
        beside = {(x + dx, y + dy) for x, y in own for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        starts = set(self.config.start_cells[color])
        diagonal = {(x + dx, y + dy) for x, y in own for dx in (-1, 1) for dy in (-1, 1)}
        if self.hands[color] == set(self.config.pieces):
            diagonal = starts
        elif self.config.starts_stay_open:
            diagonal |= starts
        return {(x, y) for x, y in diagonal - taken - beside if x in side and y in side}

    def placements(self, color: int) -> set[Cells]:
        own, side = self.cells[color], range(self.config.size)
        taken = set().union(*self.cells)
        beside = {(x + dx, y + dy) for x, y in own for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        legal = set()
        for corner_x, corner_y in self.corners(color):
            for orientation in ORIENTATIONS:
                if orientation.piece not in self.hands[color]:
                    continue
                if not own and self.config.start_piece not in (None, PIECE_NAMES[orientation.piece]):
                    continue
                for dx, dy in orientation.cells:
                    cells = frozenset((corner_x - dx + x, corner_y - dy + y) for x, y in orientation.cells)
                    if all(x in side and y in side for x, y in cells) and not cells & taken and not cells & beside:
                        legal.add(cells)
        return legal

    def place(self, piece: int, cells: Cells) -> None:
        self.cells[self.color] |= cells
        self.hands[self.color].remove(piece)
        self.last[self.color] = piece
        self._pass_turn()

    def give_up(self) -> None:
        self.out.add(self.color)
        self._pass_turn()

    def _pass_turn(self) -> None:
        for distance in range(1, self.config.colors + 1):
            color = (self.color + distance) % self.config.colors
            if color not in self.out and self.placements(color):
                self.color = color
                return
            self.out.add(color)

    def scores(self) -> list[int]:
        scores = []
        for hand, last in zip(self.hands, self.last, strict=True):
            placed = set(self.config.pieces) - hand
            bonus = 0 if hand else self.config.bonus_all + self.config.bonus_monomino_last * (last == 0)
            scores.append(sum(PIECE_SIZES[piece] for piece in placed) + bonus)
        return [sum(scores[player :: self.config.players]) for player in range(self.config.players)]
