"""Tiles, orientations, and the triangles of the plane. Pure Python.

Cells are (column, row) with rows counted downwards; a cell faces up, with its apex on top, where column + row is even. Its
corners are named left, middle and right, the middle one being the apex.
"""

from math import comb, sqrt

Tile = tuple[int, int, int]
"""Three numbers, ascending; clockwise on the tile."""
Cell = tuple[int, int]
Vertex = tuple[int, int]
"""Where corners meet: halves of a tile's width from the left, and rows from the top."""

HEX_SCORES = (50, 100, 150)
BRIDGE_SCORE = 40
HIGHEST = 6
"""The highest number on any tile; the set of 56 ends with 5."""
ORIENTATIONS = ("ABC", "ACB", "CAB", "CBA", "BCA", "BAC")
"""Which number of the tile lies left, in the middle and right; each is the one before, turned clockwise by 60 degrees."""


def parse_tile(text: str) -> Tile:
    """The tile that is written ``125`` or ``1-2-5``. Raises ``ValueError``."""
    digits = text.replace("-", "") if len(text) == 5 and text[1] == text[3] == "-" else text
    if len(digits) != 3 or not all(digit in "0123456" for digit in digits) or sorted(digits) != list(digits):
        raise ValueError(f"{text!r} is no tile; tiles are three ascending numbers from 0 to {HIGHEST}, like 125 or 1-2-5")
    return int(digits[0]), int(digits[1]), int(digits[2])


def digits(tile: Tile) -> str:
    """A tile as ``parse_tile`` reads it, ``125``."""
    return "".join(map(str, tile))


def tile_id(tile: Tile) -> int:
    """The place of a tile among all, ordered by its highest number, then the next: the set of 56 has the first 56."""
    a, b, c = tile
    return comb(c + 2, 3) + comb(b + 1, 2) + a


def tiles(highest: int) -> tuple[Tile, ...]:
    """The tiles with numbers up to this one, by ``tile_id``."""
    return tuple((a, b, c) for c in range(highest + 1) for b in range(c + 1) for a in range(b + 1))


def rank(tile: Tile) -> tuple[bool, int]:
    """What makes a tile higher than another when a round is begun: triples before others, then their sum."""
    return len(set(tile)) == 1, sum(tile)


def corners(tile: Tile, orientation: int) -> Tile:
    """The numbers left, in the middle and right."""
    left, middle, right = (tile["ABC".index(letter)] for letter in ORIENTATIONS[orientation])
    return left, middle, right


def faces_up(cell: Cell) -> bool:
    """Whether a cell has its apex on top. Orientations with an even number face up."""
    return sum(cell) % 2 == 0


def vertices(cell: Cell) -> tuple[Vertex, Vertex, Vertex]:
    """The left, middle and right corner of a cell."""
    x, y = cell
    base, apex = (y + 1, y) if faces_up(cell) else (y, y + 1)
    return (x, base), (x + 1, apex), (x + 2, base)


def neighbours(cell: Cell) -> tuple[Cell, Cell, Cell]:
    """The cells across the edges that face the left, middle and right corner: the ones right, beyond the base, and left."""
    x, y = cell
    return (x + 1, y), (x, y + 1 if faces_up(cell) else y - 1), (x - 1, y)


def outline(cell: Cell) -> tuple[tuple[float, float], ...]:
    """The left, middle and right corner of a cell in the plane, x to the right and y downwards, sides of length 1."""
    return tuple((x / 2, y * sqrt(3) / 2) for x, y in vertices(cell))


def cells_around(vertex: Vertex) -> tuple[Cell, ...]:
    """The six cells that have this corner."""
    x, y = vertex
    return tuple((x + dx, y + dy) for dy in (-1, 0) for dx in (-2, -1, 0))


def around(cell: Cell) -> tuple[Cell, ...]:
    """The twelve cells that share a corner with this one: the ``neighbours``, then three at each corner."""
    x, y = cell
    return tuple((x + dx, y + (dy if faces_up(cell) else -dy)) for dx, dy in AROUND)


_BESIDE = neighbours((0, 0))
AROUND = _BESIDE + tuple(
    other for vertex in vertices((0, 0)) for other in cells_around(vertex) if other not in ((0, 0), *_BESIDE)
)
"""The cells around one that faces up, as columns and rows from it. For one that faces down rows count the other way."""
SHARED = tuple(
    tuple((mine, theirs) for mine in range(3) for theirs in range(3) if vertices((0, 0))[mine] == vertices(other)[theirs])
    for other in AROUND
)
"""For each cell around: which corner of the cell in the middle is which corner of that one."""
BACK = tuple(around(other).index((0, 0)) for other in AROUND)
"""For each cell around: which of the cells around that one is the cell in the middle."""
EDGES = (1 << 3) - 1
"""As bits of cells around: the neighbours, of which bit ``k`` is across from corner ``k``."""
AT_CORNER = tuple(0b111 << 3 * (k + 1) for k in range(3))
"""The same: the three cells that share only this corner."""
HEXAGON = tuple((EDGES & ~(1 << k)) | AT_CORNER[k] for k in range(3))
"""The same: the five cells that make a hexagon at this corner."""
FAR = tuple(tuple(i for i in range(len(AROUND)) if AT_CORNER[BACK[k]] >> i & 1) for k in range(3))
"""For each neighbour of a cell: those of the cells around it that share no corner with the cell."""
SEEN = tuple(tuple((AROUND.index(other), i) for i, other in enumerate(around(AROUND[k])) if other in AROUND) for k in range(3))
"""For each neighbour of a cell: the cells around both, numbered as they are around the cell and around the neighbour."""
