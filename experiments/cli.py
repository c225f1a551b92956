"""The command line ``tilewe-jax``."""

import contextlib
import gc
import inspect
import io
import json
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.conf import Positional, arg, subcommand

# JAX is imported inside the commands: `bench` must not start it, and `--help` need not.

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class UsageError(Exception):
    """Something in the arguments that only a command can find wrong."""


@dataclass(frozen=True)
class GameOptions:
    """Which game."""

    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them."""
    players: int | None = None
    """Number of players, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10 pieces=O1,I2 voluntary_pass=true."""

    def options(self) -> dict[str, Any]:
        """The options as ``make`` takes them."""
        given = {} if self.players is None else {"players": self.players}
        for item in self.set:
            name, equals, text = item.partition("=")
            if not equals:
                raise UsageError(f"--set takes OPTION=VALUE, not {item!r}")
            given[name] = _value(name, text)
        return given

    def make(self) -> Any:
        """The game."""
        from tilewe_jax import make

        try:
            return make(self.game, **self.options())
        except ValueError as error:
            raise UsageError(str(error)) from None


@dataclass(frozen=True)
class Games:
    """List the games."""

    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax.game import state_bytes
        from tilewe_jax.registry import describe, games, make, options

        rows: list[dict[str, Any]] = []
        for name in games():
            game = make(name)
            rows.append(
                {
                    "game": name,
                    "players": game.num_players,
                    "actions": game.num_actions,
                    "state_bytes": state_bytes(game),
                    "options": {option: parameter.default for option, parameter in options(name).items()},
                    "about": describe(name),
                }
            )
        if self.json:
            print(json.dumps({"games": rows}))
            return
        table = Table("game", "players", "actions", "state", "about")
        for row in rows:
            table.add_row(row["game"], str(row["players"]), f"{row['actions']:,}", f"{row['state_bytes']} B", row["about"])
        out.print(table)
        for row in rows:
            out.print(f"{row['game']}: --set {' '.join(f'{name}={_show(value)}' for name, value in row['options'].items())}")


@dataclass(frozen=True)
class Rollout(GameOptions):
    """Play random games to the end and print what came of them."""

    games: int = 20_000
    """Number of games."""
    batch: int = 4096
    """Games played at once."""
    seed: int = 0
    """Seed of the random moves; with batch and devices it decides the games."""
    devices: int = 1
    """Number of devices to spread the batch over; on a CPU they are made."""
    out: Path | None = None
    """Write the games to this file, as JSON lines that `replay` and `show` read."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        import jax

        _positive(games=self.games, batch=self.batch, devices=self.devices)
        _writable(self.out)
        _ask_for_devices(self.devices)

        from experiments.rollouts import play_games
        from tilewe_jax import records

        game = self.make()
        if self.devices > len(jax.devices()):
            raise UsageError(f"--devices must be 1 to {len(jax.devices())}, the number there are, not {self.devices}")
        with _progress("playing", self.games) as progress:
            tally = play_games(game, self.games, self.batch, self.seed, self.devices, self.out is not None, progress)
        if self.out:
            records.write(self.out, game, tally.records, self.seed)
        summary = tally.summary()
        if self.json:
            print(json.dumps(summary))
        else:
            _print_rollout(game, tally, summary)
            if self.out:
                out.print(f"{len(tally.records):,} games written to {self.out}")
        if tally.interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Perft(GameOptions):
    """Count the sequences of legal actions from the start."""

    depth: Annotated[int, arg(metavar="N")] = 2
    """Length of the sequences; all up to it are counted."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        import time

        import jax

        from experiments.perft import Perft as Counter

        _positive(depth=self.depth)
        game = self.make()
        counter = Counter(game)
        root = game.init(jax.random.key(0))
        rows: list[dict[str, Any]] = []
        interrupted = False
        try:
            for depth in range(1, self.depth + 1):
                with _progress(f"depth {depth}", None) as progress:
                    begun = time.perf_counter()
                    leaves = counter.leaves(root, depth, progress)
                    rows.append({"depth": depth, "leaves": leaves, "seconds": round(time.perf_counter() - begun, 3)})
        except KeyboardInterrupt:
            interrupted = True
        if self.json:
            result = {"game": game.id, "options": game.options, "players": game.num_players}
            last = rows[-1] if rows else {"depth": 0, "leaves": 1, "seconds": 0.0}
            by_depth = [row["leaves"] for row in rows]
            print(json.dumps({**result, **last, "leaves_by_depth": by_depth, "interrupted": interrupted}))
        else:
            table = Table("depth", "leaves", "seconds", "leaves/s", title=_title(game))
            for row in rows:
                rate = row["leaves"] / max(row["seconds"], 1e-3)
                table.add_row(str(row["depth"]), f"{row['leaves']:,}", f"{row['seconds']:.2f}", f"{rate:,.0f}")
            out.print(table)
        if interrupted:
            raise KeyboardInterrupt


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
        batch = self.batch or (256 if self.search else 4000)
        _positive(batch=batch, seconds=self.seconds, cores=self.cores, sims=self.sims, candidates=self.candidates)
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

    def _figures(self, batch: int) -> dict[str, Any]:
        if self.train:
            from experiments import bench_train, config

            settings = _settings(self.set)
            config.changed(config.preset(self.train), settings).make()  # for the error, before a process is started
            return bench_train.measure(self.train, settings, self.seconds)
        return self._search(batch) if self.search else replace(self, game=self.game or "tilewe")._play(batch)

    def _play(self, batch: int) -> dict[str, Any]:
        from experiments import bench

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
        from experiments import bench_search

        if self.game:
            self.make()
        settings = batch, self.sims, self.candidates, self.seconds, self.seed
        return bench_search.measure(self.game or None, self.options(), *settings)


@dataclass(frozen=True)
class Arena:
    """Let players play each other and rate them.

    A player is a name (`tilewe-jax arena --list` shows those of a game), a search like mcts:sims=64,playouts=4, or
    module:factory for what that function gives, a policy or an engine of tilewe; and name=... gives it another name.
    """

    players: Annotated[tuple[str, ...], arg(metavar="PLAYER ...")] = ()
    """Who plays; by default all that the game has. One that is named twice takes two seats."""
    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them."""
    seats: int | None = None
    """Number of players in a game, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10."""
    games: int = 1000
    """Number of games."""
    batch: int = 2000
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    sprt: tuple[float, float] | None = None
    """Two Elo: stop once it is clear by which of them the first player is stronger than the second."""
    move_seconds: float = 60.0
    """Time for a move of an engine on the host."""
    list: bool = False
    """List the players of the game, and play no games."""
    out: Path | None = None
    """Write the games to this file, as JSON lines that `replay` and `show` read."""
    plot: Path | None = None
    """Write a picture of the ratings to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        _positive(games=self.games, batch=self.batch, devices=self.devices, move_seconds=self.move_seconds)
        _writable(self.out)
        _writable(self.plot)
        _ask_for_devices(self.devices)
        from experiments import arena
        from experiments.ratings import Sprt
        from search.agents import searches
        from tilewe_jax import records

        game = GameOptions(self.game, self.seats, self.set).make()
        if self.list:
            names = [*sorted(game.policies()), *searches()]
            print(json.dumps({"game": game.id, "players": names}) if self.json else "\n".join(names))
            return
        try:
            players = [arena.player(game, text) for text in self.players or game.policies()]
            sprt = Sprt(*self.sprt) if self.sprt else None
            with _progress("playing", self.games) as progress:
                results = arena.compete(
                    game,
                    players,
                    self.games,
                    self.batch,
                    self.seed,
                    progress,
                    keep=self.out is not None,
                    sprt=sprt,
                    move_seconds=self.move_seconds,
                    devices=self.devices,
                )
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        summary = results.summary()
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        rated = [row for row in summary["players"] if row["elo"] is not None]
        if self.plot and rated:
            _plot_ratings(self.plot, game, results.games, [(row["name"], row["elo"], row["margin"]) for row in rated])
        if self.json:
            print(json.dumps(summary))
        else:
            _print_arena(game, summary)
        if results.interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Selfplay(GameOptions):
    """Let one player play all seats, and keep the games."""

    agent: str = "mcts:sims=64"
    """Who plays: a name (`tilewe-jax arena --list`), or a search like mcts:sims=64,playouts=4."""
    games: int = 256
    """Number of games."""
    batch: int = 256
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    out: Path | None = None
    """Write the games to this file, as JSON lines that `replay` and `show` read."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        _positive(games=self.games, batch=self.batch, devices=self.devices)
        _writable(self.out)
        _ask_for_devices(self.devices)
        from experiments import arena
        from search.agents import simulations
        from tilewe_jax import records

        game = self.make()
        try:
            players = [arena.player(game, self.agent)] * game.num_players
            with _progress("playing", self.games) as progress:
                keep = self.out is not None
                results = arena.compete(
                    game, players, self.games, self.batch, self.seed, progress, keep=keep, devices=self.devices
                )
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        if self.out:
            records.write(self.out, game, results.records, self.seed)
        moves = int(results.all("plies").sum()) if results.games else 0
        seconds = max(results.seconds, 1e-9)
        summary = {
            "game": game.id,
            "options": game.options,
            "agent": self.agent,
            "games": results.games,
            "moves": moves,
            "seconds": round(results.seconds, 3),
            "cpu_seconds": round(results.cpu_seconds, 3),
            "compile_seconds": round(results.compile_seconds, 1),
            "games_per_second": round(results.games / seconds, 2),
            "simulations_per_second": round(moves * simulations(game, self.agent) / seconds),
            "mean_score": results.all("scores").mean(axis=0).round(4).tolist() if results.games else [],
            "interrupted": results.interrupted,
        }
        if self.json:
            print(json.dumps(summary))
        else:
            table = Table("figure", "value", title=f"{_title(game)}: {self.agent} plays itself")
            for name in ("games", "moves", "games_per_second", "simulations_per_second", "compile_seconds"):
                table.add_row(name, f"{summary[name]:,}")
            out.print(table)
            if self.out:
                out.print(f"{results.games:,} games written to {self.out}")
        if results.interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Train:
    """Train a network by self-play, into a folder; Ctrl-C keeps a checkpoint, and --resume goes on from it.

    Over several hosts, start the same command on each, with --coordinator, --num-processes and --process-id, or with
    --distributed on SLURM, Kubernetes and other clusters that JAX knows.
    """

    preset: str | None = None
    """Settings by name (`tilewe-jax train --list`), or a file of Python that defines CONFIG."""
    set: Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE ...")] = ()
    """Settings that differ, like lanes=64 options.size=4; `--list` shows all."""
    out: Path | None = None
    """The folder of the run: checkpoints, weights, metrics, games of its tests, and the report."""
    resume: bool = False
    """Go on with the run in the folder, with its settings."""
    devices: int | None = None
    """Number of devices of each process, by default all; on a CPU they are made."""
    coordinator: str | None = None
    """Address of the first process, like host:port, where there are several."""
    num_processes: int | None = None
    """How many there are."""
    process_id: int | None = None
    """Which one this is, from 0."""
    distributed: bool = False
    """Several processes, of which the cluster tells."""
    list: bool = False
    """List the presets and the settings, and train nothing."""
    json: bool = False
    """Print one JSON object at the end and nothing else."""

    def run(self) -> None:
        from experiments import training
        from experiments.checkpoint import CheckpointError

        if self.list:
            print(json.dumps(training.listing()) if self.json else training.listing_text())
            return
        if self.out is None:
            raise UsageError("--out is needed, the folder of the run")
        if self.devices is not None:
            _positive(devices=self.devices)
            _ask_for_devices(self.devices)
        given = _settings(self.set)
        several = (self.coordinator, self.num_processes, self.process_id)
        if any(value is not None for value in several) and None in several:
            raise UsageError("--coordinator, --num-processes and --process-id are given together")
        if self.coordinator is not None or self.distributed:
            training.join(self.coordinator, self.num_processes, self.process_id)
        try:
            config = training.configured(self.preset, given, self.out, self.resume)
            summary = training.train(config, self.out, self.resume, self.devices, None if self.json else err)
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        except CheckpointError as error:
            _fail(str(error), 1)
        except training.LostProcessError as error:
            # JAX would wait for the other processes before it lets this one go.
            told = (
                f"another process of the run has ended, or cannot be reached ({error}); start all of them again with --resume"
            )
            print(f"tilewe-jax: {told}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
        if self.json and summary:
            print(json.dumps(summary))
        if summary and summary["interrupted"]:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Eval:
    """Let players play each other, seats balanced, and tell how often each wins, with 95 % intervals."""

    players: Annotated[tuple[str, ...], arg(metavar="AGENT ...")] = ()
    """Who plays, as for `arena`; one that is named twice takes two seats. A network is one of a search's settings,
    gumbel:sims=64,network=NAME."""
    game: str = "tilewe"
    """Id of the game; `tilewe-jax games` lists them."""
    seats: int | None = None
    """Number of players in a game, where the game lets you choose."""
    set: Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...")] = ()
    """Further options of the game, like size=10."""
    run_folder: Annotated[Path | None, arg(name="run")] = None
    """A run of `train`: all the weights that it kept play, each as `gumbel` with so many simulations."""
    sims: int = 32
    """Simulations of those."""
    games: int = 400
    """Number of games."""
    opening: int = 0
    """Moves that chance plays at the beginning. Games come in sets, in which the players sit in all seats in turn, and chance
    deals and plays alike."""
    batch: int = 256
    """Games played at once."""
    seed: int = 0
    """Decides the games, whatever the batch."""
    devices: int = 1
    """Number of devices among which a batch is divided; on a CPU they are made."""
    plot: Path | None = None
    """Write a picture of the ratings to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        _positive(games=self.games, batch=self.batch, devices=self.devices, sims=self.sims)
        _writable(self.plot)
        _ask_for_devices(self.devices)
        from experiments import arena, config

        texts = list(self.players)
        if self.run_folder:
            try:
                made = config.from_json(json.loads((self.run_folder / "config.json").read_text()))
            except (OSError, ValueError) as error:
                raise UsageError(f"{self.run_folder} has no run: {error}") from None
            game = made.make()
            weights = sorted((self.run_folder / "weights").glob("*.npz"))
            texts += [f"{path.stem}=gumbel:sims={self.sims},network={path}" for path in weights]
        else:
            game = GameOptions(self.game, self.seats, self.set).make()
        if not texts:
            raise UsageError("--players are needed, or --run")
        try:
            players = [arena.player(game, text) for text in texts]
            with _progress("playing", self.games) as progress:
                settings = self.games, self.batch, self.seed, progress
                results = arena.compete(game, players, *settings, devices=self.devices, opening=self.opening)
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        if not results.games:
            raise KeyboardInterrupt
        summary = results.standings()
        if self.plot:
            bars = [(row["agent"], row["elo"], row["elo_margin"]) for row in summary["agents"] if row["elo"] is not None]
            _plot_ratings(self.plot, game, results.games, bars)
        if self.json:
            print(json.dumps(summary))
        else:
            table = Table("agent", "games", "wins", "ties", "win share", "95 % interval", "Elo", title=_title(game))
            for row in summary["agents"]:
                low, high = row["interval"]
                rating = "-" if row["elo"] is None else f"{row['elo']:.0f} ± {row['elo_margin']:.0f}"
                counts = (str(row[name]) for name in ("games", "wins", "ties"))
                table.add_row(row["agent"], *counts, f"{row['win_share']:.4f}", f"{low:.4f} to {high:.4f}", rating)
            out.print(table)
        if results.interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Report:
    """Write the report of a run of `train`: one HTML file with all its curves and games."""

    folder: Positional[Path]
    """The folder of the run."""
    curve: Path | None = None
    """Also write a picture of its wins against each opponent to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from experiments import report
        from tilewe_jax.files import replacing

        _writable(self.curve)
        try:
            path = report.write(self.folder)
            if self.curve:
                with replacing(self.curve) as file:
                    file.write(report.curve(self.folder))
        except ValueError as error:
            raise UsageError(str(error)) from None
        print(json.dumps({"report": str(path)}) if self.json else path)


@dataclass(frozen=True)
class Replay:
    """Play recorded games again and check every one."""

    file: Positional[Path]
    """A file written by `rollout --out`."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax import records

        game, games = records.read(self.file)
        verdicts = records.replay(game, games)
        wrong = [(number, verdict) for number, verdict in enumerate(verdicts, 1) if verdict]
        if self.json:
            faults = [{"game": number, "fault": verdict} for number, verdict in wrong]
            print(json.dumps({"game": game.id, "games": len(games), "wrong": len(wrong), "faults": faults}))
        else:
            for number, verdict in wrong:
                err.print(f"game {number}: {verdict}")
            out.print(f"{len(games) - len(wrong):,} of {len(games):,} games of {game.id} replay to their ends")
        if wrong:
            sys.exit(1)


@dataclass(frozen=True)
class Show:
    """Show a recorded game, move by move."""

    file: Positional[Path]
    """A file written by `rollout --out`."""
    number: int = 1
    """Which game of the file, from 1."""
    brief: bool = False
    """Print the board only at the end."""
    svg: Path | None = None
    """Write the final position to this file, as a picture."""

    def run(self) -> None:
        import jax
        import jax.numpy as jnp

        from tilewe_jax import records

        game, games = records.read(self.file)
        if not 1 <= self.number <= len(games):
            raise UsageError(f"--number must be 1 to {len(games)}, the games in {self.file}, not {self.number}")
        record = games[self.number - 1]
        step, is_legal = jax.jit(game.step), jax.jit(game.is_legal)
        state = game.init_from_deal(record.deal)
        for ply, action in enumerate(record.actions, 1):
            if not is_legal(state, jnp.int32(action)):
                raise records.RecordError(f"{self.file}, game {self.number}: action {ply}, {action}, is not legal")
            print(f"{ply:3d}. player {int(game.current_player(state)) + 1}: {game.action_name(action, state)}")
            state = step(state, jnp.int32(action))
            if not self.brief:
                print(game.text(state, color=out.is_terminal) + "\n")
        if self.brief:
            print(game.text(state, color=out.is_terminal))
        if self.svg:
            self.svg.write_text(game.svg(state), encoding="utf-8")


Command = (
    Annotated[Games, subcommand("games")]
    | Annotated[Rollout, subcommand("rollout")]
    | Annotated[Perft, subcommand("perft")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Arena, subcommand("arena")]
    | Annotated[Selfplay, subcommand("selfplay")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Eval, subcommand("eval")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Replay, subcommand("replay")]
    | Annotated[Show, subcommand("show")]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Exit code 2 after wrong arguments, 1 where a file is bad or a check failed, 130 after Ctrl-C."""
    command = _parse(sys.argv[1:] if arguments is None else arguments)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, _interrupt)
    try:
        command.run()
    except UsageError as error:
        _fail(str(error), 2)
    except BrokenPipeError:  # the reader wants no more, like `head`; the interpreter must not try again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except ValueError as error:
        from tilewe_jax.records import RecordError

        if not isinstance(error, RecordError):
            raise
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, but later where the garbage collector is at work, which would lose it.

    It calls hooks, like one of JAX's, and callbacks of weak references, and prints what they raise.
    """
    hooks = [getattr(hook, "__code__", None) for hook in gc.callbacks]
    while frame:
        if frame.f_code in hooks or frame.f_code.co_name == "__del__" or frame.f_code.co_filename == weakref.__file__:
            threading.Timer(0.01, signal.raise_signal, [number]).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _parse(arguments: list[str]) -> Any:
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(Command, prog="tilewe-jax", description=inspect.getdoc(sys.modules[__name__]), args=arguments)
    except SystemExit as stop:
        if stop.code != 2:
            raise
        # tyro draws a box around its message: title, text, a rule, and hints.
        text = [line.strip("│ ") for line in message.getvalue().splitlines()[1:-1]]
        rule = next((i for i, line in enumerate(text) if line.startswith("──")), len(text))
        _fail(" ".join(text[:rule]).strip() + "; see tilewe-jax --help", 2)


def _fail(message: str, code: int) -> NoReturn:
    print(f"tilewe-jax: {message}", file=sys.stderr)
    sys.exit(code)


def _ask_for_devices(count: int) -> None:
    """Have JAX, which must not have started yet, make so many devices of the CPU; an accelerator has its own."""
    import jax

    jax.config.update("jax_num_cpu_devices", count)


def _writable(path: Path | None) -> None:
    """Find out before the work whether a file can be written after it."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission")


def _positive(**values: float) -> None:
    for name, value in values.items():
        if value <= 0:
            raise UsageError(f"--{name} must be positive, not {value}")


def _plot_ratings(path: Path, game: Any, games: int, bars: list[tuple[str, float, float]]) -> None:
    """Write a picture of ratings and their intervals."""
    from tilewe_jax.files import replacing
    from tilewe_jax.render.svg import intervals

    with replacing(path) as file:
        file.write(intervals(f"{_title(game)}: Elo after {games:,} games, 95 % intervals", bars))


def _settings(items: tuple[str, ...]) -> dict[str, str]:
    """Settings of a run, as text, by name."""
    given = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--set takes SETTING=VALUE, not {item!r}")
        given[name] = text
    return given


def _value(name: str, text: str) -> Any:
    """A value given on the command line: JSON, a list of words where the option is one, or a word."""
    if name == "pieces":
        return tuple(text.split(","))
    with contextlib.suppress(json.JSONDecodeError):
        return tuple(json.loads(f"[{text}]")) if "," in text else json.loads(text)
    return text


def _show(default: Any) -> str:
    return "..." if default is None else json.dumps(default).strip('"')


def _title(game: Any) -> str:
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options or f'{game.num_players} players'})"


@contextlib.contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, shown to people only; it is told how much more was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def _print_rollout(game: Any, tally: Any, summary: dict[str, Any]) -> None:
    if tally.example is not None:
        print(game.text(tally.example, color=out.is_terminal))
    table = Table("seat", "mean score", "win share", title=_title(game))
    for seat in range(game.num_players):
        table.add_row(
            str(seat + 1),
            f"{summary['mean_score'][seat]:.2f} ± {summary['score_error'][seat]:.2f}",
            f"{summary['win_share'][seat]:.4f} ± {summary['win_share_error'][seat]:.4f}",
        )
    out.print(table)
    out.print(
        f"{summary['games']:,} games, {summary['moves']:,} moves in {summary['seconds']:.2f} s:"
        f" {summary['moves_per_second']:,} moves/s. {summary['ties']:,} games tied for the first place."
    )


def _print_arena(game: Any, summary: dict[str, Any]) -> None:
    def elo(row: dict[str, Any]) -> str:
        return "-" if row["elo"] is None else f"{row['elo']:.0f} ± {row['margin']:.0f}"

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    table = Table("player", "Elo", "games", "win share", "ties", "mean score", "legal", "forfeits", title=_title(game))
    for row in summary["players"]:
        share, score = number(row["win_share"], ".4f"), number(row["mean_score"], ".2f")
        legal = f"{row['legal_actions']:.0f}"
        table.add_row(row["name"], elo(row), f"{row['games']:,}", share, f"{row['ties']:,}", score, legal, str(row["forfeits"]))
    out.print(table)
    for row in summary["players"]:
        if "last_fault" in row:
            out.print(f"{row['name']} forfeited, the last time for: {row['last_fault']}", markup=False)
    names = [row["name"] for row in summary["players"]]
    if len(names) > 1:
        pairs = Table("ahead of", *names, title="share of the games of both in which the one was ahead")
        for name in names:
            pairs.add_row(name, *(number(summary["pairs"][name].get(other), ".3f") for other in names))
        out.print(pairs)
    seats = Table("seat", "Elo", "win share", "mean score")
    for row in summary["seats"]:
        seats.add_row(str(row["seat"]), elo(row), number(row["win_share"], ".4f"), number(row["mean_score"], ".2f"))
    out.print(seats)
    if "sprt" in summary:
        test = summary["sprt"]
        low, high = test["bounds"]
        found = f"{test['verdict']}, log likelihood ratio {test['llr']}, bounds {low} and {high}"
        out.print(f"{test['first']} against {test['second']}: {found}")
    out.print(
        f"{summary['games']:,} games in {summary['seconds']:.1f} s, after {summary['compile_seconds']:.0f} s of compiling"
    )


if __name__ == "__main__":
    main()
