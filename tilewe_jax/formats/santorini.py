"""Santorini by the names of its colours and moves in the Go Text Protocol (GTP), which are those of records and of the viewer.

A turn is ``c4-d4*e3``: the worker on c4 moves to d4 and builds on e3. A worker is placed with the name of its cell, ``c4``. The
letter is the column, the number the row, a1 the bottom left.
"""

from dataclasses import dataclass
from typing import Any

from tilewe_jax.games.santorini.config import NUM_TURNS, Config, santorini
from tilewe_jax.games.santorini.host import PIECES, PLACING_ORDER, SantoriniBoard
from tilewe_jax.host import HostGame, HostPosition, IllegalActionError
from tilewe_jax.host_games import make_host_game


@dataclass(frozen=True)
class SantoriniNames:
    """Santorini by the names that other programs use, a ``tilewe_jax.formats.names.GtpGame``.

    Unless the placement is "default" a game begins on the empty board, and its first four moves place workers: one each in
    turns, whoever has decided where.
    """

    host: HostGame
    """The game in plain Python."""
    config: Config
    """The parameters of its rules."""
    colors: tuple[tuple[str, ...], ...] = (("b", "blue", "black"), ("w", "red", "white"))
    """For each player the accepted names of its colour, lower-case; the first one is written."""
    has_passes: bool = False

    @property
    def name(self) -> str:
        """The name for ``set_game``."""
        return self.host.id

    @property
    def has_deal(self) -> bool:
        """Whether the cells of the workers are drawn."""
        return self.config.placement == "random"

    def start(self) -> SantoriniBoard:
        """The position before the first command ``play``."""
        return SantoriniBoard.start(self.config.size, "default" if self.config.placement == "default" else "chosen")

    def deal_actions(self, initial: HostPosition) -> list[int]:
        """The actions that place the workers as in an initial position."""
        if not self.has_deal:
            return []
        assert isinstance(initial, SantoriniBoard)
        cells = dict(zip(PIECES, initial.workers, strict=True))
        return [NUM_TURNS + cell[0] * initial.size + cell[1] for piece in PLACING_ORDER if (cell := cells[piece])]

    def move_text(self, action: int, position: SantoriniBoard) -> str:
        """The move of a legal action."""
        return position.action_name(action)

    def action(self, text: str, position: SantoriniBoard) -> int:
        """The action of a legal move. Raises ``ValueError``, which names the rule that the move breaks."""
        text = "".join(text.split()).lower()
        try:
            return position.action(text)
        except IllegalActionError as error:
            raise ValueError(f"invalid move {text[:80]!r}: {str(error)[:200]}") from None

    def current_color(self, position: SantoriniBoard) -> int:
        """The player to move; at the end the one who has lost."""
        return position.current_player

    def legal_actions(self, position: SantoriniBoard, color: int) -> list[int]:
        """The legal actions of the player to move, none when the game is over. Raises ``ValueError`` for the other player."""
        if not position.is_terminal and color != position.current_player:
            raise ValueError(f"it is the turn of {self.colors[position.current_player][0]}")
        return position.legal_actions()

    def must_pass(self, position: SantoriniBoard, color: int) -> bool:
        """False: nobody passes in Santorini."""
        return False


def santorini_game(**options: Any) -> SantoriniNames:
    """Santorini by its options, as for ``tilewe_jax.make``. Raises ``ValueError``."""
    return SantoriniNames(make_host_game("santorini", **options), santorini(**options))
