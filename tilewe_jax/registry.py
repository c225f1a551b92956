"""Games by name."""

import inspect
from collections.abc import Callable
from typing import Any

from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.game import GAMES as POLYOMINO
from tilewe_jax.games.santorini.game import GAMES as SANTORINI
from tilewe_jax.games.triominos.game import GAMES as TRIOMINOS

_FACTORIES: dict[str, Callable[..., Game[Any]]] = {**POLYOMINO, **SANTORINI, **TRIOMINOS}


def games() -> tuple[str, ...]:
    """The names that ``make`` knows."""
    return tuple(_FACTORIES)


def options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a game by name, with their defaults. Raises ``ValueError`` for an unknown name."""
    return dict(inspect.signature(_factory(name)).parameters)


def describe(name: str) -> str:
    """One line about a game. Raises ``ValueError`` for an unknown name."""
    return inspect.cleandoc(_factory(name).__doc__ or "").split("\n")[0]


def make(name: str, **given: Any) -> Game[Any]:
    """The game of this name, with options: ``make("tilewe", players=2)``.

    Raises ``ValueError`` for an unknown name, an unknown option, or a value that the game refuses, saying what would do.
    """
    known = options(name)
    unknown = [option for option in given if option not in known]
    if unknown:
        raise ValueError(f"{name} has no option {', '.join(unknown)}; its options are {', '.join(known)}")
    given = {option: tuple(value) if isinstance(value, list) else value for option, value in given.items()}  # JSON has lists
    for option, value in given.items():
        default = known[option].default
        if default is not None and (type(value) is not type(default)):
            raise ValueError(f"{name}: {option} must be {type(default).__name__}, like {default!r}, not {value!r}")
    return _factory(name)(**given)


def _factory(name: str) -> Callable[..., Game[Any]]:
    if name not in _FACTORIES:
        raise ValueError(f"there is no game {name!r}; there are {', '.join(games())}")
    return _FACTORIES[name]
