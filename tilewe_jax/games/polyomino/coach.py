"""Facts that explain moves of the polyomino games: corners, room, and pieces that fit. Imports no JAX."""

from collections.abc import Iterable, Sequence
from typing import Any

from tilewe_jax.games.polyomino.host import FITS, Position, bits
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import Facts
from tilewe_jax.utils.words import differences

_DIFFERENCES = (
    (1.2, "corners", "open corners", "It leaves {p}; the better move leaves {b}."),
    (-1.2, "corners_closed", "own corners", "It closes {p}; the better move closes {b}."),
    (1.5, "opponent_corners_closed", "corners of the opponent", "It closes {p}; the better move closes {b}."),
    (-0.9, "opponent_corners", "open corners", "It leaves the opponent {p}; the better move leaves {b}."),
    (0.2, "room", "cells", "It leaves the next piece room on {p}; the better move leaves {b}."),
    (-0.2, "opponent_room", "cells", "It leaves the opponent room on {p}; the better move leaves {b}."),
    (2.0, "squares", "cells", "It covers {p}; the better move covers {b}."),
)
_SIZES = {PIECE_NAMES[orientation.piece]: len(orientation.cells) for orientation in ORIENTATIONS}


def facts(position: PolyominoPosition, action: int) -> dict[str, Any]:
    """Return the facts of a legal action.

    A corner of a colour is a free cell at which the colour could place a piece if it were to move. Own colours are all colours
    of the player who moves; opponents are all other colours.

    Returns:
      ``squares``, the size of the piece, 0 for a pass; ``corners`` and ``opponent_corners`` after the move;
      ``corners_closed`` and ``opponent_corners_closed``, the corners that the move took away, except the cells that it covers;
      ``room`` and ``opponent_room``, the cells that the next placement of a colour could cover, added over its colours;
      ``stuck`` and ``opponent_stuck``, the names of unplaced pieces that fitted before the move and fit nowhere after it.
    """
    mover = position.current_player
    before, after = position.position, position.after(action).position
    config, color = position.config, position.current_color
    covered = after.occupied[color] & ~before.occupied[color]
    values: dict[str, Any] = {"squares": covered.bit_count()}
    for prefix, is_own in (("", True), ("opponent_", False)):
        colors = [each for each in range(config.colors) if (config.owner(each) == mover) == is_own]
        lost = [
            corner for each in colors for corner in _corners(before, each) - _corners(after, each) if not covered >> corner & 1
        ]
        stuck = [
            PIECE_NAMES[piece]
            for each in colors
            for piece in bits(_fitting(before, each) & after.hands[each] & ~_fitting(after, each))
        ]
        values |= {
            f"{prefix}corners": sum(len(_corners(after, each)) for each in colors),
            f"{prefix}corners_closed": len(lost),
            f"{prefix}room": sum(_room(after, each).bit_count() for each in colors),
            f"{prefix}stuck": sorted(stuck),
        }
    return values


def _corners(position: Position, color: int) -> set[int]:
    """Return the bits of the corners of a colour; none if it is out."""
    return set() if position.out >> color & 1 else set(position.legal[color])


def _fitting(position: Position, color: int) -> int:
    """Return the pieces that a colour could place, as bits."""
    pieces = 0
    for corner in _corners(position, color):
        for fit in bits(position.legal[color][corner]):
            pieces |= 1 << ORIENTATIONS[FITS[fit][0]].piece
    return pieces


def _room(position: Position, color: int) -> int:
    """Return the cells that the next placement of a colour could cover."""
    geometry, cells = position.geometry, 0
    for corner in _corners(position, color):
        for fit in bits(position.legal[color][corner]):
            cells |= geometry[FITS[fit][0]].cells << corner - geometry.anchors[fit]
    return cells


def reasons(played: Facts, better: Facts) -> list[tuple[float, str]]:
    """Return the differences of two moves as sentences with weights, see ``tilewe_jax.host.Coach``."""
    if not played["squares"]:
        return [(1e3, "It passes, although a piece fits.")]
    found: list[tuple[float, str]] = []
    stuck = _without(played["stuck"], better["stuck"])
    found.append((1.5 * _squares(stuck), f"It leaves no place for {_list(stuck)}; after the better move there is one."))
    stuck = _without(better["opponent_stuck"], played["opponent_stuck"])
    found.append((_squares(stuck), f"The better move leaves the opponent no place for {_list(stuck)}."))
    return found + differences(played, better, _DIFFERENCES)


def _without(names: Sequence[str], others: Iterable[str]) -> list[str]:
    """Return the names that are not among others, counting equal names of several colours."""
    rest = list(others)
    return [name for name in names if name not in rest or rest.remove(name)]  # type: ignore[func-returns-value]


def _squares(names: Iterable[str]) -> int:
    return sum(_SIZES[name] for name in names)


def _list(names: Sequence[str], most: int = 4) -> str:
    """Join names as in a sentence."""
    shown = [*names[:most], *([f"{len(names) - most} others"] if len(names) > most else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
