"""Parameters of the rules, and the variants as functions that set them. Plain Python, without JAX.

The rules depend on the parameters only: a variant without a new rule is a function here and an entry in ``VARIANTS``.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES, PIECE_SIZES, Cell, Orientation
from tilewe_jax.utils.checks import index, shown

Index = TypeVar("Index", bound=Any)
"""An index: an integer, or an array of them."""
Pieces = Sequence[str] | None
"""Names of the pieces in play; ``None`` for all."""
StartCells = Sequence[Sequence[Cell]] | None
"""A list of (x, y) for each colour; ``None`` for the start cells of the variant."""

VERSION = 1
"""Version of the rules, see ``Game.version``."""
MIN_SIZE, MAX_SIZE = 3, 32
MAX_COLORS = 4
MOVEGENS = ("bitboard", "conv")


@dataclass(frozen=True)
class Config:
    """Parameters of a polyomino placement game. Cells are (x, y) with (0, 0) at the bottom left.

    Colours move in turn, each with its own pieces. A player has one colour or two, and values belong to players.

    Raises ``ValueError`` for invalid parameters.
    """

    name: str
    """The id under which the variant is registered."""
    size: int
    """Cells on each side of the square board, 3 to 32."""
    players: int
    """Number of players, 1 to 4."""
    start_cells: tuple[tuple[Cell, ...], ...]
    """Start cells of each colour, of which its first piece must cover one."""
    colors_per_player: int = 1
    """Number of colours of each player, see ``owner``."""
    pieces: tuple[int, ...] = tuple(range(len(PIECE_NAMES)))
    """The pieces of each colour, as ascending indices into ``PIECE_NAMES``."""
    start_piece: str | None = None
    """Name of the piece that every colour must place first; ``None`` for any."""
    starts_stay_open: bool = False
    """Start cells count as open corners for the whole game (modified Duo), not for the first piece only."""
    bonus_all: int = 0
    """Points for placing all pieces."""
    bonus_monomino_last: int = 0
    """Additional points if all pieces are placed and the single cell came last."""
    voluntary_pass: bool = False
    """A colour may pass, and is then out for the rest of the game; adds the action ``num_actions - 1``."""
    movegen: str = "bitboard"
    """The generator of legal placements: "bitboard" (packed words, fast) or "conv" (dense convolution). Both find the same
    placements but number them differently, so that the same key draws different random actions."""

    def __post_init__(self) -> None:
        if self.movegen not in MOVEGENS:
            raise ValueError(f"movegen must be one of {', '.join(MOVEGENS)}, not {self.movegen!r}")
        if not MIN_SIZE <= self.size <= MAX_SIZE:
            raise ValueError(f"size must be {MIN_SIZE} to {MAX_SIZE}, not {self.size}")
        if not 1 <= self.players <= MAX_COLORS:
            raise ValueError(f"players must be 1 to {MAX_COLORS}, not {self.players}")
        if len(self.start_cells) != self.colors:
            raise ValueError(f"start_cells must have a list for each of {self.colors} colours, not {len(self.start_cells)}")
        for color, cells in enumerate(self.start_cells):
            is_inside = all(0 <= x < self.size and 0 <= y < self.size for x, y in cells)
            if not cells or not is_inside or len(set(cells)) != len(cells):
                raise ValueError(
                    f"start_cells of colour {color} must be one or more different (x, y) with 0 <= x, y < {self.size},"
                    f" not {shown(cells)}"
                )
        names = [PIECE_NAMES[piece] for piece in self.pieces]
        if self.start_piece is not None and self.start_piece not in names:
            raise ValueError(f"start_piece must be one of the pieces in play, {' '.join(names)}, not {self.start_piece!r}")

    @property
    def colors(self) -> int:
        """Number of colours, which move in turn from 0 on."""
        return self.players * self.colors_per_player

    def owner(self, color: Index) -> Index:
        """Return the player of a colour; consecutive colours belong to consecutive players."""
        owner: Index = color if self.colors_per_player == 1 else color % self.players
        return owner

    @property
    def cells(self) -> int:
        """Number of cells of the board. Cell (x, y) is bit ``y * size + x`` of a packed board."""
        return self.size * self.size

    @property
    def num_placements(self) -> int:
        """Number of action ids of placements: every orientation anchored at every cell, whether it fits there or not."""
        return len(ORIENTATIONS) * self.cells

    def is_placement(self, action: Any) -> Any:
        """Return whether an action, or each action of an array, is a placement: not a pass, and not out of range."""
        return (action >= 0) & (action < self.num_placements)

    @property
    def num_actions(self) -> int:
        """Number of action ids: placements, and the pass of variants with ``voluntary_pass``."""
        return self.num_placements + self.voluntary_pass

    @property
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game."""
        return self.colors * (len(self.pieces) + self.voluntary_pass)

    @cached_property
    def orientations(self) -> tuple[int, ...]:
        """The orientations of the pieces in play, as indices into ``ORIENTATIONS``."""
        return tuple(i for i, orientation in enumerate(ORIENTATIONS) if orientation.piece in self.pieces)

    @property
    def full_hand(self) -> int:
        """Bit set of all pieces in play, bit ``p`` for piece ``p``."""
        return sum(1 << piece for piece in self.pieces)

    @property
    def first_hand(self) -> int:
        """Bit set of the pieces that may be placed first."""
        return self.full_hand if self.start_piece is None else 1 << PIECE_NAMES.index(self.start_piece)

    @property
    def max_score(self) -> int:
        """Number of cells of all pieces of one player."""
        return self.colors_per_player * sum(PIECE_SIZES[piece] for piece in self.pieces)

    def bit(self, cell: Cell) -> int:
        """Index of the bit of a cell."""
        x, y = cell
        return y * self.size + x

    def fits(self, orientation: Orientation, cell: Cell) -> bool:
        """Return whether a piece whose bounding box starts at ``cell`` lies on the board."""
        return all(0 <= cell[0] + x < self.size and 0 <= cell[1] + y < self.size for x, y in orientation.cells)


def tilewe(
    players: int = 4, size: int = 20, pieces: Pieces = None, start_cells: StartCells = None, movegen: str = "bitboard"
) -> Config:
    """Tilewe, 1 to 4 players: each starts in a free corner of the board. Points are cells placed."""
    last = size - 1
    corners = ((0, 0), (last, 0), (0, last), (last, last))
    return _config("tilewe", size, players, [corners] * min(players, len(corners)), pieces, start_cells, movegen)


def duo(
    size: int = 14,
    pieces: Pieces = None,
    start_cells: StartCells = None,
    voluntary_pass: bool = False,
    movegen: str = "bitboard",
) -> Config:
    """The modified Duo: start in either corner of the own side; both stay open. Points are cells placed."""
    last = size - 1
    starts = [((0, last), (last, last)), ((0, 0), (last, 0))]
    return _config("duo", size, 2, starts, pieces, start_cells, movegen, starts_stay_open=True, voluntary_pass=voluntary_pass)


def duo_official(size: int = 14, pieces: Pieces = None, start_cells: StartCells = None, movegen: str = "bitboard") -> Config:
    """Blokus Duo by the book: one start cell each, inside the board. 15 points for all pieces, 5 more for O1 last."""
    near = size * 4 // 14
    far = size - 1 - near
    starts = [((near, far),), ((far, near),)]
    return _config("duo_official", size, 2, starts, pieces, start_cells, movegen, bonus_all=15, bonus_monomino_last=5)


def classic(size: int = 20, pieces: Pieces = None, start_cells: StartCells = None, movegen: str = "bitboard") -> Config:
    """The four-colour game by the book: one corner each, clockwise from the top left. Bonuses as in the official Duo."""
    last = size - 1
    starts = [((0, last),), ((last, last),), ((last, 0),), ((0, 0),)]
    return _config("classic", size, 4, starts, pieces, start_cells, movegen, bonus_all=15, bonus_monomino_last=5)


def classic_2(
    size: int = 20,
    pieces: Pieces = None,
    start_cells: StartCells = None,
    start_piece: str | None = None,
    movegen: str = "bitboard",
) -> Config:
    """The classic game for two players with two colours each, blue and red against yellow and green; their points add up.

    With a ``start_piece`` it is the game of the Software-Challenge 2026/27: every colour places that piece first, with any of
    its cells on the border of the board.
    """
    four = classic(size, pieces, start_cells, movegen)  # First, because it rejects sizes whose border would take gigabytes.
    if start_piece is not None and start_cells is None:
        edges = (0, size - 1)
        border = tuple((x, y) for y in range(size) for x in range(size) if x in edges or y in edges)
        four = replace(four, start_cells=(border,) * 4)
    return replace(four, name="classic_2", players=2, colors_per_player=2, start_piece=start_piece)


VARIANTS: dict[str, Callable[..., Config]] = {
    "tilewe": tilewe,
    "duo": duo,
    "duo_official": duo_official,
    "classic": classic,
    "classic_2": classic_2,
}
"""The variants by id: functions of the options of the game."""


def options_of(config: Config) -> dict[str, Any]:
    """Return the options of a configuration that differ from the defaults of its variant, as JSON values."""
    variant = VARIANTS[config.name]
    default = variant()
    options = {
        name: getattr(config, name)
        for name in inspect.signature(variant).parameters
        if name not in ("pieces", "start_cells") and getattr(config, name) != getattr(default, name)
    }
    if config.pieces != default.pieces:
        options["pieces"] = [PIECE_NAMES[piece] for piece in config.pieces]
    if config.start_cells != variant(**options).start_cells:
        options["start_cells"] = [[list(cell) for cell in cells] for cells in config.start_cells]
    return options


def _config(
    name: str,
    size: int,
    players: int,
    default_starts: Sequence[Sequence[Cell]],
    pieces: Pieces,
    start_cells: StartCells,
    movegen: str,
    **rules: Any,
) -> Config:
    try:
        given = default_starts if start_cells is None else start_cells
        starts = tuple(tuple((index(x), index(y)) for x, y in cells) for cells in given)
    except (TypeError, ValueError):
        raise ValueError(f"start_cells must be a list of (x, y) for each colour, not {shown(start_cells)}") from None
    names: Any = PIECE_NAMES if pieces is None else pieces
    if not isinstance(names, list | tuple) or not names or not all(name in PIECE_NAMES for name in names):
        raise ValueError(f"pieces must be names among {' '.join(PIECE_NAMES)}, not {shown(names)}")
    indices = tuple(sorted({PIECE_NAMES.index(name) for name in names}))
    return Config(name, size, players, starts, pieces=indices, movegen=movegen, **rules)
