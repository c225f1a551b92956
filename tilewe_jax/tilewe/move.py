"""Moves: a piece in a rotation, with one of its tiles on a tile of the board."""

import re
from functools import total_ordering
from typing import Any, NoReturn, final

from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.tilewe.constants import (
    PIECE_COUNT,
    PIECE_NAMES,
    PIECES,
    ROTATION_COUNT,
    ROTATION_NAMES,
    ROTATIONS,
    SIZE,
    TILE_NAMES,
    TILES,
    Piece,
    Rotation,
    Tile,
    orientation,
    piece_contacts,
)
from tilewe_jax.utils.checks import index

TILE_BITS = 9

CONTACTS = [(i, x + SIZE * y) for i, oriented in enumerate(ORIENTATIONS) for x, y in oriented.contacts]
"""Pairs of orientation and contact, in the order of moves: by piece, rotation and contact."""
_DISTANCES = [[x + SIZE * y - contact for x, y in ORIENTATIONS[i].cells] for i, contact in CONTACTS]
"""For each of them the distances from the contact to the tiles of the piece."""
NUMBERS = {contact: number for number, contact in enumerate(CONTACTS)}
_NAMES = [ORIENTATIONS[i].name + "-" + TILE_NAMES[contact] for i, contact in CONTACTS]
_TILE = {name: tile for tile, name in enumerate(TILE_NAMES)}
_TEXT = re.compile(r"([A-Z]\d)([nesw]f?)-([a-t]\d\d?)([a-t]\d\d?)")


@final
@total_ordering
class Move:
    """An immutable move: ``piece`` in ``rotation``, with its tile ``contact`` on ``to_tile``, legal or not.

    ``contact`` is relative to the bounding box of the rotated piece, whose bottom left is A01. Equivalent rotations become the
    first of them. Moves compare and sort by piece, rotation, contact, tile.

    Raises ``AttributeError`` for missing or invalid parameters.
    """

    __slots__ = ("_value",)
    _value: int
    """Number of the contact, and in the lowest 9 bits the tile."""

    def __new__(cls, *_: Any, **__: Any) -> "Move":
        """Create the move ``O1n-a1a1``, which ``__init__`` overwrites."""
        return move_of_value(0)

    def __init__(
        self,
        piece: Piece | None = None,
        rotation: Rotation | None = None,
        contact: Tile | None = None,
        to_tile: Tile | None = None,
    ) -> None:
        try:
            p, r, c, t = (index(given) for given in (piece, rotation, contact, to_tile))
        except TypeError:
            raise AttributeError("all parameters must be used") from None
        valid = 0 <= p < PIECE_COUNT and 0 <= r < ROTATION_COUNT and 0 <= t < len(TILES)
        number = NUMBERS.get((orientation(p, r), c)) if valid else None
        if number is None:
            raise AttributeError("move must have a valid piece, rotation, contact, and tile combination")
        _set_value(self, number << TILE_BITS | t)

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("type 'Move' is not an acceptable base type")

    @staticmethod
    def from_str(text: str) -> "Move":
        """Parse a move like ``F5e-a2d4``, with any of the eight rotations, the inverse of ``str``. Raises ``ValueError``."""
        match = _TEXT.fullmatch(text)
        named = match and match[1] in PIECE_NAMES and match[2] in ROTATION_NAMES and match[3] in _TILE and match[4] in _TILE
        if not match or not named:
            raise ValueError(f"{text!r} is not a move; moves are written like F5e-a2d4 (piece, rotation, contact, tile)")
        piece, rotation = PIECES[PIECE_NAMES.index(match[1])], ROTATIONS[ROTATION_NAMES.index(match[2])]
        try:
            return Move(piece, rotation, _TILE[match[3]], _TILE[match[4]])
        except AttributeError:
            contacts = " ".join(TILE_NAMES[contact] for contact in piece_contacts(piece, rotation))
            raise ValueError(f"{text!r}: the contacts of {match[1]}{match[2]} are {contacts}") from None

    @property
    def piece(self) -> Piece:
        """The piece."""
        return ORIENTATIONS[self.orientation].piece

    @property
    def rotation(self) -> Rotation:
        """The first of the eight rotations that gives the same tiles."""
        return ORIENTATIONS[self.orientation].rotation

    @property
    def contact(self) -> Tile:
        """The tile of the piece that lies on ``to_tile``."""
        return CONTACTS[self._value >> TILE_BITS][1]

    @property
    def to_tile(self) -> Tile:
        """The tile of the board; an open corner if the move is legal."""
        return self._value & (1 << TILE_BITS) - 1

    @property
    def orientation(self) -> int:
        """Index of piece and rotation among the 91 orientations."""
        return CONTACTS[self._value >> TILE_BITS][0]

    def covered_tiles(self) -> list[Tile]:
        """Return the tiles of the board that the piece covers, ascending, for a move within the board."""
        tile = self._value & (1 << TILE_BITS) - 1
        return [tile + distance for distance in _DISTANCES[self._value >> TILE_BITS]]

    def is_equal(self, value: "Move") -> bool:
        """Alias of ``==`` (version 0.0.1)."""
        return self == value

    def to_unique(self) -> "Move":
        """Return the move itself, which is already unique (version 0.0.1)."""
        return self

    def __str__(self) -> str:
        return _NAMES[self._value >> TILE_BITS] + TILE_NAMES[self.to_tile]

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Move) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._value < other._value if isinstance(other, Move) else NotImplemented

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"moves are immutable, cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"moves are immutable, cannot delete {name}")

    def __getstate__(self) -> int:
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._value,)


_set_value = Move.__dict__["_value"].__set__  # Bypasses the immutability.


def move_of_value(value: int) -> Move:
    """Return the move with this ``__getstate__``, without checks."""
    move = object.__new__(Move)
    _set_value(move, value)
    return move


def _unpickle(value: object) -> Move:
    if not isinstance(value, int):
        raise ValueError("Pickled object is not an int.")
    if not (0 <= value >> TILE_BITS < len(CONTACTS) and value & (1 << TILE_BITS) - 1 < len(TILES)):
        raise ValueError("Pickled object is not a valid move.")
    return move_of_value(value)
