"""The commands that measure: ``bench play``, ``bench search`` and others."""

import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from tyro.conf import arg

from tilewe_jax.cli.common import (
    FailedError,
    Flag,
    GameOptions,
    Imports,
    OptionalFolder,
    OptionalInt,
    UsageError,
    check_positive,
    check_seed,
    check_unused,
    err,
    named,
    out,
    progress,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import did_you_mean


@dataclass(frozen=True)
class _Measured(Imports):
    """Options of all measurements."""

    seconds: float = 5.0
    """Seconds to measure, after compilation."""
    seed: int = 0
    """Seed of the random moves."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    @contextmanager
    def _measuring(self, **positive: float | None) -> Iterator[None]:
        """Check the numbers, and show that something is measured; errors of a measurement become one line."""
        from tilewe_jax.cli.benchmarks.play import IMPORTS

        os.environ[IMPORTS] = json.dumps(self.import_)  # for the processes that measure
        check_seed(self.seed)
        check_positive(seconds=self.seconds, **{name: number for name, number in positive.items() if number is not None})
        try:
            with progress(None, "", "compiling and measuring", quiet=self.json):
                yield
        except (ValueError, RuntimeError) as error:
            raise UsageError(str(error)) from None

    def _print(self, figures: dict[str, Any], title: str) -> None:
        if self.json:
            print(json.dumps(figures))
            return
        table = Rows("figure", "value", wrap=("value",), title=title)
        for name, value in figures.items():
            table.add(name, f"{value:,}" if isinstance(value, int) else str(value))
        table.print(out)


@dataclass(frozen=True)
class Play(_Measured, GameOptions):
    """Measure how fast games are played, in moves per second of pinned cores.

    The form of the games is stream (every game that ends is started again at once), games (all are played to their ends
    together), step (the public functions step and sample_action), or board (the board of tilewe in plain Python).
    """

    form: Literal["stream", "games", "step", "board"] = "stream"
    """How the games are played, see above."""
    policy: Annotated[str | None, arg(metavar="POLICY", help_behavior_hint="")] = None
    """Built-in policy that plays, see `tilewe-jax match --list`; by default random, in triominos random_stuck."""
    batch: int = 4000
    """Number of games side by side per process. Powers of two are bad for CPU caches."""
    cores: int = 1
    """Number of processes, each pinned to a core of the CPU."""

    def run(self) -> None:
        if self.form == "board":
            check_unused(self, "with --form board", "policy", "batch", "cores")
        with self._measuring(batch=self.batch, cores=self.cores):
            figures = self._figures()
        self._print(figures, f"{self.game}: {self.form}")

    def _figures(self) -> dict[str, Any]:
        from tilewe_jax.cli.benchmarks import host, play

        game = self.make()  # for the error, before a process is started
        if self.form == "board":
            if game != GameOptions("tilewe", self.players).make():
                raise UsageError("--form board is about tilewe, without further options")
            return host.measure(game.num_players, self.seconds, self.seed)
        if self.policy is not None and self.policy not in game.policies():
            hint = did_you_mean(self.policy, game.policies())
            raise UsageError(f"{self.game} has no policy {self.policy!r}{hint}; it has {', '.join(game.policies())}")
        settings = self.form, self.policy, self.batch, self.seconds, self.cores, self.seed
        return play.measure(self.game, self.options(), *settings)


@dataclass(frozen=True)
class Search(_Measured, GameOptions):
    """Measure the tree search, in simulations per second; without a game also that of mctx, where it is installed."""

    game: Annotated[str, arg(metavar="GAME", help_behavior_hint="")] = ""
    """Game to search: by default a made-up game with few rules, to time the search alone."""
    num_simulations: int = 64
    """Number of simulations per search."""
    num_candidates: int = 64
    """Number of candidate actions per node."""
    batch: int = 256
    """Number of games side by side."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import search

        if self.game:
            self.make()  # for the error, before a process is started
        sizes = {"num_simulations": self.num_simulations, "num_candidates": self.num_candidates}
        with self._measuring(batch=self.batch, **sizes):
            settings = self.batch, self.num_simulations, self.num_candidates, self.seconds, self.seed
            figures = search.measure(self.game or None, self.options(), *settings)
        self._print(figures, f"{figures['game']}: search")


@dataclass(frozen=True)
class Train(Imports):
    """Measure self-play and learning with the settings of a preset."""

    preset: Annotated[str, arg(metavar="PRESET")] = "santorini_cpu"
    """Preset, by its name or as a file of Python; `tilewe-jax train --list` shows them."""
    set: Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE ...", help_behavior_hint="")] = ()
    """Settings that differ from the preset."""
    seconds: float = 5.0
    """Seconds to measure, after compilation."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax import presets
        from tilewe_jax.cli.benchmarks import training
        from tilewe_jax.training import config

        measured = _Measured(import_=self.import_, seconds=self.seconds, json=self.json)
        with measured._measuring():
            given = named(self.set)
            config.changed(presets.load(self.preset), given).game.make()  # for the error, before a process is started
            figures = training.measure(self.preset, given, self.seconds)
        measured._print(figures, f"{figures['game']}: {self.preset}")


@dataclass(frozen=True)
class Serve(_Measured):
    """Measure the game server with games under way, half of them against engines."""

    games: int = 200
    """Number of games at once."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks.serve import serve

        with self._measuring(games=self.games):
            figures = serve(self.games, self.seconds, self.seed)
        self._print(figures, "the game server")


@dataclass(frozen=True)
class Gpu(_Measured, GameOptions):
    """Measure play, the protocol of Pgx and searches on a GPU, at the batches of one; a JSON object a line."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import gpu

        check_seed(self.seed)
        check_positive(seconds=self.seconds)
        self.make()  # for the error, before a process is started
        try:
            for figures in gpu.measure(self.game, self.options(), self.seconds, self.seed):
                print(json.dumps(figures), flush=True)
        except RuntimeError as error:
            raise FailedError(str(error)) from None


@dataclass(frozen=True)
class Pgx(_Measured, GameOptions):
    """Measure play as Pgx measures it, with a mask and an observation at every step.

    Without a game it measures all games, and those of Pgx, where that is installed.
    """

    game: Annotated[str, arg(metavar="GAME", help_behavior_hint="")] = ""
    """Game to measure; by default all of them."""
    batch: OptionalInt = None
    """Number of games side by side: by default 1024, 8192 and 65536."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import pgx_protocol
        from tilewe_jax.registry import available_games

        of_pgx = [pgx_protocol.PGX + name for name in pgx_protocol.PGX_GAMES]
        if self.game in of_pgx and not _has_pgx():
            raise UsageError(f"{self.game} is a game of Pgx, which is not installed: pip install pgx")
        if self.game and self.game not in of_pgx:
            self.make()  # for the error, before a process is started
        names = [self.game] if self.game else [*available_games(), *(of_pgx if _has_pgx() else ())]
        batches = pgx_protocol.BATCHES if self.batch is None else (self.batch,)
        with self._measuring(batch=self.batch):
            rows = [
                pgx_protocol.measure(name, self.options(), batch, self.seconds, self.seed)
                for name in names
                for batch in batches
            ]
        if self.json:
            print(json.dumps(rows))
            return
        columns = [f"{batch:,} games" for batch in batches]
        table = Rows("game", "actions", *columns, wrap=columns, title="moves a second, protocol of Pgx")
        for name in names:
            of_game = [row for row in rows if row["game"] == name]
            figures = [f"{row['moves_per_second']:,}" if "refused" not in row else row["refused"] for row in of_game]
            actions = next((f"{row['actions']:,}" for row in of_game if "actions" in row), "")
            table.add(name, actions, *figures)
        table.print(out)


@dataclass(frozen=True)
class Signature(Imports):
    """Print hashes of fixed games, which show whether a change has altered how games are played; measures nothing."""

    game: Annotated[str, arg(metavar="GAME", help_behavior_hint="")] = ""
    """Game whose hashes are printed; by default those of all games."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks.signature import COLUMNS, SETUPS, signature

        names = [name for name, setup in SETUPS.items() if self.game in ("", setup.game)]
        if not names:
            available = ", ".join(dict.fromkeys(setup.game for setup in SETUPS.values()))
            hint = did_you_mean(self.game, available.split(", "))
            raise UsageError(f"the signature has no game {self.game!r}{hint}; it has {available}")
        hashes = {}
        with progress(len(names), "hashes", "compiling and playing", quiet=self.json) as shown:
            for name in names:
                hashes[name] = signature(name)
                shown.update(len(hashes))
        if self.json:
            print(json.dumps(hashes, indent=2))
            return
        table = Rows("game", *COLUMNS, title="signature")
        for name, row in hashes.items():
            table.add(name, *(row.get(column, "") for column in COLUMNS))
        table.print(out)


@dataclass(frozen=True)
class All(_Measured):
    """Measure everything, the most important first, for some minutes, into files in a folder."""

    minutes: float = 8.0
    """Limit of the time of all measurements together."""
    out: OptionalFolder = None
    """Folder of the files; what is measured in it already is left out. Required."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import everything

        if self.out is None:
            raise UsageError("--out is needed, the folder of the files")
        check_seed(self.seed)
        check_positive(minutes=self.minutes, seconds=self.seconds)
        done = []
        for item in everything.measure(self.out, self.minutes, self.seconds, self.seed, _has_pgx()):
            done.append(item)
            if not self.json:
                err.print(f"{item.name}: {item.failure or 'done'}, {item.seconds:.0f} s")
        if self.json:
            print(json.dumps([asdict(item) for item in done]))


def _has_pgx() -> bool:
    """Whether games of Pgx can be measured."""
    return importlib.util.find_spec("pgx") is not None
