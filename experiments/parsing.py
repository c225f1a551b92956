"""Parsing of command lines and settings by tyro, with one line where they are wrong."""

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import tyro
from tyro import _errors  # tyro has no public way to get at an error before it draws a box around it

T = TypeVar("T")


class ArgumentError(ValueError):
    """Arguments that tyro refuses, in one line; ``argument`` is that whose value is wrong, where it is one."""

    def __init__(self, message: str, argument: Any = None) -> None:
        super().__init__(message)
        self.argument = argument


def parse(kind: Any, arguments: Sequence[str], prog: str, default: Any = tyro.MISSING, description: str | None = None) -> Any:
    """Parse arguments into a value of a type.

    Args:
        kind: a dataclass, or a union of dataclasses, each a command.
        arguments: as they stand on the command line.
        prog: name of the program, for its help.
        default: value of which the arguments change parts.
        description: what ``--help`` says of the program.

    Raises ``ArgumentError`` for wrong arguments, and ``SystemExit`` with code 0 after printing the help that was asked for.
    """
    with _errors.on_parse_error(_refuse):
        return tyro.cli(
            kind,
            args=list(arguments),
            prog=prog,
            default=default,
            description=description,
            config=(tyro.conf.FlagConversionOff,) if default is not tyro.MISSING else (),
            use_underscores=default is not tyro.MISSING,
        )


def _refuse(event: _errors.ParseErrorEvent) -> NoReturn:
    raise ArgumentError(_message(event), getattr(event, "argument", None))


def _message(event: _errors.ParseErrorEvent) -> str:
    """One line about what is wrong."""
    match event:
        case _errors.UnrecognizedArgs(tokens=tokens):
            message = f"unrecognized options: {' '.join(tokens)}"
        case _errors.MissingArgs(missing_arguments=missing):
            message = f"missing: {', '.join(_flag(entry.arg) for entry in missing)}"
        case _errors.MissingSubcommand(subcommand_spec=spec, found_token=token):
            names = ", ".join(spec.parser_from_name)
            message = f"expected one of {names}" + (f", not {token!r}" if token else "")
        case _errors.InvalidChoice(argument=argument, value=value, choices=choices):
            message = f"{_flag(argument)} must be one of {', '.join(choices)}, not {value!r}"
        case _errors.BadValue(argument=argument):
            message = f"{_flag(argument)} needs a value"
        case _errors.InstantiationFailure(argument=argument, message=reason):
            message = reason if argument is None else f"{_flag(argument)}: {reason}"
        case _:  # tyro may add events
            message = inspect.cleandoc(type(event).__doc__ or type(event).__name__).partition("\n")[0].rstrip(".")
    return " ".join(message.split())


def form(argument: Any) -> str:
    """What the value of an argument looks like, as tyro's help says, such as ``INT``."""
    return str(argument.lowered.metavar)


def _flag(argument: Any) -> str:
    """The name of an argument, as it is given."""
    lowered = argument.lowered
    return str(lowered.metavar if argument.is_positional() else lowered.name_or_flags[0])
