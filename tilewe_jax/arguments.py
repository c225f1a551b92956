"""Command lines as dataclasses: parsing, one-line errors and help.

An option is a field of a dataclass with a docstring below it; ``Annotated[type, Option(...)]`` refines it. ``--num-games 8``
sets ``num_games``, ``--json`` a boolean, and ``--set a=1 b=2`` a list. A field without a default is positional.
"""

import inspect
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tilewe_jax.settings import descriptions, is_list, parse, printed
from tilewe_jax.utils.words import did_you_mean

Kind = TypeVar("Kind")
MIN_WIDTH, MAX_WIDTH = 40, 120
"""Limits of the number of columns of a help text."""
_TWO_COLUMNS = 60
"""Minimum width at which descriptions stand beside the names instead of below them."""
_FORMS = ((int, "N"), (float, "NUMBER"), (Path, "FILE"), (str, "TEXT"))


@dataclass(frozen=True)
class Option:
    """Properties of an option, an annotation of its type."""

    form: str = ""
    """Placeholder of the value in the help, like FOLDER. Values of an option with NAME=VALUE must contain ``=``."""
    is_repeated: bool = False
    """The option is given once for each value of its list."""
    is_rare: bool = False
    """Only ``--help-all`` explains the option."""
    is_last: bool = False
    """The help explains the option after the others."""
    default: str = ""
    """Text of the default in the help, unless it is the value itself."""


@dataclass(frozen=True)
class _Field:
    """A field of a dataclass as an option."""

    name: str
    kind: Any
    option: Option
    default: Any

    @property
    def is_positional(self) -> bool:
        return self.default is MISSING

    @property
    def form(self) -> str:
        """Placeholder of the value."""
        if self.option.form or self.kind is bool:
            return self.option.form
        if get_origin(self.kind) is Literal:
            return "|".join(map(str, get_args(self.kind)))
        return next((form for kind, form in _FORMS if kind in (self.kind, *get_args(self.kind))), "VALUE")

    @property
    def capacity(self) -> float:
        """Maximum number of values after the option."""
        if self.kind is bool:
            return 0
        if (kind := _list_in(self.kind)) is None or self.option.is_repeated:
            return 1
        is_fixed = get_origin(kind) is tuple and get_args(kind)[1:] != (...,)
        return len(get_args(kind)) if is_fixed else math.inf

    def takes(self, text: str) -> bool:
        """Return whether a text can be a value. An agent like ``puct:num_simulations=8`` is not a NAME=VALUE."""
        name, equals, _ = text.partition("=")
        return "=VALUE" not in self.option.form or bool(equals and name.replace(".", "").isidentifier())

    def value(self, words: list[str]) -> Any:
        """Parse the values of the option."""
        if self.kind is bool and not words:
            return True
        if _list_in(self.kind) is None and not words:
            raise ValueError(f"{option_name(self.name)} needs a value")
        try:
            return parse(self.kind, words[-1] if _list_in(self.kind) is None else words)
        except ValueError as error:
            text = str(error).replace(" or none, not", ", not")  # an option is given or not
            raise ValueError(f"{option_name(self.name)} {text}") from None


def option_name(name: str) -> str:
    """The option of a field: ``num_games`` is ``--num-games``, and ``import_`` is ``--import``."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def from_arguments(kind: type[Kind], arguments: Sequence[str] | None = None, prog: str = "") -> Kind:
    """Parse command-line arguments into a dataclass.

    An option of a list takes all texts up to the next option. The last value of another option counts.

    Args:
        kind: the dataclass.
        arguments: the arguments, by default of this process.
        prog: name of the program in its help.

    Raises ``ValueError`` for invalid arguments, and ``SystemExit`` after printing the help.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if {"-h", "--help", "--help-all"} & set(arguments):
        print(help_text(kind, prog, "--help-all" in arguments))
        raise SystemExit(0)
    options = _options(kind)
    positional = [name for name, entry in options.items() if entry.is_positional]
    given: dict[str, list[str]] = {}
    name, room = "", 0.0
    for token in arguments:
        if token.startswith("--"):
            head, equals, text = token.partition("=")
            name = head.replace("_", "-")
            if name not in options:
                raise ValueError(f"unrecognized options: {token}{did_you_mean(name, options)}")
            given.setdefault(name, []).extend([text] if equals else [])
            room = 0 if equals else options[name].capacity
        elif room > 0 and options[name].takes(token):
            given[name].append(token)
            room -= 1
        else:
            target = next((each for each in positional if len(given.get(each, ())) < options[each].capacity), None)
            if target is None:
                form = options[name].form if room > 0 else ""
                raise ValueError(f"{name} takes {form.split()[0]}, not {token!r}" if form else f"unrecognized options: {token}")
            given.setdefault(target, []).append(token)
    missing = [name for name in positional if name not in given and _list_in(options[name].kind) is None]
    if missing:
        raise ValueError(f"missing: {', '.join(_placeholder(options[name]) for name in missing)}")
    values = {options[name].name: options[name].value(words) for name, words in given.items()}
    return kind(**{options[name].name: () for name in positional if name not in given}, **values)


def to_arguments(command: Any) -> list[str]:
    """Return the arguments from which ``from_arguments`` restores a dataclass; options with their defaults are omitted."""
    positional, arguments = [], []
    for name, entry in _options(type(command)).items():
        value = getattr(command, entry.name)
        texts = [printed(item) for item in (value if isinstance(value, (list, tuple)) else [value])]
        if entry.is_positional:
            positional += texts
        elif value != entry.default:
            arguments += [name] if entry.kind is bool else [f"{name}={text}" for text in texts]
    return [*positional, *arguments]


def help_text(kind: type[Any], prog: str = "", is_full: bool = False) -> str:
    """The help of a dataclass: the first sentence about each common option, or everything if ``is_full``."""
    options, described = _options(kind), descriptions(kind)
    rows: list[tuple[str, str]] = []
    for name, entry in sorted(options.items(), key=lambda item: (not item[1].is_positional, item[1].option.is_last)):
        text = described.get(entry.name, "")
        if is_full:
            default = f" (default: {_default(entry)})" if _default(entry) else ""
        else:
            text, default = text.partition(". ")[0].rstrip("."), f" ({_default(entry)})" if _default(entry) else ""
            if entry.option.is_rare or entry.is_positional:
                continue
        rows.append((_placeholder(entry) if entry.is_positional else f"{name} {entry.form}".rstrip(), text + default))
    if not is_full:
        rows.append(("--help-all", "Explain all options in full"))
    positional = [_placeholder(entry) for entry in options.values() if entry.is_positional]
    usage = [*f"usage: {prog}".split(), *positional, "[OPTIONS]"]
    return "\n\n".join([" ".join(usage), filled(inspect.getdoc(kind) or ""), in_columns(rows)])


def width() -> int:
    """Columns of the terminal, between ``MIN_WIDTH`` and ``MAX_WIDTH``; 80 without a terminal."""
    return max(MIN_WIDTH, min(shutil.get_terminal_size().columns, MAX_WIDTH))


def filled(text: str) -> str:
    """Wrap paragraphs to the width of the terminal; indented ones, which are commands, with indented further lines."""
    return "\n\n".join(_wrapped(part, " " * 6 if part.startswith("    ") else "") for part in text.split("\n\n"))


def in_columns(rows: Sequence[tuple[str, str]]) -> str:
    """Names with their descriptions, beside them or on narrow terminals below them."""
    if width() < _TWO_COLUMNS:
        return "\n".join(f"  {name}\n{_wrapped(' ' * 6 + text, ' ' * 6)}" for name, text in rows)
    column = min(max(len(name) for name, _ in rows) + 4, 28)
    lines = []
    for name, text in rows:
        head = f"  {name:{column - 2}}" if len(name) + 3 < column else f"  {name}  "
        lines.append(_wrapped(head + text, " " * column))
    return "\n".join(lines)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, width(), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _options(kind: type[Any]) -> dict[str, _Field]:
    """The fields of a dataclass by the names of their options."""
    hints, options = get_type_hints(kind, include_extras=True), {}
    for entry in fields(kind):
        annotations = getattr(hints[entry.name], "__metadata__", ())
        option = next((item for item in annotations if isinstance(item, Option)), Option())
        plain = get_args(hints[entry.name])[0] if annotations else hints[entry.name]
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
        options[option_name(entry.name)] = _Field(entry.name, plain, option, default)
    return options


def _list_in(kind: Any) -> Any:
    """Return the list type among the alternatives of a type, or ``None``."""
    return next((part for part in (kind, *get_args(kind)) if is_list(part)), None)


def _placeholder(entry: _Field) -> str:
    return entry.option.form or entry.name.upper()


def _default(entry: _Field) -> str:
    if entry.option.default or entry.default in (None, (), "", MISSING) or isinstance(entry.default, bool):
        return entry.option.default
    return f"{entry.default:g}" if isinstance(entry.default, float) else printed(entry.default)
