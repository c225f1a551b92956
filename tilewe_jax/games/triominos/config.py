"""The settings of a game of Triominos, and the numbering of its actions and cells. Pure Python."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from tilewe_jax.games.triominos.tiles import HEX_SCORES, HIGHEST, Cell, Tile, tiles

VERSION = 1
"""Version of the rules, see ``Game.version``."""
Start = Literal["random", "highest", "winner"]
Length = Literal["single", "target"]

SETS = {len(tiles(highest)): highest for highest in range(1, HIGHEST + 1)}
"""The highest number on the tiles of each set, by its size. The rules know 56 and 84 tiles; smaller sets are for studies."""
TRAYS = {2: 9, 3: 7, 4: 7, 5: 6, 6: 6}
"""Tiles dealt to each player, by the number of players."""
MAX_DRAWS = 3
"""Tiles that may be drawn in a turn."""
DRAW_SCORE, PASS_SCORE = -5, -10
OUT_SCORE = 25
"""Points for placing the last tile of a tray, besides the values of the other trays."""
FIRST_TRIPLE_SCORE, FIRST_ZEROS_SCORE = 10, 40
"""Points for a first tile that is a triple, or the one of three zeros, where the highest tile begins; besides its numbers."""


@dataclass(frozen=True)
class Config:
    """The settings of a game. Raises ``ValueError`` for values outside of the ranges described here."""

    players: int = 2
    """Number of players, 2 to 6."""
    tiles: int = 56
    """Number of tiles: 56, 84, or one of the small sets 4, 10, 20, 35."""
    start: Start = "random"
    """The player who starts a round: one drawn uniformly ("random"), the holder of the highest tile, which must be placed
    first ("highest"), or the winner of the last round ("winner")."""
    game: Length = "single"
    """The length of a game: one round ("single"), or rounds until a player has ``target`` points after one ("target")."""
    target: int = 400
    """Points that end a game of length "target", 1 to 10,000."""
    hex_scores: tuple[int, int, int] = HEX_SCORES
    """Points for completing one, two and three hexagons with a tile, 0 to 1,000 each."""
    max_rounds: int = 20
    """Rounds after which a game to a target is truncated, 1 to 100."""
    tray: int | None = None
    """Tiles dealt to each player; ``None`` stands for 9 for two players, 7 for three and four, 6 for more."""

    def __post_init__(self) -> None:
        if self.players not in TRAYS:
            raise ValueError(f"players must be 2 to 6, not {self.players}")
        if self.tiles not in SETS:
            raise ValueError(f"tiles must be one of {', '.join(map(str, SETS))}, not {self.tiles}")
        if self.start not in get_args(Start):
            raise ValueError(f"start must be one of {', '.join(get_args(Start))}, not {self.start!r}")
        if self.game not in get_args(Length):
            raise ValueError(f"game must be one of {', '.join(get_args(Length))}, not {self.game!r}")
        if not 1 <= self.target <= 10_000:
            raise ValueError(f"target must be 1 to 10000 points, not {self.target}")
        if not 1 <= self.max_rounds <= 100:
            raise ValueError(f"max_rounds must be 1 to 100, not {self.max_rounds}")
        scores = tuple(self.hex_scores)
        if len(scores) != 3 or not all(type(score) is int and 0 <= score <= 1000 for score in scores):
            raise ValueError(f"hex_scores must be three integers from 0 to 1000, not {self.hex_scores!r}")
        object.__setattr__(self, "hex_scores", scores)
        if self.tray is not None and (type(self.tray) is not int or self.tray < 1):
            raise ValueError(f"tray must be a positive number of tiles, not {self.tray!r}")
        if self.players * self.dealt > self.tiles:
            raise ValueError(
                f"tray must be at most {self.tiles // self.players}, as there are {self.tiles} tiles, not {self.dealt}"
            )

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
        """Tiles dealt to each player."""
        return TRAYS[self.players] if self.tray is None else self.tray

    @cached_property
    def tile_list(self) -> tuple[Tile, ...]:
        """All tiles, by id."""
        return tiles(self.highest)

    @property
    def columns(self) -> int:
        """Columns of the torus on which cells are numbered, enough that no figure of all tiles but one can meet itself."""
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
        """Capacity of the frontier, the free cells beside a tile: the first tile has three, every other adds at most one."""
        return self.tiles + 2

    @property
    def first(self) -> int:
        """Id of the action that begins a round with tile 0; those of the other tiles follow."""
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


def triominos(
    players: int = 2,
    tiles: int = 56,
    start: Start = "random",
    game: Length = "single",
    target: int = 400,
    hex_scores: tuple[int, int, int] = HEX_SCORES,
    max_rounds: int = 20,
    tray: int | None = None,
) -> Config:
    """Triangular tiles with three numbers, hidden trays and a pile to draw from."""
    return Config(players, tiles, start, game, target, hex_scores, max_rounds, tray)
