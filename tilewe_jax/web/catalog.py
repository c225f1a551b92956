"""The offered games and agents; plain Python without JAX."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

from tilewe_jax.host import HostGame
from tilewe_jax.host_games import OFFERS, make_host_game


@dataclass(frozen=True)
class Agent:
    """An offered agent of a game."""

    agent: str
    """Its text for ``tilewe-jax analyze``, such as ``level:2``."""
    title: str
    elo: int | None = None
    """Its rating among the levels of the game."""
    max_seconds: float | None = None
    """Time limit of a search, for agents that support one."""

    @property
    def view(self) -> dict[str, Any]:
        """Its description for clients."""
        return {"agent": self.agent, "title": self.title, "elo": self.elo}


def make_game(name: Any, options: Any, *, only_offered: bool = False) -> HostGame:
    """Return the game of a request.

    Args:
      name: id of the game.
      options: its options.
      only_offered: whether to refuse options that are not in the catalog.

    Raises ``ValueError`` for a wrong name or wrong options.
    """
    if not isinstance(name, str) or name not in OFFERS:
        raise ValueError(f"game must be one of {', '.join(OFFERS)}")
    if not isinstance(options, dict):
        raise ValueError('options must be an object, like {"size": 10}')
    unknown = [option for option in options if option not in OFFERS[name].options]
    if only_offered and unknown:
        raise ValueError(f"options of {name} are {', '.join(OFFERS[name].options)}, got {unknown[0][:80]!r}")
    return make_host_game(name, **options)


def new_deal(host: HostGame) -> Any:
    """Return the chance outcome of a new game, drawn by the system's random numbers, which nobody can predict."""
    return host.new_deal(SystemRandom())


def games_script() -> str:
    """Return the JavaScript module with title, tagline and rules of each game."""
    about = {name: {"title": game.title, "tagline": game.tagline, "rules": game.rules} for name, game in OFFERS.items()}
    return f"export const GAMES = {json.dumps(about, indent=2, ensure_ascii=False)};\n"


def languages_script() -> str:
    """Return the JavaScript module with the languages of the page: their names, as they call themselves, by their codes."""
    folder = Path(__file__).parent / "static" / "languages"
    files = {file.stem: json.loads(file.read_bytes())["language"] for file in sorted(folder.glob("*.json"))}
    return f"export const LANGUAGES = {json.dumps({'en': 'English', **files}, ensure_ascii=False)};\n"


def catalog(agents: Mapping[str, Sequence[Agent]]) -> list[dict[str, Any]]:
    """Return the games with their options and agents, as JSON values."""
    return [
        {
            "id": name,
            "title": game.title,
            "options": _options(game.settings, game.options),
            "players": list(game.players),
            "hidden": game.is_hidden,
            "levels": [agent.view for agent in agents.get(name, ())],
        }
        for name, game in OFFERS.items()
    ]


def _options(settings: Any, offered: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Offered options with their defaults and types."""
    defaults = inspect.signature(settings).parameters if offered else {}
    return {
        name: {"default": defaults[name].default, "type": type(defaults[name].default).__name__, **values}
        for name, values in offered.items()
    }
