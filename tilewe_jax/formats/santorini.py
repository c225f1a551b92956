"""Names of colours and moves of Santorini in the Go Text Protocol (GTP).

A turn is ``c4-d4*e3``: the worker on c4 moves to d4 and builds on e3. A placement is the name of the cell, ``c4``. The letter
is the column, the number the row, a1 the bottom left.
"""

from dataclasses import dataclass
from typing import Any

from tilewe_jax.games.santorini.config import NUM_TURNS, Config
from tilewe_jax.games.santorini.host import PIECES, PLACING_ORDER, SantoriniBoard
from tilewe_jax.host import HostGame, HostPosition, IllegalActionError
from tilewe_jax.host_games import make_host_game


@dataclass(frozen=True)
class SantoriniNames:
    """Names of colours and moves of Santorini, a ``tilewe_jax.formats.names.GtpGame``.

    Unless the placement is "default", a game starts on the empty board, and the first four moves place workers in turns.
    """

    host: HostGame
    """The host form of the game."""
    config: Config
    """The settings."""
    colors: tuple[tuple[str, ...], ...] = (("b", "blue", "black"), ("w", "red", "white"))
    """Accepted names of each colour, lower-case; the first name is written."""
    has_passes: bool = False

    @property
    def name(self) -> str:
        """The name for ``set_game``."""
        return self.host.id

    @property
    def has_deal(self) -> bool:
        """True if the workers start on random cells."""
        return self.config.placement == "random"

    def start(self) -> SantoriniBoard:
        """The position before the first command ``play``."""
        return SantoriniBoard.start(self.config.size, "default" if self.config.placement == "default" else "chosen")

    def deal_actions(self, initial: HostPosition) -> list[int]:
        """The actions that place the workers as in an initial position; empty unless ``has_deal``."""
        if not self.has_deal:
            return []
        assert isinstance(initial, SantoriniBoard)
        cells = dict(zip(PIECES, initial.workers, strict=True))
        return [NUM_TURNS + cell[0] * initial.size + cell[1] for piece in PLACING_ORDER if (cell := cells[piece])]

    def move_text(self, action: int, position: SantoriniBoard) -> str:
        """Format a legal action as a move."""
        return position.action_name(action)

    def action(self, text: str, position: SantoriniBoard) -> int:
        """Parse a legal move. Raises ``ValueError``, which names the rule that the move breaks."""
        text = "".join(text.split()).lower()
        try:
            return position.action(text)
        except IllegalActionError as error:
            raise ValueError(f"invalid move {text[:80]!r}: {str(error)[:200]}") from None

    def current_color(self, position: SantoriniBoard) -> int:
        """The player to move; at the end, the loser."""
        return position.current_player

    def legal_actions(self, position: SantoriniBoard, color: int) -> list[int]:
        """The legal actions of the player to move; empty at the end. Raises ``ValueError`` for the other player."""
        if not position.is_terminal and color != position.current_player:
            raise ValueError(f"it is the turn of {self.colors[position.current_player][0]}")
        return position.legal_actions()

    def must_pass(self, position: SantoriniBoard, color: int) -> bool:
        """Always false, because Santorini has no passes."""
        return False


def santorini_game(**options: Any) -> SantoriniNames:
    """The names of Santorini with these options. Raises ``ValueError``."""
    return SantoriniNames(make_host_game("santorini", **options), Config(**options))
