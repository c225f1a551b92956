"""Positions of the polyomino games as facts: the pieces on the board by colour, and the colour to move. Plain Python.

The facts are ``placed``, the pieces of each colour as lists of cells, ``{"blue": ["e10,f10,f9"], ...}``, and ``current_color``.
Optional are ``out``, the colours that do not move any more, and ``monomino_last``, the colours whose latest piece is the single
cell; both are empty by default. Colours that cannot move are found by the rules.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tilewe_jax.draw.theme import COLORS
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host import MAX_NAMED, Geometry, Position, bits, geometry
from tilewe_jax.games.polyomino.notation import action_of, action_of_cells, cell_name, cells_of, cells_text
from tilewe_jax.games.polyomino.pieces import MONOMINO, ORIENTATIONS, PIECE_NAMES, Cell
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import PositionFormat, fields_of, shown_names

_FIELDS = ("placed", "current_color")
_OPTIONAL = ("out", "monomino_last")


def position_format(config: Config) -> PositionFormat:
    """Return the facts of positions of a variant."""
    return PositionFormat(partial(read, config), write)


def read(config: Config, facts: Any) -> PolyominoPosition:
    """Return the position of facts.

    The numbers of pieces are free, so that positions with a handicap are valid, too. Raises ``ValueError`` for pieces that no
    order of legal placements could leave on the board, and for other wrong facts.
    """
    facts = fields_of(facts, _FIELDS, _OPTIONAL)
    names = COLORS[: config.colors]
    placed = facts["placed"]
    if not isinstance(placed, dict) or not all(isinstance(texts, list) for texts in placed.values()):
        raise ValueError('placed must be an object of lists of pieces by colour, like {"blue": ["e8,e9,f9"]}')
    if unknown := [name for name in placed if name not in names]:
        raise ValueError(f"unknown colours in placed: {shown_names(unknown)}; the colours are {', '.join(names)}")
    actions = [[_action(config, name, text) for text in placed.get(name, ())] for name in names]
    for color in range(config.colors):
        _check_pieces(config, color, actions[color])
    _check_cells(config, actions)
    for color in range(config.colors):
        _check_corners(config, color, actions[color])
    hands = [config.full_hand - sum(1 << _piece(config, action) for action in own) for own in actions]
    out, monomino_last = (_colors(names, facts, name) for name in _OPTIONAL)
    for color in monomino_last:
        if MONOMINO not in {_piece(config, action) for action in actions[color]}:
            raise ValueError(f"{names[color]} is in monomino_last, but has not placed {PIECE_NAMES[MONOMINO]}")
    if facts["current_color"] not in names:
        raise ValueError(f"current_color must be one of {', '.join(names)}, got {str(facts['current_color'])[:40]}")
    position = Position.of(
        config,
        [geometry(config.size).mask(cell for action in own for cell in cells_of(config, action)) for own in actions],
        hands,
        sum(1 << color for color in out),
        [color in monomino_last for color in range(config.colors)],
        names.index(facts["current_color"]),
    )
    position.resolve_passes()
    return PolyominoPosition(position)


def write(position: PolyominoPosition) -> dict[str, Any]:
    """Return the facts of a position. Pieces of one colour share no edge, so that each connected set of cells is a piece."""
    config, rules = position.config, position.position
    names = COLORS[: config.colors]
    return {
        "placed": {
            name: [cells_text(config, action_of(config, cells)) for cells in _pieces(rules.geometry, rules.occupied[color])]
            for color, name in enumerate(names)
        },
        "current_color": names[rules.color],
        "out": [name for color, name in enumerate(names) if rules.out >> color & 1],
        "monomino_last": [name for name, is_last in zip(names, rules.monomino_last, strict=True) if is_last],
    }


def _pieces(board: Geometry, cells: int) -> Iterator[list[Cell]]:
    """Yield the sets of cells that are connected by edges."""
    while cells:
        piece = cells & -cells
        while (grown := (piece | board.around(piece)[0]) & cells) != piece:
            piece = grown
        cells ^= piece
        yield [board.cell(bit) for bit in bits(piece)]


def _colors(names: tuple[str, ...], facts: dict[str, Any], field: str) -> list[int]:
    """Return the colours of a list of names. Raises ``ValueError``."""
    given = facts.get(field, [])
    if not isinstance(given, list) or not all(name in names for name in given):
        raise ValueError(f"{field} must be a list of colours among {', '.join(names)}, got {str(given)[:80]}")
    return [names.index(name) for name in given]


def _action(config: Config, color: str, text: Any) -> int:
    if not isinstance(text, str):
        raise ValueError(f"a piece of {color} must be a text with its cells, like e8,e9,f9, got {str(text)[:80]}")
    try:
        return action_of_cells(config, text)
    except ValueError:
        raise ValueError(f"{text[:80]!r} of {color}: these cells do not form a piece on the board, like e8,e9,f9") from None


def piece_text(config: Config, text: str) -> str:
    """Return a piece in the form of ``write``, from its cells in any order. Raises ``ValueError``."""
    return cells_text(config, action_of_cells(config, text))


def _piece(config: Config, action: int) -> int:
    return ORIENTATIONS[action // config.cells].piece


def _described(config: Config, color: int, action: int) -> str:
    return f"{PIECE_NAMES[_piece(config, action)]} of {COLORS[color]} ({cells_text(config, action)})"


def _check_pieces(config: Config, color: int, actions: list[int]) -> None:
    """Raise ``ValueError`` if a colour has placed a piece twice."""
    first: dict[int, int] = {}
    for number, action in enumerate(actions):
        other = first.setdefault(_piece(config, action), number)
        if other != number:
            raise ValueError(
                f"{COLORS[color]} has placed {PIECE_NAMES[_piece(config, action)]} twice:"
                f" {cells_text(config, actions[other])} and {cells_text(config, action)}"
            )


def _check_cells(config: Config, actions: list[list[int]]) -> None:
    """Raise ``ValueError`` if two pieces cover one cell, or two pieces of one colour share an edge."""
    taken: dict[Cell, tuple[int, int]] = {}
    for color, own in enumerate(actions):
        for action in own:
            for cell in cells_of(config, action):
                other = taken.setdefault(cell, (color, action))
                if other != (color, action):
                    both = f"{_described(config, *other)} and {_described(config, color, action)}"
                    raise ValueError(f"{both} cover the same cell, {cell_name(cell)}")
    for (x, y), (color, action) in taken.items():
        for cell in ((x + 1, y), (x, y + 1)):
            if cell in taken and taken[cell] != (color, action) and taken[cell][0] == color:
                both = f"{_described(config, color, action)} and {_described(config, *taken[cell])}"
                raise ValueError(f"{both} share an edge; pieces of one colour touch at corners only")


def _check_corners(config: Config, color: int, actions: list[int]) -> None:
    """Raise ``ValueError`` unless the pieces of a colour could be placed in some order: a start cell first, then corners."""
    if not actions:
        return
    starts = set(config.start_cells[color])
    cells = {action: set(cells_of(config, action)) for action in actions}
    on_start = [action for action in actions if cells[action] & starts]
    first = config.start_piece and PIECE_NAMES.index(config.start_piece)
    firsts = on_start if first is None else [action for action in on_start if _piece(config, action) == first]
    if not firsts:
        names = " or ".join(map(cell_name, config.start_cells[color]))
        names = names if len(starts) <= MAX_NAMED else f"one of its {len(starts)} start cells"
        raise ValueError(
            f"a piece of {COLORS[color]} must cover {names}: {config.start_piece or 'the first piece'} starts there"
        )
    reached = firsts[:1] + (on_start if config.starts_stay_open else [])
    remaining = [action for action in actions if action not in reached]
    for action in reached:  # grows during the loop
        diagonal = {(x + dx, y + dy) for x, y in cells[action] for dx in (-1, 1) for dy in (-1, 1)}
        reached += [other for other in remaining if cells[other] & diagonal]
        remaining = [other for other in remaining if not cells[other] & diagonal]
    if remaining:
        raise ValueError(f"{_described(config, color, remaining[0])} is not connected to the start by corners of its colour")
