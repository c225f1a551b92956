"""The protocol of players that decide on the host, one game at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from tilewe_jax.game import Game
from tilewe_jax.host import HostPosition

View = TypeVar("View")


@dataclass
class OngoingGame:
    """A game in progress, as players on the host receive it."""

    game: Game[Any]
    """The game."""
    start: Callable[[], Any]
    """Returns the initial state."""
    actions: list[int] = field(default_factory=list)
    """Ids of the actions played so far."""
    deal: Any = None
    """The deal or position at the start, if it is known, see ``Game.init_from_deal``."""
    _views: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def view(self, name: str, create: Callable[[], View], play: Callable[[View, int], View]) -> View:
        """Return the position in another library's form; it is updated incrementally and shared under ``name``.

        Args:
            name: name of the form.
            create: returns the initial position.
            play: returns the position after an action.
        """
        position, num_played = self._views.get(name) or (create(), 0)
        for action in self.actions[num_played:]:
            position = play(position, action)
        self._views[name] = position, len(self.actions)
        return position

    @property
    def position(self) -> HostPosition:
        """The position in plain Python, see ``Game.host``."""

        def create() -> HostPosition:
            return self.game.host(self.start())

        position: HostPosition = self.view("host", create, lambda position, action: position.after(action))
        return position


@runtime_checkable
class HostPlayer(Protocol):
    """A player that decides on the host, one game at a time."""

    name: str

    def choose(self, game: OngoingGame, seconds: float, seed: str) -> int:
        """Return the id of the action to play. Raises ``ForfeitError`` if the player fails or runs out of time.

        Args:
            game: the game, which the player must not change.
            seconds: time limit of the move in seconds.
            seed: seed for random numbers, different for every move of every game.
        """
        ...


@runtime_checkable
class ParallelHostPlayer(HostPlayer, Protocol):
    """A player on the host that decides in several games in parallel."""

    def choose_all(self, games: Sequence[OngoingGame], seconds: float, seeds: Sequence[str]) -> "list[int | ForfeitError]":
        """Call ``choose`` for each game; a raised ``ForfeitError`` becomes the result of that game."""
        ...


class ForfeitError(Exception):
    """The reason why a player forfeits a game."""
