"""Nested settings as frozen dataclasses: ranges in the fields' metadata, dotted names, text, and JSON.

A setting is a dataclass field made by ``setting``, with a docstring below it. ``validate``, ``changed``, ``from_json`` and
``listing`` work on any such tree of dataclasses, and name a setting by its path, like ``selfplay.search.num_simulations``.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Hashable, Iterator
from dataclasses import Field, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tilewe_jax.cli.parsing import ArgumentError, form, parse
from tilewe_jax.search.settings import MAX_INT, is_finite
from tilewe_jax.utils.words import did_you_mean

Settings = TypeVar("Settings")
UNLIMITED = MAX_INT
"""Value of an integer setting that sets no limit of its own."""


def setting(
    default: Any,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    positive: bool = False,
    may_change: bool = False,
    holds: str = "code",
) -> Any:
    """A dataclass field with a range.

    Args:
        default: value unless given.
        minimum: smallest allowed value.
        maximum: largest allowed value.
        positive: whether only values above 0 are allowed.
        may_change: whether a run may be resumed with another value.
        holds: how texts in it are read, see ``training.config.code_in_settings``: as ``"agents"``; as ``"data"``, which
            never names code; or as ``"code"``, which any text with a colon names.
    """
    metadata = {"minimum": minimum, "maximum": maximum, "positive": positive, "may_change": may_change, "holds": holds}
    return field(default=default, metadata=metadata)


def leaves(settings: Any, prefix: str = "") -> Iterator[tuple[str, Field[Any], Any, Any]]:
    """All settings in a tree: dotted name, field, type, and value."""
    types = get_type_hints(type(settings))
    for entry in fields(settings):
        value, name = getattr(settings, entry.name), prefix + entry.name
        if is_dataclass(value):
            yield from leaves(value, name + ".")
        else:
            yield name, entry, types[entry.name], value


def validate(settings: Any) -> None:
    """Check the type and the range of every setting in a tree. Raises ``ValueError`` that names the setting."""
    for name, entry, kind, value in leaves(settings):
        if problem := _problem(entry, kind, value):
            raise ValueError(f"{name} must {problem}, not {value!r}")


_KINDS = {
    bool: ("true or false", (bool,)),
    int: ("an integer", (int,)),
    float: ("a number", (int, float)),
    str: ("text", (str,)),
}


def _problem(entry: Field[Any], kind: Any, value: Any) -> str | None:
    """What a setting must be, where its value is something else."""
    if not _fits(kind, value):
        return f"be {_wanted(kind) or _in_words(kind)}"
    return _out_of_range(entry, value) if kind in (int, float) else None


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value is of a type as the settings have them; numbers must be finite."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in arguments)
    if origin is tuple:
        length = len(value) if isinstance(value, tuple) else -1
        kinds = arguments[:1] * length if arguments[1:] == (...,) else arguments
        return len(kinds) == length and all(map(_fits, kinds, value))
    if kind in _KINDS:
        return type(value) in _KINDS[kind][1] and (kind not in (int, float) or is_finite(value))
    return value is None if kind is type(None) else True


def _wanted(kind: Any) -> str | None:
    """The values of a type in words; ``None`` for types that are not simple."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return _KINDS[kind][0] if kind in _KINDS else None


def _in_words(kind: Any) -> str:
    """The values of a type that is not simple in words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        parts = dict.fromkeys(_wanted(part) or _in_words(part) for part in arguments if part is not ...)
        return f"a list of {' and '.join(parts)}" if ... in arguments else f"{len(arguments)} values, each {' or '.join(parts)}"
    return " or ".join("none" if part is type(None) else _wanted(part) or _in_words(part) for part in arguments)


def _out_of_range(entry: Field[Any], value: float) -> str | None:
    """The range of a setting, where its value lies outside of it."""
    minimum, maximum = entry.metadata.get("minimum"), entry.metadata.get("maximum")
    if maximum is None and isinstance(value, int) and value > MAX_INT:
        return f"be at most {MAX_INT}"
    if entry.metadata.get("positive"):
        return None if value > 0 else "be positive"
    low, high = minimum is None or value >= minimum, maximum is None or value <= maximum
    if low and high:
        return None
    if minimum is not None and maximum is not None:
        return f"be between {minimum} and {maximum}"
    return f"be at least {minimum}" if not low else f"be at most {maximum}"


def changed(settings: Settings, given: dict[str, str]) -> Settings:
    """The settings with some changed by text, like ``{"selfplay.num_games": "64"}``.

    Values are parsed by tyro: several words make a tuple, ``none`` stands for ``None``. Raises ``ValueError`` that names the
    setting.
    """
    types = {name: kind for name, _, kind, _ in leaves(settings)}
    arguments: list[str] = []
    for name, text in given.items():
        if name not in types:
            raise ValueError(f"there is no setting {name!r}{did_you_mean(name, types)}; there are {', '.join(types)}")
        words = text.split() if get_origin(types[name]) is not None and get_origin(types[name]) is not Literal else [text]
        words = [word.capitalize() if word.lower() in ("true", "false", "none") else word for word in words]
        arguments += [f"--{name}", *words]
    try:
        result: Settings = parse(type(settings), arguments, default=settings, prog="")
    except ArgumentError as error:
        wrong = error.argument.lowered.name_or_flags[0].removeprefix("--") if error.argument else ""
        if wrong not in types:
            raise ValueError(_dotted(str(error), list(given))) from None
        wanted = _wanted(types[wrong]) or form(error.argument)
        hint = did_you_mean(given[wrong], get_args(types[wrong])) if get_origin(types[wrong]) is Literal else ""
        raise ValueError(f"{wrong} must be {wanted}, not {given[wrong]!r}{hint}") from None
    return result


def to_json(settings: Any) -> dict[str, Any]:
    """The settings as nested JSON, such that ``from_json`` gives them back."""
    return {
        entry.name: to_json(value) if is_dataclass(value) else plain(value)
        for entry in fields(settings)
        for value in [getattr(settings, entry.name)]
    }


def plain(value: Any) -> Any:
    """The value of a setting as JSON has it, with lists for tuples."""
    return json.loads(json.dumps(value))


def from_json(kind: type[Settings], given: Any, prefix: str = "") -> Settings:
    """The settings in nested JSON; settings that are not given have their defaults. Raises ``ValueError`` for unknown ones."""
    if not isinstance(given, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'settings'} must be a JSON object, not {given!r}")
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(given.keys() - known.keys()):
        hint = did_you_mean(unknown[0], known)
        raise ValueError(f"there is no setting {', '.join(prefix + name for name in unknown)}{hint}")
    types = get_type_hints(kind)
    values = {
        name: from_json(types[name], value, f"{prefix}{name}.") if is_dataclass(types[name]) else frozen(value)
        for name, value in given.items()
    }
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from None


def _dotted(message: str, names: list[str]) -> str:
    """A message of a nested dataclass that begins with the name of a field, with its dotted name, where it is one of these."""
    word, _, rest = message.partition(" ")
    name = next((name for name in names if name.endswith(f".{word}")), word)
    return f"{name} {rest}"


def frozen(value: Any) -> Any:
    """The value with lists as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def differences(settings: Settings, others: Settings, resuming: bool = False) -> list[str]:
    """Settings that differ: "name was ... and is ...". While ``resuming``, those that may change then are left out."""
    before = {name: value for name, _, _, value in leaves(others)}
    return [
        f"{name} was {before[name]!r} and is {value!r}"
        for name, entry, _, value in leaves(settings)
        if value != before[name] and not (resuming and entry.metadata.get("may_change"))
    ]


def listing(settings: Any) -> list[dict[str, Any]]:
    """All settings: ``name``, ``default`` and ``description``."""
    rows: list[dict[str, Any]] = []

    def add(settings: Any, prefix: str) -> None:
        described = descriptions(cast(Hashable, type(settings)))
        for entry in fields(settings):
            value, name = getattr(settings, entry.name), prefix + entry.name
            if is_dataclass(value):
                add(value, name + ".")
            else:
                rows.append({"name": name, "default": value, "description": described.get(entry.name, "")})

    add(settings, "")
    return rows


@cache
def descriptions(kind: Hashable) -> dict[str, str]:
    """The docstrings of a dataclass's fields, by name: the string below each in the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cast(type[Any], kind)))).body[0]
    assert isinstance(tree, ast.ClassDef)
    described = {}
    for entry, below in zip(tree.body, tree.body[1:], strict=False):
        match entry, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                described[name] = " ".join(text.split())
    return described
