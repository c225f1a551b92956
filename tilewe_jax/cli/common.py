"""What the commands share: the options that name a game, checks of arguments, and consoles."""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import UseAppendAction, arg

from tilewe_jax.cli.streams import Output
from tilewe_jax.settings import assignments
from tilewe_jax.utils.progress import COMPILING, Progress
from tilewe_jax.utils.words import counted

out = Output()
err = Output(stderr=True)


# Types of options that have no default to show in the help.
Flag = Annotated[bool, arg(help_behavior_hint="")]
OptionalFile = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
OptionalFolder = Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="")]
OptionalInt = Annotated[int | None, arg(help_behavior_hint="")]
Agents = Annotated[tuple[str, ...], arg(metavar="AGENT ...", help_behavior_hint="")]


def in_color() -> bool:
    """Return whether to print positions with ANSI colours: on a terminal that has them, unless NO_COLOR is set."""
    return out.is_terminal and not out.no_color and os.environ.get("TERM") != "dumb"


class UsageError(Exception):
    """An argument that only a command can find wrong."""


class FailedError(Exception):
    """The arguments are right, but it cannot be done."""


@dataclass(frozen=True, kw_only=True)
class Imports:
    """The option of a command that finds games, which a module of the user may register."""

    import_: Annotated[UseAppendAction[tuple[str, ...]], arg(name="import", metavar="MODULE", help_behavior_hint="")] = ()
    """Module, or file of Python, to import first, which registers games or network architectures; may be repeated."""

    def prepare(self) -> AbstractContextManager[None]:
        """Import the modules, and give the context in which the command runs."""
        from tilewe_jax.utils.factories import import_module

        for name in self.import_:
            try:
                import_module(name)
            except ValueError as error:
                raise UsageError(f"--import: {error}") from None
        return nullcontext()

    def imports_as_arguments(self) -> list[str]:
        """The options as another process takes them."""
        return [text for name in self.import_ for text in ("--import", name)]


@dataclass(frozen=True, kw_only=True)
class Trust(Imports):
    """The options of a command that finds networks, agents or runs in files."""

    trust: Flag = False
    """Trust the files that are read: run the code that they name, like a game module:factory in the settings of a run."""

    def prepare(self) -> AbstractContextManager[None]:
        """Import the modules, and give the context in which files may name code, if they are trusted."""
        from tilewe_jax.utils.trust import trusting

        super().prepare()
        return trusting(self.trust)

    def imports_as_arguments(self) -> list[str]:
        """The options as another process takes them."""
        return [*super().imports_as_arguments(), *(["--trust"] if self.trust else [])]


@dataclass(frozen=True)
class GameOptions(Imports):
    """The options of a command that name a game."""

    game: Annotated[str, arg(metavar="GAME")] = "tilewe"
    """Game to play: an id that `tilewe-jax games` lists, or module:factory for a game of your own."""
    players: OptionalInt = None
    """Number of players, one a seat, in games that let you choose it."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...", help_behavior_hint="")] = ()
    """Further options of the game, such as size=10 pieces=O1,I2; `tilewe-jax games` lists them with their defaults."""

    def options(self) -> dict[str, Any]:
        """The options as ``make`` takes them."""
        from tilewe_jax.registry import game_options

        texts = named(self.set, "OPTION")
        if self.players is not None:
            if "players" in texts:
                raise UsageError("--players and --set players=... are the same option; give one of them")
            texts["players"] = str(self.players)
        try:
            return game_options(self.game, texts)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def make(self) -> Any:
        """The game."""
        from tilewe_jax.registry import make_game

        try:
            return make_game(self.game, self.options())
        except ValueError as error:
            raise UsageError(str(error)) from None


MAX_DEVICES = 1024
"""Maximum number of devices that are made of a CPU; each costs threads and some milliseconds."""

_PATIENCE = (
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=3600 --xla_cpu_collective_call_terminate_timeout_seconds=86400"
)
"""Flags of XLA: how long devices of a CPU wait for each other."""


def ask_for_devices(count: int) -> None:
    """Have JAX, which must not have started yet, make so many devices of the CPU; an accelerator has its own."""
    check_positive(devices=count)
    if count > MAX_DEVICES:
        raise UsageError(f"--devices must be at most {MAX_DEVICES}, not {count}")
    set_cpu_devices(count)


def set_cpu_devices(count: int) -> None:
    """Configure JAX; apart from ``ask_for_devices`` so that tests, in whose process JAX has started, can leave it out."""
    import jax

    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        raise UsageError("--devices comes too late: a module of --import has started JAX, by arrays at its top level") from None
    # XLA ends the process where a device of a CPU waits 40 seconds for another one. Self-play makes them wait as long as one of
    # them is slower than the other, which on a busy machine has no limit. Flags that the user has set come last, and win.
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


def check_positive(**values: float) -> None:
    """Check numbers by the names of their options: whether they are positive, and finite."""
    from tilewe_jax.settings import is_finite

    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if not value > 0:
            raise UsageError(f"{option} must be positive, not {value}")
        if not is_finite(value):
            raise UsageError(f"{option} must be finite, not {value}")


def check_seed(seed: int) -> None:
    """Check a seed, which JAX takes as an integer of 64 bits."""
    if not -(2**63) <= seed < 2**63:
        raise UsageError(f"--seed must be an integer of 64 bits, not {seed}")


def check_unused(command: Any, why: str, *options: str) -> None:
    """Refuse options of a command that have another value than their default, and would be ignored.

    Args:
        command: the command, a dataclass.
        why: what makes them meaningless, such as "--search".
        options: the names of the fields.
    """
    defaults = {field.name: field.default for field in fields(command)}
    given = [f"--{name.replace('_', '-')}" for name in options if getattr(command, name) != defaults[name]]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be given {why}")


def named(items: tuple[str, ...], name: str = "SETTING") -> dict[str, str]:
    """The texts of ``--set``, by name."""
    try:
        return assignments(items, "--set", name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def title(game: Any) -> str:
    """A game and its options, over a table."""
    return title_of(game.id, game.options, game.num_players)


def title_of(game: str, options: dict[str, Any], players: int) -> str:
    """The title of the game of an id, its options and its number of players."""
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"{game} ({given or counted(players, 'players')})"


def print_unread(path: Path, file: Any, variations: bool) -> None:
    """Name the content of a file of games that is not read, on standard error.

    Args:
        path: the file.
        file: its content, a ``tilewe_jax.replay.recorded.GameFile``.
        variations: ``--variations``.
    """
    for number, note in enumerate(file.notes):
        hint = "; --variations makes each variation a game" if file.has_variations and not variations and not number else ""
        err.print(f"{path}: {note}{hint}", markup=False, soft_wrap=True)


def chosen_game(games: list[Any], number: int, file: Path) -> Any:
    """The game of a file that --number asks for, from 1."""
    if not 1 <= number <= len(games):
        raise UsageError(f"--number must be 1 to {len(games)}, the games in {file}, not {number}")
    return games[number - 1]


def first_player_so_far(results: Any) -> str:
    """A match under way of a player against others that are alike, in a few words."""
    parts = [f"win rate {results.outcomes(0).mean():.0%}"] if results.games else []
    if results.ply:
        parts.append(f"move {results.ply} of the next")
    return ", ".join(parts)


def print_notes(players: Iterable[Any]) -> None:
    """Print the notes (attribute ``note``) on players or searches to standard error, each once."""
    for note in dict.fromkeys(player.note for player in players if player.note):
        err.print(note)


def progress(total: int | None = None, unit: str = "games", phase: str = COMPILING, quiet: bool = False) -> Progress:
    """The progress of a command on standard error, see ``Progress``; where ``quiet``, as with --json, on a terminal only."""
    return Progress(phase, total, unit, console=None if quiet and not err.is_terminal else err)


def plot_ratings(path: Path, game: Any, games: int, rows: list[dict[str, Any]]) -> None:
    """Write a picture of the ratings of agents and their intervals, where they have any."""
    from tilewe_jax.draw.charts import intervals
    from tilewe_jax.utils.files import replacing

    bars = [(row["agent"], row["elo"], row["elo_ci95"]) for row in rows if row["elo"] is not None]
    if not bars:
        return
    with replacing(path) as file:
        file.write(intervals(f"{title(game)}: Elo after {counted(games, 'games')}, 95 % intervals", bars))
