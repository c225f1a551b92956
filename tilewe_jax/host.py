"""Positions on the host: the plain-Python form in which a game explains its rules to people. Needs no JAX."""

from typing import Protocol, runtime_checkable


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

    def text(self, color: bool = False) -> str:
        """The position for people; with ANSI colours where ``color``."""
