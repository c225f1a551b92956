"""Names of cells and actions, and actions by the cells that they cover. Plain Python, without JAX.

The name of a placement is piece, rotation, dash, contact, cell: ``W5n-a1c3`` lays the piece W5 in rotation north so that its
own cell a1 lies on the cell c3 of the board. A placement can have several names.
"""

import re
from collections.abc import Iterable

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import (
    MAX_PIECE_SIZE,
    ORIENTATION_OF_CELLS,
    ORIENTATIONS,
    PIECE_CELLS,
    PIECE_NAMES,
    ROTATION_NAMES,
    Cell,
    normalize,
    rotate,
)

PASS = "pass"
_CELL = re.compile(r"a?[a-z][1-9][0-9]?")
_NAME = re.compile(r"([A-Z]\d)([nesw]f?)-([a-z]+)(\d+)([a-z]+)(\d+)")


def column_name(x: int) -> str:
    """Name a column: a to z, then aa, ab, and so on."""
    return "a" * (x // 26) + chr(ord("a") + x % 26)


def cell_name(cell: Cell) -> str:
    """Name a cell: (0, 0) is ``a1``."""
    return column_name(cell[0]) + str(cell[1] + 1)


def parse_cell(name: str) -> Cell:
    """Return the cell of a name, the inverse of ``cell_name``."""
    letters, digits = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz")
    return 26 * (len(letters) - 1) + ord(letters[-1]) - ord("a"), int(digits) - 1


def orientation_and_anchor(config: Config, action: int) -> tuple[int, Cell]:
    """``split_action`` without checks: the piece may not be in play, or may extend beyond the board."""
    orientation, bit = divmod(int(action), config.cells)
    return orientation, (bit % config.size, bit // config.size)


def split_action(config: Config, action: int) -> tuple[int, Cell]:
    """Return the orientation (index into ``pieces.ORIENTATIONS``) and the anchor of a placement.

    Raises ``ValueError`` if the action is not a placement, or the piece is not in play or extends beyond the board.
    """
    if not 0 <= action < config.num_placements:
        raise ValueError(f"{action} is not a placement; placements are 0 to {config.num_placements - 1}")
    orientation, anchor = orientation_and_anchor(config, action)
    name = ORIENTATIONS[orientation].name
    if orientation not in config.orientations:
        raise ValueError(f"{action} ({name} at {cell_name(anchor)}) is not a placement of a piece in play")
    if not config.fits(ORIENTATIONS[orientation], anchor):
        raise ValueError(f"{action} ({name} at {cell_name(anchor)}) extends beyond the board")
    return orientation, anchor


def join_action(config: Config, orientation: int, anchor: Cell) -> int:
    """Return the action of a placement, the inverse of ``split_action``. Raises ``ValueError`` if it leaves the board."""
    if not config.fits(ORIENTATIONS[orientation], anchor):
        name, size = ORIENTATIONS[orientation].name, config.size
        raise ValueError(f"{name} with its bottom left at {anchor} extends beyond the board of {size} x {size}")
    return orientation * config.cells + config.bit(anchor)


def action_of(config: Config, cells: Iterable[Cell]) -> int:
    """Return the placement that covers these cells, in any order.

    Raises ``ValueError`` if they are not the shape of a piece in play, or not on the board.
    """
    cells = list(cells)
    orientation = ORIENTATION_OF_CELLS.get(normalize(cells)) if cells else None
    if orientation is None or orientation not in config.orientations or len(set(cells)) != len(cells):
        pieces = " ".join(PIECE_NAMES[piece] for piece in config.pieces)
        raise ValueError(f"{cells} is not the shape of a piece; the pieces are {pieces}")
    return join_action(config, orientation, (min(x for x, _ in cells), min(y for _, y in cells)))


def cells_of(config: Config, action: int) -> tuple[Cell, ...]:
    """Return the cells of a placement, row by row from the bottom; raises as ``split_action``."""
    orientation, (x, y) = split_action(config, action)
    return tuple((x + dx, y + dy) for dx, dy in ORIENTATIONS[orientation].cells)


def cells_text(config: Config, action: int) -> str:
    """Return a placement as a list of its cells, row by row from the bottom, like ``e8,e9,f9``; raises as ``split_action``."""
    return ",".join(map(cell_name, cells_of(config, action)))


def action_of_cells(config: Config, text: str) -> int:
    """Return the placement of a list of cells in any order, like ``e8,e9,f9``. Raises ``ValueError``."""
    cells = "".join(text.split()).lower().split(",", MAX_PIECE_SIZE)
    if len(cells) > MAX_PIECE_SIZE or not all(map(_CELL.fullmatch, cells)):
        raise ValueError(f"invalid move {text[:80]!r}; a move lists its cells, like e8,e9,f9")
    try:
        return action_of(config, map(parse_cell, cells))
    except ValueError:
        raise ValueError(f"invalid move {text!r}; these cells do not form a piece on the board") from None


def action_names(config: Config, action: int) -> tuple[str, ...]:
    """Return the names of an action, one for each contact of the piece; raises as ``split_action``."""
    if config.voluntary_pass and action == config.num_placements:
        return (PASS,)
    index, (x, y) = split_action(config, action)
    orientation = ORIENTATIONS[index]
    return tuple(f"{orientation.name}-{cell_name((dx, dy))}{cell_name((x + dx, y + dy))}" for dx, dy in orientation.contacts)


def action_of_name(config: Config, name: str) -> int:
    """Return the action of a name, with any rotation that gives the same cells, and any cell of the piece as contact.

    Raises ``ValueError`` if the name is invalid.
    """
    if name == PASS and config.voluntary_pass:
        return config.num_placements
    match = _NAME.fullmatch(name)
    if not match or match[1] not in PIECE_NAMES:
        raise ValueError(f"{name!r} is not a move; moves are written like W5n-a1c3 (piece, rotation, contact, cell)")
    cells = rotate(PIECE_CELLS[PIECE_NAMES.index(match[1])], ROTATION_NAMES.index(match[2]))
    contact, target = parse_cell(match[3] + match[4]), parse_cell(match[5] + match[6])
    orientation = ORIENTATION_OF_CELLS[cells]
    if contact not in cells or orientation not in config.orientations:
        raise ValueError(f"{name!r}: {match[1]}{match[2]} has no cell {match[3]}{match[4]} or is not in this game")
    return join_action(config, orientation, (target[0] - contact[0], target[1] - contact[1]))
