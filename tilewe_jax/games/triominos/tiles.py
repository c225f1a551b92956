"""Tiles, orientations, and the triangles of the plane. Pure Python.

Cells are (column, row) with rows counted downwards; a cell faces up, with its apex on top, where column + row is even. Its
corners are named left, middle and right, the middle one being the apex.
"""

from math import comb, sqrt

Tile = tuple[int, int, int]
"""Three numbers, ascending; clockwise on the tile."""
Cell = tuple[int, int]
"""(column, row)."""
Vertex = tuple[int, int]
"""A point where corners of cells meet: halves of a tile's width from the left, and rows from the top."""

HEX_SCORES = (50, 100, 150)
"""Points for completing one, two and three hexagons with a tile."""
BRIDGE_SCORE = 40
"""Points for a bridge, where no hexagon is completed."""
HIGHEST = 6
"""The highest number on any tile; the set of 56 ends with 5."""
ORIENTATIONS = ("ABC", "ACB", "CAB", "CBA", "BCA", "BAC")
"""The numbers A, B, C of a tile at the left, middle and right corner; each orientation is the one before, rotated clockwise by
60 degrees."""


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
    """The id of a tile: tiles are ordered by their highest number, then the middle one, so the set of 56 has the first 56."""
    a, b, c = tile
    return comb(c + 2, 3) + comb(b + 1, 2) + a


def tiles(highest: int) -> tuple[Tile, ...]:
    """The tiles with numbers up to this one, by ``tile_id``."""
    return tuple((a, b, c) for c in range(highest + 1) for b in range(c + 1) for a in range(b + 1))


def rank(tile: Tile) -> tuple[bool, int]:
    """The rank of a tile where the highest begins a round: triples are higher than others, then the sum decides."""
    return len(set(tile)) == 1, sum(tile)


def corners(tile: Tile, orientation: int) -> Tile:
    """The numbers at the left, middle and right corner of a tile in an orientation (index of ``ORIENTATIONS``)."""
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
    """The three cells that share an edge, in the order of the corners opposite to those edges: right, beyond the base, left."""
    x, y = cell
    return (x + 1, y), (x, y + 1 if faces_up(cell) else y - 1), (x - 1, y)


def outline(cell: Cell) -> tuple[tuple[float, float], ...]:
    """The left, middle and right corner of a cell in the plane, x to the right and y downwards, sides of length 1."""
    return tuple((x / 2, y * sqrt(3) / 2) for x, y in vertices(cell))


def cells_around(vertex: Vertex) -> tuple[Cell, ...]:
    """The six cells that have this corner."""
    x, y = vertex
    return tuple((x + dx, y + dy) for dy in (-1, 0) for dx in (-2, -1, 0))


def neighbourhood(cell: Cell) -> tuple[Cell, ...]:
    """The twelve cells that share a corner with a cell: its ``neighbours``, then three more at each corner."""
    x, y = cell
    return tuple((x + dx, y + (dy if faces_up(cell) else -dy)) for dx, dy in NEIGHBOURHOOD)


_NEIGHBOURS = neighbours((0, 0))
NEIGHBOURHOOD = _NEIGHBOURS + tuple(
    cell for vertex in vertices((0, 0)) for cell in cells_around(vertex) if cell not in ((0, 0), *_NEIGHBOURS)
)
"""Offsets (columns, rows) of the neighbourhood of a cell that faces up; for one that faces down, rows change their sign. Bit
``i`` of a neighbour mask stands for ``NEIGHBOURHOOD[i]``."""
SHARED_CORNERS = tuple(
    tuple((mine, theirs) for mine in range(3) for theirs in range(3) if vertices((0, 0))[mine] == vertices(cell)[theirs])
    for cell in NEIGHBOURHOOD
)
"""For each cell of the neighbourhood: pairs of a corner of the middle cell and the corner of that cell at the same vertex."""
BACK = tuple(neighbourhood(cell).index((0, 0)) for cell in NEIGHBOURHOOD)
"""For each cell of the neighbourhood: the index of the cell in the middle in the neighbourhood of that cell."""
EDGE_BITS = (1 << 3) - 1
"""Neighbour mask of the three cells that share an edge; bit ``k`` is opposite to corner ``k``."""
CORNER_BITS = tuple(0b111 << 3 * (k + 1) for k in range(3))
"""For each corner: neighbour mask of the three cells that share this corner alone."""
HEXAGON_BITS = tuple((EDGE_BITS & ~(1 << k)) | CORNER_BITS[k] for k in range(3))
"""For each corner: neighbour mask of the five cells that complete a hexagon with the cell in the middle."""
FAR = tuple(tuple(i for i in range(len(NEIGHBOURHOOD)) if CORNER_BITS[BACK[k]] >> i & 1) for k in range(3))
"""For each neighbour of a cell: indices, in its neighbourhood, of the cells that share no corner with the cell."""
COMMON = tuple(
    tuple((NEIGHBOURHOOD.index(cell), i) for i, cell in enumerate(neighbourhood(NEIGHBOURHOOD[k])) if cell in NEIGHBOURHOOD)
    for k in range(3)
)
"""For each neighbour of a cell: pairs of indices, in the neighbourhoods of the cell and of the neighbour, of a cell in both."""
