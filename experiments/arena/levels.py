"""Levels for people: the strengths of each game, from beginner to strongest, as agents with names like ``level:3``.

Weak levels see little and weigh it coarsely: few simulations with few candidates, one action deep, and an action drawn by the
values of what was looked at (``value_temperature``), so that they err in small things rather than by blunders. Strong levels
search more. The ratings are of a tournament of all levels of a game among each other.
"""

import json
from functools import cache
from importlib import resources
from typing import Any

from tilewe_jax.game import Game


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    return json.loads(resources.files("experiments").joinpath("levels.json").read_text())


def levels(game: Game[Any]) -> list[str]:
    """The agents of a game by level, the weakest first; empty where a game has no levels."""
    return [level["agent"] for level in _tables().get(game.id, [])]


def agent_of(game: Game[Any], text: str) -> str:
    """The agent that a text stands for: that of a level for ``level:N``, the text itself for any other.

    Raises ``ValueError`` for a level that the game does not have.
    """
    kind, _, number = text.partition(":")
    if kind != "level":
        return text
    agents = levels(game)
    if not agents:
        raise ValueError(f"{game.id} has no levels; those that have are {', '.join(_tables())}")
    if not number.isdecimal() or not 1 <= int(number) <= len(agents):
        raise ValueError(f"{game.id} has level:1 to level:{len(agents)}, not {text!r}")
    return agents[int(number) - 1]
