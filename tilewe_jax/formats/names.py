"""Names of games, colours and moves in the Go Text Protocol (GTP), for engines and clients."""

from collections.abc import Sequence
from typing import Any, Protocol

from tilewe_jax.formats.blokus import blokus_game, game_of_name
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import make_host_game

GTP_GAMES = (*VARIANTS, "santorini")
"""Ids of the games that GTP supports."""


class GtpGame(Protocol):
    """Names of the colours and moves of a game. Positions are host positions."""

    @property
    def host(self) -> HostGame:
        """The host form of the game."""

    @property
    def config(self) -> Any:
        """The settings, which have a ``size`` and are equal for equal games."""

    @property
    def name(self) -> str:
        """The name for ``set_game``."""

    @property
    def colors(self) -> tuple[tuple[str, ...], ...]:
        """Accepted names of each colour, lower-case; the first name is written. Players may have two colours."""

    @property
    def has_deal(self) -> bool:
        """True if the game has a random start; over GTP, its first actions are then ``deal_actions``."""

    @property
    def has_passes(self) -> bool:
        """True if a colour with another legal move may pass."""

    def start(self) -> Any:
        """The position before the first command ``play``."""

    def deal_actions(self, initial: HostPosition) -> Sequence[int]:
        """The actions from ``start`` to an initial position; empty unless ``has_deal``."""

    def current_color(self, position: Any) -> int:
        """The colour to move; unspecified at the end."""

    def move_text(self, action: int, position: Any) -> str:
        """Format a legal action as a move."""

    def action(self, text: str, position: Any) -> int:
        """Parse a move. Raises ``ValueError``."""

    def legal_actions(self, position: Any, color: int) -> Sequence[int]:
        """The legal actions of a colour, as if it were to move. Raises ``ValueError`` if they are undefined."""

    def must_pass(self, position: Any, color: int) -> bool:
        """Return whether ``genmove`` answers with a pass for a colour that is not to move, because it has no more moves."""


def gtp_game(name: str, **options: Any) -> GtpGame:
    """The names of a game by its id and options. Raises ``ValueError`` for a game that GTP does not support."""
    if name == "santorini":
        return santorini_game(**options)
    if name not in GTP_GAMES:
        raise ValueError(f"game must be one of {', '.join(GTP_GAMES)} for GTP, got {name}")
    return blokus_game(make_host_game(name, **options))


def color_of(game: GtpGame, name: str) -> int:
    """The index of a colour by one of its names, ignoring case. Raises ``ValueError``."""
    for color, names in enumerate(game.colors):
        if name.lower() in names:
            return color
    raise ValueError(f"invalid color {name[:40]!r}; colors are {' '.join(names[0] for names in game.colors)}")


def gtp_game_of_name(name: str) -> GtpGame:
    """The game with default options by its name for ``set_game``. Raises ``ValueError``."""
    if name.lower() == "santorini":
        return santorini_game()
    try:
        return game_of_name(name)
    except ValueError as error:
        raise ValueError(f"{error}, santorini") from None
