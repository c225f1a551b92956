"""Options, checks and consoles that commands share."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option, option_name
from tilewe_jax.cli.streams import Output
from tilewe_jax.settings import assignments, check_number
from tilewe_jax.utils.progress import COMPILING, Progress
from tilewe_jax.utils.words import counted

out = Output()
err = Output(stderr=True)

Agents = Annotated[tuple[str, ...], Option("AGENT ...")]
Folder = Annotated[Path | None, Option("FOLDER")]
MAX_GAMES_OF_ONE_THREAD = 64
"""Number of games or positions up to which a command uses one thread. Searches of 128 games are faster with two threads."""


def in_color() -> bool:
    """Return whether to print positions with ANSI colours: on a terminal that has them, unless NO_COLOR is set."""
    return out.is_terminal and not out.no_color and os.environ.get("TERM") != "dumb"


def use_one_thread(games: int = 1) -> None:
    """Let XLA run programs on a CPU in one thread, unless many games or positions are searched together; call it before JAX.

    XLA divides even small operations among a thread for each core, which wait for each other at full load: with two threads
    a search of 16 games of Duo takes 1.6 times as long as with one, and 2.9 times the CPU time. The environment variable
    ``NPROC``, which XLA reads, overrides this.
    """
    if games <= MAX_GAMES_OF_ONE_THREAD:
        os.environ.setdefault("NPROC", "1")


class UsageError(Exception):
    """Invalid arguments: exit code 2."""


class FailedError(Exception):
    """The arguments are valid, but the command cannot do its work: exit code 1."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Context manager that turns ``ValueError`` and ``MemoryError`` into ``UsageError``, except for errors in files."""
    from tilewe_jax.records import RecordError
    from tilewe_jax.utils.trust import UntrustedError

    try:
        yield
    except (RecordError, UntrustedError):
        raise
    except (ValueError, MemoryError) as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class Imports:
    """Options of all commands."""

    import_: Annotated[tuple[str, ...], Option("MODULE", is_repeated=True, is_rare=True, is_last=True)] = ()
    """Module, or file of Python, to import first, which registers games or network architectures; may be repeated."""

    def prepare(self) -> AbstractContextManager[None]:
        """Import the modules, and return the context in which the command runs."""
        from tilewe_jax.utils.factories import import_module

        for name in self.import_:
            try:
                import_module(name)
            except ValueError as error:
                raise UsageError(f"--import: {error}") from None
        return nullcontext()

    def imports_as_arguments(self) -> list[str]:
        """Return the options as arguments for another process."""
        return [text for name in self.import_ for text in ("--import", name)]


@dataclass(frozen=True, kw_only=True)
class Trust(Imports):
    """Options of commands that read networks, agents or runs from files."""

    trust: Annotated[bool, Option(is_rare=True, is_last=True)] = False
    """Trust the files that are read: run the code that they name, such as a game module:factory in the settings of a run."""

    def prepare(self) -> AbstractContextManager[None]:
        """Import the modules, and return the context in which trusted files may name code."""
        from tilewe_jax.utils.trust import trusting

        super().prepare()
        return trusting(self.trust)

    def imports_as_arguments(self) -> list[str]:
        """Return the options as arguments for another process."""
        return [*super().imports_as_arguments(), *(["--trust"] if self.trust else [])]


@dataclass(frozen=True, kw_only=True)
class Json(Imports):
    """Option of commands that print JSON."""

    json: Annotated[bool, Option(is_last=True)] = False
    """Print one JSON object and nothing else."""


@dataclass(frozen=True)
class GameOptions(Imports):
    """Options that name a game."""

    game: Annotated[str, Option("GAME")] = "tilewe"
    """Game: an id that `tilewe-jax games` lists, or module:factory for a custom game."""
    players: int | None = None
    """Number of players, if the game lets you choose it."""
    set: Annotated[tuple[str, ...], Option("OPTION=VALUE ...")] = ()
    """Further options of the game, such as size=10 pieces=O1,I2; `tilewe-jax games` lists them."""

    def options(self) -> dict[str, Any]:
        """Return the options of the game as ``make`` takes them."""
        from tilewe_jax.registry import game_options

        texts = named(self.set, "OPTION")
        if self.players is not None:
            if "players" in texts:
                raise UsageError("--players and --set players=... are the same option; give one of them")
            texts["players"] = str(self.players)
        with usage_errors():
            return game_options(self.game, texts)

    def make(self) -> Any:
        """Make the game."""
        from tilewe_jax.registry import make_game

        with usage_errors():
            return make_game(self.game, self.options())


@dataclass(frozen=True)
class GamesFile(Imports):
    """Options of commands that read a file of games."""

    file: Annotated[Path, Option("FILE")]
    """File of games: records, as --out of `rollout` and `match` writes them, or a .blksgf file."""
    variations: bool = False
    """Read each variation of a .blksgf file as a game, instead of the main lines alone."""

    def read(self) -> Any:
        """Read the file as ``tilewe_jax.replay.recorded.GameFile``."""
        from tilewe_jax.replay import recorded

        return recorded.read(self.file, self.variations)

    def print_skipped(self, content: Any) -> None:
        """Name the content of the file that is skipped, on standard error."""
        print_skipped(self.file, content, self.variations)


def print_skipped(path: Path, content: Any, variations: bool) -> None:
    """Name the content of a file of games that is skipped, on standard error."""
    for number, note in enumerate(content.notes):
        hint = "; --variations makes each variation a game" if content.has_variations and not (variations or number) else ""
        err.print(f"{path}: {note}{hint}")


MAX_DEVICES = 1024
"""Maximum number of virtual devices of a CPU; each takes threads and some milliseconds."""

_PATIENCE = (
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=3600 --xla_cpu_collective_call_terminate_timeout_seconds=86400"
)
"""Flags of XLA: how long devices of a CPU wait for each other."""


def ask_for_devices(count: int) -> None:
    """Configure JAX, before it starts, with this number of CPU devices; accelerators are not affected."""
    check_positive(devices=count)
    if count > MAX_DEVICES:
        raise UsageError(f"--devices must be at most {MAX_DEVICES}, not {count}")
    set_cpu_devices(count)


def set_cpu_devices(count: int) -> None:
    """Configure JAX. Tests, whose process has started JAX, replace this function."""
    import jax

    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        raise UsageError("--devices comes too late: a module of --import has started JAX, by arrays at its top level") from None
    # XLA ends the process if a device of a CPU waits 40 seconds for another one. In self-play on a busy machine they may wait
    # longer. Flags that the user has set come last, and win.
    os.environ["XLA_FLAGS"] = f"{_PATIENCE} {os.environ.get('XLA_FLAGS', '')}".strip()


def check_writable(path: Path | None) -> None:
    """Check before the work whether a file can be written after it."""
    from tilewe_jax.utils import files

    if path is None:
        return
    try:
        files.check_writable(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def needed_file(path: Path | None) -> Path:
    """Check the file of ``--out`` of a command that needs it."""
    if path is None:
        raise UsageError("--out is needed, the file to write")
    check_writable(path)
    return path


def check_positive(**values: float | None) -> None:
    """Check that options are positive and finite; ``None`` passes."""
    for name, value in values.items():
        try:
            check_number(option_name(name), value, positive=True, maximum=float("inf"))
        except ValueError as error:
            raise UsageError(str(error)) from None


def check_seed(seed: int) -> None:
    """Check that a seed has 64 bits, as JAX requires."""
    if not -(2**63) <= seed < 2**63:
        raise UsageError(f"--seed must be an integer of 64 bits, not {seed}")


def check_unused(command: Any, why: str, *options: str) -> None:
    """Raise ``UsageError`` for options that would be ignored.

    Args:
        command: the command, a dataclass.
        why: end of the message, such as "with --list".
        options: names of the fields.
    """
    defaults = {field.name: field.default for field in fields(command)}
    given = [option_name(name) for name in options if getattr(command, name) != defaults[name]]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be given {why}")


def named(items: tuple[str, ...], name: str = "SETTING") -> dict[str, str]:
    """Split the values of ``--set`` by name."""
    with usage_errors():
        return assignments(items, "--set", name)


def title(game: Any) -> str:
    """Return the title of a table: the game with its options or its number of players."""
    given = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({given or counted(game.num_players, 'players')})"


def chosen_game(games: list[Any], number: int, file: Path) -> Any:
    """Return the game of a file that --number selects, from 1."""
    if not 1 <= number <= len(games):
        raise UsageError(f"--number must be 1 to {len(games)}, the games in {file}, not {number}")
    return games[number - 1]


def check_move(move: int | None, moves: int, number: int) -> None:
    """Check --move, a number of moves of a game."""
    if move is not None and not 0 <= move <= moves:
        raise UsageError(f"--move must be 0 to {moves}, the moves of game {number}, not {move}")


def print_written(content: str, path: Path) -> None:
    """Report a file that was written, on standard error if it is standard output."""
    (err if str(path) == "/dev/stdout" else out).print(f"{content} written to {path}")


def print_notes(players: Iterable[Any]) -> None:
    """Print the notes (attribute ``note``) on players or searches to standard error, each once."""
    for note in dict.fromkeys(player.note for player in players if player.note):
        err.print(note)


def progress(total: int | None = None, unit: str = "games", phase: str = COMPILING, quiet: bool = False) -> Progress:
    """Show the progress of a command on standard error, see ``Progress``; if ``quiet``, as with --json, on a terminal only."""
    return Progress(phase, total, unit, console=None if quiet and not err.is_terminal else err)
