"""Tiles on the table: whether another fits, what it scores, and in words why it does not fit. Pure Python."""

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
    """The tiles that lie, on an unbounded plane."""

    def __init__(self) -> None:
        self.tiles: dict[Cell, Tile] = {}
        self.numbers: dict[Vertex, int] = {}
        """What lies at each corner that a tile has reached."""

    def place(self, tile: Tile, orientation: int, cell: Cell) -> None:
        """Lay a tile down. Whether that is allowed is not looked at."""
        self.tiles[cell] = tile
        self.numbers.update(zip(vertices(cell), corners(tile, orientation), strict=True))

    def why_not(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule against a placement; ``None`` where it is valid."""
        if why := self.why_not_there(tile, orientation, cell):
            return why
        if not self.tiles:
            if cell in FIRST_CELLS:
                return None
            return f"the first tile lies on (0, 0) facing up or on (1, 0) facing down, not on {cell}"
        if not any(neighbour in self.tiles for neighbour in neighbours(cell)):
            return f"no tile shares an edge with {cell}"
        return None

    def why_not_there(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """What would contradict the tiles that lie; ``None`` where nothing does."""
        facing = "up" if faces_up(cell) else "down"
        if faces_up(cell) != (orientation % 2 == 0):
            return f"{cell} faces {facing}, and {ORIENTATIONS[orientation]} faces the other way"
        if tile in self.tiles.values():
            return f"the tile {name_of(tile)} lies already"
        if cell in self.tiles:
            return f"{cell} is taken by the tile {name_of(self.tiles[cell])}"
        for corner, vertex, number in zip(_CORNERS, vertices(cell), corners(tile, orientation), strict=True):
            if self.numbers.get(vertex, number) != number:
                return f"the {corner} corner of {cell} would be {number}, and {self.numbers[vertex]} lies there"
        return None

    def hexagons(self, cell: Cell) -> int:
        """Number of hexagons that a tile on this free cell completes, 0 to 3."""
        around = ([other for other in cells_around(vertex) if other != cell] for vertex in vertices(cell))
        return sum(all(other in self.tiles for other in others) for others in around)

    def bridge(self, cell: Cell) -> bool:
        """Whether a tile on this free cell touches one tile with an edge and another with the corner across from it."""
        beside = neighbours(cell)
        return any(
            neighbour in self.tiles
            and any(other in self.tiles for other in cells_around(vertex) if other != cell and other not in beside)
            for neighbour, vertex in zip(beside, vertices(cell), strict=True)
        )

    def score(self, tile: Tile, cell: Cell, hex_scores: tuple[int, int, int] = HEX_SCORES) -> tuple[int, int, bool]:
        """What a valid placement scores, its number of hexagons, and whether it makes a bridge."""
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
    """Whether a placement is valid; if so its score, its number of hexagons, and whether it makes a bridge.

    ``placements`` are the tiles that lie. The score is the sum of the numbers and, for one, two or three hexagons, one of
    ``hex_scores``; or, without a hexagon, 40 for a bridge. What the first tile of a round may earn beyond that is not known
    here. Raises ``ValueError`` where the tiles that lie contradict each other, or something is no tile, orientation or
    location.
    """
    figure, numbers, turned, cell = _read(placements, tile, orientation, location)
    if figure.why_not(numbers, turned, cell):
        return False, 0, 0, False
    return True, *figure.score(numbers, cell, hex_scores)


def explain(
    placements: Sequence[Placement],
    tile: str,
    orientation: str,
    location: Cell,
    hex_scores: tuple[int, int, int] = HEX_SCORES,
) -> str:
    """In words why a placement is invalid, or what it scores. Arguments and errors are those of ``validate``."""
    figure, numbers, turned, cell = _read(placements, tile, orientation, location)
    if why := figure.why_not(numbers, turned, cell):
        return f"invalid: {why}"
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
        lying = read_placement(placement)
        if why := figure.why_not_there(*lying):
            raise ValueError(f"placement {number} contradicts those before: {why}")
        figure.place(*lying)
    return figure, *read_placement((tile, orientation, location))


def read_placement(placement: Placement) -> tuple[Tile, int, Cell]:
    """The numbers, orientation and cell of a placement. Raises ``ValueError`` where it is none."""
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
