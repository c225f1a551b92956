"""Parsing of command lines and settings by tyro, with one line where they are wrong."""

import contextlib
import inspect
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import takewhile
from typing import Any, NoReturn, TypeVar

import tyro
from tyro import _errors  # tyro has no public way to get at an error before it draws a box around it

from tilewe_jax.utils.words import did_you_mean

T = TypeVar("T")

_CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
"""On the command line an option is given or left out: ``--json`` has no ``--no-json``, and no number is spelled ``None``."""


MIN_WIDTH = 40
"""Minimum number of columns of a help text: the names of options fit in. A narrower terminal wraps the lines."""


class ArgumentError(ValueError):
    """Arguments that tyro refuses, in one line; ``argument`` is that whose value is wrong, where it is one."""

    def __init__(self, message: str, argument: Any = None) -> None:
        super().__init__(message)
        self.argument = argument


def parse(
    kind: Any, arguments: Sequence[str], prog: str, default: Any = tyro.MISSING_NONPROP, description: str | None = None
) -> Any:
    """Parse arguments into a value of a type.

    Args:
        kind: a dataclass.
        arguments: as they stand on the command line.
        prog: name of the program, for its help.
        default: value of which the arguments change parts.
        description: what ``--help`` says of the program.

    Raises ``ArgumentError`` for wrong arguments, and ``SystemExit`` with code 0 after printing the help that was asked for.
    """
    with _errors.on_parse_error(partial(_refuse, kind, arguments)), _wide_enough():
        return tyro.cli(
            kind,
            args=list(arguments),
            prog=prog,
            default=default,
            description=description,
            config=_CONFIG if default is tyro.MISSING_NONPROP else (tyro.conf.FlagConversionOff,),
            use_underscores=default is not tyro.MISSING_NONPROP,
        )


@contextlib.contextmanager
def _wide_enough() -> Iterator[None]:
    """Let the help take at least ``MIN_WIDTH`` columns: tyro allocates memory without end if there is one."""
    if shutil.get_terminal_size().columns >= MIN_WIDTH:
        yield
        return
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(MIN_WIDTH)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def assignments(items: Iterable[str], option: str, name: str = "SETTING") -> dict[str, str]:
    """The texts by name of an option that takes several ``NAME=VALUE``.

    Raises ``ValueError`` for a text without ``=`` and for a name that is given twice.
    """
    texts: dict[str, str] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals:
            raise ValueError(f"{option} takes {name}=VALUE, not {item!r}")
        if key in texts:
            raise ValueError(f"{option} gives {key} twice, as {texts[key]!r} and as {text!r}")
        texts[key] = text
    return texts


def _refuse(kind: Any, arguments: Sequence[str], event: _errors.ParseErrorEvent) -> NoReturn:
    raise ArgumentError(_message(kind, arguments, event), getattr(event, "argument", None))


def option_names(kind: Any) -> list[str]:
    """The options of a command, as they are typed."""
    names = {"imports": "import"}  # a word of Python
    return [f"--{names.get(entry.name, entry.name).replace('_', '-')}" for entry in fields(kind)]


def _message(kind: Any, arguments: Sequence[str], event: _errors.ParseErrorEvent) -> str:
    """One line about what is wrong."""
    match event:
        case _errors.UnrecognizedArgs(tokens=tokens):
            message = f"unrecognized options: {' '.join(tokens)}{did_you_mean(tokens[0].partition('=')[0], option_names(kind))}"
        case _errors.MissingArgs(missing_arguments=missing):
            message = f"missing: {', '.join(_flag(entry.arg) for entry in missing)}"
        case _errors.InvalidChoice(argument=argument, value=value, choices=choices):
            names = [choice for choice in choices if choice != "None"]
            message = f"{_flag(argument)} must be one of {', '.join(names)}, not {value!r}{did_you_mean(value, names)}"
        case _errors.BadValue(argument=argument):
            message = f"{_flag(argument)} needs a value"
        case _errors.InstantiationFailure(argument=argument, message=reason):
            message = reason if argument is None else _wrong_value(_flag(argument), form(argument), arguments)
        case _:  # tyro may add events
            message = inspect.cleandoc(type(event).__doc__ or type(event).__name__).partition("\n")[0].rstrip(".")
    return " ".join(message.split())


def _wrong_value(flag: str, wanted: str, arguments: Sequence[str]) -> str:
    """What an option must be, and what it was given; tyro names Python's types and functions instead."""
    tokens = [token for argument in arguments for token in argument.split("=", 1 if argument.startswith("--") else 0)]
    given = tokens[tokens.index(flag) + 1 :] if flag in tokens else []
    values = list(takewhile(lambda token: not token.startswith("--"), given))
    return f"{flag} must be {_WORDS.get(wanted, wanted)}, not {' '.join(values)!r}"


_WORDS = {"INT": "an integer", "FLOAT": "a number"}


def form(argument: Any) -> str:
    """What the value of an argument looks like, as tyro's help says, such as ``INT``."""
    return str(argument.lowered.metavar)


def _flag(argument: Any) -> str:
    """The name of an argument, as it is given."""
    lowered = argument.lowered
    return str(lowered.metavar if argument.is_positional() else lowered.name_or_flags[0])
