"""The command that measures."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.table import Table

from experiments.commands.common import GameOptions, UsageError, check_positive, named, out, progress


@dataclass(frozen=True)
class Bench(GameOptions):
    """Measure how fast games are played, on a CPU in processes pinned to one core each."""

    game: str = ""
    """Id of the game, by default tilewe; with --search, by default a made-up one."""
    form: Literal["stream", "games", "step", "board"] = "stream"
    """Games that restart at once, games played to the end together, the public step and sample_action; or the host board of
    tilewe."""
    policy: str | None = None
    """Policy that plays (`tilewe-jax arena --list`): random, in triominos random_stuck, which draws only when no tile fits."""
    search: bool = False
    """Measure the tree search instead, against mctx where that is installed; without --game on a made-up game."""
    signature: bool = False
    """Play fixed games of every game instead, or with --game of that one, and print hashes of them: see `signature.py`."""
    train: str | None = None
    """Measure self-play and learning instead, with the settings of this preset and what --set gives."""
    num_simulations: int = 64
    """Number of simulations of a search."""
    num_candidates: int = 64
    """Number of candidate actions per node of a search."""
    batch: int | None = None
    """Number of games played at once, by each process: 4000, for searches 256. Large powers of two are bad for CPU caches."""
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
        check_positive(
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
        table = Table("figure", "value", title=f"{figures['game']}: {self.train or ('search' if self.search else self.form)}")
        for name, value in figures.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
        out.print(table)

    def _signature(self) -> None:
        from experiments.benchmarks.signature import COLUMNS, SETUPS, signature

        if self.players is not None or self.set:
            raise UsageError("--signature plays fixed games; it takes no options of a game")
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

    def _figures(self, batch: int) -> dict[str, Any]:
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
