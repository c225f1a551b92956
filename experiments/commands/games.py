"""Commands about games: list them, play them at random, count their positions, and look at recorded ones."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from tyro.conf import Positional, arg

from experiments.commands import common
from experiments.commands.common import (
    GameOptions,
    UsageError,
    check_positive,
    check_writable,
    err,
    out,
    progress,
    title,
)


@dataclass(frozen=True)
class Games:
    """List the games."""

    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax.game import state_bytes
        from tilewe_jax.registry import available_games, describe, make, options

        rows: list[dict[str, Any]] = []
        for name in available_games():
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


def _show(default: Any) -> str:
    return "..." if default is None else json.dumps(default).strip('"')


@dataclass(frozen=True)
class Rollout(GameOptions):
    """Play random games to the end and print their statistics."""

    games: int = 20_000
    """Number of games."""
    batch: int = 4096
    """Number of games played at once."""
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

        check_positive(games=self.games, batch=self.batch, devices=self.devices)
        check_writable(self.out)
        common.ask_for_devices(self.devices)

        from experiments.benchmarks.rollouts import play_games
        from tilewe_jax import records

        game = self.make()
        if self.devices > len(jax.devices()):
            raise UsageError(f"--devices must be 1 to {len(jax.devices())}, the number there are, not {self.devices}")
        with progress(self.games, quiet=self.json) as shown:

            def follow(played: Any) -> None:
                shown.update(played.games, lambda: f"{played.moves:,} moves", "playing")

            played = play_games(game, self.games, self.batch, self.seed, self.devices, self.out is not None, follow)
        if played.interrupted and not played.games:  # a file of that name stays as it was
            raise KeyboardInterrupt
        if self.out:
            records.write(self.out, game, played.records, self.seed)
        summary = played.summary()
        if self.json:
            print(json.dumps(summary))
        else:
            _print_rollout(game, played, summary)
            if self.out:
                out.print(f"{len(played.records):,} games written to {self.out}")
        if played.interrupted:
            raise KeyboardInterrupt


def _print_rollout(game: Any, played: Any, summary: dict[str, Any]) -> None:
    if played.example is not None:
        print(game.text(played.example, color=out.is_terminal))
    table = Table("seat", "mean score", "win rate", title=title(game))
    for seat in range(game.num_players):
        table.add_row(
            str(seat + 1),
            f"{summary['mean_score'][seat]:.2f} ± {summary['score_error'][seat]:.2f}",
            f"{summary['win_rate'][seat]:.4f} ± {summary['win_rate_error'][seat]:.4f}",
        )
    out.print(table)
    out.print(
        f"{summary['games']:,} games, {summary['moves']:,} moves in {summary['seconds']:.2f} s:"
        f" {summary['moves_per_second']:,} moves/s. {summary['ties']:,} games tied for the first place."
    )


@dataclass(frozen=True)
class Perft(GameOptions):
    """Count the sequences of legal actions from the start."""

    depth: Annotated[int, arg(metavar="N")] = 2
    """Length of the sequences; all lengths up to it are counted."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        import time

        import jax

        from experiments.benchmarks.perft import Perft as Counter

        check_positive(depth=self.depth)
        game = self.make()
        counter = Counter(game)
        root = game.init(jax.random.key(0))
        rows: list[dict[str, Any]] = []
        interrupted = False
        try:
            for depth in range(1, self.depth + 1):
                with progress(None, "leaves", f"counting depth {depth}", quiet=self.json) as shown:
                    started, counted = time.perf_counter(), 0

                    def follow(more: int) -> None:
                        nonlocal counted
                        counted += more
                        shown.update(counted)

                    leaves = counter.leaves(root, depth, follow)
                    rows.append({"depth": depth, "leaves": leaves, "seconds": round(time.perf_counter() - started, 3)})
        except KeyboardInterrupt:
            interrupted = True
        if self.json:
            result = {"game": game.id, "options": game.options, "players": game.num_players}
            last = rows[-1] if rows else {"depth": 0, "leaves": 1, "seconds": 0.0}
            by_depth = [row["leaves"] for row in rows]
            print(json.dumps({**result, **last, "leaves_by_depth": by_depth, "interrupted": interrupted}))
        else:
            table = Table("depth", "leaves", "seconds", "leaves/s", title=title(game))
            for row in rows:
                rate = row["leaves"] / max(row["seconds"], 1e-3)
                table.add_row(str(row["depth"]), f"{row['leaves']:,}", f"{row['seconds']:.2f}", f"{rate:,.0f}")
            out.print(table)
        if interrupted:
            raise KeyboardInterrupt


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
    """Number of the game in the file, from 1."""
    brief: bool = False
    """Print the board only at the end."""
    svg: Path | None = None
    """Write the final position to this file, as a picture."""

    def run(self) -> None:
        import jax
        import jax.numpy as jnp

        from tilewe_jax import records
        from tilewe_jax.files import replacing

        check_writable(self.svg)
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
            with replacing(self.svg) as file:
                file.write(game.svg(state))
