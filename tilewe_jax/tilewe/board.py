"""The Tilewe board of 20 x 20 tiles, with moves, turns, scores and undo."""

import random
import sys
from collections.abc import Iterable
from itertools import compress, islice, pairwise

from tilewe_jax.games.polyomino.config import tilewe
from tilewe_jax.games.polyomino.host import (
    BLOCK_OF,
    BLOCK_STARTS,
    FITS,
    Position,
    bits,
    explain_placement,
    flags,
    geometry,
)
from tilewe_jax.tilewe.constants import (
    COLOR_COUNT,
    COLOR_NAMES,
    NO_COLOR,
    PIECE_NAMES,
    PIECES,
    SIZE,
    TILE_COORDS,
    TILE_NAMES,
    Color,
    Piece,
    Tile,
    check_tile,
)
from tilewe_jax.tilewe.move import CONTACTS, NUMBERS, TILE_BITS, Move, move_of_value
from tilewe_jax.utils.checks import index

_CONFIGS = [tilewe(players=players) for players in range(1, COLOR_COUNT + 1)]
_GEOMETRY = geometry(SIZE)
_BIT = [_GEOMETRY.bit(cell) for cell in TILE_COORDS]
_TILE = {bit: tile for tile, bit in enumerate(_BIT)}
_CONTACTS = [(orientation, _BIT[contact]) for orientation, contact in CONTACTS]
"""The orientation of each contact, and the distance in bits from its anchor to the contact."""
_ANSI = (94, 93, 91, 92)


class _Block(dict[int, list[Move]]):
    """One of ``host.BLOCKS``: maps the bit of each tile to its moves, in the order of the fits; computed on first access."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        fits = [(i, x + SIZE * y) for i, (x, y) in FITS[start:end]]
        self.numbers = [NUMBERS[fit] for fit in fits if fit in NUMBERS]
        """The numbers of the contacts. Other fits are never legal on this board, because its start tiles are board corners."""
        self.start = start
        self.fits = {number: 1 << start + fit for fit, number in enumerate(self.numbers)}
        """The bit of the fit of each contact."""

    def __missing__(self, bit: int) -> list[Move]:
        tile = _TILE[bit]
        moves = self[bit] = [move_of_value(number << TILE_BITS | tile) for number in self.numbers]
        return moves


_BLOCKS = [_Block(start, end) for start, end in pairwise(BLOCK_STARTS)]
_BLOCK = [_BLOCKS[block] for block in BLOCK_OF]
"""The block of a set of fits, by the bit length of the set."""
_FEW = 12
"""Up to this number, the fits of a corner are extracted one by one; beyond it, scanning the whole block is faster."""


class IllegalMoveError(ValueError):
    """Raised for an illegal move."""


class Board:
    """A game of Tilewe with 1 to 4 players. Blue starts; blocked players are skipped; the game ends when all are blocked.

    Methods with the argument ``for_player`` treat this player as the player to move; ``None`` and ``NO_COLOR`` mean the player
    whose turn it is, and ``player`` is an alias. Other values raise ``AttributeError``.

    Raises ``AttributeError`` for an invalid number of players, and ``TypeError`` if it is not an integer.
    """

    def __init__(self, n_players: int = 4) -> None:
        if not 1 <= index(n_players) <= COLOR_COUNT:
            raise AttributeError("n_players must be between 1 and 4")
        self._position = Position(_CONFIGS[index(n_players) - 1])
        self._moves: list[Move] = []

    @classmethod
    def from_moves(cls, moves: Iterable[Move | str], n_players: int = 4) -> "Board":
        """Return the board after these moves. Raises ``IllegalMoveError`` for the first illegal move."""
        board = cls(n_players)
        for move in moves:
            board.push(Move.from_str(move) if isinstance(move, str) else move)
        return board

    @property
    def ply(self) -> int:
        """Number of moves made, without skipped turns."""
        return sum(len(PIECES) - hand.bit_count() for hand in self._position.hands)

    @property
    def current_player(self) -> Color:
        """The player to move; at the end, the player who moved last."""
        return self._position.color

    cur_player = current_player

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self._position.config.players

    @property
    def scores(self) -> list[int]:
        """Tiles that each player has placed."""
        return [occupied.bit_count() for occupied in self._position.occupied]

    @property
    def winners(self) -> list[Color]:
        """The players with the highest score so far."""
        scores = self.scores
        return [player for player, score in enumerate(scores) if score == max(scores)]

    @property
    def finished(self) -> bool:
        """True if no player can move."""
        return self._position.finished

    @property
    def moves(self) -> list[Move]:
        """The moves so far, in order."""
        return self._moves.copy()

    def generate_legal_moves(
        self, for_player: Color | None = None, *, unique: bool = True, player: Color | None = None
    ) -> list[Move]:
        """Return the legal moves, sorted by tile, piece, rotation and contact: one for each contact of a placement.

        ``unique`` has no effect: in version 0.0.1, False also listed equivalent rotations, which are equal moves here.
        """
        del unique
        asked = self._player(for_player, player)
        legal = self._position.legal[asked]
        moves: list[Move] = []
        for bit in sorted(legal):
            fits = legal[bit]
            block = _BLOCK[fits.bit_length()]
            row = block[bit]
            fits >>= block.start
            if fits.bit_count() > _FEW:
                moves += compress(row, flags(fits))
            else:
                few = []
                while fits:
                    fit = fits.bit_length() - 1
                    fits ^= 1 << fit
                    few.append(row[fit])
                few.reverse()
                moves += few
        return moves

    gen_moves = generate_legal_moves

    def random_legal_move(self) -> Move:
        """Return the same draw as ``random.choice(board.generate_legal_moves())``, without the list.

        Raises ``IndexError`` if no move is legal.
        """
        legal = self._position.legal[self._position.color]
        number = random.choice(range(self.n_legal_moves()))
        for bit in sorted(legal):
            fits = legal[bit]
            if number < fits.bit_count():
                break
            number -= fits.bit_count()
        block = _BLOCK[fits.bit_length()]
        fit = next(islice(bits(fits >> block.start), number, None))
        return move_of_value(block.numbers[fit] << TILE_BITS | _TILE[bit])

    def n_legal_moves(self, for_player: Color | None = None, *, unique: bool = True, player: Color | None = None) -> int:
        """Return the length of ``generate_legal_moves``, without the list."""
        del unique
        asked = self._player(for_player, player)
        return sum(map(int.bit_count, self._position.legal[asked].values()))

    def player_corners(self, for_player: Color | None = None, *, player: Color | None = None) -> list[Tile]:
        """Return the open corners on which the player can place a piece, ascending."""
        return [_TILE[bit] for bit in sorted(self._position.legal[self._player(for_player, player)])]

    def n_player_corners(self, for_player: Color | None = None, *, player: Color | None = None) -> int:
        """Return the number of ``player_corners``."""
        return len(self._position.legal[self._player(for_player, player)])

    def remaining_pieces(self, for_player: Color | None = None, *, player: Color | None = None) -> list[Piece]:
        """Return the pieces that the player has not placed, ascending."""
        return list(bits(self._position.hands[self._player(for_player, player)]))

    def n_remaining_pieces(self, for_player: Color | None = None, *, player: Color | None = None) -> int:
        """Return the number of ``remaining_pieces``."""
        return self._position.hands[self._player(for_player, player)].bit_count()

    def player_score(self, for_player: Color | None = None, *, player: Color | None = None) -> int:
        """Return the number of tiles that the player has placed."""
        return self._position.occupied[self._player(for_player, player)].bit_count()

    def can_play(self, for_player: Color | None = None, *, player: Color | None = None) -> bool:
        """Return whether the player has a legal move."""
        return self._position.can_place(self._player(for_player, player))

    def is_legal(self, move: Move, for_player: Color | None = None, *, player: Color | None = None) -> bool:
        """Return whether the player could make this move. Raises ``AttributeError`` for a value that is not a ``Move``."""
        asked = self._player(for_player, player)
        if not isinstance(move, Move):
            raise AttributeError("Must be a move")
        return self._allows(move, asked)

    def color_at(self, tile: Tile) -> Color:
        """Return the colour of a tile, ``NO_COLOR`` if it is empty. Raises ``AttributeError`` for an invalid tile."""
        bit = _BIT[check_tile(tile, "tile must be in bounds")]
        return next((player for player, cells in enumerate(self._position.occupied) if cells >> bit & 1), NO_COLOR)

    def push(self, move: Move) -> None:
        """Make a move.

        Raises ``AttributeError`` for a value that is not a ``Move``, and ``IllegalMoveError`` (a ``ValueError`` with the broken
        rule) for an illegal move; the board is then unchanged.
        """
        if not isinstance(move, Move):
            raise AttributeError("Must be a move")
        position = self._position
        if not self._allows(move, position.color):
            raise IllegalMoveError(f"{move} is illegal for {COLOR_NAMES[position.color]}: {self._why_illegal(move)}")
        number, tile = divmod(move._value, 1 << TILE_BITS)
        orientation, offset = _CONTACTS[number]
        position.place((orientation, _BIT[tile] - offset))
        self._moves.append(move)

    def pop(self) -> None:
        """Take the last move back. Raises ``IndexError`` at the start."""
        if not self._moves:
            raise IndexError("there is no move to take back")
        self._position.undo()
        self._moves.pop()

    def copy(self) -> "Board":
        """Return an independent copy of the board and its moves."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._position, twin._moves = self._position.copy(), self._moves.copy()
        return twin

    __copy__ = copy
    copy_current_state = copy

    def __deepcopy__(self, _: object) -> "Board":
        return self.copy()

    def __str__(self) -> str:
        # Read at each call, because users set it on the package.
        colored = getattr(sys.modules[__package__ or ""], "print_color", True)
        marks = [name[0].upper() for name in COLOR_NAMES]
        if colored:
            marks = [f"\x1b[{code}m{mark}\x1b[0m" for code, mark in zip(_ANSI, marks, strict=True)]
        marks.append(".")
        rows = [
            f"{y + 1:2d} " + "".join(marks[self.color_at(x + SIZE * y)] + " " for x in range(SIZE)) + "\n"
            for y in reversed(range(SIZE))
        ]
        rows.append("   " + "".join(f"{letter} " for letter in "abcdefghijklmnopqrst") + "\n")
        for player in range(self.n_players):
            pieces = "".join(PIECE_NAMES[piece] + " " for piece in self.remaining_pieces(player))
            rows.append(f"{marks[player]} {self.player_score(player):2d} [ {pieces}]\n")
        turn = "done" if self.finished else COLOR_NAMES[self.current_player]
        return "".join(rows) + f"Ply: {self.ply}, Turn: {turn}\n"

    def _repr_svg_(self) -> str:
        # Imported lazily, because most programs never draw a board.
        from tilewe_jax.draw.pictures import draw
        from tilewe_jax.draw.shapes import Options
        from tilewe_jax.games.polyomino.position import PolyominoPosition

        tiles = self._moves[-1].covered_tiles() if self._moves else []
        last = {"cells": [TILE_COORDS[tile] for tile in tiles]}
        return draw(PolyominoPosition(self._position).view(), Options(last=last))

    def _player(self, for_player: Color | None, player: Color | None) -> Color:
        asked = player if for_player is None else for_player
        if asked is None or index(asked) == NO_COLOR:
            return self._position.color
        if not 0 <= index(asked) < self.n_players:
            raise AttributeError("for_player must be valid or None")
        return index(asked)

    def _allows(self, move: Move, player: Color) -> bool:
        number, tile = divmod(move._value, 1 << TILE_BITS)
        fits = self._position.legal[player].get(_BIT[tile], 0)
        return bool(fits & _BLOCK[fits.bit_length()].fits.get(number, 0))

    def _why_illegal(self, move: Move) -> str:
        x, y = (to - contact for to, contact in zip(TILE_COORDS[move.to_tile], TILE_COORDS[move.contact], strict=True))
        rule = explain_placement(self._position, move.orientation, (x, y))
        return rule or f"{TILE_NAMES[move.to_tile]} is not an open corner"
