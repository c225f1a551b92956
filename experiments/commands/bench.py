"""The command that measures."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.table import Table

from experiments.commands.common import GameOptions, UsageError, check_positive, named, out, progress_bar


@dataclass(frozen=True)
class Bench(GameOptions):
    """Measure how fast games are played, on a CPU in processes pinned to one core each."""

    game: str = ""
    """Id of the game, by default tilewe; with --search, by default a made-up one."""
    form: Literal["stream", "games", "step", "board"] = "stream"
    """Lanes that restart, games played to the end together, the public step and sample_action; or tilewe's host board."""
    player: str | None = None
    """Who plays (`tilewe-jax arena --list`); random, for triominos random_stuck, which draws only when no tile fits."""
    search: bool = False
    """Measure the tree search instead, against mctx where that is installed; without --game on a made-up game."""
    signature: bool = False
    """Play fixed games of every game instead, or with --game of that one, and print hashes of them: see `signature.py`."""
    train: str | None = None
    """Measure self-play and learning instead, with the settings of this preset and what --set gives."""
    sims: int = 64
    """Simulations of a search."""
    candidates: int = 64
    """Actions that a node of the search keeps."""
    batch: int | None = None
    """Games played at once, by each process: 4000, for searches 256. Large powers of two are bad for CPU caches."""
    seconds: float = 5.0
    """How long to measure."""
    cores: int = 1
    """Number of pinned processes; has no meaning with an accelerator."""
    seed: int = 0
    """Seed of the random moves."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        if self.signature:
            self._signature()
            return
        batch = self.batch or (256 if self.search else 4000)
        check_positive(batch=batch, seconds=self.seconds, cores=self.cores, sims=self.sims, candidates=self.candidates)
        try:
            figures = self._figures(batch)
        except (ValueError, RuntimeError) as error:
            raise UsageError(str(error)) from None
        if self.json:
            print(json.dumps(figures))
            return
        table = Table("figure", "value", title=f"{figures['game']}: {self.train or ('search' if self.search else self.form)}")
        for name, value in figures.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
        out.print(table)

    def _signature(self) -> None:
        from experiments.signature import COLUMNS, SETUPS, signature

        if self.players is not None or self.set:
            raise UsageError("--signature plays fixed games; it takes no options of a game")
        names = [name for name, setup in SETUPS.items() if self.game in ("", setup.game)]
        if not names:
            available = ", ".join(dict.fromkeys(setup.game for setup in SETUPS.values()))
            raise UsageError(f"--signature has no game {self.game!r}; it has {available}")
        hashes = {}
        with progress_bar("signature", len(names)) as advance:
            for name in names:
                hashes[name] = signature(name)
                advance(1)
        if self.json:
            print(json.dumps(hashes, indent=2))
            return
        table = Table("game", *COLUMNS, title="signature")
        for name, row in hashes.items():
            table.add_row(name, *(row.get(column, "") for column in COLUMNS))
        out.print(table)

    def _figures(self, batch: int) -> dict[str, Any]:
        if self.train:
            from experiments import config
            from experiments.benchmarks import training as bench_train

            settings = named(self.set)
            config.changed(config.preset(self.train), settings).make()  # for the error, before a process is started
            return bench_train.measure(self.train, settings, self.seconds)
        return self._search(batch) if self.search else replace(self, game=self.game or "tilewe")._play(batch)

    def _play(self, batch: int) -> dict[str, Any]:
        from experiments.benchmarks import play as bench

        game = self.make()  # for the error, before a process is started
        if self.form == "board":
            if game != GameOptions("tilewe", self.players).make():
                raise UsageError("--form board is about tilewe, without further options")
            return bench.measure_board(game.num_players, self.seconds, self.seed)
        if self.player is not None and self.player not in game.policies():
            raise UsageError(f"{self.game} has no player {self.player!r}; it has {', '.join(game.policies())}")
        settings = self.form, self.player, batch, self.seconds, self.cores, self.seed
        return bench.measure(self.game, self.options(), *settings)

    def _search(self, batch: int) -> dict[str, Any]:
        from experiments.benchmarks import search as bench_search

        if self.game:
            self.make()
        settings = batch, self.sims, self.candidates, self.seconds, self.seed
        return bench_search.measure(self.game or None, self.options(), *settings)
