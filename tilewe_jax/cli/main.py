"""The command line ``tilewe-jax``."""

import importlib
import inspect
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from tilewe_jax.arguments import filled, from_arguments, in_columns
from tilewe_jax.cli import compilation_cache, crash, streams
from tilewe_jax.cli.common import FailedError, UsageError
from tilewe_jax.utils import interrupts
from tilewe_jax.utils.words import did_you_mean

COMMANDS = {
    "games": "games:Games",
    "rollout": "games:Rollout",
    "replay": "games:Replay",
    "show": "games:Show",
    "render": "render:Render",
    "perft": "games:Perft",
    "match": "match:Match",
    "ladder": "ladder:Ladder",
    "merge": "shards:Merge",
    "openings": "ladder:Openings",
    "book": "book:Book",
    "train": "train:Train",
    "report": "train:Report",
    "export": "export:Export",
    "analyze": "analyze:Analyze",
    "rate": "analyze:Rate",
    "solve": "solve:Solve",
    "explore": "explore:Explore",
    "puzzles": "puzzles:Puzzles",
    "value-test": "values:ValueTest",
    "play": "play:Play",
    "serve": "serve:Serve",
    "games-db list": "games_db:List",
    "games-db export": "games_db:ExportGames",
    "games-db delete": "games_db:Delete",
    "games-db backup": "games_db:Backup",
    "games-db check": "games_db:Check",
    "site": "site:Site",
    "convert": "gtp:Convert",
    "gtp": "gtp:Gtp",
    "selftest": "selftest:Selftest",
    "bench play": "bench:Play",
    "bench search": "bench:Search",
    "bench train": "bench:Train",
    "bench serve": "bench:Serve",
    "bench gpu": "bench:Gpu",
    "bench pgx": "bench:Pgx",
    "bench signature": "bench:Signature",
    "bench all": "bench:All",
}
"""The dataclass of each command, as ``module:name`` in ``tilewe_jax.cli``; they import JAX when they run."""
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
"""Former names of commands, and their replacements."""

DESCRIPTION = "Tile-placing board games in JAX: play thousands of games in parallel, search them, and train networks."


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Without one, print the help.

    The exit code is 0 after success, help included; 1 if a file is bad or a check failed; 2 after wrong arguments; 70 after an
    internal error, see ``crash``; 130 after Ctrl-C; 141 if the reader of the output has gone.
    """
    is_process = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    with interrupts.handled_by(interrupts.interrupt):
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
    from tilewe_jax.records import RecordError
    from tilewe_jax.utils.checks import BackendError
    from tilewe_jax.utils.extras import MissingExtraError
    from tilewe_jax.utils.trust import UntrustedError

    match error:
        case UsageError():
            _fail(str(error), 2)
        case FailedError() | RecordError() | BackendError() | MissingExtraError() | UntrustedError():
            _fail(str(error), 1)
        case BrokenPipeError():  # the reader has gone, like `head`
            streams.discard()
            sys.exit(streams.CODE_OF_BROKEN_PIPE)
        case OSError():
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
        case MemoryError():
            _fail(f"out of memory: {error}" if str(error) else "out of memory", 1)
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
    """Parse a command and its options. Ends the process if they are invalid."""
    name, *options = arguments
    for old in (name, *(f"{name} {option}" for option in options)):
        if old in MOVED:
            _fail(f"{old} is now {MOVED[old]}", 2)
    if name == "bench":
        name, options = _benchmark(options)
    elif actions := [each.removeprefix(f"{name} ") for each in COMMANDS if each.startswith(f"{name} ")]:
        action = options[0] if options else "--help"
        if action in ("-h", "--help"):
            print(f"usage: tilewe-jax {name} ACTION [OPTIONS]\n\n{in_columns(_descriptions(f'{name} '))}")
            raise SystemExit(0)
        if action not in actions:
            _fail(f"{name} takes {', '.join(actions)}, not {action!r}{did_you_mean(action, actions)}", 2)
        name, options = f"{name} {action}", options[1:]
    if name not in COMMANDS:
        if name.startswith("-"):
            _fail(f"expected a command before {name}; see tilewe-jax --help", 2)
        _fail(f"unknown command {name!r}{did_you_mean(name, COMMANDS)}; see tilewe-jax --help", 2)
    prog = f"tilewe-jax {name}"
    try:
        return from_arguments(_command(name), options, prog)
    except ValueError as error:
        _fail(f"{error}; see {prog} --help", 2)


def _benchmark(options: list[str]) -> tuple[str, list[str]]:
    """Return the two words of a measurement, and its options: ``bench`` alone is ``bench play``."""
    if "--signature" in options:
        return "bench signature", [option for option in options if option != "--signature"]
    if options and not options[0].startswith("-"):
        return f"bench {options[0]}", options[1:]
    return "bench play", options


def _command(name: str) -> Any:
    """Import the dataclass of a command."""
    module, _, kind = COMMANDS[name].partition(":")
    return getattr(importlib.import_module(f"tilewe_jax.cli.{module}"), kind)


def _help() -> str:
    """The help of the program: its commands, each with the first paragraph of its docstring."""
    options = [
        ("-h, --help", "Print this help, or with a command its options"),
        ("--no-cache", "Before a command: do not use the cache of compiled programs"),
        ("--version", "Print the versions of tilewe-jax, JAX and Python"),
    ]
    return "\n".join(
        [
            "usage: tilewe-jax [--no-cache] COMMAND [OPTIONS]\n",
            f"{filled(DESCRIPTION)}\n\ncommands:",
            in_columns(_descriptions()),
            "\noptions:",
            in_columns(options),
            f"\n{filled('tilewe-jax COMMAND --help explains the options of a command.')}",
        ]
    )


def _descriptions(prefix: str = "") -> list[tuple[str, str]]:
    """The commands whose name starts with a prefix, each with the first paragraph of its docstring."""
    names = [name for name in COMMANDS if name.startswith(prefix)]
    return [(name, " ".join((inspect.getdoc(_command(name)) or "").partition("\n\n")[0].split())) for name in names]


def _version() -> str:
    """The versions for the report of an error, without importing the packages."""
    versions = []
    for name, package in (("tilewe-jax", "tilewe-jax"), ("JAX", "jax"), ("jaxlib", "jaxlib")):
        try:
            versions.append(f"{name} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{name} (not installed)")
    return ", ".join([*versions, f"Python {sys.version.split()[0]}"])


def _fail(message: str, code: int) -> NoReturn:
    streams.discard()
    streams.say(f"tilewe-jax: {_one_line(message)}")
    sys.exit(code)


def _one_line(message: str) -> str:
    """A message in one line of limited length, without control characters."""
    line = " ".join(message.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 500]} ... {line[-500:]}"


_LONGEST = 2_000
"""Maximum number of characters of a message."""
