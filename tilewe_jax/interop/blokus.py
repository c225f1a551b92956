"""Names of games, colours and moves as Pentobi and other Blokus programs write them.

A move is the list of the cells that it covers, ``e8,e9,f9``: the letter is the column, the number the row, a1 the bottom left.
"""

import re
from dataclasses import dataclass

from tilewe_jax.games.polyomino import notation
from tilewe_jax.games.polyomino.config import VARIANTS, Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostGame
from tilewe_jax.host_games import make_host_game

PASS = notation.PASS
"""The move of a colour that does not place a piece."""
PENTOBI_NAMES = {"duo_official": "Blokus Duo", "classic": "Blokus", "classic_2": "Blokus Two-Player"}
"""The games that Pentobi has, by id, and its name for them."""

_CELL = re.compile(r"a?[a-z][1-9][0-9]?")
_TWO_COLORS = (("b", "blue", "black"), ("w", "green", "white"))
_FOUR_COLORS = (("1", "blue"), ("2", "yellow"), ("3", "red"), ("4", "green"))


@dataclass(frozen=True)
class BlokusGame:
    """A game of the polyomino family by the names that other programs use."""

    host: HostGame
    """The game in plain Python."""
    config: Config
    """The parameters of its rules."""
    colors: tuple[tuple[str, ...], ...]
    """For each colour its accepted names, lower-case; the first one is written."""

    @property
    def name(self) -> str:
        """The name that ``set_game`` and game files use: Pentobi's where it has the game, else the id."""
        return PENTOBI_NAMES.get(self.host.id, self.host.id)

    def start(self) -> PolyominoPosition:
        """The initial position."""
        return _start(self.host)

    @property
    def players(self) -> tuple[str, ...]:
        """For each player the name that game files use: that of its colour; for two players with two colours b and w."""
        names = self.colors if self.config.colors_per_player == 1 else _TWO_COLORS
        return tuple(accepted[0] for accepted in names)

    def color(self, name: str) -> int:
        """The colour of a name. Raises ``ValueError``."""
        for color, names in enumerate(self.colors):
            if name.lower() in names:
                return color
        raise ValueError(f"invalid color {name[:40]!r}; colors are {' '.join(names[0] for names in self.colors)}")

    def move_text(self, action: int) -> str:
        """The move of an action: its cells, row by row from the bottom."""
        if action == self.config.num_placements:
            return PASS
        return ",".join(map(notation.cell_name, notation.cells_of(self.config, action)))

    def action(self, text: str) -> int:
        """The action of a move, whose cells may come in any order. Raises ``ValueError`` for what is no move of this game."""
        text = "".join(text.split()).lower()
        if text == PASS:
            if self.config.voluntary_pass:
                return self.config.num_placements
            raise ValueError("pass is no move of this game; players who cannot move are skipped")
        cells = text.split(",", MAX_PIECE_SIZE)
        if len(cells) > MAX_PIECE_SIZE or not all(map(_CELL.fullmatch, cells)):
            raise ValueError(f"invalid move {text[:80]!r}; a move is the cells that it covers, like e8,e9,f9")
        try:
            return notation.action_of(self.config, map(notation.parse_cell, cells))
        except ValueError:
            raise ValueError(f"invalid move {text!r}; these cells are no piece of the game on its board") from None


def blokus_game(host: HostGame) -> BlokusGame:
    """The names of a game. Raises ``ValueError`` where it is none of the polyomino family."""
    if host.id not in VARIANTS:
        raise ValueError(f"{host.id} has no moves that are sets of cells; the games that have are {', '.join(VARIANTS)}")
    config = _start(host).config
    return BlokusGame(host, config, _TWO_COLORS if config.colors == 2 else _FOUR_COLORS[: config.colors])


def game_of_name(name: str) -> BlokusGame:
    """The game with default options that a name stands for, Pentobi's or an id, in any case. Raises ``ValueError``."""
    for game_id in VARIANTS:
        if name.lower() in (game_id, PENTOBI_NAMES.get(game_id, game_id).lower()):
            return blokus_game(make_host_game(game_id))
    known = ", ".join(PENTOBI_NAMES.get(game_id, game_id) for game_id in VARIANTS)
    raise ValueError(f"unknown game {name[:80]!r}; the games are {known}")


def _start(host: HostGame) -> PolyominoPosition:
    position = host.init_from_deal(None)
    assert isinstance(position, PolyominoPosition)
    return position
