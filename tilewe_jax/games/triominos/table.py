"""The table: where each tile lies, and the free cells beside them.

A tile finds its place by three numbers, so that is what the table keeps of each free cell beside a tile, with the cells around
it that are taken; a board of numbers, of which all but a few stand far from where anything can happen, would be six times as
large. Cells are numbered on a torus, ``row * columns + column``, large enough that no figure can meet itself (see ``Config``);
the first tile lies on cell 0.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int16, Int32

from tilewe_jax.bits import move_bits
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.tiles import (
    AROUND,
    AT_CORNER,
    BACK,
    BRIDGE_SCORE,
    FAR,
    HEXAGON,
    ORIENTATIONS,
    SEEN,
    SHARED,
    corners,
)

Cell = Int16[Array, ""]
Numbers = tuple[Int8[Array, ""], Int8[Array, ""], Int8[Array, ""]]
"""At the left, middle and right corner."""


class Placed(NamedTuple):
    """A tile that finds its place."""

    tile: Int32[Array, ""]
    orientation: Int8[Array, ""]
    cell: Cell
    numbers: Numbers


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """N tiles and F slots, each of them for a free cell beside a tile; in no particular order, with gaps."""

    lying: Int16[Array, "N"]
    """The cell of each tile; -1 for those that do not lie here."""
    turned: Int8[Array, "N"]
    """The orientation of each tile that lies."""
    cells: Int16[Array, "F"]
    """The cell of each slot, -1 where there is none; the rest of that slot then means nothing."""
    numbers: tuple[Int8[Array, "F"], Int8[Array, "F"], Int8[Array, "F"]]
    """What lies at the left, middle and right corner; -1 where nothing does."""
    around: Int16[Array, "F"]
    """The cells around it that are taken, bit ``i`` for ``AROUND[i]``."""


def empty(config: Config) -> Table:
    """The table before the first tile."""
    nothing = jnp.full(config.slots, -1, jnp.int8)
    return Table(
        lying=jnp.full(config.tiles, -1, jnp.int16),
        turned=jnp.zeros(config.tiles, jnp.int8),
        cells=jnp.full(config.slots, -1, jnp.int16),
        numbers=(nothing, nothing, nothing),
        around=jnp.zeros(config.slots, jnp.int16),
    )


def faces_down(config: Config, cell: Int16[Array, "*shape"]) -> Bool[Array, "*shape"]:
    """Whether cells have their apex at the bottom."""
    return (cell + cell // np.int16(config.columns)) & np.int16(1) != 0


def cells_around(config: Config, cell: Cell) -> list[Cell]:
    """The twelve cells around one, in the order of ``AROUND``."""
    columns, rows = np.int16(config.columns), np.int16(config.rows)
    x, y = cell % columns, cell // columns
    down = faces_down(config, cell)
    beside = {dx: (x + np.int16(dx)) % columns for dx in range(-2, 3)}
    above, below = (y + np.int16(-1)) % rows, (y + np.int16(1)) % rows
    lines = {-1: jnp.where(down, below, above), 0: y, 1: jnp.where(down, above, below)}
    return [lines[dy] * columns + beside[dx] for dx, dy in AROUND]


def find(table: Table, cell: Cell) -> tuple[Numbers, Int16[Array, ""]]:
    """The numbers and the taken cells of the slot with this cell; -1 and none where there is no such slot."""
    here = (table.cells == cell) & (cell >= 0)
    left, middle, right = (jnp.max(jnp.where(here, row, np.int8(-1))) for row in table.numbers)
    return (left, middle, right), jnp.max(jnp.where(here, table.around, np.int16(0)))


def free_corner(around: Int16[Array, "*shape"]) -> Int8[Array, "*shape"]:
    """The corner whose number, with those of the others, tells which tile fits: across from the first neighbour there is.

    Neighbours are looked for left, right and beyond the base; so it is the right, else the left, else the middle corner.
    """
    left, right = around & np.int16(1 << 2) != 0, around & np.int16(1 << 0) != 0
    return jnp.where(left, np.int8(2), jnp.where(right, np.int8(0), np.int8(1)))


def corners_of_slots(config: Config, table: Table) -> tuple[Int8[Array, "F"], Int8[Array, "F"], Int8[Array, "F"]]:
    """The numbers of each slot clockwise after the free corner: two that are known, and that of the free corner or -1."""
    left, middle, right = table.numbers
    free = free_corner(table.around)
    first = jnp.where(free == 0, middle, jnp.where(free == 1, right, left))
    second = jnp.where(free == 0, right, jnp.where(free == 1, left, middle))
    down = faces_down(config, table.cells)  # there the same corners run the other way round
    known = jnp.where(free == 0, left, jnp.where(free == 1, middle, right))
    return jnp.where(down, second, first), jnp.where(down, first, second), known


def bonus(config: Config, around: Int16[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """What a tile scores for hexagons, or else for a bridge, on a cell of which these cells around are taken."""
    hexagons = sum((around & np.int16(hexagon) == np.int16(hexagon)).astype(jnp.int32) for hexagon in HEXAGON)
    first, second, third = (
        (around & np.int16(1 << k) != 0) & (around & np.int16(at_corner) != 0) for k, at_corner in enumerate(AT_CORNER)
    )
    score = jnp.where(first | second | third, BRIDGE_SCORE, 0)
    for count, scored in enumerate(config.hex_scores, 1):
        score = jnp.where(hexagons == count, scored, score)
    return score


def tile_of(*numbers: Int8[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """The id of the tile with these three numbers, in any order."""
    one, two, three = (number.astype(jnp.int32) for number in numbers)
    a, c = jnp.minimum(jnp.minimum(one, two), three), jnp.maximum(jnp.maximum(one, two), three)
    b = one + two + three - a - c
    return (c + 2) * (c + 1) * c // 6 + (b + 1) * b // 2 + a


def orientation_of(config: Config, numbers: Numbers, cell: Cell) -> Int8[Array, ""]:
    """How the tile with these numbers lies: the first of the orientations that look alike."""
    left, middle, right = numbers
    down = faces_down(config, cell)
    second, third = jnp.where(down, right, middle), jnp.where(down, middle, right)
    # Clockwise the numbers ascend from where A is: in ABC and ACB that is left, in CAB and CBA the second corner.
    starts_first = (left <= second) & (second <= third)
    starts_second = (second <= third) & (third <= left)
    names = ("ABC", "CAB", "BCA"), ("ACB", "CBA", "BAC")
    up, dn = (
        jnp.where(starts_first, np.int8(one), jnp.where(starts_second, np.int8(two), np.int8(three)))
        for one, two, three in ([ORIENTATIONS.index(name) for name in row] for row in names)
    )
    return jnp.where(down, dn, up)


def lay(config: Config, table: Table, placed: Placed) -> Table:
    """The table with one more tile, on the cell of a slot or, where there is none, on cell 0."""
    tile, orientation, cell, numbers = placed
    slots, tiles = np.arange(config.slots, dtype=np.int16), np.arange(config.tiles, dtype=np.int32)
    here = table.cells == cell
    slot = jnp.max(jnp.where(here, slots, np.int16(0)))
    taken = jnp.max(jnp.where(here, table.around, np.int16(0)))
    near = cells_around(config, cell)

    # The slots of the cells around see the new tile.
    known, around = [*table.numbers], table.around
    hits = [table.cells == other for other in near]
    for hit, back, shared in zip(hits, BACK, SHARED, strict=True):
        around = around | jnp.where(hit, np.int16(1 << back), np.int16(0))
        for mine, theirs in shared:
            known[theirs] = jnp.where(hit, numbers[mine], known[theirs])
    lying = jnp.where(tiles == tile, cell, table.lying)
    turned = jnp.where(tiles == tile, orientation, table.turned)
    cells = jnp.where(here, np.int16(-1), table.cells)

    # The neighbours that were no slots yet become some. The first takes the place of the cell just filled, the second the next
    # one never used; only the first tile has a third.
    place, unused = slot, jnp.sum(table.lying >= 0, dtype=jnp.int16) + np.int16(2)
    beyond = _beyond(config, lying, shown(config, turned), near[:3])
    for k in range(3):
        new = ~jnp.any(hits[k]) & (taken & np.int16(1 << k) == 0)
        chosen = new & (slots == place)
        number, far = beyond[k]
        seen = move_bits(taken.astype(jnp.uint32), SEEN[k]).astype(jnp.int16)
        fresh = {theirs: numbers[mine] for mine, theirs in SHARED[k]} | {BACK[k]: number}
        cells = jnp.where(chosen, near[k], cells)
        around = jnp.where(chosen, seen | far | np.int16(1 << BACK[k]), around)
        known = [jnp.where(chosen, fresh[corner], row) for corner, row in enumerate(known)]
        place = jnp.where(new, jnp.where(place == slot, unused, np.int16(1)), place)
    return Table(lying, turned, cells, (known[0], known[1], known[2]), around)


def _beyond(
    config: Config, lying: Int16[Array, "N"], numbers: list[Int8[Array, "N"]], neighbours: list[Cell]
) -> list[tuple[Int8[Array, ""], Int16[Array, ""]]]:
    """What lies at the corner of each neighbour that the cell does not share: the number, and which cells there are taken."""
    found = jnp.zeros(lying.shape, jnp.int32)
    for k, neighbour in enumerate(neighbours):
        around = cells_around(config, neighbour)
        for bit, i in enumerate(FAR[k]):
            ((_, theirs),) = SHARED[i]
            what = (1 << bit) | ((numbers[theirs].astype(jnp.int32) + 1) << 3)
            found = found | jnp.where(lying == around[i], what << 6 * k, 0)
    # The tiles at a corner show the same number there, so that one "or" over all tiles collects everything.
    every = jnp.bitwise_or.reduce(found) >> np.arange(0, 18, 6)
    return [
        ((every[k] >> 3 & 7).astype(jnp.int8) - np.int8(1), ((every[k] & 7) << FAR[k][0]).astype(jnp.int16)) for k in range(3)
    ]


def shown(config: Config, turned: Int8[Array, "N"]) -> list[Int8[Array, "N"]]:
    """The numbers at the left, middle and right corner of each tile in its orientation."""
    table = np.array([[corners(tile, o) for tile in config.tile_list] for o in range(len(ORIENTATIONS))], np.int8)
    rows = []
    for k in range(3):
        row = jnp.asarray(table[0, :, k])
        for o in range(1, len(ORIENTATIONS)):
            row = jnp.where(turned == o, table[o, :, k], row)
        rows.append(row)
    return rows
