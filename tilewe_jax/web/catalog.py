"""The games that the server offers, and the agents that play them; plain Python, without JAX."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

from tilewe_jax.host import HostGame
from tilewe_jax.host_games import OFFERS, make_host_game


@dataclass(frozen=True)
class Agent:
    """An agent that plays a game."""

    agent: str
    """What ``tilewe-jax analyze`` knows it by: ``level:2``, or an agent with its settings."""
    title: str
    elo: int | None = None
    """Its rating among the levels of the game."""
    max_seconds: float | None = None
    """Limit of the time of a search, for agents that can keep one."""


def make_game(name: Any, options: Any, *, only_offered: bool = False) -> HostGame:
    """The game that a request names.

    Args:
      name: its id.
      options: its options.
      only_offered: whether to refuse options that are not in the catalog.

    Raises ``ValueError``, which says what is wrong with the name or the options.
    """
    if not isinstance(name, str) or name not in OFFERS:
        raise ValueError(f"game must be one of {', '.join(OFFERS)}")
    if not isinstance(options, dict):
        raise ValueError('options must be an object, like {"size": 10}')
    unknown = [option for option in options if option not in OFFERS[name].options]
    if only_offered and unknown:
        known = ", ".join(OFFERS[name].options)
        raise ValueError(f"{name} has no option {unknown[0][:80]!r} here; its options are {known}")
    return make_host_game(name, **options)


def new_deal(host: HostGame) -> Any:
    """What chance decides at the start of a game, from the random numbers of the system: nobody can predict them."""
    return host.new_deal(SystemRandom())


def games_script() -> str:
    """The module of the page that has the title, the tagline and the rules of each game."""
    about = {name: {"title": game.title, "tagline": game.tagline, "rules": game.rules} for name, game in OFFERS.items()}
    return f"export const GAMES = {json.dumps(about, indent=2, ensure_ascii=False)};\n"


def catalog(agents: Mapping[str, Sequence[Agent]]) -> list[dict[str, Any]]:
    """The games with their agents, as JSON values."""
    return [
        {
            "id": name,
            "title": game.title,
            "options": _options(game.settings, game.options),
            "players": list(game.players),
            "hidden": game.is_hidden,
            "levels": [{"agent": agent.agent, "title": agent.title, "elo": agent.elo} for agent in agents.get(name, ())],
        }
        for name, game in OFFERS.items()
    ]


def _options(settings: Any, offered: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options that are offered, with their defaults and types."""
    defaults = inspect.signature(settings).parameters if offered else {}
    return {
        name: {"default": defaults[name].default, "type": type(defaults[name].default).__name__, **values}
        for name, values in offered.items()
    }
