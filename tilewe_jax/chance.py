"""Chance events of games, for packages that walk game trees.

A state stores all randomness of a game from the start, so that ``apply`` needs no key. Packages such as OpenSpiel enumerate
the outcomes of each chance event instead. All outcomes of an event are equally likely.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True)
class Event:
    """An action of a player or a chance outcome in the history of a game."""

    player: int
    """The player who acted; negative for chance."""
    action: int
    """The action or the chance outcome."""
    seen_by: int | None = None
    """The only player who sees a chance outcome; ``None`` if all players see it."""
    tile: int | None = None
    """The tile that was dealt, drawn or placed, if any."""
    owner: int | None = None
    """The player who received or placed that tile."""


@dataclass(frozen=True)
class Chance:
    """The chance events of a game, see ``Game.chance``. This base class describes a game without chance."""

    game: Any
    max_outcomes: int = 0
    """Maximum number of outcomes of an event."""
    max_events: int = 0
    """Maximum number of events in a game."""

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """Outcomes of the next event of the deal, given the outcomes so far; empty if the deal is complete."""
        del dealt
        return []

    def deal_event(self, dealt: Sequence[int], outcome: int) -> Event:
        """The event for an outcome of ``deal_outcomes``."""
        del dealt
        return Event(-1, outcome)

    def start(self, dealt: Sequence[int]) -> Any:
        """The initial state of a complete deal."""
        del dealt
        return self.game.init(jax.random.key(0))

    def draw_outcomes(self, state: Any, action: int) -> list[int]:
        """Outcomes of the chance event that an action triggers; empty if it triggers none."""
        del state, action
        return []

    def draw_event(self, state: Any, outcome: int) -> Event:
        """The event for an outcome of ``draw_outcomes``."""
        del state
        return Event(-1, outcome)

    def with_draw(self, state: Any, outcome: int) -> Any:
        """Fix the outcome of the chance event that the next action triggers."""
        del outcome
        return state

    def action_event(self, player: int, action: int, before: Any, after: Any) -> Event:
        """The event for an action of a player, from the states before and after it."""
        del before, after
        return Event(player, action)

    def name(self, event: Event) -> str:
        """Description of a chance outcome."""
        return str(event.action)

    def resample(
        self, state: Any, events: Sequence[Event], player: int, uniform: Callable[[], float]
    ) -> tuple[Any, list[Event]]:
        """Resample a state and its history, consistently with the observations of a player.

        Args:
          state: a state without a pending chance event.
          events: the history of the state.
          player: the observer.
          uniform: draws random numbers in [0, 1).
        """
        del player, uniform
        return state, list(events)
