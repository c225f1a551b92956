"""Players that decide on the host, one game at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from tilewe_jax.game import Game
from tilewe_jax.host import HostPosition

View = TypeVar("View")


@dataclass
class HostGame:
    """A game under way, as players on the host see it."""

    game: Game[Any]
    """The rules."""
    start: Callable[[], Any]
    """Gives the state of the new game."""
    actions: list[int] = field(default_factory=list)
    """Ids of the actions played so far."""
    _views: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def view(self, name: str, begin: Callable[[], View], play: Callable[[View, int], View]) -> View:
        """The position in the form of some library, kept up to date and shared by all players that ask for it by ``name``.

        ``begin`` makes the starting position, and ``play`` gives the position after an action.
        """
        position, played = self._views.get(name) or (begin(), 0)
        for action in self.actions[played:]:
            position = play(position, action)
        self._views[name] = position, len(self.actions)
        return position

    @property
    def position(self) -> HostPosition:
        """The position in plain Python, see ``Game.host``."""

        def begin() -> HostPosition:
            return self.game.host(self.start())

        position: HostPosition = self.view("host", begin, lambda position, action: position.after(action))
        return position


@runtime_checkable
class HostPlayer(Protocol):
    """A player that decides on the host, one game at a time."""

    name: str

    def choose(self, game: HostGame, seconds: float, seed: str) -> int:
        """The id of the action to play. Raises ``ForfeitError`` where there is none, or none in time.

        Args:
            game: the game under way; the player must leave it as it is.
            seconds: time for the move.
            seed: differs for every move of every game, for players that draw random numbers.
        """
        ...


@runtime_checkable
class ParallelHostPlayer(HostPlayer, Protocol):
    """A player on the host that can decide in several games at once."""

    def choose_all(self, games: Sequence[HostGame], seconds: float, seeds: Sequence[str]) -> "list[int | ForfeitError]":
        """``choose`` in each of these games; where it would raise ``ForfeitError``, that error is the result."""
        ...


class ForfeitError(Exception):
    """Why a player lost the right to move."""
