"""Slow reference of Triominos, written from the rules: cells in dictionaries, corners compared with each neighbour."""

from dataclasses import dataclass, field

Tile = tuple[int, int, int]
Cell = tuple[int, int]
Placement = tuple[Tile, int, Cell]

NAMES = ("ABC", "ACB", "CAB", "CBA", "BCA", "BAC")
# Columns and rows to the neighbours of a cell that faces up; negate the rows for a cell that faces down.
OFFSETS = {
    "left": (-1, 0),
    "right": (1, 0),
    "middle": (0, 1),
    "far-left": (-2, 0),
    "far-right": (2, 0),
    "left-to-middle": (-1, 1),
    "far-left-to-middle": (-2, 1),
    "right-to-middle": (1, 1),
    "far-right-to-middle": (2, 1),
    "opposite": (0, -1),
    "left-to-opposite": (-1, -1),
    "right-to-opposite": (1, -1),
}
# For each corner, the neighbours that touch it, each with its touching corner.
TOUCHING = {
    "L": {"left": "M", "far-left": "R", "far-left-to-middle": "R", "left-to-middle": "M", "middle": "L"},
    "M": {"left": "R", "left-to-opposite": "R", "opposite": "M", "right-to-opposite": "L", "right": "L"},
    "R": {"right": "M", "far-right": "L", "far-right-to-middle": "L", "right-to-middle": "M", "middle": "R"},
}
ACROSS = {"left": "R", "right": "L", "middle": "M"}


def rank(tile: Tile) -> tuple[bool, int]:
    return len(set(tile)) == 1, sum(tile)


def forced(hand: list[Tile]) -> list[Tile]:
    """The tiles that may be placed first with ``start="highest"``."""
    best = max(map(rank, hand))
    return sorted({tile for tile in hand if rank(tile) == best} | ({(0, 0, 0)} & set(hand)))


def starters(hands: list[list[Tile]]) -> list[int]:
    """The players who may start with ``start="highest"``."""
    ranked = [sorted(map(rank, hand), reverse=True) for hand in hands]
    return [player for player, ranks in enumerate(ranked) if ranks == max(ranked)]


@dataclass
class Round:
    hands: list[list[Tile]]
    pile: list[Tile]
    """Tiles are drawn from the end."""
    player: int
    highest_starts: bool = False
    hex_scores: tuple[int, int, int] = (50, 100, 150)
    board: dict[Cell, dict[str, int]] = field(default_factory=dict)
    scores: list[int] = field(default_factory=list)
    draws: int = 0
    passes: int = 0
    winners: list[int] = field(default_factory=list)
    reason: str = ""

    def __post_init__(self) -> None:
        self.scores = [0] * len(self.hands)

    def neighbour(self, cell: Cell, name: str) -> dict[str, int] | None:
        columns, rows = OFFSETS[name]
        sign = 1 if sum(cell) % 2 == 0 else -1
        return self.board.get((cell[0] + columns, cell[1] + sign * rows))

    def known(self, cell: Cell) -> dict[str, int] | None:
        """The numbers required at the corners of a cell; ``None`` if no tile can be placed there."""
        if not self.board:
            return {} if cell in ((0, 0), (1, 0)) else None
        if cell in self.board or not any(self.neighbour(cell, name) for name in ACROSS):
            return None
        touching = (
            (corner, other[theirs])
            for corner, names in TOUCHING.items()
            for name, theirs in names.items()
            if (other := self.neighbour(cell, name))
        )
        return dict(touching)

    def placements(self) -> list[Placement]:
        """The legal placements of the player to move, with one orientation of each triple."""
        hand = self.hands[self.player]
        if not self.board and self.highest_starts:
            hand = forced(hand)
        cells = {(x + dx, y + dy) for x, y in self.board for dx, dy in ((-1, 0), (1, 0), (0, 1), (0, -1))} or {(0, 0), (1, 0)}
        return [
            (tile, orientation, cell)
            for cell in cells
            if (known := self.known(cell)) is not None
            for tile in hand
            for orientation in range(sum(cell) % 2, 6 if len(set(tile)) > 1 else 2, 2)
            if known.items() <= self._numbers(tile, orientation).items()
        ]

    @property
    def may_draw(self) -> bool:
        return self.draws < 3 and bool(self.pile) and not self.must_begin

    @property
    def may_pass(self) -> bool:
        return not self.may_draw and not self.must_begin

    @property
    def must_begin(self) -> bool:
        return not self.board and self.highest_starts

    def score(self, placement: Placement) -> int:
        tile, _, cell = placement
        if not self.board:
            if self.highest_starts and tile == (0, 0, 0):
                return 40
            return sum(tile) + 10 * (self.highest_starts and len(set(tile)) == 1)
        around = {corner: [bool(self.neighbour(cell, name)) for name in names] for corner, names in TOUCHING.items()}
        hexagons = sum(map(all, around.values()))
        bridge = any(
            self.neighbour(cell, name) and any(self.neighbour(cell, other) for other in TOUCHING[corner] if other not in ACROSS)
            for name, corner in ACROSS.items()
        )
        return sum(tile) + (self.hex_scores[hexagons - 1] if hexagons else 40 * bridge)

    def place(self, placement: Placement) -> None:
        tile, orientation, cell = placement
        self.scores[self.player] += self.score(placement)
        self.board[cell] = self._numbers(tile, orientation)
        self.hands[self.player].remove(tile)
        self.passes = 0
        if not self.hands[self.player]:
            self.scores[self.player] += 25 + sum(sum(tile) for hand in self.hands for tile in hand)
            self.winners, self.reason = [self.player], "out"
        self._next()

    def draw(self) -> None:
        self.hands[self.player].append(self.pile.pop())
        self.scores[self.player] -= 5
        self.draws += 1

    def pass_(self) -> None:
        self.scores[self.player] -= 10
        self.passes += 1
        if self.passes == len(self.hands):
            totals = [sum(map(sum, hand)) for hand in self.hands]
            self.winners = [player for player, total in enumerate(totals) if total == min(totals)]
            self.reason = "blocked"
            for player in self.winners:
                self.scores[player] += sum(totals) - len(totals) * min(totals)
        self._next()

    def _next(self) -> None:
        self.draws = 0
        self.player = (self.player + 1) % len(self.hands)

    @staticmethod
    def _numbers(tile: Tile, orientation: int) -> dict[str, int]:
        return {corner: tile["ABC".index(letter)] for corner, letter in zip("LMR", NAMES[orientation], strict=True)}
