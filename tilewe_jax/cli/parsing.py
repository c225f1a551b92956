"""Command lines by tyro: it parses and prints the whole help; ``settings.from_arguments`` says in one line what is wrong."""

import contextlib
import io
import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from tilewe_jax.settings import descriptions, from_arguments, option_name, printed

_CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
"""On the command line an option is given or left out: ``--json`` has no ``--no-json``, and no number is spelled ``None``."""
RARE = "rare"
"""Annotation of an option that only ``--help-all`` explains."""
MIN_WIDTH = 40
"""Minimum number of columns of a help text: the names of options fit in. A narrower terminal wraps the lines."""


class ArgumentError(ValueError):
    """Arguments that are wrong, in one line."""


def parse(kind: Any, arguments: Sequence[str], prog: str, description: str | None = None) -> Any:
    """Parse arguments into a dataclass.

    Args:
        kind: the dataclass.
        arguments: as they stand on the command line.
        prog: name of the program, for its help.
        description: what the help says of the program.

    Raises ``ArgumentError`` for wrong arguments, and ``SystemExit`` with code 0 after printing the help that was asked for.
    """
    if {"-h", "--help"} & set(arguments):
        print(short_help(kind, prog, description or ""))
        raise SystemExit(0)
    is_help = "--help-all" in arguments
    arguments = ["--help"] if is_help else list(arguments)
    try:
        with _wide_enough(), contextlib.nullcontext() if is_help else _silent():
            return tyro.cli(kind, args=arguments, prog=prog, description=description, config=_CONFIG, console_outputs=is_help)
    except SystemExit as end:
        if is_help and not end.code:
            raise
    try:
        from_arguments(kind, arguments)
    except ValueError as error:
        raise ArgumentError(str(error)) from None
    raise ArgumentError(f"cannot be parsed: {' '.join(arguments)}")


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Print nothing: tyro prints some errors even without ``console_outputs``."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


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


def short_help(kind: Any, prog: str, description: str) -> str:
    """The help of a command that fits on two screens: the first sentence about each option that is not ``RARE``."""
    rows = []
    words = [f"usage: {prog}"]
    described, hints = descriptions(kind), get_type_hints(kind, include_extras=True)
    for entry in fields(kind):
        annotations = getattr(hints[entry.name], "__metadata__", ())
        form = next((item.metavar for item in annotations if getattr(item, "metavar", None)), None)
        if _is_positional(entry):
            words.append(form or entry.name.upper())
        elif RARE not in annotations:
            first = described.get(entry.name, "").partition(". ")[0].rstrip(".")
            rows.append((f"{option_name(entry.name)} {form or _form(hints[entry.name])}".rstrip(), first + _default(entry)))
    width = max(MIN_WIDTH, min(shutil.get_terminal_size().columns, 120))
    column = min(max(len(name) for name, _ in rows) + 4, 28)
    lines = [f"{' '.join(words)} [OPTIONS]", "", *map(str.strip, description.splitlines()), ""]
    for name, text in [*rows, ("--help-all", "Explain everything, with the options left out here")]:
        head = f"  {name:{column - 2}}" if len(name) + 3 < column else f"  {name} "
        lines += textwrap.wrap(head + " " * (column - len(head)) + text, width, subsequent_indent=" " * column)
    return "\n".join(lines)


def _is_positional(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _form(hint: Any) -> str:
    """What a value looks like in the help."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    return "" if hint is bool else next((name for kind, name in _FORMS if kind in (hint, *get_args(hint))), "VALUE")


_FORMS = ((int, "N"), (float, "NUMBER"), (Path, "FILE"), (str, "TEXT"))


def _default(entry: Field[Any]) -> str:
    return "" if entry.default in (None, False, (), "", MISSING) else f" ({printed(entry.default)})"
