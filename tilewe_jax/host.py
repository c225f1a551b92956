"""Positions on the host: the plain-Python form in which a game explains its rules to people. Needs no JAX."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, runtime_checkable


class IllegalActionError(ValueError):
    """An action that the rules do not allow. The message names the rule that it breaks."""


@runtime_checkable
class HostPosition(Protocol):
    """A position of a game in plain Python, as ``Game.host`` gives it; immutable to its callers.

    Action ids are those of the game on the device, so that both forms can be played side by side.
    """

    @property
    def current_player(self) -> int:
        """The player to move, from 0."""

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""

    def scores(self) -> tuple[int, ...]:
        """The points of the game, by seat."""

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""

    def explain(self, action: int) -> str | None:
        """The rule that an action breaks, in words; ``None`` where the action is legal."""

    def after(self, action: int) -> "HostPosition":
        """The position after an action. Raises ``IllegalActionError``, which names the rule that the action breaks."""

    def action_name(self, action: int) -> str:
        """The name of a legal action."""

    def action_of_name(self, name: str) -> int:
        """The inverse of ``action_name``. Raises ``ValueError`` for what is no name of a legal action."""

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        """The position for people.

        Args:
          color: whether to use ANSI colours.
          last_action: the action that led here, which is marked.
          seat: where not ``open``, the player who looks; ``None`` for a spectator, who sees what everybody sees.
          open: whether hidden information is shown, as it always is at the end.
        """

    def svg(self, *, last_action: int | None = None) -> str:
        """The position as a picture: the text of an SVG file; ``last_action``, which led here, is marked."""

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """The position as JSON values, for what draws it; ``tilewe_jax.draw`` describes the kinds of views.

        Args:
          seat: the player who looks; ``None`` for a spectator, who sees what everybody sees.
          open: whether hidden information is shown too, as it always is at the end.

        Raises ``ValueError`` for what is no seat.
        """

    def action_view(self, action: int) -> dict[str, Any]:
        """A legal action as JSON values: its id, its name, and what it does, see ``tilewe_jax.draw``.

        Raises ``IllegalActionError``, which names the rule that the action breaks.
        """


def shared_win(scores: Sequence[float]) -> tuple[float, ...]:
    """One win, shared among those with the highest score: the returns of most games of several players, by seat."""
    is_best = [score == max(scores) for score in scores]
    return tuple(best / sum(is_best) for best in is_best)


def _shared_win(position: HostPosition) -> tuple[float, ...]:
    return shared_win(position.scores())


def _no_deal(chance: Random) -> Any:
    del chance


Table = tuple[Mapping[str, Any], ...]
"""The table of rounds of a game: for each round its number, who has started, points by seat, and how it has ended."""


@dataclass(frozen=True)
class Rounds:
    """How a game of several rounds keeps the table of them, which the page shows."""

    first: Callable[[Any], Table]
    """The table at the start of a game, by its initial position."""
    after: Callable[[Table, Any, int, Any], Table]
    """The table after an action: of the table before it, the position before it, the action, and the position after it."""


@dataclass(frozen=True)
class HostGame:
    """A game in plain Python: what reads, replays and serves it without a device asks this, and nothing else about the game."""

    id: str
    """The name under which ``make`` knows the game."""
    version: int
    """Version of the rules, see ``Game.version``."""
    num_players: int
    """Number of players (seats)."""
    num_actions: int
    """Number of action ids."""
    max_steps: int
    """Upper bound of the number of actions of a game."""
    init_from_deal: Callable[[Any], HostPosition]
    """The initial position of a deal, see ``Game.deal``. Raises ``ValueError`` for what is no deal of this game."""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """The options that were given to ``make_host_game``."""
    has_hidden_information: bool = False
    """Whether players have what others may not see, see ``Game.has_hidden_information``."""
    new_deal: Callable[[Random], Any] = field(default=_no_deal, compare=False)
    """What chance decides at the start of a game, drawn from random numbers; ``init_from_deal`` takes it."""
    returns: Callable[[Any], Sequence[float]] = field(default=_shared_win, compare=False)
    """The outcome of a final position by seat, see ``Game.returns``."""
    rounds: Rounds | None = field(default=None, compare=False)
    """The table of rounds, where the game has several."""
    shapes: Sequence[Mapping[str, Any]] = field(default=(), compare=False)
    """What actions refer to by number, as JSON values, such as the orientations of pieces. Where there are any, clients build
    actions from them, and are told the legal ones by id."""


@dataclass(frozen=True)
class Offer:
    """A game as it is offered to people, on the page and in the terminal; a folder of ``games`` declares its own.

    A game that is registered is offered with ``tilewe_jax.host_games.offer``.
    """

    title: str
    players: tuple[int, int]
    """Smallest and largest number of players."""
    tagline: str = ""
    """The game in half a sentence."""
    rules: tuple[str, ...] = ()
    """The rules in a few sentences."""
    notation: str = ""
    """How moves are written, by an example."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The options that people may choose, each with its ``choices`` or its ``range``."""
    is_hidden: bool = False
    """Whether players have what others may not see."""
    settings: Callable[..., Any] | None = None
    """Makes the settings of its options, or the game where it has no form in plain Python."""
    host_game: Callable[[Any], HostGame] | None = None
    """The form in plain Python of these settings; ``None`` for a game that is asked on the device."""

    @property
    def about(self) -> list[str]:
        """The title and the rules."""
        return [self.title, *self.rules]


def common_view(position: HostPosition, kind: str, seat: int | None) -> dict[str, Any]:
    """The fields that the views of all games have. Raises ``ValueError`` for what is no seat."""
    scores = list(position.scores())
    if seat is not None and not 0 <= seat < len(scores):
        raise ValueError(f"seat must be 0 to {len(scores) - 1}, or None for a spectator, not {seat!r}")
    return {
        "kind": kind,
        "num_players": len(scores),
        "current_player": position.current_player,
        "terminal": position.is_terminal,
        "scores": scores,
    }


def require_no_deal(game_id: str, deal: Any) -> None:
    """Check the deal of a game in which chance decides nothing at the start. Raises ``ValueError``."""
    if deal is not None:
        raise ValueError(f"{game_id} starts without a deal, so a record must give null for it, not {deal!r}")
