"""A move: which piece, in which rotation, with which of its tiles on which tile of the board."""

import re
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

# A named way to lay a piece: orientation and contact. Numbered by piece, rotation, contact, like the moves they give.
CONTACTS = [(i, x + SIZE * y) for i, oriented in enumerate(ORIENTATIONS) for x, y in oriented.contacts]
# For each of them the distances from the contact to the tiles of the piece.
_DISTANCES = [[x + SIZE * y - contact for x, y in ORIENTATIONS[i].cells] for i, contact in CONTACTS]
NUMBERS = {contact: number for number, contact in enumerate(CONTACTS)}
_NAMES = [ORIENTATIONS[i].name + "-" + TILE_NAMES[contact] for i, contact in CONTACTS]
_TILE = {name: tile for tile, name in enumerate(TILE_NAMES)}
_TEXT = re.compile(r"([A-Z]\d)([nesw]f?)-([a-t]\d\d?)([a-t]\d\d?)")


@final
class Move:
    """``piece`` in ``rotation``, its tile ``contact`` laid on ``to_tile``; immutable.

    ``contact`` counts from the bottom left of the rotated piece: A01 is the tile in that corner of its bounding box. A
    rotation that looks like an earlier one becomes that one. Moves compare and sort by piece, rotation, contact, tile.

    Raises ``AttributeError`` where a parameter is missing or they make no move. Whether it can be played is for the board
    to say.
    """

    __slots__ = ("_value",)
    _value: int
    """Number of the contact, and in the lowest 9 bits the tile."""

    def __new__(cls, *_: Any, **__: Any) -> "Move":
        """The move of value 0, ``O1n-a1a1``, for ``__init__`` to make another of."""
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
        """The inverse of ``str``: ``F5e-a2d4``. Any of the eight rotations will do. Raises ``ValueError``."""
        match = _TEXT.fullmatch(text)
        named = match and match[1] in PIECE_NAMES and match[2] in ROTATION_NAMES and match[3] in _TILE and match[4] in _TILE
        if not match or not named:
            raise ValueError(f"{text!r} is no move; moves are written like F5e-a2d4: piece, rotation, contact, tile")
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
        """The rotation: the first of the eight that looks like it."""
        return ORIENTATIONS[self.orientation].rotation

    @property
    def contact(self) -> Tile:
        """The tile of the piece that lies on ``to_tile``."""
        return CONTACTS[self._value >> TILE_BITS][1]

    @property
    def to_tile(self) -> Tile:
        """The tile of the board, an open corner where the move is legal."""
        return self._value & (1 << TILE_BITS) - 1

    @property
    def orientation(self) -> int:
        """Index of piece and rotation among the 91 orientations."""
        return CONTACTS[self._value >> TILE_BITS][0]

    def covered_tiles(self) -> list[Tile]:
        """The tiles of the board that the piece covers, ascending, where the move lies on the board."""
        tile = self._value & (1 << TILE_BITS) - 1
        return [tile + distance for distance in _DISTANCES[self._value >> TILE_BITS]]

    def is_equal(self, value: "Move") -> bool:
        """``==``; of version 0.0.1."""
        return self == value

    def to_unique(self) -> "Move":
        """The move itself, which has the first of its names since it was made; of version 0.0.1."""
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

    def __le__(self, other: object) -> bool:
        return self._value <= other._value if isinstance(other, Move) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._value > other._value if isinstance(other, Move) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._value >= other._value if isinstance(other, Move) else NotImplemented

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a move cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a move cannot be changed: {name}")

    def __getstate__(self) -> int:
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._value,)

    def __copy__(self) -> "Move":
        return self

    def __deepcopy__(self, _: object) -> "Move":
        return self


_set_value = Move.__dict__["_value"].__set__  # past the immutability


def move_of_value(value: int) -> Move:
    """The move whose ``__getstate__`` gave this number; trusted to be one."""
    move = object.__new__(Move)
    _set_value(move, value)
    return move


def _unpickle(value: object) -> Move:
    if not isinstance(value, int):
        raise ValueError("Pickled object is not an int.")
    if not (0 <= value >> TILE_BITS < len(CONTACTS) and value & (1 << TILE_BITS) - 1 < len(TILES)):
        raise ValueError("Pickled object is not a valid move.")
    return move_of_value(value)
