"""The table: where each tile lies, and the free cells beside them.

A tile finds its place by three numbers, so that is what the table keeps of each free cell beside a tile, with the cells around
it that are taken; a board of numbers, of which all but a few stand far from where anything can happen, would be six times as
large. Cells are numbered on a torus, ``row * columns + column``, large enough that no figure can meet itself (see ``Config``);
the first tile lies on cell 0.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int16, Int32

from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.tiles import (
    AROUND,
    AT_CORNER,
    BACK,
    BRIDGE_SCORE,
    HEXAGON,
    ORIENTATIONS,
    SHARED,
    corners,
)

Cell = Int16[Array, ""]
Numbers = tuple[Int8[Array, ""], Int8[Array, ""], Int8[Array, ""]]
"""At the left, middle and right corner."""


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
    numbers: Int8[Array, "3 F"]
    """What lies at the left, middle and right corner; -1 where nothing does."""
    around: Int16[Array, "F"]
    """The cells around it that are taken, bit ``i`` for ``AROUND[i]``."""


def empty(config: Config) -> Table:
    """The table before the first tile."""
    return Table(
        lying=jnp.full(config.tiles, -1, jnp.int16),
        turned=jnp.zeros(config.tiles, jnp.int8),
        cells=jnp.full(config.slots, -1, jnp.int16),
        numbers=jnp.full((3, config.slots), -1, jnp.int8),
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


def find(table: Table, cell: Cell) -> tuple[Numbers, Int16[Array, ""], Bool[Array, ""]]:
    """The numbers and the taken cells of the slot with this cell, and whether there is one."""
    here = (table.cells == cell) & (cell >= 0)
    left, middle, right = (jnp.max(jnp.where(here, row, np.int8(-1))) for row in table.numbers)
    return (left, middle, right), jnp.max(jnp.where(here, table.around, np.int16(0))), jnp.any(here)


def free_corner(around: Int16[Array, "*shape"]) -> Int8[Array, "*shape"]:
    """The corner whose number, with those of the others, tells which tile fits: across from the first neighbour there is.

    Neighbours are looked for left, right and beyond the base; so it is the right, else the left, else the middle corner.
    """
    left, right = around & np.int16(1 << 2) != 0, around & np.int16(1 << 0) != 0
    return jnp.where(left, np.int8(2), jnp.where(right, np.int8(0), np.int8(1)))


def bonus(config: Config, around: Int16[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """What a tile scores for hexagons, or else for a bridge, on a cell of which these cells around are taken."""
    hexagons = sum((around & np.int16(hexagon) == np.int16(hexagon)).astype(jnp.int32) for hexagon in HEXAGON)
    across = ((around & np.int16(1 << k) != 0) & (around & np.int16(AT_CORNER[k]) != 0) for k in range(3))
    first, second, third = across
    score = jnp.where(first | second | third, BRIDGE_SCORE, 0)
    for count, scored in enumerate(config.hex_scores, 1):
        score = jnp.where(hexagons == count, scored, score)
    return score


def orientation_of(config: Config, numbers: Numbers, cell: Cell) -> tuple[Int32[Array, ""], Int8[Array, ""], Bool[Array, ""]]:
    """The tile with these numbers and its orientation, the first of those that look alike; and whether there is such a tile."""
    down = faces_down(config, cell)
    clockwise = numbers[0], jnp.where(down, numbers[2], numbers[1]), jnp.where(down, numbers[1], numbers[2])
    a = jnp.minimum(jnp.minimum(*clockwise[:2]), clockwise[2])
    c = jnp.maximum(jnp.maximum(*clockwise[:2]), clockwise[2])
    b = clockwise[0] + clockwise[1] + clockwise[2] - a - c
    # Where the lowest number of the tile lies: left, then clockwise. The orientations in that order, first facing up.
    starts = [(first == a) & (second == b) & (third == c) for first, second, third in (_turn(clockwise, i) for i in range(3))]
    order = [ORIENTATIONS.index(name) for name in ("ABC", "CAB", "BCA", "ACB", "CBA", "BAC")]
    up, dn = (
        jnp.where(starts[0], np.int8(first), jnp.where(starts[1], np.int8(second), np.int8(third)))
        for first, second, third in (order[:3], order[3:])
    )
    a, b, c = (number.astype(jnp.int32) for number in (a, b, c))
    tile = (c + 2) * (c + 1) * c // 6 + (b + 1) * b // 2 + a
    return tile, jnp.where(down, dn, up), starts[0] | starts[1] | starts[2]


def lay(
    config: Config, table: Table, tile: Int32[Array, ""], orientation: Int8[Array, ""], cell: Cell, numbers: Numbers
) -> Table:
    """The table with one more tile, on a cell of the frontier or, where there is none, on cell 0."""
    slots, tiles = np.arange(config.slots, dtype=np.int16), np.arange(config.tiles, dtype=np.int32)
    laid = jnp.sum(table.lying >= 0, dtype=jnp.int16)
    near = cells_around(config, cell)
    here = table.cells == cell
    slot = jnp.max(jnp.where(here, slots, np.int16(0)))
    taken = jnp.max(jnp.where(here, table.around, np.int16(0)))

    # The slots of the cells around see the new tile.
    known, around = [*table.numbers], table.around
    hits = [table.cells == other for other in near]
    for hit, back, shared in zip(hits, BACK, SHARED, strict=True):
        around = around | jnp.where(hit, np.int16(1 << back), np.int16(0))
        for mine, theirs in shared:
            known[theirs] = jnp.where(hit, numbers[mine], known[theirs])
    lying = jnp.where(tiles == tile, cell, table.lying)
    turned = jnp.where(tiles == tile, orientation, table.turned)
    numbers_of = shown(config, turned)
    cells = jnp.where(here, np.int16(-1), table.cells)

    # New slots: the first takes the place of the cell just filled, the second the next one never used; the first tile has
    # three.
    place = slot
    for k in range(3):
        new = ~jnp.any(hits[k]) & (taken & np.int16(1 << k) == 0)
        fresh, beside = _look(config, lying, numbers_of, near[k])
        mine = new & (slots == place)
        cells = jnp.where(mine, near[k], cells)
        around = jnp.where(mine, beside, around)
        known = [jnp.where(mine, number, row) for number, row in zip(fresh, known, strict=True)]
        place = jnp.where(new, jnp.where(place == slot, laid + np.int16(2), np.int16(1)), place)
    return Table(lying, turned, cells, jnp.stack(known), around)


def _turn(numbers: Numbers, i: int) -> Numbers:
    return numbers[i], numbers[(i + 1) % 3], numbers[(i + 2) % 3]


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


def _look(
    config: Config, lying: Int16[Array, "N"], numbers: list[Int8[Array, "N"]], cell: Cell
) -> tuple[Numbers, Int16[Array, ""]]:
    """The numbers at the corners of a cell, and the cells around it that are taken."""
    found = [jnp.full(lying.shape, -1, jnp.int8)] * 3
    taken = jnp.zeros(lying.shape, jnp.int16)
    for i, (other, shared) in enumerate(zip(cells_around(config, cell), SHARED, strict=True)):
        hit = lying == other
        taken = taken | jnp.where(hit, np.int16(1 << i), np.int16(0))
        for mine, theirs in shared:
            found[mine] = jnp.where(hit, numbers[theirs], found[mine])
    left, middle, right = (jnp.max(row) for row in found)
    return (left, middle, right), jnp.bitwise_or.reduce(taken)
