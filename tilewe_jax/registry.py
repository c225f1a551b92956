"""Games by name: ours, those that a program registers, and those of installed packages."""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tilewe_jax.backends import require_backend
from tilewe_jax.checks import shown
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.game import GAMES as POLYOMINO
from tilewe_jax.games.santorini.game import GAMES as SANTORINI
from tilewe_jax.games.triominos.game import GAMES as TRIOMINOS
from tilewe_jax.options import checked_options

Factory = Callable[..., Game[Any]]

GROUP = "tilewe_jax.games"
"""Entry-point group in which an installed package names its games: ``connect_four = "some_package:ConnectFour"``."""

_FACTORIES: dict[str, Factory] = {**POLYOMINO, **SANTORINI, **TRIOMINOS}


def register(name: str, factory: Factory) -> None:
    """Make a game known to ``make``, and so to records, arena, search, training and the command line.

    A package that others install declares an entry point of the group ``tilewe_jax.games`` instead, and need not be imported.

    Args:
      name: the id of the game, equal to the ``id`` of what the factory makes.
      factory: a class or function whose keyword parameters, all with defaults, are the options of the game.

    Raises ``ValueError`` if another factory has the name, ``TypeError`` for a name that is not a text, for a factory that
    cannot be called, and for an option without a default.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a game must be a non-empty str, got {shown(name)}")
    if not callable(factory):
        raise TypeError(f"{name}: the factory must be a class or a function, got {shown(factory)}")
    if name in _FACTORIES and _FACTORIES[name] is not factory:
        raise ValueError(f"there is a game {name!r} already, made by {_FACTORIES[name]!r}")
    for option in inspect.signature(factory).parameters.values():
        if option.default is option.empty or option.kind is option.POSITIONAL_ONLY:
            raise TypeError(f"{name}: option {option.name!r} must be a keyword parameter with a default")
    _FACTORIES[name] = factory


def available_games() -> tuple[str, ...]:
    """The names that ``make`` knows: ours, then those of other packages."""
    return tuple(dict.fromkeys([*_FACTORIES, *(entry.name for entry in _entry_points())]))


def options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a game by name, with their defaults. Raises ``ValueError`` for an unknown name."""
    factory = _factory(name)
    try:
        return dict(inspect.signature(factory, eval_str=True).parameters)
    except Exception:  # an annotation in quotes that names nothing
        return dict(inspect.signature(factory).parameters)


def describe(name: str) -> str:
    """One line about a game, from the docstring of its factory. Raises ``ValueError`` for an unknown name."""
    return inspect.cleandoc(_factory(name).__doc__ or "").split("\n")[0]


def make(name: str, **given: Any) -> Game[Any]:
    """Make a game.

    Args:
      name: the id of the game, one of ``available_games()``.
      **given: its options; a list stands for a tuple, as in JSON.

    Raises ``ValueError`` for an unknown name, an unknown option, or a value that the game refuses, and says what would be
    right. Raises ``RuntimeError`` if JAX cannot compute in this process, see ``tilewe_jax.backends``.

    >>> make("tilewe", players=2).num_players
    2
    """
    require_backend()
    return make_description(name, given)


def make_description(name: str, given: Mapping[str, Any]) -> Game[Any]:
    """``make``, also in a process in which JAX cannot compute.

    For adapters that report this with their first ``reset``, because programs that start processes pass on errors of ``reset``
    and lose errors of constructors.
    """
    factory, values = _factory(name), checked_options(name, options(name), given)
    try:
        return factory(**values)
    except (TypeError, LookupError, ArithmeticError, AttributeError) as error:
        if not values:
            raise
        raise ValueError(f"{name} cannot be made with {shown(dict(values))}: {type(error).__name__}: {error}") from error


def _factory(name: str) -> Factory:
    if not isinstance(name, str) or name not in _FACTORIES:
        entry = next((entry for entry in _entry_points() if entry.name == name), None)
        if entry is None:
            raise ValueError(f"there is no game {shown(name)}; there are {', '.join(available_games())}")
        try:
            register(name, entry.load())
        except (ImportError, AttributeError, TypeError) as error:
            package = f" of package {entry.dist.name}" if entry.dist else ""
            raise ValueError(f"the game {name!r}{package} cannot be loaded from {entry.value}: {error}") from None
    return _FACTORIES[name]


def _entry_points() -> list[EntryPoint]:
    """The games of installed packages. Our own names cannot be taken."""
    return [entry for entry in entry_points(group=GROUP) if entry.name not in _OURS]


_OURS = frozenset(_FACTORIES)
