"""Settings of Triominos and numbering of its actions and cells. Pure Python."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from tilewe_jax.games.triominos.tiles import HEX_SCORES, HIGHEST, Cell, Tile, tiles

VERSION = 1
"""Version of the rules, see ``Game.version``."""
Start = Literal["random", "highest", "winner"]
Length = Literal["single", "target"]

SETS = {len(tiles(highest)): highest for highest in range(1, HIGHEST + 1)}
"""The highest number on the tiles of each set, by its size. The official sets have 56 and 84 tiles; others are for studies."""
TRAYS = {2: 9, 3: 7, 4: 7, 5: 6, 6: 6}
"""Number of tiles dealt to each player, by the number of players."""
MAX_DRAWS = 3
"""Maximum number of tiles drawn in a turn."""
DRAW_SCORE, PASS_SCORE = -5, -10
OUT_SCORE = 25
"""Points for placing the last tile of a tray, in addition to the values of the other trays."""
FIRST_TRIPLE_SCORE, FIRST_ZEROS_SCORE = 10, 40
"""Bonuses with ``start="highest"`` for a triple as the first tile, and for the tile of three zeros."""


@dataclass(frozen=True)
class Config:
    """Triangular tiles with three numbers, hidden trays and a pile to draw from.

    Raises ``ValueError`` for invalid settings.
    """

    players: int = 2
    """Number of players, 2 to 6."""
    tiles: int = 56
    """Number of tiles: 56, 84, or for studies 4, 10, 20, 35."""
    start: Start = "random"
    """First player of a round: a random player ("random"), the holder of the highest tile, which must be placed first
    ("highest"), or the winner of the previous round ("winner")."""
    game: Length = "single"
    """Length of a game: one round ("single"), or rounds until a player has ``target`` points at the end of one ("target")."""
    target: int = 400
    """Points that end a game of length "target", 1 to 10,000."""
    hex_scores: tuple[int, int, int] = HEX_SCORES
    """Points for completing one, two and three hexagons with a tile, 0 to 1,000 each."""
    max_rounds: int = 20
    """Number of rounds after which a game to a target is truncated, 1 to 100."""
    tray: int | None = None
    """Number of tiles dealt to each player; ``None`` selects the default of ``TRAYS``."""

    def __post_init__(self) -> None:
        if self.players not in TRAYS:
            raise ValueError(f"players must be 2 to 6, got {self.players}")
        for name, choices in (("tiles", SETS), ("start", get_args(Start)), ("game", get_args(Length))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, got {getattr(self, name)!r}")
        if not 1 <= self.target <= 10_000:
            raise ValueError(f"target must be 1 to 10000 points, got {self.target}")
        if not 1 <= self.max_rounds <= 100:
            raise ValueError(f"max_rounds must be 1 to 100, got {self.max_rounds}")
        scores = tuple(self.hex_scores)
        if len(scores) != 3 or not all(type(score) is int and 0 <= score <= 1000 for score in scores):
            raise ValueError(f"hex_scores must be three integers from 0 to 1000, got {self.hex_scores!r}")
        object.__setattr__(self, "hex_scores", scores)
        if self.tray is not None and (type(self.tray) is not int or self.tray < 1):
            raise ValueError(f"tray must be a positive number of tiles, got {self.tray!r}")
        if self.players * self.dealt > self.tiles:
            raise ValueError(f"tray must be at most {self.tiles // self.players} with {self.tiles} tiles, got {self.dealt}")

    @property
    def highest(self) -> int:
        """The highest number on a tile."""
        return SETS[self.tiles]

    @property
    def numbers(self) -> int:
        """Number of different numbers on the tiles."""
        return self.highest + 1

    @property
    def dealt(self) -> int:
        """Number of tiles dealt to each player."""
        return TRAYS[self.players] if self.tray is None else self.tray

    @cached_property
    def tile_list(self) -> tuple[Tile, ...]:
        """All tiles by id."""
        return tiles(self.highest)

    @property
    def columns(self) -> int:
        """Columns of the torus on which cells are numbered, enough that no figure of ``tiles - 1`` tiles wraps around."""
        return (self.tiles + 3) // 2 * 2

    @property
    def rows(self) -> int:
        """Rows of the torus."""
        return (self.tiles // 2 + 3) // 2 * 2

    @property
    def cells(self) -> int:
        """Cells of the torus."""
        return self.rows * self.columns

    @property
    def frontier_size(self) -> int:
        """Capacity of the frontier: the first tile has three free neighbours, every other tile adds at most one."""
        return self.tiles + 2

    @property
    def first(self) -> int:
        """Id of the action that starts a round with tile 0; the ids for the other tiles follow."""
        return self.cells * self.numbers

    @property
    def draw(self) -> int:
        """Id of the action that draws a tile."""
        return self.first + self.tiles

    @property
    def pass_(self) -> int:
        """Id of the action that passes."""
        return self.draw + 1

    @property
    def num_actions(self) -> int:
        """Number of action ids."""
        return self.pass_ + 1

    @property
    def rounds(self) -> int:
        """Upper bound of the number of rounds of a game."""
        return 1 if self.game == "single" else self.max_rounds

    @property
    def max_steps(self) -> int:
        """Upper bound of the number of actions of a game.

        In a round each tile is placed at most once, each tile of the pile is drawn at most once, and n passes in a row end it.
        """
        passes = (self.players - 1) * (self.tiles + 1) + 1
        return self.rounds * (self.tiles + self.tiles - self.players * self.dealt + passes)

    def wrapped(self, cell: Cell) -> int:
        """The number of a cell of the plane on the torus."""
        return cell[1] % self.rows * self.columns + cell[0] % self.columns
