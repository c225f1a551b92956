"""Which Triominos: players, tiles, who starts, and the numbering of actions. Pure Python."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from tilewe_jax.games.triominos.tiles import HEX_SCORES, HIGHEST, Cell, Tile, tiles

Start = Literal["random", "highest", "winner"]
Length = Literal["single", "target"]

SETS = {len(tiles(highest)): highest for highest in range(1, HIGHEST + 1)}
"""The highest number of each set of tiles, by its size. The rules know 56 and 84; the small ones are for studies."""
TRAYS = {2: 9, 3: 7, 4: 7, 5: 6, 6: 6}
"""Tiles dealt to each, by the number of players."""
MAX_DRAWS = 3


@dataclass(frozen=True)
class Config:
    """The settings of a game. Raises ``ValueError`` for values outside of what is described here."""

    players: int = 2
    """2 to 6."""
    tiles: int = 56
    """Number of tiles: 56, 84, or one of the small sets 4, 10, 20, 35."""
    start: Start = "random"
    """Chance decides who starts a round; or the highest tile, which must then be placed; or the winner of the last round."""
    game: Length = "single"
    """One round; or rounds until somebody has ``target`` points after one."""
    target: int = 400
    hex_scores: tuple[int, int, int] = HEX_SCORES
    """What one, two and three hexagons score."""
    max_rounds: int = 20
    """A game to a target is truncated after so many rounds."""
    tray: int | None = None
    """Tiles dealt to each; ``None`` is 9 for two players, 7 for three and four, 6 for more."""

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
        """How many numbers there are."""
        return self.highest + 1

    @property
    def dealt(self) -> int:
        """Tiles dealt to each player."""
        return TRAYS[self.players] if self.tray is None else self.tray

    @cached_property
    def tile_list(self) -> tuple[Tile, ...]:
        """The tiles by id."""
        return tiles(self.highest)

    @property
    def columns(self) -> int:
        """Columns of the torus on which cells are numbered: so many that no figure of all tiles but one can meet itself."""
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
    def slots(self) -> int:
        """Room for the free cells beside a tile: the first tile has three, each other takes one and adds at most two."""
        return self.tiles + 2

    @property
    def first(self) -> int:
        """The action that begins with tile 0; the others follow."""
        return self.cells * self.numbers

    @property
    def draw(self) -> int:
        """The action that draws a tile."""
        return self.first + self.tiles

    @property
    def pass_(self) -> int:
        """The action that passes."""
        return self.draw + 1

    @property
    def num_actions(self) -> int:
        """Number of action ids."""
        return self.pass_ + 1

    @property
    def rounds(self) -> int:
        """No game has more rounds than this."""
        return 1 if self.game == "single" else self.max_rounds

    @property
    def max_steps(self) -> int:
        """In a round each tile is placed at most once, each of the pile drawn once, and n passes in a row end it."""
        passes = (self.players - 1) * (self.tiles + 1) + 1
        return self.rounds * (self.tiles + self.tiles - self.players * self.dealt + passes)

    def wrapped(self, cell: Cell) -> int:
        """The number of a cell on the torus."""
        return cell[1] % self.rows * self.columns + cell[0] % self.columns
