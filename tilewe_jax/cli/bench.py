"""The command that measures."""

import importlib.util
import json
import os
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal

from tyro.conf import arg

from tilewe_jax.cli.common import (
    FailedError,
    Flag,
    GameOptions,
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

_OF_SEARCH = ("num_simulations", "num_candidates")
_OF_PLAY = ("form", "policy", "cores")
_OF_SIGNATURE = ("signature", "game", "json")
_OF_ALL = ("all", "minutes", "out", "seconds", "seed", "json")
_OF_PROTOCOL = ("protocol", "game", "players", "set", "batch", "seconds", "seed", "json")
_OF_SERVING = ("serve", "games", "seconds", "seed", "json")
_OF_GPU = ("gpu", "game", "players", "set", "seconds", "seed", "json")


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
    protocol: Literal["own", "pgx"] = "own"
    """How play is measured: whole games without masks, or as Pgx is, with a mask and an observation at every step; then also
    games of Pgx, where that is installed, if no game is named."""
    policy: Annotated[str | None, arg(metavar="POLICY", help_behavior_hint="")] = None
    """Built-in policy that plays, see `tilewe-jax match --list`; by default random, in triominos random_stuck."""
    search: Flag = False
    """Measure the tree search instead of games; on the made-up game also mctx, where that is installed."""
    signature: Flag = False
    """Measure nothing, but print hashes of fixed games, which show whether a change has altered how games are played."""
    train: Annotated[str | None, arg(metavar="PRESET", help_behavior_hint="")] = None
    """Measure self-play and learning instead of games, with the settings of this preset and of --set."""
    all: Flag = False
    """Measure everything, the most important first, for at most --minutes, into files in the folder of --out."""
    minutes: float = 8.0
    """Minutes for --all."""
    out: OptionalFolder = None
    """Folder for --all; what is measured in it already is left out."""
    serve: Flag = False
    """Measure the game server with --games under way, half of them against engines, instead of games."""
    gpu: Flag = False
    """Measure play, the protocol of Pgx and searches at the batches of a GPU, which must be there."""
    games: int = 200
    """Number of games at once, for --serve."""
    num_simulations: int = 64
    """Number of simulations per search, for --search."""
    num_candidates: int = 64
    """Number of candidate actions per node, for --search."""
    batch: OptionalInt = None
    """Number of games side by side per process: by default 4000, with --search 256, with --protocol pgx 1024, 8192 and 65536.
    Powers of two are bad for CPU caches."""
    seconds: float = 5.0
    """Seconds to measure, after compilation."""
    cores: int = 1
    """Number of processes, each pinned to a core of the CPU."""
    seed: int = 0
    """Seed of the random moves."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax.cli.benchmarks.play import IMPORTS

        os.environ[IMPORTS] = json.dumps(self.import_)  # for the processes that measure
        # Measurements of their own kind: whether one is asked for, the options that it takes, and what makes it.
        alone = (
            (self.signature, "with --signature, which plays fixed games", _OF_SIGNATURE, self._signature),
            (self.gpu, "with --gpu", _OF_GPU, self._on_gpu),
            (self.all, "with --all", _OF_ALL, self._everything),
            (self.protocol == "pgx", "with --protocol pgx", _OF_PROTOCOL, self._by_protocol_of_pgx),
            (self.serve, "with --serve", _OF_SERVING, self._measure),
        )
        for asked, when, options, measure in alone:
            if asked:
                check_unused(self, when, *(field.name for field in fields(self) if field.name not in (*options, "import_")))
                measure()
                return
        check_unused(self, "without --all", "minutes", "out")
        check_unused(self, "without --serve", "games")
        self._measure()

    def _measure(self) -> None:
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
        table = Rows("figure", "value", wrap=("value",), title=self._title(figures))
        for name, value in figures.items():
            table.add(name, f"{value:,}" if isinstance(value, int) else str(value))
        table.print(out)

    def _title(self, figures: dict[str, Any]) -> str:
        if self.serve:
            return "the game server"
        return f"{figures['game']}: {self.train or ('search' if self.search else self.form)}"

    def _signature(self) -> None:
        from tilewe_jax.cli.benchmarks.signature import COLUMNS, SETUPS, signature

        names = [name for name, setup in SETUPS.items() if self.game in ("", setup.game)]
        if not names:
            available = ", ".join(dict.fromkeys(setup.game for setup in SETUPS.values()))
            hint = did_you_mean(self.game, available.split(", "))
            raise UsageError(f"--signature has no game {self.game!r}{hint}; it has {available}")
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

    def _everything(self) -> None:
        from tilewe_jax.cli.benchmarks import everything

        if self.out is None:
            raise UsageError("--all needs --out, the folder of its files")
        check_seed(self.seed)
        check_positive(minutes=self.minutes, seconds=self.seconds)
        done = []
        for item in everything.measure(self.out, self.minutes, self.seconds, self.seed, _has_pgx()):
            done.append(item)
            if not self.json:
                err.print(f"{item.name}: {item.failure or 'done'}, {item.seconds:.0f} s")
        if self.json:
            print(json.dumps([asdict(item) for item in done]))

    def _by_protocol_of_pgx(self) -> None:
        from tilewe_jax.cli.benchmarks import pgx_protocol
        from tilewe_jax.registry import available_games

        check_seed(self.seed)
        check_positive(seconds=self.seconds, **({} if self.batch is None else {"batch": self.batch}))
        of_pgx = [pgx_protocol.PGX + name for name in pgx_protocol.PGX_GAMES]
        if self.game in of_pgx and not _has_pgx():
            raise UsageError(f"{self.game} is a game of Pgx, which is not installed: pip install pgx")
        if self.game and self.game not in of_pgx:
            self.make()  # for the error, before a process is started
        names = [self.game] if self.game else list(available_games())
        if not self.game and _has_pgx():
            names += of_pgx
        batches = pgx_protocol.BATCHES if self.batch is None else (self.batch,)
        rows: list[dict[str, Any]] = []
        try:
            with progress(len(names) * len(batches), "measurements", "compiling and measuring", quiet=self.json) as shown:
                for name in names:
                    for batch in batches:
                        rows.append(pgx_protocol.measure(name, self.options(), batch, self.seconds, self.seed))
                        shown.update(len(rows))
        except RuntimeError as error:
            raise UsageError(str(error)) from None
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

    def _on_gpu(self) -> None:
        from tilewe_jax.cli.benchmarks import gpu

        check_seed(self.seed)
        check_positive(seconds=self.seconds)
        options = replace(self, game=self.game or "tilewe")
        options.make()  # for the error, before a process is started
        try:
            for figures in gpu.measure(options.game, options.options(), self.seconds, self.seed):
                print(json.dumps(figures), flush=True)
        except RuntimeError as error:
            raise FailedError(str(error)) from None

    def _figures(self, batch: int) -> dict[str, Any]:
        if self.serve:
            from tilewe_jax.cli.benchmarks.serve import serve

            return serve(self.games, self.seconds, self.seed)
        if self.train:
            return self._train(self.train)
        return self._search(batch) if self.search else replace(self, game=self.game or "tilewe")._play(batch)

    def _train(self, preset: str) -> dict[str, Any]:
        from tilewe_jax import presets
        from tilewe_jax.cli.benchmarks import training
        from tilewe_jax.training import config

        given = named(self.set)
        config.changed(presets.load(preset), given).game.make()  # for the error, before a process is started
        return training.measure(preset, given, self.seconds)

    def _play(self, batch: int) -> dict[str, Any]:
        from tilewe_jax.cli.benchmarks import host, play

        game = self.make()  # for the error, before a process is started
        if self.form == "board":
            if game != GameOptions("tilewe", self.players).make():
                raise UsageError("--form board is about tilewe, without further options")
            return host.measure(game.num_players, self.seconds, self.seed)
        if self.policy is not None and self.policy not in game.policies():
            hint = did_you_mean(self.policy, game.policies())
            raise UsageError(f"{self.game} has no policy {self.policy!r}{hint}; it has {', '.join(game.policies())}")
        settings = self.form, self.policy, batch, self.seconds, self.cores, self.seed
        return play.measure(self.game, self.options(), *settings)

    def _search(self, batch: int) -> dict[str, Any]:
        from tilewe_jax.cli.benchmarks import search

        if self.game:
            self.make()  # for the error, before a process is started
        settings = batch, self.num_simulations, self.num_candidates, self.seconds, self.seed
        return search.measure(self.game or None, self.options(), *settings)


def _has_pgx() -> bool:
    """Whether games of Pgx can be measured."""
    return importlib.util.find_spec("pgx") is not None
