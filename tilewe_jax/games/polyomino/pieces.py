"""The 21 pieces, drawn in ASCII, and their 91 orientations (the fixed polyominoes of up to 5 cells), derived from the drawings.

An orientation is named by the first of the eight rotations ``n e s w nf ef sf wf`` that gives its cells: clockwise turns, then
the same turns mirrored left to right. Orientations are numbered by piece, then by that rotation. Plain Python.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Cell = tuple[int, int]
"""(x, y), with (0, 0) at the bottom left."""

# Rotation north, with y pointing up; order and names as in the package `tilewe`.
DRAWINGS = {
    "O1": "X",
    "I2": "X / X",
    "I3": "X / X / X",
    "L3": "X. / XX",
    "O4": "XX / XX",
    "I4": "X / X / X / X",
    "L4": "X. / X. / XX",
    "Z4": "XX. / .XX",
    "T4": "XXX / .X.",
    "F5": ".XX / XX. / .X.",
    "I5": "X / X / X / X / X",
    "L5": "X. / X. / X. / XX",
    "N5": ".X / XX / X. / X.",
    "P5": "XX / XX / X.",
    "T5": "XXX / .X. / .X.",
    "U5": "X.X / XXX",
    "V5": "..X / ..X / XXX",
    "W5": "..X / .XX / XX.",
    "X5": ".X. / XXX / .X.",
    "Y5": ".X / XX / .X / .X",
    "Z5": "XX. / .X. / .XX",
}
PIECE_NAMES = tuple(DRAWINGS)
ROTATION_NAMES = ("n", "e", "s", "w", "nf", "ef", "sf", "wf")


@dataclass(frozen=True)
class Orientation:
    """A piece in one of its distinct rotations and reflections."""

    piece: int
    """Index into ``PIECE_NAMES``."""
    rotation: int
    """The first rotation that gives these cells; index into ``ROTATION_NAMES``."""
    cells: tuple[Cell, ...]
    """(x, y) from the bottom left of the bounding box, row by row from the bottom."""

    @property
    def name(self) -> str:
        """Piece and rotation, as in ``W5n``."""
        return PIECE_NAMES[self.piece] + ROTATION_NAMES[self.rotation]

    @property
    def contacts(self) -> tuple[Cell, ...]:
        """The cells that can touch an own piece corner to corner: at most one neighbour in their row, one in their column."""
        cells = set(self.cells)
        return tuple(
            (x, y) for x, y in self.cells if not ({(x - 1, y), (x + 1, y)} <= cells or {(x, y - 1), (x, y + 1)} <= cells)
        )

    @property
    def corners(self) -> frozenset[Cell]:
        """Cells diagonal to the piece that share no edge with it: its open corners on an empty board."""
        diagonal = {(x + dx, y + dy) for x, y in self.cells for dx in (-1, 1) for dy in (-1, 1)}
        adjacent = {(x + dx, y + dy) for x, y in self.cells for dx, dy in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))}
        return frozenset(diagonal - adjacent)


def normalize(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Translate cells so that their bounding box starts at (0, 0), and sort them row by row from the bottom."""
    cells = list(cells)
    left, bottom = min(x for x, _ in cells), min(y for _, y in cells)
    return tuple(sorted(((x - left, y - bottom) for x, y in cells), key=lambda cell: cell[::-1]))


def rotate(cells: Iterable[Cell], rotation: int) -> tuple[Cell, ...]:
    """Rotate the cells of a piece from north to a rotation (index into ``ROTATION_NAMES``), normalized."""
    turned = list(cells)
    for _ in range(rotation % 4):
        turned = [(y, -x) for x, y in turned]
    if rotation >= 4:
        turned = [(-x, y) for x, y in turned]
    return normalize(turned)


def _cells(drawing: str) -> tuple[Cell, ...]:
    rows = drawing.split(" / ")[::-1]
    return normalize((x, y) for y, row in enumerate(rows) for x, mark in enumerate(row) if mark == "X")


def _orientations() -> tuple[Orientation, ...]:
    orientations = []
    for piece, drawing in enumerate(DRAWINGS.values()):
        distinct = set()
        for rotation in range(len(ROTATION_NAMES)):
            cells = rotate(_cells(drawing), rotation)
            if cells not in distinct:
                distinct.add(cells)
                orientations.append(Orientation(piece, rotation, cells))
    return tuple(orientations)


PIECE_CELLS = tuple(_cells(drawing) for drawing in DRAWINGS.values())
"""The normalized cells of each piece in rotation north."""
PIECE_SIZES = tuple(len(cells) for cells in PIECE_CELLS)
MAX_PIECE_SIZE = max(PIECE_SIZES)
"""Number of cells of the largest piece; also the side of the smallest square that holds any orientation."""
ORIENTATIONS = _orientations()
ORIENTATION_OF_CELLS = {orientation.cells: i for i, orientation in enumerate(ORIENTATIONS)}
"""Index of the orientation with given normalized cells."""
MONOMINO = PIECE_NAMES.index("O1")
