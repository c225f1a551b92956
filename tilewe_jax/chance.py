"""The chance of games as a tree of outcomes: deals one by one, and draws from a pile when they are made.

A state of a game holds all of its chance from the start, so that ``apply`` needs no key. Packages that walk trees of games,
like OpenSpiel, ask for each outcome and its probability instead; all outcomes of an event are equally likely here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True)
class Event:
    """An action of a game or an outcome of chance, in the order in which they were played."""

    player: int
    """The player who acted; negative for chance."""
    action: int
    """The action, or the number of the outcome."""
    seen_by: int | None = None
    """Chance: the only player who sees the outcome; ``None`` where all do."""
    tile: int | None = None
    """The tile that was dealt, drawn or placed, where there is one."""
    owner: int | None = None
    """The player who has got or placed that tile."""


@dataclass(frozen=True)
class Chance:
    """The events of chance of a game, see ``Game.chance``. As it stands, that of a game in which chance decides nothing."""

    game: Any
    max_outcomes: int = 0
    """The largest number of outcomes of an event."""
    max_events: int = 0
    """The largest number of events in a game."""

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """The possible outcomes of the next event before the first action; none when the deal is complete."""
        del dealt
        return []

    def deal_event(self, dealt: Sequence[int], outcome: int) -> Event:
        """An outcome of that event."""
        del dealt
        return Event(-1, outcome)

    def start(self, dealt: Sequence[int]) -> Any:
        """The initial state of a complete deal."""
        del dealt
        return self.game.init(jax.random.key(0))

    def draw_outcomes(self, state: Any, action: int) -> list[int]:
        """The possible outcomes of the event that an action brings about; none where it brings about none."""
        del state, action
        return []

    def draw_event(self, state: Any, outcome: int) -> Event:
        """An outcome of that event."""
        del state
        return Event(-1, outcome)

    def with_draw(self, state: Any, outcome: int) -> Any:
        """The state before that action, in which the event will have this outcome."""
        del outcome
        return state

    def action_event(self, player: int, action: int, before: Any, after: Any) -> Event:
        """An action of a player, which has led from one state to another."""
        del before, after
        return Event(player, action)

    def name(self, event: Event) -> str:
        """An outcome for people."""
        return str(event.action)

    def resample(
        self, state: Any, events: Sequence[Event], player: int, uniform: Callable[[], float]
    ) -> tuple[Any, list[Event]]:
        """A state and the events that led to it, such that a player could have seen the same.

        Args:
          state: a state without an event of chance under way.
          events: all events that led there.
          player: the observer.
          uniform: gives random numbers, at least 0 and below 1.
        """
        del player, uniform
        return state, list(events)
