"""The variants as data: one rules engine reads these parameters and knows no variant by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES, PIECE_SIZES, Cell, Orientation

MIN_SIZE, MAX_SIZE = 3, 32
MAX_PLAYERS = 4
MOVEGENS = ("bitboard", "conv")


@dataclass(frozen=True)
class Config:
    """Parameters of a polyomino placing game. Cells are (x, y) with (0, 0) at the bottom left.

    Raises ``ValueError`` where they make no game.
    """

    name: str
    """The id under which the variant is registered."""
    size: int
    """Cells on each side of the square board, 3 to 32."""
    players: int
    """Number of players, 1 to 4."""
    start_cells: tuple[tuple[Cell, ...], ...]
    """For each player the cells of which the first piece must cover one."""
    pieces: tuple[int, ...] = tuple(range(len(PIECE_NAMES)))
    """The pieces each player has, as indices into ``PIECE_NAMES``, ascending."""
    starts_stay_open: bool = False
    """Whether start cells count as open corners for the whole game (the modified Duo), or for the first piece only."""
    bonus_all: int = 0
    """Points for placing all pieces."""
    bonus_monomino_last: int = 0
    """Further points if the last of them was the single cell."""
    voluntary_pass: bool = False
    """Whether a player may pass, and is then out for the rest of the game; adds the action ``num_actions - 1``."""
    movegen: str = "bitboard"
    """Which generator finds the legal placements: "bitboard" (packed words, fast) or "conv" (dense). Same results."""

    def __post_init__(self) -> None:
        if self.movegen not in MOVEGENS:
            raise ValueError(f"movegen must be one of {', '.join(MOVEGENS)}, not {self.movegen!r}")
        if not MIN_SIZE <= self.size <= MAX_SIZE:
            raise ValueError(f"size must be {MIN_SIZE} to {MAX_SIZE}, not {self.size}")
        if not 1 <= self.players <= MAX_PLAYERS:
            raise ValueError(f"players must be 1 to {MAX_PLAYERS}, not {self.players}")
        if len(self.start_cells) != self.players:
            raise ValueError(f"start_cells must name cells for {self.players} players, not {len(self.start_cells)}")
        for player, cells in enumerate(self.start_cells):
            if not cells or not all(0 <= x < self.size and 0 <= y < self.size for x, y in cells):
                raise ValueError(
                    f"start_cells of player {player} must be one or more (x, y) with 0 <= x, y < {self.size}, not {cells}"
                )
        if list(self.pieces) != sorted(set(self.pieces) & set(range(len(PIECE_NAMES)))) or not self.pieces:
            raise ValueError(f"pieces must be ascending indices from 0 to {len(PIECE_NAMES) - 1}, not {self.pieces}")

    @property
    def cells(self) -> int:
        """Cells of the board; cell (x, y) is bit ``y * size + x`` of a board."""
        return self.size * self.size

    @property
    def num_placements(self) -> int:
        """Number of ids that stand for placements: every orientation at every cell, on the board or not."""
        return len(ORIENTATIONS) * self.cells

    @cached_property
    def orientations(self) -> tuple[int, ...]:
        """Indices of the orientations of the pieces in play."""
        return tuple(i for i, orientation in enumerate(ORIENTATIONS) if orientation.piece in self.pieces)

    @property
    def full_hand(self) -> int:
        """The set of all pieces in play, bit ``p`` for piece ``p``."""
        return sum(1 << piece for piece in self.pieces)

    @property
    def max_score(self) -> int:
        """Cells of all pieces of one player."""
        return sum(PIECE_SIZES[piece] for piece in self.pieces)

    def bit(self, cell: Cell) -> int:
        """Index of the bit of a cell."""
        x, y = cell
        return y * self.size + x

    def fits(self, orientation: Orientation, cell: Cell) -> bool:
        """Whether a piece whose bounding box starts at ``cell`` lies on the board."""
        return all(0 <= cell[0] + x < self.size and 0 <= cell[1] + y < self.size for x, y in orientation.cells)


def piece_indices(names: Sequence[str] | None) -> tuple[int, ...]:
    """Piece names as indices; all pieces for ``None``. Raises ``ValueError`` for other names."""
    if names is None:
        return tuple(range(len(PIECE_NAMES)))
    unknown = [name for name in names if name not in PIECE_NAMES]
    if isinstance(names, str) or unknown:
        raise ValueError(f"pieces must be names among {' '.join(PIECE_NAMES)}, not {names!r}")
    return tuple(sorted({PIECE_NAMES.index(name) for name in names}))
