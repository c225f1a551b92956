"""Names of games, colours and moves as Pentobi and other Blokus programs write them.

A move is the list of the cells that it covers, ``e8,e9,f9``: the letter is the column, the number the row, a1 the bottom left.
"""

import re
from dataclasses import dataclass

from tilewe_jax.games.polyomino import notation
from tilewe_jax.games.polyomino.config import VARIANTS, Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostGame, HostPosition
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
    has_deal: bool = False

    @property
    def has_passes(self) -> bool:
        """Whether a colour that could place a piece may pass."""
        return self.config.voluntary_pass

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

    def deal_actions(self, initial: HostPosition) -> tuple[int, ...]:
        """Nothing: chance decides nothing at the start."""
        return ()

    def current_color(self, position: PolyominoPosition) -> int:
        """The colour to move; at the end the one that was asked last."""
        return position.current_color

    def legal_actions(self, position: PolyominoPosition, color: int) -> list[int]:
        """The placements that a colour has, be it its turn or not."""
        return position.position.actions(color)

    def must_pass(self, position: PolyominoPosition, color: int) -> bool:
        """Whether a colour has no placement, or has passed."""
        return bool(position.position.out >> color & 1) or not position.position.can_place(color)

    def move_text(self, action: int, position: PolyominoPosition | None = None) -> str:
        """The move of an action, the same in all positions: its cells, row by row from the bottom."""
        if action == self.config.num_placements:
            return PASS
        return ",".join(map(notation.cell_name, notation.cells_of(self.config, action)))

    def move_info(self, text: str) -> str:
        """A placement as Pentobi's ``move_info`` describes it, given as a move or an action id. Raises ``ValueError``.

        Its id, piece and cells; whether it breaks the point symmetry of the board, as it covers a cell and its counterpart; and
        the move that is symmetric to it.
        """
        is_id = text.isascii() and text.isdigit() and len(text) <= 9
        action = int(text) if is_id else self.action(text)
        orientation, _ = notation.split_action(self.config, action)
        cells = notation.cells_of(self.config, action)
        last = self.config.size - 1
        counterparts = {(last - x, last - y) for x, y in cells}
        piece = ORIENTATIONS[orientation].piece
        return "\n".join(
            [
                f"ID:     {action}",
                f"Piece:  {piece} ({PIECE_NAMES[piece]})",
                f"Points: {' '.join(map(notation.cell_name, cells))}",
                f"BrkSym: {int(not counterparts.isdisjoint(cells))}",
                f"SymMv:  {self.move_text(notation.action_of(self.config, counterparts))}",
            ]
        )

    def action(self, text: str, position: PolyominoPosition | None = None) -> int:
        """The action of a move, the same in all positions, whose cells may come in any order.

        Raises ``ValueError`` for what is no move of this game.
        """
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
