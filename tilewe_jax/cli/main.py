"""The command line ``tilewe-jax``."""

import importlib
import inspect
import shutil
import signal
import sys
import textwrap
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from tilewe_jax.cli import compilation_cache, crash, streams
from tilewe_jax.cli.common import FailedError, UsageError
from tilewe_jax.cli.parsing import MIN_WIDTH, ArgumentError, parse
from tilewe_jax.utils import interrupts
from tilewe_jax.utils.words import did_you_mean

# A command is imported when it is asked for, and JAX inside of the commands: `--help`, `show`, `render` and `bench` do
# without it.

COMMANDS = {
    "games": "games:Games",
    "rollout": "games:Rollout",
    "replay": "games:Replay",
    "show": "games:Show",
    "render": "render:Render",
    "perft": "games:Perft",
    "match": "match:Match",
    "ladder": "ladder:Ladder",
    "openings": "ladder:Openings",
    "train": "train:Train",
    "report": "train:Report",
    "export": "export:Export",
    "analyze": "analyze:Analyze",
    "rate": "analyze:Rate",
    "play": "play:Play",
    "serve": "serve:Serve",
    "convert": "gtp:Convert",
    "gtp": "gtp:Gtp",
    "bench play": "bench:Play",
    "bench search": "bench:Search",
    "bench train": "bench:Train",
    "bench serve": "bench:Serve",
    "bench gpu": "bench:Gpu",
    "bench pgx": "bench:Pgx",
    "bench signature": "bench:Signature",
    "bench all": "bench:All",
}
"""The dataclass of each command, as ``module:name`` in ``tilewe_jax.cli``. ``bench`` alone is ``bench play``."""
MOVED = {
    "arena": "tilewe-jax match AGENT AGENT ...",
    "eval": "tilewe-jax match AGENT AGENT ..., or tilewe-jax match --run FOLDER",
    "selfplay": "tilewe-jax match AGENT, which plays all seats",
    "exploit": "python -m experiments.exploitability, in the repository",
    "bench --search": "tilewe-jax bench search",
    "bench --train": "tilewe-jax bench train --preset PRESET",
    "bench --serve": "tilewe-jax bench serve",
    "bench --gpu": "tilewe-jax bench gpu",
    "bench --protocol": "tilewe-jax bench pgx",
    "bench --all": "tilewe-jax bench all",
}
"""Names that commands had, and what takes their place."""

DESCRIPTION = "Tile-placing board games in JAX, thousands of games at once: play them, search them, and train networks."


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Without one, print the help.

    The exit code is 0 after success, help included; 1 if a file is bad or a check failed; 2 after wrong arguments; 70 after an
    internal error, see ``crash``; 130 after Ctrl-C; 141 if nobody reads the output any more.
    """
    is_process = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    for stop in interrupts.signals():
        signal.signal(stop, interrupts.interrupt)
    if is_process:
        interrupts.watch()
        streams.encode_everything()
    try:
        try:
            _run(arguments)
        finally:
            streams.flush()
    except KeyboardInterrupt:
        if is_process:
            interrupts.end()
        _fail("interrupted", 130)
    except Exception as error:
        _end_with(error, arguments)


def _end_with(error: Exception, arguments: list[str]) -> NoReturn:
    """End the process after an error, with one line about it."""
    match error:
        case UsageError():
            _fail(str(error), 2)
        case FailedError():
            _fail(str(error), 1)
        case BrokenPipeError():  # the reader wants no more, like `head`
            streams.discard()
            sys.exit(streams.CODE_OF_BROKEN_PIPE)
        case OSError():
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
        case MemoryError():
            _fail(f"out of memory: {error}" if str(error) else "out of memory", 1)
        case ValueError():
            from tilewe_jax.records import RecordError

            if isinstance(error, RecordError):
                _fail(str(error), 1)
        case RuntimeError():
            from tilewe_jax.utils.checks import BackendError

            if isinstance(error, BackendError):
                _fail(str(error), 1)
    if sys.flags.dev_mode:
        raise error
    _fail(crash.report(error, arguments, _version()), crash.CODE)


def _run(arguments: list[str]) -> None:
    uses_cache = arguments[:1] != ["--no-cache"]
    if not uses_cache:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help(), flush=True)
    elif arguments[0] == "--version":
        print(_version())
    else:
        command = _parse(arguments)
        # Before JAX is imported, and not for help.
        compilation_cache.enable() if uses_cache else compilation_cache.disable()
        with command.prepare():
            command.run()


def _parse(arguments: list[str]) -> Any:
    """The command of a name with its options. Ends the process where they are wrong."""
    name, *options = arguments
    for old in (name, *(f"{name} {option}" for option in options)):
        if old in MOVED:
            _fail(f"{old} is now {MOVED[old]}", 2)
    if name == "bench":
        name, options = _benchmark(options)
    if name not in COMMANDS:
        if name.startswith("-"):
            _fail(f"expected a command before {name}; see tilewe-jax --help", 2)
        hint = did_you_mean(name, COMMANDS) or f" (expected one of {', '.join(COMMANDS)})"
        _fail(f"there is no command {name!r}{hint}; see tilewe-jax --help", 2)
    kind = _command(name)
    prog = f"tilewe-jax {name}"
    # Each line begins with a space, or tyro would join the lines of a paragraph and break them nowhere.
    description = textwrap.indent(_filled(inspect.getdoc(kind) or "", _width() - 1).replace("\n\n", "\n"), " ")
    try:
        return parse(kind, options, prog, description=description)
    except ArgumentError as error:
        _fail(f"{error}; see {prog} --help", 2)


def _benchmark(options: list[str]) -> tuple[str, list[str]]:
    """The two words of a measurement, and its options: ``bench`` alone is ``bench play``, ``--signature`` is ``signature``."""
    if "--signature" in options:
        return "bench signature", [option for option in options if option != "--signature"]
    if options and not options[0].startswith("-"):
        return f"bench {options[0]}", options[1:]
    return "bench play", options


def _command(name: str) -> Any:
    """The dataclass of a command."""
    module, _, kind = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(f"tilewe_jax.cli.{module}"), kind)


def _help() -> str:
    """The help of the program: its commands, each with the first line of its docstring."""
    width = max(map(len, COMMANDS)) + 4
    rows = {name: (inspect.getdoc(_command(name)) or "").partition("\n")[0] for name in COMMANDS}
    lines = [
        textwrap.fill(f"  {name:{width - 2}}{text}", _width(), subsequent_indent=" " * width) for name, text in rows.items()
    ]
    return "\n".join(
        [
            "usage: tilewe-jax [--no-cache] COMMAND [OPTIONS]\n",
            f"{_filled(DESCRIPTION, _width())}\n",
            "commands:",
            *lines,
            "\noptions:",
            f"  {'-h, --help':{width - 2}} print this help, or with a command its options",
            f"  {'--no-cache':{width - 2}} before a command: compile anew, and keep nothing of it",
            f"  {'--version':{width - 2}} print the versions of tilewe-jax, JAX and Python",
            "\ntilewe-jax COMMAND --help explains the options of a command.",
        ]
    )


def _version() -> str:
    """The versions that a report of a fault should name; none of the packages is imported."""
    versions = []
    for name, package in (("tilewe-jax", "tilewe-jax"), ("JAX", "jax"), ("jaxlib", "jaxlib")):
        try:
            versions.append(f"{name} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{name} (not installed)")
    return ", ".join([*versions, f"Python {sys.version.split()[0]}"])


def _filled(text: str, width: int) -> str:
    """Paragraphs with lines of at most this width."""
    return "\n\n".join(textwrap.fill(paragraph, width, break_on_hyphens=False) for paragraph in text.split("\n\n"))


def _width() -> int:
    """Columns of the terminal, or 80; no more than are easily read, and no fewer than hold the names."""
    return max(MIN_WIDTH, min(shutil.get_terminal_size().columns, 120))


def _fail(message: str, code: int) -> NoReturn:
    streams.discard()
    streams.say(f"tilewe-jax: {_one_line(message)}")
    sys.exit(code)


def _one_line(message: str) -> str:
    """A message in one line of bearable length, whatever a file or an argument has put into it."""
    line = " ".join(message.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 500]} ... {line[-500:]}"


_LONGEST = 5_000
"""Maximum number of characters of a message: all names of settings fit in."""
