"""Figures of placed tiles in plain Python: which placements are valid, the points they score, and the rules they break."""

from collections.abc import Sequence

from tilewe_jax.games.triominos.tiles import (
    BRIDGE_SCORE,
    HEX_SCORES,
    ORIENTATIONS,
    Cell,
    Tile,
    Vertex,
    cells_around,
    corners,
    faces_up,
    neighbours,
    parse_tile,
    vertices,
)

Placement = tuple[str, str, Cell]
"""A tile as ``125`` or ``1-2-5``, an orientation as ``ABC``, and a location (column, row)."""

FIRST_CELLS = ((0, 0), (1, 0))
_CORNERS = ("left", "middle", "right")


class Figure:
    """The placed tiles, on an unbounded plane."""

    def __init__(self) -> None:
        self.tiles: dict[Cell, Tile] = {}
        """The tile on each taken cell."""
        self.numbers: dict[Vertex, int] = {}
        """The number at each vertex that a tile touches."""

    def place(self, tile: Tile, orientation: int, cell: Cell) -> None:
        """Place a tile, which is trusted to be valid."""
        self.tiles[cell] = tile
        self.numbers.update(zip(vertices(cell), corners(tile, orientation), strict=True))

    def broken_rule(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule that a placement breaks, in words; ``None`` where it is valid."""
        if rule := self.contradiction(tile, orientation, cell):
            return rule
        if not self.tiles:
            if cell in FIRST_CELLS:
                return None
            return f"the first tile is placed on (0, 0) facing up or on (1, 0) facing down, not on {cell}"
        return self.detachment(cell)

    def detachment(self, cell: Cell) -> str | None:
        """The rule against a cell that is not beside a placed tile; ``None`` where it is."""
        if any(neighbour in self.tiles for neighbour in neighbours(cell)):
            return None
        return f"no tile shares an edge with {cell}"

    def contradiction(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """How a placement contradicts the placed tiles, in words; ``None`` where it does not."""
        facing = "up" if faces_up(cell) else "down"
        if faces_up(cell) != (orientation % 2 == 0):
            return f"{cell} faces {facing}, and {ORIENTATIONS[orientation]} faces the other way"
        if tile in self.tiles.values():
            return f"the tile {name_of(tile)} is placed already"
        if cell in self.tiles:
            return f"{cell} is taken by the tile {name_of(self.tiles[cell])}"
        return self.mismatch(cell, corners(tile, orientation))

    def mismatch(self, cell: Cell, numbers: Sequence[int]) -> str | None:
        """The rule against these numbers at the left, middle and right corner of a cell; ``None`` where they match."""
        for corner, vertex, number in zip(_CORNERS, vertices(cell), numbers, strict=True):
            if self.numbers.get(vertex, number) != number:
                return f"the {corner} corner of {cell} would be {number}, and the tiles around it show {self.numbers[vertex]}"
        return None

    def hexagons(self, cell: Cell) -> int:
        """Number of hexagons that a tile on this free cell completes, 0 to 3."""
        return sum(
            all(neighbour in self.tiles for neighbour in cells_around(vertex) if neighbour != cell) for vertex in vertices(cell)
        )

    def bridge(self, cell: Cell) -> bool:
        """Whether a tile on this free cell touches one tile with an edge and another with the corner opposite to it."""
        edges = neighbours(cell)
        return any(
            neighbour in self.tiles and any(far in self.tiles for far in cells_around(vertex) if far not in (cell, *edges))
            for neighbour, vertex in zip(edges, vertices(cell), strict=True)
        )

    def score(self, tile: Tile, cell: Cell, hex_scores: tuple[int, int, int] = HEX_SCORES) -> tuple[int, int, bool]:
        """Points, number of hexagons, and whether there is a bridge, of a valid placement."""
        hexagons, bridge = self.hexagons(cell), self.bridge(cell)
        extra = hex_scores[hexagons - 1] if hexagons else BRIDGE_SCORE if bridge else 0
        return sum(tile) + extra, hexagons, bridge


def validate(
    placements: Sequence[Placement],
    tile: str,
    orientation: str,
    location: Cell,
    hex_scores: tuple[int, int, int] = HEX_SCORES,
) -> tuple[bool, int, int, bool]:
    """Validate and score a placement.

    The score is the sum of the numbers and, for one, two or three hexagons, one of ``hex_scores``; or, without a hexagon, 40
    for a bridge. Bonuses for the first tile of a round are not included.

    Args:
      placements: the placed tiles, each ``(tile, orientation, location)`` like ``("125", "CAB", (2, -1))``.
      tile: the tile to place, ``"125"`` or ``"1-2-5"``.
      orientation: one of ``ORIENTATIONS``.
      location: (column, row) of the cell.
      hex_scores: points for one, two and three hexagons.

    Returns whether the placement is valid, its score, its number of hexagons, and whether it makes a bridge. Raises
    ``ValueError`` where the placed tiles contradict each other, or something is no tile, orientation or location.

    >>> validate([("555", "ABC", (0, 0))], "455", "CBA", (1, 0))
    (True, 14, 0, False)
    """
    figure, numbers, orientation_index, cell = _read(placements, tile, orientation, location)
    if figure.broken_rule(numbers, orientation_index, cell):
        return False, 0, 0, False
    return True, *figure.score(numbers, cell, hex_scores)


def explain(
    placements: Sequence[Placement],
    tile: str,
    orientation: str,
    location: Cell,
    hex_scores: tuple[int, int, int] = HEX_SCORES,
) -> str:
    """The rule that a placement breaks, or its score, in words. Arguments and errors are those of ``validate``.

    >>> explain([("555", "ABC", (0, 0))], "445", "ACB", (1, 0))
    'invalid: the left corner of (1, 0) would be 4, and the tiles around it show 5'
    """
    figure, numbers, orientation_index, cell = _read(placements, tile, orientation, location)
    if rule := figure.broken_rule(numbers, orientation_index, cell):
        return f"invalid: {rule}"
    score, hexagons, bridge = figure.score(numbers, cell, hex_scores)
    parts = [f"{sum(numbers)} for the tile"]
    if hexagons:
        parts.append(f"{hex_scores[hexagons - 1]} for {('a hexagon', 'two hexagons', 'three hexagons')[hexagons - 1]}")
    elif bridge:
        parts.append(f"{BRIDGE_SCORE} for a bridge")
    return f"valid: {score} points, {' and '.join(parts)}"


def _read(placements: Sequence[Placement], tile: str, orientation: str, location: Cell) -> tuple[Figure, Tile, int, Cell]:
    figure = Figure()
    for number, placement in enumerate(placements, 1):
        placed = read_placement(placement)
        if contradiction := figure.contradiction(*placed):
            raise ValueError(f"placement {number} contradicts those before: {contradiction}")
        figure.place(*placed)
    return figure, *read_placement((tile, orientation, location))


def read_placement(placement: Placement) -> tuple[Tile, int, Cell]:
    """The numbers, orientation (an index) and cell of a placement. Raises ``ValueError`` for what is no placement."""
    if len(placement) != 3:
        raise ValueError(f"a placement is (tile, orientation, (column, row)), not {placement!r}")
    tile, orientation, location = placement
    if orientation not in ORIENTATIONS:
        raise ValueError(f"{orientation!r} is no orientation; orientations are {', '.join(ORIENTATIONS)}")
    try:
        column, row = location
    except (TypeError, ValueError):
        column = row = None  # type: ignore[assignment]
    if type(column) is not int or type(row) is not int:
        raise ValueError(f"{location!r} is no location; a location is (column, row), two integers")
    return parse_tile(tile), ORIENTATIONS.index(orientation), (column, row)


def name_of(tile: Tile) -> str:
    """A tile as the rules write it, ``1-2-5``."""
    return "-".join(map(str, tile))
