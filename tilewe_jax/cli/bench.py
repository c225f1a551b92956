"""Commands that measure speed: ``bench play``, ``bench search`` and others."""

import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    FailedError,
    Folder,
    GameOptions,
    Json,
    UsageError,
    check_positive,
    check_seed,
    check_unused,
    err,
    named,
    out,
    progress,
    usage_errors,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import did_you_mean

Game = Annotated[str, Option("GAME")]


@dataclass(frozen=True, kw_only=True)
class _Timed(Json):
    """Options of all measurements."""

    seconds: Annotated[float, Option(is_last=True)] = 5.0
    """Seconds to measure, after compilation."""

    @contextmanager
    def _measuring(self, **positive: float | None) -> Iterator[None]:
        """Check the options, show progress, and turn errors of the measurement into one line."""
        from tilewe_jax.cli.benchmarks.process import IMPORTS

        os.environ[IMPORTS] = json.dumps(self.import_)
        check_seed(getattr(self, "seed", 0))
        check_positive(seconds=self.seconds, **positive)
        try:
            with usage_errors(), progress(None, "", "compiling and measuring", quiet=self.json):
                yield
        except RuntimeError as error:
            raise FailedError(str(error)) from None

    def _print(self, figures: dict[str, Any], title: str) -> None:
        if self.json:
            print(json.dumps(figures))
            return
        table = Rows("figure", "value", wrap=("value",), title=title)
        for name, value in figures.items():
            table.add(name, f"{value:,}" if isinstance(value, int) else str(value))
        table.print(out)


@dataclass(frozen=True, kw_only=True)
class _Seeded(_Timed):
    """Options of measurements that draw random moves."""

    seed: Annotated[int, Option(is_last=True)] = 0
    """Seed of the random moves."""


@dataclass(frozen=True)
class Play(GameOptions, _Seeded):
    """Measure the speed of play, in moves per second of pinned cores.

    The form is stream (games restart when they end), games (whole games), step (the public functions step and sample_action),
    or board (the form of a game in plain Python, for tilewe also its class Board, in CPU microseconds).
    """

    form: Annotated[Literal["stream", "games", "step", "board"], Option("FORM")] = "stream"
    """Form of play: stream, games, step or board."""
    policy: Annotated[str | None, Option("POLICY")] = None
    """Built-in policy that plays, see `tilewe-jax match --list`; by default random, in triominos random_stuck."""
    batch: int = 4000
    """Number of games in parallel per process. Powers of two are bad for CPU caches."""
    cores: int = 1
    """Number of processes, each pinned to a CPU core."""

    def run(self) -> None:
        if self.form == "board":
            check_unused(self, "with --form board", "policy", "batch", "cores")
        with self._measuring(batch=self.batch, cores=self.cores):
            figures = self._figures()
        self._print(figures, f"{self.game}: {self.form}")

    def _figures(self) -> dict[str, Any]:
        from tilewe_jax.cli.benchmarks import host, play
        from tilewe_jax.host_games import OFFERS

        game = self.make()  # raises errors before a process starts
        if self.form == "board":
            if self.game not in OFFERS or OFFERS[self.game].host_game is None:
                raise UsageError(f"--form board measures forms in plain Python; {self.game} runs on the device only")
            figures = host.measure(self.game, self.options(), self.seconds / 2, self.seed)
            if game == GameOptions("tilewe", self.players).make():
                figures |= host.measure_board(game.num_players, self.seconds / 2, self.seed)
            return figures
        if self.policy is not None and self.policy not in game.policies():
            hint = did_you_mean(self.policy, game.policies())
            raise UsageError(f"unknown policy {self.policy!r} of {self.game}{hint}; it has {', '.join(game.policies())}")
        settings = self.form, self.policy, self.batch, self.seconds, self.cores, self.seed
        return play.measure(self.game, self.options(), *settings)


@dataclass(frozen=True)
class Search(GameOptions, _Seeded):
    """Measure the tree search, in simulations per second; without a game also the search of mctx, if it is installed."""

    game: Game = ""
    """Game to search: by default a made-up game with few operations, to time the search alone."""
    num_simulations: int = 64
    """Number of simulations per search."""
    num_candidates: int = 64
    """Number of candidate actions per node."""
    batch: int = 256
    """Number of searches in parallel."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import search

        if self.game:
            self.make()  # raises errors before a process starts
        sizes = {"num_simulations": self.num_simulations, "num_candidates": self.num_candidates}
        with self._measuring(batch=self.batch, **sizes):
            settings = self.batch, self.num_simulations, self.num_candidates, self.seconds, self.seed
            figures = search.measure(self.game or None, self.options(), *settings)
        self._print(figures, f"{figures['game']}: search")


@dataclass(frozen=True)
class Train(_Timed):
    """Measure self-play and learning with the settings of a preset."""

    preset: Annotated[str, Option("PRESET")] = "santorini_cpu"
    """Preset, by its name or as a file of Python; `tilewe-jax train --list` shows them."""
    set: Annotated[tuple[str, ...], Option("SETTING=VALUE ...")] = ()
    """Settings that differ from the preset."""

    def run(self) -> None:
        from tilewe_jax import presets
        from tilewe_jax.cli.benchmarks import training
        from tilewe_jax.training import config

        with self._measuring():
            given = named(self.set)
            config.changed(presets.load(self.preset), given).game.make()  # raises errors before a process starts
            figures = training.measure(self.preset, given, self.seconds)
        self._print(figures, f"{figures['game']}: {self.preset}")


@dataclass(frozen=True)
class Serve(_Seeded):
    """Measure the game server with many games, half of them against engines."""

    games: int = 200
    """Number of games in parallel."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks.serve import serve

        with self._measuring(games=self.games):
            figures = serve(self.games, self.seconds, self.seed)
        self._print(figures, "the game server")


@dataclass(frozen=True)
class Gpu(GameOptions, _Seeded):
    """Measure play, the protocol of Pgx and searches on a GPU, with large batches; prints one JSON object per line."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import pgx_protocol, play, search
        from tilewe_jax.cli.benchmarks.process import has_accelerator

        game, timing, batch = (self.game, self.options()), (self.seconds, self.seed), 65_536
        with self._measuring():
            self.make()  # raises errors before a process starts
            if not has_accelerator():
                raise FailedError("no GPU found; JAX needs the extra cuda: pip install 'tilewe-jax[cuda]'")
            for form in ("stream", "step"):
                print(json.dumps(play.measure(*game, form, None, batch, self.seconds, 1, self.seed)), flush=True)
            print(json.dumps(pgx_protocol.measure(*game, batch, *timing)), flush=True)
            print(json.dumps(search.measure(*game, 1_024, 64, 64, *timing)), flush=True)


@dataclass(frozen=True)
class Pgx(GameOptions, _Seeded):
    """Measure play by the protocol of Pgx, with a mask and an observation at every step.

    By default it measures all games, and the games of Pgx, if it is installed.
    """

    game: Game = ""
    """Game to measure; by default all games."""
    batch: int | None = None
    """Number of games in parallel: by default 1024, 8192 and 65536."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks import pgx_protocol
        from tilewe_jax.registry import available_games

        of_pgx = [pgx_protocol.PGX + name for name in pgx_protocol.PGX_GAMES]
        if self.game in of_pgx and not _has_pgx():
            raise UsageError(f"{self.game} is a game of Pgx, which is not installed: pip install pgx")
        if self.game and self.game not in of_pgx:
            self.make()  # raises errors before a process starts
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
        table = Rows("game", "actions", *columns, wrap=columns, title="moves per second, protocol of Pgx")
        for name in names:
            of_game = [row for row in rows if row["game"] == name]
            figures = [f"{row['moves_per_second']:,}" if "refused" not in row else row["refused"] for row in of_game]
            actions = next((f"{row['actions']:,}" for row in of_game if "actions" in row), "")
            table.add(name, actions, *figures)
        table.print(out)


@dataclass(frozen=True)
class Signature(Json):
    """Print hashes of fixed games and searches, which show whether a change affects play."""

    game: Game = ""
    """Game whose hashes are printed; by default all games."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks.signature import COLUMNS, setups_of, signature

        with usage_errors():
            names = setups_of(self.game)
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
class All(_Seeded):
    """Run all measurements within a time limit, the most important first, and write the figures to a folder."""

    minutes: float = 8.0
    """Time limit of all measurements together."""
    out: Folder = None
    """Folder of the figures; existing ones are not measured again (required)."""

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
    """Return whether games of Pgx can be measured."""
    return importlib.util.find_spec("pgx") is not None
