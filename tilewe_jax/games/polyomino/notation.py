"""Names of cells and of actions, and actions by the cells that they cover. Plain Python, without JAX.

A placement is written piece, rotation, dash, contact, cell: ``W5n-a1c3`` lays the piece W5 in rotation north so that its own
cell a1 lies on the cell c3 of the board. Several names can mean one placement.
"""

import re
from collections.abc import Iterable

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import (
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
_NAME = re.compile(r"([A-Z]\d)([nesw]f?)-([a-z]+)(\d+)([a-z]+)(\d+)")


def cell_name(cell: Cell) -> str:
    """The name of a cell: (0, 0) is ``a1``. Columns after z are aa, ab, and so on."""
    x, y = cell
    letters = chr(ord("a") + x % 26)
    return ("a" * (x // 26)) + letters + str(y + 1)


def column_name(x: int) -> str:
    """The letters of a column."""
    return cell_name((x, 0)).rstrip("1")


def parse_cell(name: str) -> Cell:
    """The cell of a name, the inverse of ``cell_name``."""
    letters, digits = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz")
    return 26 * (len(letters) - 1) + ord(letters[-1]) - ord("a"), int(digits) - 1


def orientation_and_anchor(config: Config, action: int) -> tuple[int, Cell]:
    """``split_action`` for any id of a placement, unchecked: the piece may not be in play, or not lie on the board."""
    orientation, bit = divmod(int(action), config.cells)
    return orientation, (bit % config.size, bit // config.size)


def split_action(config: Config, action: int) -> tuple[int, Cell]:
    """The orientation (index into ``pieces.ORIENTATIONS``) and the anchor of a placement.

    Raises ``ValueError`` for an action that is no placement, or whose piece is not in play or does not lie on the board.
    """
    if not 0 <= action < config.num_placements:
        raise ValueError(f"{action} is not a placement; placements are 0 to {config.num_placements - 1}")
    orientation, anchor = orientation_and_anchor(config, action)
    if orientation not in config.orientations or not config.fits(ORIENTATIONS[orientation], anchor):
        raise ValueError(f"{action} ({ORIENTATIONS[orientation].name} at {cell_name(anchor)}) does not lie on the board")
    return orientation, anchor


def join_action(config: Config, orientation: int, anchor: Cell) -> int:
    """The action of a placement, the inverse of ``split_action``. Raises ``ValueError`` where it does not lie on the board."""
    if not config.fits(ORIENTATIONS[orientation], anchor):
        raise ValueError(
            f"{ORIENTATIONS[orientation].name} with its corner at {anchor} does not lie on the board"
            f" of {config.size} x {config.size}"
        )
    return orientation * config.cells + config.bit(anchor)


def action_of(config: Config, cells: Iterable[Cell]) -> int:
    """The placement that covers these cells, in any order.

    Raises ``ValueError`` where they are not the shape of a piece in play, or not on the board.
    """
    cells = list(cells)
    orientation = ORIENTATION_OF_CELLS.get(normalize(cells)) if cells else None
    if orientation is None or orientation not in config.orientations or len(set(cells)) != len(cells):
        pieces = " ".join(PIECE_NAMES[piece] for piece in config.pieces)
        raise ValueError(f"{cells} is not the shape of a piece; the pieces are {pieces}")
    return join_action(config, orientation, (min(x for x, _ in cells), min(y for _, y in cells)))


def cells_of(config: Config, action: int) -> tuple[Cell, ...]:
    """The cells that a placement covers, row by row from the bottom. Raises ``ValueError``, see ``split_action``."""
    orientation, (x, y) = split_action(config, action)
    return tuple((x + dx, y + dy) for dx, dy in ORIENTATIONS[orientation].cells)


def action_names(config: Config, action: int) -> tuple[str, ...]:
    """The names of an action, one for each contact of the piece. Raises ``ValueError``, see ``split_action``."""
    if config.voluntary_pass and action == config.num_placements:
        return (PASS,)
    index, (x, y) = split_action(config, action)
    orientation = ORIENTATIONS[index]
    return tuple(f"{orientation.name}-{cell_name((dx, dy))}{cell_name((x + dx, y + dy))}" for dx, dy in orientation.contacts)


def action_of_name(config: Config, name: str) -> int:
    """The action of a name. Any rotation that gives the same cells, and any cell of the piece as contact, is accepted.

    Raises ``ValueError`` for what is no name of an action, and says why.
    """
    if name == PASS and config.voluntary_pass:
        return config.num_placements
    match = _NAME.fullmatch(name)
    if not match or match[1] not in PIECE_NAMES:
        raise ValueError(f"{name!r} is no move; moves are written like W5n-a1c3 (piece, rotation, contact, cell)")
    cells = rotate(PIECE_CELLS[PIECE_NAMES.index(match[1])], ROTATION_NAMES.index(match[2]))
    contact, target = parse_cell(match[3] + match[4]), parse_cell(match[5] + match[6])
    orientation = ORIENTATION_OF_CELLS[cells]
    if contact not in cells or orientation not in config.orientations:
        raise ValueError(f"{name!r}: {match[1]}{match[2]} has no cell {match[3]}{match[4]} or is not in this game")
    return join_action(config, orientation, (target[0] - contact[0], target[1] - contact[1]))
