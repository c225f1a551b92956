"""Figures of placed tiles in plain Python: validation, explanation and scores of placements."""

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
    """Placed tiles on an unbounded plane."""

    def __init__(self) -> None:
        self.tiles: dict[Cell, Tile] = {}
        """The tile on each taken cell."""
        self.numbers: dict[Vertex, int] = {}
        """The number at each vertex of a placed tile."""
        self.frontier: set[Cell] = set()
        """The free cells that share an edge with a placed tile."""

    def copy(self) -> "Figure":
        """Return an independent copy."""
        twin = Figure()
        twin.tiles, twin.numbers, twin.frontier = self.tiles.copy(), self.numbers.copy(), self.frontier.copy()
        return twin

    def place(self, tile: Tile, orientation: int, cell: Cell) -> None:
        """Place a tile without checking the rules."""
        self.tiles[cell] = tile
        self.numbers.update(zip(vertices(cell), corners(tile, orientation), strict=True))
        self.frontier.discard(cell)
        self.frontier.update(neighbour for neighbour in neighbours(cell) if neighbour not in self.tiles)

    def broken_rule(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule that a placement breaks, in words; ``None`` if the placement is valid."""
        if rule := self.contradiction(tile, orientation, cell):
            return rule
        if not self.tiles:
            if cell in FIRST_CELLS:
                return None
            return f"the first tile must be placed on (0, 0) facing up or on (1, 0) facing down, got {cell}"
        return self.detachment(cell)

    def detachment(self, cell: Cell) -> str | None:
        """The rule that a cell without a placed neighbour breaks; ``None`` if the cell has a placed neighbour."""
        if any(neighbour in self.tiles for neighbour in neighbours(cell)):
            return None
        return f"no tile shares an edge with {cell}"

    def contradiction(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The contradiction between a placement and the placed tiles, in words; ``None`` if they are consistent."""
        facing = "up" if faces_up(cell) else "down"
        if faces_up(cell) != (orientation % 2 == 0):
            return f"{cell} faces {facing}, but {ORIENTATIONS[orientation]} faces the other way"
        if tile in self.tiles.values():
            return f"the tile {name_of(tile)} is already placed"
        if cell in self.tiles:
            return f"{cell} is taken by the tile {name_of(self.tiles[cell])}"
        return self.mismatch(cell, corners(tile, orientation))

    def mismatch(self, cell: Cell, numbers: Sequence[int]) -> str | None:
        """The mismatch of numbers at the left, middle and right corner of a cell with placed tiles; ``None`` if they match."""
        for corner, vertex, number in zip(_CORNERS, vertices(cell), numbers, strict=True):
            if self.numbers.get(vertex, number) != number:
                return f"the {corner} corner of {cell} must be {self.numbers[vertex]} to match its neighbours, got {number}"
        return None

    def hexagons(self, cell: Cell) -> int:
        """Number of hexagons that a tile on a free cell completes, 0 to 3."""
        return sum(
            all(neighbour in self.tiles for neighbour in cells_around(vertex) if neighbour != cell) for vertex in vertices(cell)
        )

    def bridge(self, cell: Cell) -> bool:
        """Return whether a tile on a free cell touches a tile with an edge and another tile with the opposite corner."""
        edges = neighbours(cell)
        return any(
            neighbour in self.tiles and any(far in self.tiles for far in cells_around(vertex) if far not in (cell, *edges))
            for neighbour, vertex in zip(edges, vertices(cell), strict=True)
        )

    def score(self, tile: Tile, cell: Cell, hex_scores: tuple[int, int, int] = HEX_SCORES) -> tuple[int, int, bool]:
        """Points, number of hexagons, and presence of a bridge of a valid placement."""
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

    The score is the sum of the numbers, plus one of ``hex_scores`` for one to three hexagons, or 40 for a bridge without a
    hexagon. Bonuses for the first tile of a round are not included.

    Args:
      placements: the placed tiles, each ``(tile, orientation, location)`` like ``("125", "CAB", (2, -1))``.
      tile: the tile to place, ``"125"`` or ``"1-2-5"``.
      orientation: one of ``ORIENTATIONS``.
      location: (column, row) of the cell.
      hex_scores: points for one, two and three hexagons.

    Returns:
      Validity, score, number of hexagons, and presence of a bridge.

    Raises ``ValueError`` for contradictory placed tiles, and for an invalid tile, orientation or location.

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
    """Describe the rule that a placement breaks, or its score. Arguments and errors as in ``validate``.

    >>> explain([("555", "ABC", (0, 0))], "445", "ACB", (1, 0))
    'invalid: the left corner of (1, 0) must be 5 to match its neighbours, got 4'
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
            raise ValueError(f"placement {number} contradicts the previous placements: {contradiction}")
        figure.place(*placed)
    return figure, *read_placement((tile, orientation, location))


def read_placement(placement: Placement) -> tuple[Tile, int, Cell]:
    """Parse a placement: its numbers, orientation (an index) and cell. Raises ``ValueError``."""
    if len(placement) != 3:
        raise ValueError(f"a placement must be (tile, orientation, (column, row)), got {placement!r}")
    tile, orientation, location = placement
    if orientation not in ORIENTATIONS:
        raise ValueError(f"orientation must be one of {', '.join(ORIENTATIONS)}, got {orientation!r}")
    try:
        column, row = location
    except (TypeError, ValueError):
        column = row = None  # type: ignore[assignment]
    if type(column) is not int or type(row) is not int:
        raise ValueError(f"a location must be two integers (column, row), got {location!r}")
    return parse_tile(tile), ORIENTATIONS.index(orientation), (column, row)


def name_of(tile: Tile) -> str:
    """Format a tile as in the rule book, ``1-2-5``."""
    return "-".join(map(str, tile))
