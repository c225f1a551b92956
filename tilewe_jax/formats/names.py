"""Games as the Go Text Protocol (GTP) names them: what an engine and its client need of a game, whichever it is."""

from collections.abc import Sequence
from typing import Any, Protocol

from tilewe_jax.formats.blokus import blokus_game, game_of_name
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import make_host_game

GTP_GAMES = (*VARIANTS, "santorini")
"""Ids of the games that have names for GTP."""


class GtpGame(Protocol):
    """A game by the names of its colours and moves. Positions are those in plain Python that its own ``start`` gives."""

    @property
    def host(self) -> HostGame:
        """The game in plain Python."""

    @property
    def config(self) -> Any:
        """The parameters of its rules, which have a ``size``; equal where two games are the same one."""

    @property
    def name(self) -> str:
        """The name for ``set_game``."""

    @property
    def colors(self) -> tuple[tuple[str, ...], ...]:
        """For each colour its accepted names, lower-case; the first one is written. Players may have two colours."""

    @property
    def has_deal(self) -> bool:
        """Whether chance decides how a game begins, so that its first actions over GTP are ``deal_actions``."""

    @property
    def has_passes(self) -> bool:
        """Whether a colour that could do something else may pass."""

    def start(self) -> Any:
        """The position before the first command ``play``."""

    def deal_actions(self, initial: HostPosition) -> Sequence[int]:
        """The actions that lead from ``start`` to an initial position; none where ``has_deal`` is false."""

    def current_color(self, position: Any) -> int:
        """The colour to move; unspecified at the end."""

    def move_text(self, action: int, position: Any) -> str:
        """The move of an action that is legal in a position."""

    def action(self, text: str, position: Any) -> int:
        """The action of a move in a position. Raises ``ValueError`` for what is no move."""

    def legal_actions(self, position: Any, color: int) -> Sequence[int]:
        """The actions that a colour could choose if it were its turn. Raises ``ValueError`` where that cannot be said."""

    def must_pass(self, position: Any, color: int) -> bool:
        """Whether a colour whose turn it is not is one that passes from now on, as ``genmove`` then answers."""


def gtp_game(name: str, **options: Any) -> GtpGame:
    """A game by its id and options, as for ``tilewe_jax.make``. Raises ``ValueError`` for a game without moves in GTP."""
    if name == "santorini":
        return santorini_game(**options)
    if name not in GTP_GAMES:
        raise ValueError(f"{name} has no moves in GTP; the games that have are {', '.join(GTP_GAMES)}")
    return blokus_game(make_host_game(name, **options))


def color_of(game: GtpGame, name: str) -> int:
    """The colour of a game that one of its names stands for, in any case. Raises ``ValueError``."""
    for color, names in enumerate(game.colors):
        if name.lower() in names:
            return color
    raise ValueError(f"invalid color {name[:40]!r}; colors are {' '.join(names[0] for names in game.colors)}")


def gtp_game_of_name(name: str) -> GtpGame:
    """The game with default options that the name in a command ``set_game`` stands for. Raises ``ValueError``."""
    if name.lower() == "santorini":
        return santorini_game()
    try:
        return game_of_name(name)
    except ValueError as error:
        raise ValueError(f"{error}, santorini") from None
