"""Observations: a row for each tile, a row for each slot of the frontier, and a row with the remaining features.

Seats are relative to the observer, cells relative to the middle of the figure. Hidden information is excluded. Batching (see
``tilewe_jax.lanes``): unbatched, as in ``rules``.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int16, Int32

from tilewe_jax.games.triominos import rules, table, tile_sets
from tilewe_jax.games.triominos.config import MAX_DRAWS, Config
from tilewe_jax.games.triominos.rules import State
from tilewe_jax.games.triominos.tiles import NEIGHBOURHOOD, ORIENTATIONS

POINTS = 100.0
"""Unit of the scores in observations."""


def layout(config: Config) -> dict[str, tuple[str, ...]]:
    """Names of the columns of each block of an observation, in order.

    ``tiles`` has a row for each tile, ``slots`` a row for each slot of the frontier (``Table.frontier``), ``rest`` one row.
    """
    seats = range(config.players)
    corners = [f"{corner} corner is {n}" for corner in ("left", "middle", "right") for n in range(config.numbers)]
    return {
        "tiles": ("in the own tray", "unseen", "placed", "column", "row", *(f"placed as {name}" for name in ORIENTATIONS)),
        "slots": ("free", "column", "row", "faces down", *corners, *(f"taken at {offset}" for offset in NEIGHBOURHOOD)),
        "rest": (
            *(f"seat {seat} to move" for seat in seats),
            *(f"seat {seat} started" for seat in seats),
            *(f"tray of seat {seat}, fraction of the tiles" for seat in seats),
            *(f"points of seat {seat}, in hundreds" for seat in seats),
            "pile, fraction of the tiles",
            "drawn in this turn, fraction of the draws",
            "passes, fraction of the players",
            "no tile is placed",
            "rounds, fraction of the most",
        ),
    }


def sizes(config: Config) -> dict[str, tuple[int, int]]:
    """Number of rows and columns of each block of ``layout``."""
    rows = {"tiles": config.tiles, "slots": config.frontier_size, "rest": 1}
    return {name: (rows[name], len(columns)) for name, columns in layout(config).items()}


def split(config: Config, observation: Float32[Array, "*batch size"]) -> dict[str, Float32[Array, "*batch rows columns"]]:
    """Split an observation into blocks by name, see ``layout``."""
    blocks, start = {}, 0
    for name, (rows, columns) in sizes(config).items():
        part = observation[..., start : start + rows * columns]
        blocks[name], start = part.reshape(*part.shape[:-1], rows, columns), start + rows * columns
    return blocks


def tiles_of_slots(
    config: Config, slots: Float32[Array, "slots columns"]
) -> tuple[Int32[Array, "slots numbers"], Bool[Array, "slots numbers"]]:
    """Compute the tiles that fit the frontier from the block ``slots`` of an observation.

    Args:
      config: the settings.
      slots: the block.

    Returns:
      Two arrays ``[slots, numbers]``: the id of the tile that puts a number at the free corner of a slot; and whether it fits.
      It does not fit, and the id is arbitrary, if the slot is empty or the free corner already has another number.
    """
    columns = layout(config)["slots"]
    first, taken, numbers = columns.index("left corner is 0"), columns.index(f"taken at {NEIGHBOURHOOD[0]}"), config.numbers
    shows = slots[:, first : first + 3 * numbers].reshape(-1, 3, numbers) > 0
    number = jnp.argmax(shows, axis=2).astype(jnp.int32)
    right, left = slots[:, taken] > 0, slots[:, taken + 2] > 0
    # As in `table.free_corner`: opposite to the first taken neighbour in the order left, right, beyond the base.
    free = jnp.where(left, 2, jnp.where(right, 0, 1))[:, None] == np.arange(3, dtype=np.int32)[None]
    others = [jnp.sum(jnp.where(free, jnp.roll(number, -k, axis=1), 0), axis=1)[:, None] for k in (1, 2)]
    third = jnp.broadcast_to(jnp.arange(numbers, dtype=jnp.int32)[None], (slots.shape[0], numbers))
    known = jnp.any(shows & free[..., None], axis=1)
    fits = (slots[:, :1] > 0) & (known | ~jnp.any(known, axis=1, keepdims=True))
    return table.tile_of(*(jnp.broadcast_to(other, third.shape) for other in others), third), fits


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "size"]:
    """The concatenated blocks of ``layout``, each row by row."""
    board = state.table
    own = tile_sets.unpack(config, state.trays[player])
    placed = board.placed_at >= 0
    column, row = _centred(config, board.placed_at, board.placed_at)
    is_oriented = (board.orientation[:, None] == np.arange(len(ORIENTATIONS), dtype=np.int8)[None]) & placed[:, None]
    tiles = jnp.concatenate([_columns(own, ~own & ~placed, placed, column, row), is_oriented.astype(jnp.float32)], axis=1)

    free = board.frontier >= 0
    column, row = _centred(config, board.placed_at, board.frontier)
    numbers = [board.numbers[k][:, None] == np.arange(config.numbers, dtype=np.int8)[None] for k in range(3)]
    taken = (board.neighbour_mask[:, None] >> np.arange(len(NEIGHBOURHOOD), dtype=np.int16)[None]) & np.int16(1) != 0
    flags = jnp.concatenate([*numbers, taken], axis=1) & free[:, None]
    down = table.faces_down(config, board.frontier) & free
    slots = jnp.concatenate([_columns(free, column, row, down), flags.astype(jnp.float32)], axis=1)

    seats = (player + jnp.arange(config.players, dtype=jnp.int32)) % config.players
    rest = jnp.concatenate(
        [
            (seats == state.current_player).astype(jnp.float32),
            (seats == state.starter).astype(jnp.float32),
            rules.tray_sizes(state)[seats].astype(jnp.float32) / config.tiles,
            state.scores[seats].astype(jnp.float32) / POINTS,
            jnp.stack(
                [
                    (config.tiles - state.drawn).astype(jnp.float32) / config.tiles,
                    state.draws.astype(jnp.float32) / MAX_DRAWS,
                    state.passes.astype(jnp.float32) / config.players,
                    (~jnp.any(placed)).astype(jnp.float32),
                    state.round.astype(jnp.float32) / config.rounds,
                ]
            ),
        ]
    )
    return jnp.concatenate([tiles.ravel(), slots.ravel(), rest])


def _columns(*rows: Array) -> Float32[Array, "rows columns"]:
    return jnp.stack([row.astype(jnp.float32) for row in rows], axis=1)


def _centred(
    config: Config, placed_at: Int16[Array, "N"], cells: Int16[Array, "rows"]
) -> tuple[Float32[Array, "rows"], Float32[Array, "rows"]]:
    """Columns and rows of cells relative to the middle of the figure; zero for cell -1."""
    coordinates = []
    for length, line_of in (
        (config.columns, lambda cell: cell % np.int16(config.columns)),
        (config.rows, lambda cell: cell // np.int16(config.columns)),
    ):
        is_line = line_of(placed_at)[:, None] == np.arange(length, dtype=np.int16)[None]
        taken = jnp.any(is_line & (placed_at >= 0)[:, None], axis=0)
        # The figure is connected and never wraps around, so it starts at the only taken line after a free line.
        start = jnp.argmax(taken & ~jnp.roll(taken, 1)).astype(jnp.int32)
        size = jnp.sum(taken, dtype=jnp.int32)
        # A free cell may lie one line before the figure.
        line = (line_of(cells).astype(jnp.int32) - start.astype(jnp.int32) + 1) % length - 1
        coordinates.append(jnp.where(cells >= 0, line.astype(jnp.float32) - (size - 1).astype(jnp.float32) / 2, 0.0))
    return coordinates[0], coordinates[1]


def board_of(config: Config, state: State) -> Int8[Array, "4 rows columns"]:
    """Tile ids and numbers at the left, middle and right corner for each cell of the torus; -1 for free cells."""
    board = state.table
    cell = jnp.where(board.placed_at >= 0, board.placed_at, np.int16(config.cells))
    values = jnp.stack([jnp.arange(config.tiles, dtype=jnp.int8), *table.shown_numbers(config, board.orientation)])
    planes = jnp.full((4, config.cells), -1, jnp.int8).at[:, cell].set(values, mode="drop")
    return planes.reshape(4, config.rows, config.columns)
