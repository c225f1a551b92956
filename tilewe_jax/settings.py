"""Settings: conversion between dataclasses, text and JSON, with ranges and one-line errors.

A setting is a field of a frozen dataclass, made by ``setting``, with a docstring below it. Dataclasses may hold dataclasses; a
setting is named by its path, like ``selfplay.search.num_simulations``. All errors are ``ValueError`` and name the setting.

* ``setting(default, minimum, maximum)`` declares a field; ``validate(self)`` in ``__post_init__`` checks types and ranges.
* ``parse(kind, text)`` reads a value of a type, ``printed(value)`` writes it.
* ``changed(settings, {"a.b": "1"})`` replaces some settings by text; ``assignments(["a.b=1"], "--set")`` reads such texts.
* ``to_json``, ``from_json``, ``differences``, ``listing`` save, load, compare and describe a tree of settings.
* ``checked_options`` checks keyword arguments of a function, the options of games, by its annotations and defaults.
"""

import ast
import contextlib
import inspect
import json
import math
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tilewe_jax.utils.checks import index, shown
from tilewe_jax.utils.files import parse_json
from tilewe_jax.utils.words import did_you_mean

Settings = TypeVar("Settings")
MAX_INT = 2**31 - 1
"""Largest integer of a setting: counters and sizes on devices are int32."""
UNLIMITED = MAX_INT
"""Value of an integer setting that sets no limit."""


def setting(
    default: Any,
    minimum: float | None = None,
    maximum: float | None = None,
    *,
    positive: bool = False,
    may_change: bool = False,
    holds: str = "code",
) -> Any:
    """Define a dataclass field with a range.

    Args:
        default: default value.
        minimum: smallest allowed value.
        maximum: largest allowed value.
        positive: whether only values above 0 are allowed.
        may_change: whether a run may be resumed with another value.
        holds: content of its texts, see ``training.config.code_in_settings``: ``"agents"``; ``"data"``, which never names
            code; or ``"code"``: any text with a colon names code.
    """
    metadata = {"minimum": minimum, "maximum": maximum, "positive": positive, "may_change": may_change, "holds": holds}
    return field(default=default, metadata=metadata)


# Types and ranges


def validate(settings: Any) -> None:
    """Check the type and the range of every setting in a tree."""
    for name, entry, kind, value in leaves(settings):
        if not accepts(kind, value):
            raise ValueError(f"{name} must be {in_words(kind)}, not {shown(value)}")
        limits = entry.metadata
        check_number(name, value, limits.get("minimum"), limits.get("maximum"), limits.get("positive", False))


def check_number(
    name: str, value: Any, minimum: float | None = None, maximum: float | None = None, positive: bool = False
) -> None:
    """Raise ``ValueError`` if a number is not finite or outside an inclusive range. Other types pass."""
    if type(value) not in (int, float):
        return
    if not is_finite(value):
        raise ValueError(f"{name} must be a finite number, not {value}")
    if positive and value <= 0:
        raise ValueError(f"{name} must be positive, not {value}")
    if minimum is not None and maximum is not None and not minimum <= value <= maximum:
        raise ValueError(f"{name} must be between {minimum} and {maximum}, not {value}")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value}")
    maximum = MAX_INT if maximum is None and isinstance(value, int) else maximum
    if maximum is not None and value > maximum:
        raise ValueError(f"{name} must be at most {maximum}, not {value}")


def is_finite(value: float) -> bool:
    """Return whether a number is finite and fits a float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def accepts(kind: Any, value: Any) -> bool:  # noqa: PLR0911
    """Return whether a value has a type: floats are finite and may be integers, booleans are not numbers, lists are tuples."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(accepts(part, value) for part in arguments)
    if kind in (None, types.NoneType):
        return value is None
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if is_list(kind):
        if not isinstance(value, tuple):
            return False
        kinds = _elements(kind, len(value))
        return len(kinds) == len(value) and all(map(accepts, kinds, value))
    if kind is float:
        return type(value) in (int, float) and is_finite(value)
    if kind in (int, bool, str):
        return type(value) is kind
    kind = kind if origin is None else origin
    return not isinstance(kind, type) or isinstance(value, kind)


def is_list(kind: Any) -> bool:
    """Return whether a type is a sequence other than text."""
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and issubclass(kind, Sequence) and not issubclass(kind, str)


def _elements(kind: Any, length: int) -> tuple[Any, ...]:
    """Return the element types of a list with this length."""
    arguments = get_args(kind)
    is_fixed = get_origin(kind) is tuple and arguments[1:] != (...,)
    return arguments if is_fixed else (arguments or (Any,))[:1] * length


def in_words(kind: Any, plural: bool = False) -> str:
    """Describe the values of a type for a message."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(map(in_words, arguments))
    if kind in _WORDS:
        return _WORDS[kind][plural]
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if is_list(kind) and arguments:
        if origin is tuple and arguments[1:] != (...,):
            return f"{len(arguments)} {' or '.join(dict.fromkeys(in_words(part, plural=True) for part in arguments))}"
        return f"{'lists' if plural else 'a list'} of {in_words(arguments[0], plural=True)}"
    return str(getattr(kind, "__name__", kind))


_WORDS: dict[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    bool: ("true or false", "truth values"),
    Path: ("a path", "paths"),
    None: ("none", "none"),
    types.NoneType: ("none", "none"),
}
"""Descriptions of types, in the singular and in the plural."""


# Text


def parse(kind: Any, text: str | Sequence[str]) -> Any:
    """Parse a text as a type. A list is given as several texts, or as the words of one.

    >>> parse(tuple[int, ...], "1 2"), parse(float | None, "none"), parse(bool, "true")
    ((1, 2), None, True)

    Raises ``ValueError`` with a message that continues the name of the setting.
    """
    try:
        value = _parsed(kind, text)
    except ValueError:
        value = MISSING
    if value is MISSING or not accepts(kind, value):
        given = text if isinstance(text, str) else " ".join(text)
        literals = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
        choices = [str(choice) for part in literals for choice in get_args(part)]
        hint = did_you_mean(given, choices)
        raise ValueError(f"must be {in_words(kind)}, not {given!r}{hint}")
    return value


def _parsed(kind: Any, text: str | Sequence[str]) -> Any:
    arguments = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        if types.NoneType in arguments and str(text).lower() == "none":
            return None
        for part in arguments:
            with contextlib.suppress(ValueError):
                return parse(part, text) if part is not types.NoneType else int("")
        raise ValueError
    if is_list(kind):
        words = text.split() if isinstance(text, str) else text
        kinds = _elements(kind, len(words))
        return tuple(map(_parsed, kinds, words)) if len(kinds) == len(words) else MISSING
    if get_origin(kind) is Literal:
        return next((choice for choice in arguments if printed(choice) == text), MISSING)
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(str(text).lower(), MISSING)
    return kind(text) if kind in (int, float, Path) else text


def printed(value: Any) -> str:
    """Return the text from which ``parse`` restores a value."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(printed, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def parse_option(kind: Any, text: str) -> Any:
    """Parse an option whose type may be unknown: JSON, a word, or a list separated by commas."""
    if "," in text or any(map(is_list, (kind, *get_args(kind)))):
        with contextlib.suppress(ValueError):
            return tuple(parse_json(f"[{text}]"))
        return tuple(text.split(","))
    with contextlib.suppress(ValueError):
        return parse_json(text)
    return text


def assignments(items: Iterable[str], option: str, name: str = "SETTING") -> dict[str, str]:
    """Split the ``NAME=VALUE`` texts of an option into a dictionary."""
    texts: dict[str, str] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals:
            raise ValueError(f"{option} takes {name}=VALUE, not {item!r}")
        if key in texts:
            raise ValueError(f"{option} gives {key} twice, as {texts[key]!r} and as {text!r}")
        texts[key] = text
    return texts


# Trees of settings


def leaves(settings: Any, prefix: str = "") -> Iterator[tuple[str, Field[Any], Any, Any]]:
    """Yield the dotted name, field, type and value of each setting in a tree."""
    kinds = get_type_hints(type(settings))
    for entry in fields(settings):
        value, name = getattr(settings, entry.name), prefix + entry.name
        if is_dataclass(value):
            yield from leaves(value, name + ".")
        else:
            yield name, entry, kinds[entry.name], value


def changed(settings: Settings, given: Mapping[str, str], explained: str = "") -> Settings:
    """Replace settings by values parsed from text, like ``{"selfplay.num_games": "64"}``.

    Args:
      settings: the settings.
      given: texts by name.
      explained: end of the message about an unknown name; by default it lists the names.

    Raises ``ValueError`` for an unknown name or an invalid value.
    """
    kinds = {name: kind for name, _, kind, _ in leaves(settings)}
    values = {}
    for name, text in given.items():
        if name not in kinds:
            hint = did_you_mean(name, kinds)
            raise ValueError(f"unknown setting {name!r}{hint}; {explained or 'settings are ' + ', '.join(kinds)}")
        try:
            values[name] = parse(kinds[name], text)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    result: Settings = _replaced(settings, values, "")
    return result


def _replaced(settings: Any, values: dict[str, Any], prefix: str) -> Any:
    """Replace the values below a prefix."""
    parts = {}
    for entry in fields(settings):
        name, value = prefix + entry.name, getattr(settings, entry.name)
        if is_dataclass(value) and any(other.startswith(f"{name}.") for other in values):
            parts[entry.name] = _replaced(value, values, f"{name}.")
        elif name in values:
            parts[entry.name] = values[name]
    return _named(prefix, partial(replace, settings, **parts))


def to_json(settings: Any) -> dict[str, Any]:
    """Convert settings to nested JSON, the inverse of ``from_json``."""
    return {
        entry.name: to_json(value) if is_dataclass(value) else plain(value)
        for entry in fields(settings)
        for value in [getattr(settings, entry.name)]
    }


def plain(value: Any) -> Any:
    """Convert the value of a setting to JSON: tuples become lists."""
    return json.loads(json.dumps(value))


def from_json(kind: type[Settings], given: Any, prefix: str = "") -> Settings:
    """Read settings from nested JSON; missing ones have their defaults."""
    if not isinstance(given, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'settings'} must be a JSON object, not {given!r}")
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(given.keys() - known.keys()):
        hint = did_you_mean(unknown[0], known)
        raise ValueError(f"unknown setting {', '.join(prefix + name for name in unknown)}{hint}")
    kinds = get_type_hints(kind)
    values = {
        name: from_json(kinds[name], value, f"{prefix}{name}.") if is_dataclass(kinds[name]) else frozen(value)
        for name, value in given.items()
    }
    return _named(prefix, lambda: kind(**values))


def _named(prefix: str, make: Callable[[], Settings]) -> Settings:
    """Call a function, and prefix the names of settings in its errors."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from None


def frozen(value: Any) -> Any:
    """Convert lists in a value to tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def differences(settings: Settings, others: Settings, resuming: bool = False) -> list[str]:
    """Describe settings that differ: "name was ... and is ...". ``resuming`` leaves out settings that may change."""
    before = {name: value for name, _, _, value in leaves(others)}
    return [
        f"{name} was {before[name]!r} and is {value!r}"
        for name, entry, _, value in leaves(settings)
        if value != before[name] and not (resuming and entry.metadata.get("may_change"))
    ]


def listing(settings: Any, prefix: str = "") -> list[dict[str, Any]]:
    """List all settings with ``name``, ``default`` and ``description``."""
    rows: list[dict[str, Any]] = []
    for entry in fields(settings):
        value, name = getattr(settings, entry.name), prefix + entry.name
        if is_dataclass(value):
            rows += listing(value, name + ".")
        else:
            description = descriptions(type(settings)).get(entry.name, "")
            rows.append({"name": name, "default": value, "description": description})
    return rows


def descriptions(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings of the fields of a dataclass by name: the strings below them, in its source and its bases."""
    described: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for entry, below in zip(tree.body, tree.body[1:], strict=False):
            match entry, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    described[name] = " ".join(text.split())
    return described


# Options of games


def checked_options(name: str, known: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of a game and convert them for its factory.

    Args:
      name: the id of the game.
      known: the parameters of its factory.
      given: options; lists become tuples.

    Raises ``ValueError`` for an unknown option or a value of the wrong type.
    """
    unknown = [option for option in given if option not in known]
    if unknown:
        options = f"its options are {', '.join(known)}" if known else "it has no options"
        raise ValueError(f"{name} has no option {', '.join(unknown)}{did_you_mean(unknown[0], known)}; {options}")
    return {option: _checked(name, known[option], value) for option, value in given.items()}


def _checked(name: str, parameter: inspect.Parameter, value: Any) -> Any:
    default, kind = parameter.default, parameter.annotation
    if isinstance(kind, str) or kind is parameter.empty or kind is Any:
        kind = Any if default is None or default is parameter.empty else type(default)
    has_example = default is not None and default is not parameter.empty and get_origin(kind) is not Literal
    wanted = f"{name}: {parameter.name} must be {in_words(kind)}{f', like {default!r}' if has_example else ''}"
    try:
        value = _native(value)
        if accepts(kind, value):
            return float(value) if kind is float else value
    except RecursionError:
        raise ValueError(f"{wanted}, not nested so deeply") from None
    raise ValueError(f"{wanted}, not {shown(value)}")


def _native(value: Any) -> Any:
    """Convert lists to tuples, and integers of NumPy to integers of Python."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_native, value))
    with contextlib.suppress(TypeError):
        return index(value) if hasattr(value, "dtype") else value
    return value
