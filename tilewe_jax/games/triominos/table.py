"""The table: the cell and orientation of each placed tile, and the frontier, the free cells next to placed tiles.

Batching (see ``tilewe_jax.lanes``): unbatched, as in ``rules``.

A placement depends on the numbers at the three corners of its cell and on the taken cells of its neighbourhood. The table
stores both for each cell of the frontier; a dense board of numbers would be six times as large. Cells are numbered on a torus,
``row * columns + column``, which is large enough that no figure wraps around (see ``Config``). The first tile is on cell 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int16, Int32, Integer

from tilewe_jax.bits import move_bits
from tilewe_jax.games.triominos import tiles as plane
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.host import Position
from tilewe_jax.games.triominos.tiles import (
    BACK,
    BRIDGE_SCORE,
    COMMON,
    CORNER_BITS,
    FAR,
    HEXAGON_BITS,
    NEIGHBOURHOOD,
    ORIENTATIONS,
    SHARED_CORNERS,
    corners,
)

Cell = Int16[Array, ""]
Numbers = tuple[Int8[Array, ""], Int8[Array, ""], Int8[Array, ""]]
"""Numbers at the left, middle and right corner."""


class Placed(NamedTuple):
    """A placed tile."""

    tile: Int32[Array, ""]
    orientation: Int8[Array, ""]
    cell: Cell
    numbers: Numbers


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """The placed tiles and the frontier; N tiles, F slots of the frontier (``Config.frontier_size``).

    A slot holds one cell of the frontier or is empty. The slots are unordered.
    """

    placed_at: Int16[Array, "N"]
    """``int16[N]``: the cell of each tile; -1 for a tile that is not placed."""
    orientation: Int8[Array, "N"]
    """``int8[N]``: the index in ``ORIENTATIONS`` of each placed tile; 0 for other tiles."""
    frontier: Int16[Array, "F"]
    """``int16[F]``: the cell of each slot; -1 for an empty slot, whose other fields are arbitrary."""
    numbers: tuple[Int8[Array, "F"], Int8[Array, "F"], Int8[Array, "F"]]
    """Three ``int8[F]``: the numbers of placed tiles at the left, middle and right corner of the cell; -1 for unknown."""
    neighbour_mask: Int16[Array, "F"]
    """``int16[F]``: the taken cells of the neighbourhood, bit ``i`` for ``NEIGHBOURHOOD[i]``."""


def empty(config: Config) -> Table:
    """The table before the first tile."""
    unknown = jnp.full(config.frontier_size, -1, jnp.int8)
    return Table(
        placed_at=jnp.full(config.tiles, -1, jnp.int16),
        orientation=jnp.zeros(config.tiles, jnp.int8),
        frontier=jnp.full(config.frontier_size, -1, jnp.int16),
        numbers=(unknown, unknown, unknown),
        neighbour_mask=jnp.zeros(config.frontier_size, jnp.int16),
    )


def table_of(position: Position) -> Table:
    """The table of a host position. Runs on the host."""
    config, figure = position.config, position.figure
    placed_at, orientation = np.full(config.tiles, -1, np.int16), np.zeros(config.tiles, np.int8)
    for tile, index, cell in position.placements:
        placed_at[plane.tile_id(tile)], orientation[plane.tile_id(tile)] = config.wrapped(cell), index
    free = {beside for cell in figure.tiles for beside in plane.neighbours(cell)} - set(figure.tiles)
    frontier, numbers = np.full(config.frontier_size, -1, np.int16), np.full((3, config.frontier_size), -1, np.int8)
    neighbour_mask = np.zeros(config.frontier_size, np.int16)
    for slot, cell in enumerate(sorted(free)):
        frontier[slot] = config.wrapped(cell)
        numbers[:, slot] = [figure.numbers.get(vertex, -1) for vertex in plane.vertices(cell)]
        neighbour_mask[slot] = sum(1 << i for i, near in enumerate(plane.neighbourhood(cell)) if near in figure.tiles)
    left, middle, right = map(jnp.asarray, numbers)
    return Table(
        placed_at=jnp.asarray(placed_at),
        orientation=jnp.asarray(orientation),
        frontier=jnp.asarray(frontier),
        numbers=(left, middle, right),
        neighbour_mask=jnp.asarray(neighbour_mask),
    )


def faces_down(config: Config, cell: Int16[Array, "*shape"]) -> Bool[Array, "*shape"]:
    """Return whether cells have their apex at the bottom."""
    return (cell + cell // np.int16(config.columns)) & np.int16(1) != 0


def neighbourhood(config: Config, cell: Cell) -> list[Cell]:
    """The twelve cells that share a corner with a cell, in the order of ``NEIGHBOURHOOD``."""
    columns, rows = np.int16(config.columns), np.int16(config.rows)
    x, y = cell % columns, cell // columns
    down = faces_down(config, cell)
    column_at = {dx: _wrapped(x + np.int16(dx), columns) for dx in range(-2, 3)}
    above, below = _wrapped(y + np.int16(-1), rows), _wrapped(y + np.int16(1), rows)
    row_at = {-1: jnp.where(down, below, above), 0: y, 1: jnp.where(down, above, below)}
    return [row_at[dy] * columns + column_at[dx] for dx, dy in NEIGHBOURHOOD]


def _wrapped(number: Int16[Array, "*shape"], size: np.int16) -> Int16[Array, "*shape"]:
    """Return ``number % size`` for numbers from ``-size`` and below ``2 * size``, in fewer operations."""
    number = jnp.where(number < 0, number + size, number)
    return jnp.where(number >= size, number - size, number)


def find(table: Table, cell: Cell) -> tuple[Numbers, Int16[Array, ""]]:
    """The numbers and the neighbour mask of a cell of the frontier; -1 and 0 for any other cell."""
    is_slot = (table.frontier == cell) & (cell >= 0)
    left, middle, right = (jnp.max(jnp.where(is_slot, row, np.int8(-1))) for row in table.numbers)
    return (left, middle, right), jnp.max(jnp.where(is_slot, table.neighbour_mask, np.int16(0)))


def free_corner(neighbour_mask: Int16[Array, "*shape"]) -> Int8[Array, "*shape"]:
    """The corner opposite to the first taken neighbour of a cell.

    The numbers at the other two corners are known, so that the number at the free corner determines the tile. Neighbours are
    checked in the order left, right, beyond the base; the free corner is the right, left or middle corner, respectively.
    """
    left, right = neighbour_mask & np.int16(1 << 2) != 0, neighbour_mask & np.int16(1 << 0) != 0
    return jnp.where(left, np.int8(2), jnp.where(right, np.int8(0), np.int8(1)))


def frontier_corners(config: Config, table: Table) -> tuple[Int8[Array, "F"], Int8[Array, "F"], Int8[Array, "F"]]:
    """The numbers of each slot clockwise after the free corner: two known numbers, then the free corner's number or -1."""
    left, middle, right = table.numbers
    free = free_corner(table.neighbour_mask)
    first = jnp.where(free == 0, middle, jnp.where(free == 1, right, left))
    second = jnp.where(free == 0, right, jnp.where(free == 1, left, middle))
    down = faces_down(config, table.frontier)  # left, middle, right are counterclockwise if a cell faces down
    known = jnp.where(free == 0, left, jnp.where(free == 1, middle, right))
    return jnp.where(down, second, first), jnp.where(down, first, second), known


def bonus(config: Config, neighbour_mask: Int16[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Points for hexagons, or otherwise for a bridge, of a tile on a cell with this neighbour mask."""
    hexagons = sum((neighbour_mask & np.int16(bits) == np.int16(bits)).astype(jnp.int32) for bits in HEXAGON_BITS)
    first, second, third = (
        (neighbour_mask & np.int16(1 << k) != 0) & (neighbour_mask & np.int16(bits) != 0) for k, bits in enumerate(CORNER_BITS)
    )
    score = jnp.where(first | second | third, BRIDGE_SCORE, 0)
    for count, points in enumerate(config.hex_scores, 1):
        score = jnp.where(hexagons == count, points, score)
    return score


def tile_of(*numbers: Integer[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """The id of the tile with three numbers in any order."""
    x, y, z = (number.astype(jnp.int32) for number in numbers)
    a, c = jnp.minimum(jnp.minimum(x, y), z), jnp.maximum(jnp.maximum(x, y), z)
    b = x + y + z - a - c
    return (c + 2) * (c + 1) * c // 6 + (b + 1) * b // 2 + a


def orientation_of(config: Config, numbers: Numbers, cell: Cell) -> Int8[Array, ""]:
    """The orientation of the tile with these numbers on a cell; the first of equivalent orientations."""
    left, middle, right = numbers
    down = faces_down(config, cell)
    second, third = jnp.where(down, right, middle), jnp.where(down, middle, right)
    # Clockwise from the left corner, A is the first number in ABC and ACB, the second in CAB and CBA, the third in the others.
    starts_first = (left <= second) & (second <= third)
    starts_second = (second <= third) & (third <= left)
    names = ("ABC", "CAB", "BCA"), ("ACB", "CBA", "BAC")
    facing_up, facing_down = (
        jnp.where(starts_first, np.int8(at_first), jnp.where(starts_second, np.int8(at_second), np.int8(at_third)))
        for at_first, at_second, at_third in ([ORIENTATIONS.index(name) for name in row] for row in names)
    )
    return jnp.where(down, facing_down, facing_up)


def place(config: Config, table: Table, placed: Placed) -> Table:
    """The table after a placement on a cell of the frontier, or on cell 0 if the table is empty."""
    tile, orientation, cell, numbers = placed
    slots, tiles = np.arange(config.frontier_size, dtype=np.int16), np.arange(config.tiles, dtype=np.int32)
    is_slot = table.frontier == cell
    slot = jnp.max(jnp.where(is_slot, slots, np.int16(0)))
    taken = jnp.max(jnp.where(is_slot, table.neighbour_mask, np.int16(0)))
    nearby = neighbourhood(config, cell)

    # Add the new tile to the neighbour masks of the slots around it, and its numbers to the shared corners.
    rows, neighbour_mask = [*table.numbers], table.neighbour_mask
    is_nearby = [table.frontier == neighbour for neighbour in nearby]
    for is_it, back, shared in zip(is_nearby, BACK, SHARED_CORNERS, strict=True):
        neighbour_mask = neighbour_mask | jnp.where(is_it, np.int16(1 << back), np.int16(0))
        for mine, theirs in shared:
            rows[theirs] = jnp.where(is_it, numbers[mine], rows[theirs])
    placed_at = jnp.where(tiles == tile, cell, table.placed_at)
    orientations = jnp.where(tiles == tile, orientation, table.orientation)
    frontier = jnp.where(is_slot, np.int16(-1), table.frontier)

    # New neighbours, neither taken nor in the frontier, join the frontier. The first reuses the slot of the placed tile, the
    # second takes the next unused slot. Only the first tile of a round has a third new neighbour.
    target, unused = slot, jnp.sum(table.placed_at >= 0, dtype=jnp.int16) + np.int16(2)
    # The table before the placement has all tiles at the far corners, because the placed tile touches none of them.
    beyond = _beyond(config, table.placed_at, shown_numbers(config, table.orientation), nearby[:3])
    for k in range(3):
        is_new = ~jnp.any(is_nearby[k]) & (taken & np.int16(1 << k) == 0)
        is_target = is_new & (slots == target)
        number, far = beyond[k]
        common = move_bits(taken.astype(jnp.uint32), COMMON[k]).astype(jnp.int16)
        known = {theirs: numbers[mine] for mine, theirs in SHARED_CORNERS[k]} | {BACK[k]: number}
        frontier = jnp.where(is_target, nearby[k], frontier)
        neighbour_mask = jnp.where(is_target, common | far | np.int16(1 << BACK[k]), neighbour_mask)
        rows = [jnp.where(is_target, known[corner], row) for corner, row in enumerate(rows)]
        target = jnp.where(is_new, jnp.where(target == slot, unused, np.int16(1)), target)
    return Table(placed_at, orientations, frontier, (rows[0], rows[1], rows[2]), neighbour_mask)


def _beyond(
    config: Config, placed_at: Int16[Array, "N"], numbers: list[Int8[Array, "N"]], neighbours: list[Cell]
) -> list[tuple[Int8[Array, ""], Int16[Array, ""]]]:
    """For each neighbour of a cell, the number at its far corner (or -1), and the taken cells around this corner."""
    by_tile = jnp.zeros(placed_at.shape, jnp.int32)
    for k, neighbour in enumerate(neighbours):
        nearby = neighbourhood(config, neighbour)
        for bit, i in enumerate(FAR[k]):
            ((_, theirs),) = SHARED_CORNERS[i]
            is_taken_by = (1 << bit) | ((numbers[theirs].astype(jnp.int32) + 1) << 3)
            by_tile = by_tile | jnp.where(placed_at == nearby[i], is_taken_by << 6 * k, 0)
    # All tiles at a corner show the same number, so that one "or" over all tiles collects the numbers and the taken cells.
    fields = jnp.bitwise_or.reduce(by_tile) >> np.arange(0, 18, 6, dtype=np.int32)
    return [
        ((fields[k] >> 3 & 7).astype(jnp.int8) - np.int8(1), ((fields[k] & 7) << FAR[k][0]).astype(jnp.int16)) for k in range(3)
    ]


def shown_numbers(config: Config, orientation: Int8[Array, "N"]) -> list[Int8[Array, "N"]]:
    """The numbers of each tile at the left, middle and right corner, in its orientation."""
    table = np.array([[corners(tile, o) for tile in config.tile_list] for o in range(len(ORIENTATIONS))], np.int8)
    rows = []
    for k in range(3):
        row = jnp.asarray(table[0, :, k])
        for o in range(1, len(ORIENTATIONS)):
            row = jnp.where(orientation == o, table[o, :, k], row)
        rows.append(row)
    return rows
