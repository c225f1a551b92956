"""Names of games, colours and moves in the notation of Pentobi and other Blokus programs.

A move lists its cells, ``e8,e9,f9``: the letter is the column, the number the row, a1 the bottom left.
"""

from dataclasses import dataclass

from tilewe_jax.games.polyomino import notation
from tilewe_jax.games.polyomino.config import VARIANTS, Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import make_host_game

PASS = notation.PASS
"""The move of a colour that does not place a piece."""
PENTOBI_NAMES = {"duo_official": "Blokus Duo", "classic": "Blokus", "classic_2": "Blokus Two-Player"}
"""Pentobi's names of games, by id."""

_TWO_COLORS = (("b", "blue", "black"), ("w", "green", "white"))
_FOUR_COLORS = (("1", "blue"), ("2", "yellow"), ("3", "red"), ("4", "green"))


@dataclass(frozen=True)
class BlokusGame:
    """Names of colours and moves of a game of the polyomino family, a ``tilewe_jax.formats.names.GtpGame``."""

    host: HostGame
    """The host form of the game."""
    config: Config
    """The settings."""
    colors: tuple[tuple[str, ...], ...]
    """Accepted names of each colour, lower-case; the first name is written."""
    has_deal: bool = False

    @property
    def has_passes(self) -> bool:
        """True if a colour with a legal placement may pass."""
        return self.config.voluntary_pass

    @property
    def name(self) -> str:
        """The name for ``set_game`` and game files: Pentobi's name if Pentobi has the game, otherwise the id."""
        return PENTOBI_NAMES.get(self.host.id, self.host.id)

    def start(self) -> PolyominoPosition:
        """The initial position."""
        return _start(self.host)

    @property
    def players(self) -> tuple[str, ...]:
        """Names of the players in game files: their colours, or b and w for two players with two colours each."""
        names = self.colors if self.config.colors_per_player == 1 else _TWO_COLORS
        return tuple(accepted[0] for accepted in names)

    def deal_actions(self, initial: HostPosition) -> tuple[int, ...]:
        """Always empty, because these games have a fixed start."""
        return ()

    def current_color(self, position: PolyominoPosition) -> int:
        """The colour to move; at the end an arbitrary colour."""
        return position.current_color

    def legal_actions(self, position: PolyominoPosition, color: int) -> list[int]:
        """The placements of a colour, whether or not it is to move."""
        return position.position.actions(color)

    def must_pass(self, position: PolyominoPosition, color: int) -> bool:
        """Return whether a colour has passed or cannot place a piece."""
        return bool(position.position.out >> color & 1) or not position.position.can_place(color)

    def move_text(self, action: int, position: PolyominoPosition | None = None) -> str:
        """Format an action as a move: its cells, row by row from the bottom. Does not depend on the position."""
        if action == self.config.num_placements:
            return PASS
        return notation.cells_text(self.config, action)

    def move_info(self, text: str) -> str:
        """Describe a placement, given as a move or an action id, like Pentobi's ``move_info``. Raises ``ValueError``.

        The description has its id, piece and cells; whether it breaks the point symmetry of the board by covering a cell and
        its counterpart; and the symmetric move.
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
        """Parse a move, with its cells in any order. Does not depend on the position. Raises ``ValueError``."""
        text = "".join(text.split()).lower()
        if text == PASS:
            if self.config.voluntary_pass:
                return self.config.num_placements
            raise ValueError("this game has no pass; players without a move are skipped automatically")
        return notation.action_of_cells(self.config, text)


def blokus_game(host: HostGame) -> BlokusGame:
    """The names of a game. Raises ``ValueError`` for games outside of the polyomino family."""
    if host.id not in VARIANTS:
        raise ValueError(f"game must be one of {', '.join(VARIANTS)} for moves that list cells, got {host.id}")
    config = _start(host).config
    return BlokusGame(host, config, _TWO_COLORS if config.colors == 2 else _FOUR_COLORS[: config.colors])


def game_of_name(name: str) -> BlokusGame:
    """The game with default options by its id or Pentobi's name, ignoring case. Raises ``ValueError``."""
    for game_id in VARIANTS:
        if name.lower() in (game_id, PENTOBI_NAMES.get(game_id, game_id).lower()):
            return blokus_game(make_host_game(game_id))
    known = ", ".join(PENTOBI_NAMES.get(game_id, game_id) for game_id in VARIANTS)
    raise ValueError(f"unknown game {name[:80]!r}; the games are {known}")


def _start(host: HostGame) -> PolyominoPosition:
    position = host.init_from_deal(None)
    assert isinstance(position, PolyominoPosition)
    return position
