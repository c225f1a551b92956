"""Tiles, orientations, and triangular cells of the plane. Pure Python.

Cells are (column, row) with rows counted downwards. A cell faces up, with its apex on top, if column + row is even. Its corners
are left, middle (the apex) and right.
"""

from functools import lru_cache
from math import comb, sqrt

Tile = tuple[int, int, int]
"""Three ascending numbers, clockwise on the tile."""
Cell = tuple[int, int]
"""(column, row)."""
Vertex = tuple[int, int]
"""A common corner of cells: (half tile widths from the left, rows from the top)."""

HEX_SCORES = (50, 100, 150)
"""Points for completing one, two and three hexagons with a tile."""
BRIDGE_SCORE = 40
"""Points for a bridge, unless a hexagon is completed."""
HIGHEST = 6
"""The highest number on any tile; 5 in the set of 56."""
ORIENTATIONS = ("ABC", "ACB", "CAB", "CBA", "BCA", "BAC")
"""The numbers A, B, C of a tile at the left, middle and right corner; each orientation is the previous one rotated clockwise by
60 degrees."""
_kept = lru_cache(maxsize=1 << 13)
"""Keeps results for the cells of a long game, and for all tiles."""


def parse_tile(text: str) -> Tile:
    """Parse a tile such as ``125`` or ``1-2-5``. Raises ``ValueError``."""
    digits = text.replace("-", "") if len(text) == 5 and text[1] == text[3] == "-" else text
    if len(digits) != 3 or not all(digit in "0123456" for digit in digits) or sorted(digits) != list(digits):
        raise ValueError(f"invalid tile {text!r}; a tile is three ascending numbers from 0 to {HIGHEST}, like 125 or 1-2-5")
    return int(digits[0]), int(digits[1]), int(digits[2])


def digits(tile: Tile) -> str:
    """Format a tile as ``125``."""
    return "".join(map(str, tile))


@_kept
def tile_id(tile: Tile) -> int:
    """The id of a tile. Tiles are ordered by their highest number, then the middle number, so that sets are prefixes."""
    a, b, c = tile
    return comb(c + 2, 3) + comb(b + 1, 2) + a


def tiles(highest: int) -> tuple[Tile, ...]:
    """All tiles with numbers up to ``highest``, by ``tile_id``."""
    return tuple((a, b, c) for c in range(highest + 1) for b in range(c + 1) for a in range(b + 1))


def rank(tile: Tile) -> tuple[bool, int]:
    """The rank of a tile for ``start="highest"``: triples rank above other tiles, then the sum decides."""
    return len(set(tile)) == 1, sum(tile)


@_kept
def corners(tile: Tile, orientation: int) -> Tile:
    """The numbers at the left, middle and right corner of a tile in an orientation (index of ``ORIENTATIONS``)."""
    left, middle, right = (tile["ABC".index(letter)] for letter in ORIENTATIONS[orientation])
    return left, middle, right


def faces_up(cell: Cell) -> bool:
    """Return whether a cell has its apex on top. Orientations with an even index face up."""
    return sum(cell) % 2 == 0


@_kept
def vertices(cell: Cell) -> tuple[Vertex, Vertex, Vertex]:
    """The left, middle and right corner of a cell."""
    x, y = cell
    base, apex = (y + 1, y) if faces_up(cell) else (y, y + 1)
    return (x, base), (x + 1, apex), (x + 2, base)


@_kept
def neighbours(cell: Cell) -> tuple[Cell, Cell, Cell]:
    """The three cells that share an edge, each opposite to the corner with its index: right, beyond the base, left."""
    x, y = cell
    return (x + 1, y), (x, y + 1 if faces_up(cell) else y - 1), (x - 1, y)


def outline(cell: Cell) -> tuple[tuple[float, float], ...]:
    """The left, middle and right corner of a cell in the plane, with x to the right, y downwards and sides of length 1."""
    return tuple((x / 2, y * sqrt(3) / 2) for x, y in vertices(cell))


@_kept
def cells_around(vertex: Vertex) -> tuple[Cell, ...]:
    """The six cells that have this corner."""
    x, y = vertex
    return tuple((x + dx, y + dy) for dy in (-1, 0) for dx in (-2, -1, 0))


def neighbourhood(cell: Cell) -> tuple[Cell, ...]:
    """The twelve cells that share a corner with a cell: its ``neighbours``, then three other cells at each corner."""
    x, y = cell
    return tuple((x + dx, y + (dy if faces_up(cell) else -dy)) for dx, dy in NEIGHBOURHOOD)


_NEIGHBOURS = neighbours((0, 0))
NEIGHBOURHOOD = _NEIGHBOURS + tuple(
    cell for vertex in vertices((0, 0)) for cell in cells_around(vertex) if cell not in ((0, 0), *_NEIGHBOURS)
)
"""Offsets (columns, rows) of the neighbourhood of a cell that faces up; negate the rows for a cell that faces down. Bit ``i``
of a neighbour mask stands for ``NEIGHBOURHOOD[i]``."""
SHARED_CORNERS = tuple(
    tuple((mine, theirs) for mine in range(3) for theirs in range(3) if vertices((0, 0))[mine] == vertices(cell)[theirs])
    for cell in NEIGHBOURHOOD
)
"""For each cell of the neighbourhood: pairs of equal corners of the middle cell and of this cell."""
BACK = tuple(neighbourhood(cell).index((0, 0)) for cell in NEIGHBOURHOOD)
"""For each cell of the neighbourhood: index of the middle cell in the neighbourhood of this cell."""
EDGE_BITS = (1 << 3) - 1
"""Neighbour mask of the three cells that share an edge; bit ``k`` is opposite to corner ``k``."""
CORNER_BITS = tuple(0b111 << 3 * (k + 1) for k in range(3))
"""For each corner: neighbour mask of the three cells that share only this corner."""
HEXAGON_BITS = tuple((EDGE_BITS & ~(1 << k)) | CORNER_BITS[k] for k in range(3))
"""For each corner: neighbour mask of the five cells that form a hexagon with the middle cell."""
FAR = tuple(tuple(i for i in range(len(NEIGHBOURHOOD)) if CORNER_BITS[BACK[k]] >> i & 1) for k in range(3))
"""For each neighbour of a cell: indices, in its neighbourhood, of the cells that share no corner with the cell."""
COMMON = tuple(
    tuple((NEIGHBOURHOOD.index(cell), i) for i, cell in enumerate(neighbourhood(NEIGHBOURHOOD[k])) if cell in NEIGHBOURHOOD)
    for k in range(3)
)
"""For each neighbour of a cell: index pairs of the cells in both neighbourhoods."""
