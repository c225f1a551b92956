"""The command that measures."""

import json
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from rich.table import Table
from tyro.conf import arg

from experiments.commands.common import (
    FailedError,
    Flag,
    GameOptions,
    OptionalInt,
    UsageError,
    check_positive,
    check_seed,
    check_unused,
    named,
    out,
    progress,
)

_OF_SEARCH = ("num_simulations", "num_candidates")
_OF_PLAY = ("form", "policy", "cores")
_OF_COMPILING = ("programs", "network")
_COMPILED = ("compile_for", *_OF_COMPILING, *_OF_SEARCH, "game", "players", "set", "batch", "json")


@dataclass(frozen=True)
class Bench(GameOptions):
    """Measure how fast games, searches or training run on this machine.

    The form of the games is stream (every game that ends is started again at once), games (all are played to their ends
    together), step (the public functions step and sample_action), or board (the board of tilewe in plain Python).
    """

    game: Annotated[str, arg(metavar="GAME", help_behavior_hint="")] = ""
    """Game to measure: by default tilewe, and with --search a made-up game with few rules, to time the search alone."""
    form: Literal["stream", "games", "step", "board"] = "stream"
    """How the games are played, see above."""
    policy: Annotated[str | None, arg(metavar="POLICY", help_behavior_hint="")] = None
    """Built-in policy that plays, see `tilewe-jax arena --list`; by default random, in triominos random_stuck."""
    search: Flag = False
    """Measure the tree search instead of games; on the made-up game also mctx, where that is installed."""
    signature: Flag = False
    """Measure nothing, but print hashes of fixed games, which show whether a change has altered how games are played."""
    train: Annotated[str | None, arg(metavar="PRESET", help_behavior_hint="")] = None
    """Measure self-play and learning instead of games, with the settings of this preset and of --set."""
    serve: Flag = False
    """Measure the game server with --games under way, half of them against engines, instead of games."""
    compile_for: Annotated[str | None, arg(metavar="DEVICE", help_behavior_hint="")] = None
    """Measure nothing, but compile for a GPU that need not be there, one of h100, h200, a100, rtx4090, and print what programs
    launch, move and compute, with an estimate of their speed."""
    programs: str = "stream,step,mask,search,selfplay"
    """Programs that --compile-for compiles: the stream of games, the public step, the dense mask of legal actions, a search,
    and a round of self-play."""
    network: str = "medium"
    """Size of the network in the searches of --compile-for."""
    games: int = 200
    """Number of games at once, for --serve."""
    num_simulations: int = 64
    """Number of simulations per search, for --search."""
    num_candidates: int = 64
    """Number of candidate actions per node, for --search."""
    batch: OptionalInt = None
    """Number of games side by side per process: 4000, with --search 256 by default. Powers of two are bad for CPU caches."""
    seconds: float = 5.0
    """Seconds to measure, after compilation."""
    cores: int = 1
    """Number of processes, each pinned to a core of the CPU."""
    seed: int = 0
    """Seed of the random moves."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        if self.signature:
            every = [field.name for field in fields(self) if field.name not in ("signature", "game", "json")]
            check_unused(self, "with --signature, which plays fixed games", *every)
            self._signature()
            return
        if self.compile_for is not None:
            every = [field.name for field in fields(self) if field.name not in _COMPILED]
            check_unused(self, "with --compile-for, which measures nothing", *every)
            self._compile(self.compile_for)
            return
        check_unused(self, "without --compile-for", *_OF_COMPILING)
        if self.serve:
            every = [field.name for field in fields(self) if field.name not in ("serve", "games", "seconds", "seed", "json")]
            check_unused(self, "with --serve", *every)
        else:
            check_unused(self, "without --serve", "games")
        if self.train:
            check_unused(self, "with --train", "game", "players", "search", *_OF_SEARCH, *_OF_PLAY, "batch", "seed")
        elif self.search:
            check_unused(self, "with --search", *_OF_PLAY)
        else:
            check_unused(self, "without --search", *_OF_SEARCH)
            if self.form == "board":
                check_unused(self, "with --form board", "policy", "batch", "cores")
        check_seed(self.seed)
        batch = (256 if self.search else 4000) if self.batch is None else self.batch
        check_positive(
            games=self.games,
            batch=batch,
            seconds=self.seconds,
            cores=self.cores,
            num_simulations=self.num_simulations,
            num_candidates=self.num_candidates,
        )
        try:
            with progress(None, "", "compiling and measuring", quiet=self.json):
                figures = self._figures(batch)
        except (ValueError, RuntimeError) as error:
            raise UsageError(str(error)) from None
        if self.json:
            print(json.dumps(figures))
            return
        table = Table("figure", "value", title=self._title(figures))
        for name, value in figures.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
        out.print(table)

    def _title(self, figures: dict[str, Any]) -> str:
        if self.serve:
            return "the game server"
        return f"{figures['game']}: {self.train or ('search' if self.search else self.form)}"

    def _signature(self) -> None:
        from experiments.benchmarks.signature import COLUMNS, SETUPS, signature

        names = [name for name, setup in SETUPS.items() if self.game in ("", setup.game)]
        if not names:
            available = ", ".join(dict.fromkeys(setup.game for setup in SETUPS.values()))
            raise UsageError(f"--signature has no game {self.game!r}; it has {available}")
        hashes = {}
        with progress(len(names), "hashes", "compiling and playing", quiet=self.json) as shown:
            for name in names:
                hashes[name] = signature(name)
                shown.update(len(hashes))
        if self.json:
            print(json.dumps(hashes, indent=2))
            return
        table = Table("game", *COLUMNS, title="signature")
        for name, row in hashes.items():
            table.add_row(name, *(row.get(column, "") for column in COLUMNS))
        out.print(table)

    def _compile(self, device: str) -> None:
        from experiments.benchmarks.gpu import measure
        from experiments.benchmarks.gpu.programs import PROGRAMS
        from experiments.benchmarks.gpu.targets import TARGETS
        from experiments.networks import SIZES

        if device not in TARGETS:
            raise UsageError(f"--compile-for must be one of {', '.join(TARGETS)}, not {device!r}")
        chosen = tuple(self.programs.split(","))
        if unknown := [name for name in chosen if name not in PROGRAMS]:
            raise UsageError(
                f"--programs must be names among {', '.join(PROGRAMS)}, with commas between them, not {unknown[0]!r}"
            )
        if self.network not in SIZES:
            raise UsageError(f"--network must be one of {', '.join(SIZES)}, not {self.network!r}")
        check_positive(num_simulations=self.num_simulations, num_candidates=self.num_candidates)
        if self.batch is not None:
            check_positive(batch=self.batch)
        options = replace(self, game=self.game or "tilewe")
        options.make()  # for the error, before a process is started
        settings = chosen, self.batch, self.network, self.num_simulations, self.num_candidates
        try:
            with progress(None, "", "compiling", quiet=self.json):
                figures = measure.measure(device, options.game, options.options(), *settings)
        except RuntimeError as error:
            raise FailedError(str(error)) from None
        if self.json:
            print(json.dumps(figures))
            return
        for table in measure.tables(figures):
            out.print(table)
        out.print(f"{measure.NOTE}; loops of unknown length run as often as assumed, see docs/gpu.md", markup=False)

    def _figures(self, batch: int) -> dict[str, Any]:
        if self.serve:
            from experiments.benchmarks.serve import serve

            return serve(self.games, self.seconds, self.seed)
        if self.train:
            return self._train(self.train)
        return self._search(batch) if self.search else replace(self, game=self.game or "tilewe")._play(batch)

    def _train(self, preset: str) -> dict[str, Any]:
        from experiments import config, presets
        from experiments.benchmarks import training

        given = named(self.set)
        config.changed(presets.load(preset), given).game.make()  # for the error, before a process is started
        return training.measure(preset, given, self.seconds)

    def _play(self, batch: int) -> dict[str, Any]:
        from experiments.benchmarks import host, play

        game = self.make()  # for the error, before a process is started
        if self.form == "board":
            if game != GameOptions("tilewe", self.players).make():
                raise UsageError("--form board is about tilewe, without further options")
            return host.measure(game.num_players, self.seconds, self.seed)
        if self.policy is not None and self.policy not in game.policies():
            raise UsageError(f"{self.game} has no policy {self.policy!r}; it has {', '.join(game.policies())}")
        settings = self.form, self.policy, batch, self.seconds, self.cores, self.seed
        return play.measure(self.game, self.options(), *settings)

    def _search(self, batch: int) -> dict[str, Any]:
        from experiments.benchmarks import search

        if self.game:
            self.make()  # for the error, before a process is started
        settings = batch, self.num_simulations, self.num_candidates, self.seconds, self.seed
        return search.measure(self.game or None, self.options(), *settings)
