"""What the commands share: the options that name a game, checks of arguments, and consoles."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from tyro.conf import arg

from experiments.progress import COMPILING, Progress

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class UsageError(Exception):
    """An argument that only a command can find wrong."""


class FailedError(Exception):
    """The arguments are right, but it cannot be done."""


@dataclass(frozen=True)
class GameOptions:
    """The options of a command that name a game."""

    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them. Or module:factory for a game of your own."""
    players: int | None = None
    """Number of players in a game, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10 pieces=O1,I2 voluntary_pass=true."""

    def options(self) -> dict[str, Any]:
        """The options as ``make`` takes them."""
        from experiments.game_options import game_option

        texts = named(self.set, "OPTION")
        if self.players is not None:
            texts["players"] = str(self.players)
        try:
            return {name: game_option(self.game, name, text) for name, text in texts.items()}
        except ValueError as error:
            raise UsageError(str(error)) from None

    def make(self) -> Any:
        """The game."""
        from experiments.game_options import make_game

        try:
            return make_game(self.game, self.options())
        except ValueError as error:
            raise UsageError(str(error)) from None


def ask_for_devices(count: int) -> None:
    """Have JAX, which must not have started yet, make so many devices of the CPU; an accelerator has its own."""
    import jax

    jax.config.update("jax_num_cpu_devices", count)


def check_writable(path: Path | None) -> None:
    """Check before the work whether a file can be written after it."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission")


def check_positive(**values: float) -> None:
    """Check numbers by the names of their options."""
    for name, value in values.items():
        if value <= 0:
            raise UsageError(f"--{name.replace('_', '-')} must be positive, not {value}")


def named(items: tuple[str, ...], what: str = "SETTING") -> dict[str, str]:
    """Texts that are given as ``NAME=VALUE``, by name."""
    texts = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--set takes {what}=VALUE, not {item!r}")
        texts[name] = text
    return texts


def title(game: Any) -> str:
    """A game and its options, over a table."""
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options or f'{game.num_players} players'})"


def progress(total: int | None = None, unit: str = "games", phase: str = COMPILING, quiet: bool = False) -> Progress:
    """The progress of a command on standard error, see ``Progress``; where ``quiet``, as with --json, on a terminal only."""
    return Progress(phase, total, unit, console=None if quiet and not err.is_terminal else err)


def plot_ratings(path: Path, game: Any, games: int, rows: list[dict[str, Any]]) -> None:
    """Write a picture of the ratings of agents and their intervals, where they have any."""
    from tilewe_jax.files import replacing
    from tilewe_jax.render.svg import intervals

    bars = [(row["agent"], row["elo"], row["elo_ci95"]) for row in rows if row["elo"] is not None]
    if not bars:
        return
    with replacing(path) as file:
        file.write(intervals(f"{title(game)}: Elo after {games:,} games, 95 % intervals", bars))
