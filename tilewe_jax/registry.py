"""Registry of games by name: built-in games, registered games, and games of installed packages."""

import contextlib
import inspect
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any

from tilewe_jax.game import Game
from tilewe_jax.games import modules
from tilewe_jax.settings import checked_options, parse_option
from tilewe_jax.utils import factories
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import shown
from tilewe_jax.utils.words import did_you_mean

Factory = Callable[..., Game[Any]]

GROUP = "tilewe_jax.games"
"""Entry-point group for games of installed packages: ``connect_four = "some_package:ConnectFour"``."""

_FACTORIES: dict[str, Factory] = {name: game for folder in modules("game") for name, game in folder.GAMES.items()}


def register(name: str, factory: Factory) -> None:
    """Register a game for ``make``, and so for records, arena, search, training and the command line.

    An installable package declares an entry point of the group ``tilewe_jax.games`` instead, and need not be imported.

    Args:
      name: the id of the game, equal to ``Game.id``.
      factory: a class or function whose keyword parameters, all with defaults, are the options of the game.

    Raises ``ValueError`` if another factory has the name, ``TypeError`` for a name that is not a string, for a factory that
    is not callable, and for an option without a default.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a game must be a non-empty str, got {shown(name)}")
    if not callable(factory):
        raise TypeError(f"{name}: the factory must be a class or a function, got {shown(factory)}")
    if name in _FACTORIES and _FACTORIES[name] is not factory:
        raise ValueError(f"game {name!r} is already registered, with the factory {_FACTORIES[name]!r}")
    for option in inspect.signature(factory).parameters.values():
        if option.default is option.empty or option.kind is option.POSITIONAL_ONLY:
            raise TypeError(f"{name}: option {option.name!r} must be a keyword parameter with a default")
    _FACTORIES[name] = factory


def available_games() -> tuple[str, ...]:
    """The names that ``make`` accepts: built-in and registered games, then games of installed packages, which may not load."""
    return tuple(dict.fromkeys([*_FACTORIES, *(entry.name for entry in _entry_points())]))


def ignored_games() -> list[str]:
    """Messages about games of installed packages that ``available_games`` omits."""
    entries, unreadable = _declared()
    taken = [entry for entry in entries if entry.name in _BUILT_IN]
    return [
        *unreadable,
        *(f"game {entry.name!r} of {_package(entry)} is ignored: the name belongs to a built-in game" for entry in taken),
    ]


def options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a game, with their defaults. Raises ``ValueError`` for an unknown name."""
    factory = _factory(name)
    try:
        return dict(inspect.signature(factory, eval_str=True).parameters)
    except Exception:  # a quoted annotation that cannot be resolved
        return dict(inspect.signature(factory).parameters)


def describe(name: str) -> str:
    """The first line of the docstring of a game's factory. Raises ``ValueError`` for an unknown name."""
    return inspect.cleandoc(_factory(name).__doc__ or "").split("\n")[0]


def make(name: str, **given: Any) -> Game[Any]:
    """Make a game.

    Args:
      name: the id of the game, one of ``available_games()``.
      **given: options of the game; a list stands for a tuple, as in JSON.

    Raises ``ValueError`` for an unknown name, an unknown option, or an invalid value. Raises ``RuntimeError`` if JAX cannot
    compute in this process, see ``tilewe_jax.utils.backends``.

    >>> make("tilewe", players=2).num_players
    2
    """
    require_backend()
    return make_description(name, given)


def make_description(name: str, given: Mapping[str, Any]) -> Game[Any]:
    """``make`` without checking that JAX can compute in this process.

    For adapters that report this error in their first ``reset``, because programs with worker processes forward errors of
    ``reset`` but lose errors of constructors.
    """
    factory, values = _factory(name), checked_options(name, options(name), given)
    try:
        game = factory(**values)
    except ValueError:
        raise
    except (Exception, SystemExit) as error:
        given_options = f" with {shown(values)}" if values else ""
        raise ValueError(f"the factory of game {name!r} failed{given_options}: {factories.describe(error)}") from error
    if not isinstance(game, Game):
        raise ValueError(f"the factory of game {name!r} must return a tilewe_jax.Game, got {game!r}")
    return game


def game_id(text: str) -> str:
    """The id of a game given by its id or as ``module:factory``.

    The factory of ``module:factory`` is imported, which runs its code, and registered. Raises ``ValueError`` if that fails.
    """
    if ":" not in text:
        return text
    loaded = factories.find("game", text)
    name: str = factories.call(f"game {text!r}", lambda: loaded().id)
    try:
        register(name, loaded)
    except (TypeError, ValueError) as error:
        raise ValueError(f"game {text!r}: {error}") from None
    return name


def make_game(text: str, options: dict[str, Any]) -> Game[Any]:
    """Make a game given by its id or as ``module:factory``, with options. Raises ``ValueError``."""
    return make(game_id(text), **options)


def game_options(text: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Parse options of a game given as text, see ``settings.parse_option``. ``make_game`` checks the values."""
    known = options(game_id(text)) if given else {}
    return {name: parse_option(known[name].annotation if name in known else Any, value) for name, value in given.items()}


def _factory(name: str) -> Factory:
    if not isinstance(name, str):
        raise ValueError(f"the name of a game must be a string, got {shown(name)}")
    if name not in _FACTORIES:
        entries = {(entry.value, _package(entry)): entry for entry in _entry_points() if entry.name == name}
        if not entries:
            known = available_games()
            raise ValueError(f"there is no game {shown(name)}{did_you_mean(name, known)}; there are {', '.join(known)}")
        if len(entries) > 1:
            packages = " and ".join(sorted(map(_package, entries.values())))
            raise ValueError(f"game {name!r} is declared by {packages}; uninstall all but one")
        _load(next(iter(entries.values())))
    return _FACTORIES[name]


def _load(entry: EntryPoint) -> None:
    """Register a game that a package declares. Raises ``ValueError`` for any exception of the package."""
    failure = f"game {entry.name!r} of {_package(entry)} cannot be loaded from {entry.value}"
    if not re.fullmatch(r"\w[\w.-]*", entry.name):
        raise ValueError(f"{failure}: a name consists of letters, digits, '_', '-' and '.'")
    factory = factories.call(failure, entry.load)
    try:
        register(entry.name, factory)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{failure}: {error}") from None


def _package(entry: EntryPoint) -> str:
    """The package of an entry point, for messages."""
    return f"package {entry.dist.name}" if entry.dist else "an unknown package"


def _entry_points() -> list[EntryPoint]:
    """The games of installed packages, without those that have the name of a built-in game."""
    return [entry for entry in _declared()[0] if entry.name not in _BUILT_IN]


def _declared() -> tuple[list[EntryPoint], list[str]]:
    """Entry points of installed packages, and messages about packages with unreadable entry points."""
    with contextlib.suppress(Exception):  # the exceptions for damaged metadata are not documented
        return list(entry_points(group=GROUP)), []
    entries: list[EntryPoint] = []
    unreadable: list[str] = []
    for package in {package.name: package for package in reversed(list(distributions()))}.values():
        try:
            entries += package.entry_points.select(group=GROUP)
        except Exception as error:
            unreadable.append(f"the entry points of package {package.name} cannot be read: {factories.describe(error)}")
    return entries, unreadable


_BUILT_IN = frozenset(_FACTORIES)
