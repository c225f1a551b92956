"""Commands about games: list them, play at random, count positions, and look at recorded games."""

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli import common
from tilewe_jax.cli.common import (
    GameOptions,
    GamesFile,
    Json,
    UsageError,
    check_positive,
    check_seed,
    check_writable,
    chosen_game,
    err,
    in_color,
    out,
    progress,
    title,
    usage_errors,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Games(Json):
    """List the games and their options."""

    def run(self) -> None:
        from tilewe_jax.registry import available_games, ignored_games
        from tilewe_jax.utils import factories

        rows: list[dict[str, Any]] = []
        faults = ignored_games()
        for name in available_games():
            try:
                rows.append(factories.call(f"the game {name!r}", _row, name))
            except ValueError as error:  # in an installed package: the other games are listed
                faults.append(str(error.__cause__ if isinstance(error.__cause__, ValueError) else error))
        if self.json:
            print(json.dumps({"games": rows}, default=str))
        else:
            _print_games(rows)
        for fault in faults:
            err.print(" ".join(fault.split()))


def _print_games(rows: list[dict[str, Any]]) -> None:
    table = Rows("game", "players", "actions", "state", "about", wrap=("about",))
    for row in rows:
        table.add(row["game"], str(row["players"]), f"{row['actions']:,}", f"{row['state_bytes']} B", row["about"])
    table.print(out)
    for row in rows:
        players = [f"--players {row['options']['players']}"] if "players" in row["options"] else []
        others = [f"{name}={_default(value)}" for name, value in row["options"].items() if name != "players"]
        out.print(" ".join([f"{row['game']}:", *players, *(["--set", *others] if others else [])]))


def _row(name: str) -> dict[str, Any]:
    """Describe a game and its options as JSON."""
    from tilewe_jax.game import state_bytes
    from tilewe_jax.registry import describe, make, options

    game = make(name)
    if game.id != name:
        raise ValueError(f"the id of the game {name!r} must be {name!r}, got {game.id!r}")
    return {
        "game": name,
        "players": game.num_players,
        "actions": game.num_actions,
        "state_bytes": state_bytes(game),
        "options": {option: parameter.default for option, parameter in options(name).items()},
        "about": describe(name),
    }


def _default(value: Any) -> str:
    """Return a default as `--set` takes it."""
    if value is None:
        return "..."
    return ",".join(map(str, value)) if isinstance(value, tuple) else json.dumps(value, default=str).strip('"')


@dataclass(frozen=True)
class Rollout(GameOptions, Json):
    """Play random games in parallel, and print their statistics."""

    games: int = 20_000
    """Number of games."""
    batch: int = 4096
    """Number of games played in parallel; more are faster, and need more memory."""
    seed: int = 0
    """Seed of the random moves. The same --seed, --batch and --devices play the same games."""
    devices: int = 1
    """Number of devices that share the batch; on a CPU they are virtual."""
    out: Path | None = None
    """Write all games to this file, for `replay` and `show`: JSON lines, a game a line."""

    def run(self) -> None:
        import jax

        check_positive(games=self.games, batch=self.batch)
        check_seed(self.seed)
        check_writable(self.out)
        common.ask_for_devices(self.devices)

        from tilewe_jax import records
        from tilewe_jax.cli.benchmarks.rollouts import play_games

        game = self.make()
        if self.devices > len(jax.devices()):
            raise UsageError(f"--devices must be 1 to {len(jax.devices())}, the devices of this machine, not {self.devices}")
        with usage_errors(), progress(self.games, quiet=self.json) as shown:

            def follow(played: Any) -> None:
                shown.update(played.games, lambda: counted(played.moves, "moves"), "playing")

            played = play_games(game, self.games, self.batch, self.seed, self.devices, self.out is not None, follow)
        if played.interrupted and not played.games:  # an existing file stays unchanged
            raise KeyboardInterrupt
        if self.out:
            records.write(self.out, game, played.records, self.seed)
        summary = played.summary()
        if self.json:
            print(json.dumps(summary))
        else:
            _print_rollout(game, played, summary)
            if self.out:
                out.print(f"{counted(len(played.records), 'games')} written to {self.out}")
        if played.interrupted:
            raise KeyboardInterrupt


def _print_rollout(game: Any, played: Any, summary: dict[str, Any]) -> None:
    if played.example is not None:
        print(game.text(played.example, color=in_color()))
    table = Rows("seat", "mean score", "win rate", title=title(game))
    for seat in range(game.num_players):
        table.add(
            str(seat + 1),
            f"{summary['mean_score'][seat]:.2f} ± {summary['score_error'][seat]:.2f}",
            f"{summary['win_rate'][seat]:.4f} ± {summary['win_rate_error'][seat]:.4f}",
        )
    table.print(out)
    out.print(
        f"{counted(summary['games'], 'games')}, {counted(summary['moves'], 'moves')} in {summary['seconds']:.2f} s:"
        f" {summary['moves_per_second']:,} moves/s. {counted(summary['ties'], 'games')} tied for the first place."
    )


@dataclass(frozen=True)
class Perft(GameOptions, Json):
    """Count the sequences of legal moves from the start (perft), to compare rules with other programs."""

    depth: Annotated[int, Option("N")] = 2
    """Maximum length of the sequences; shorter ones are counted too."""

    def run(self) -> None:
        import time

        import jax

        from tilewe_jax.cli.benchmarks.perft import Perft as Counter

        check_positive(depth=self.depth)
        game = self.make()
        if self.depth > game.max_steps:
            raise UsageError(f"--depth must be at most {game.max_steps}, the longest game, not {self.depth}")
        counter, root = Counter(game), game.init(jax.random.key(0))
        rows: list[dict[str, Any]] = []
        interrupted = False
        try:
            for depth in range(1, self.depth + 1):
                with progress(None, "leaves", f"counting depth {depth}", quiet=self.json) as shown:
                    started = time.perf_counter()
                    leaves = counter.leaves(root, depth, shown.update)
                    rows.append({"depth": depth, "leaves": leaves, "seconds": round(time.perf_counter() - started, 3)})
        except KeyboardInterrupt:
            interrupted = True
        if self.json:
            result = {"game": game.id, "options": game.options, "players": game.num_players}
            last = rows[-1] if rows else {"depth": 0, "leaves": 1, "seconds": 0.0}
            by_depth = [row["leaves"] for row in rows]
            print(json.dumps({**result, **last, "leaves_by_depth": by_depth, "interrupted": interrupted}))
        else:
            table = Rows("depth", "leaves", "seconds", "leaves/s", title=title(game))
            for row in rows:
                rate = row["leaves"] / max(row["seconds"], 1e-3)
                table.add(str(row["depth"]), f"{row['leaves']:,}", f"{row['seconds']:.2f}", f"{rate:,.0f}")
            table.print(out)
        if interrupted:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class Replay(GamesFile, Json):
    """Replay recorded games, and check that all moves are legal and all results right."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.registry import make

        content = self.read()
        game, games = content.of_one_kind(self.file)
        self.print_skipped(content)
        with progress(len(games), quiet=self.json) as shown:
            verdicts = records.replay(
                make(game.id, **game.options), games, follow=lambda done: shown.update(done, phase="replaying")
            )
        wrong = [(number, verdict) for number, verdict in enumerate(verdicts, 1) if verdict]
        unfinished = sum(not (verdict or record.is_finished) for verdict, record in zip(verdicts, games, strict=True))
        if self.json:
            faults = [{"game": number, "fault": verdict} for number, verdict in wrong]
            counts = {"games": len(games), "unfinished": unfinished, "wrong": len(wrong)}
            print(json.dumps({"game": game.id, **counts, "faults": faults}))
        else:
            for number, verdict in wrong:
                err.print(f"game {number}: {verdict}")
            ended = len(games) - len(wrong) - unfinished
            others = f"; legal but unfinished: {unfinished:,}" if unfinished else ""
            out.print(f"{ended:,} of {counted(len(games), 'games')} of {game.id} replay to their ends{others}")
        if wrong:
            sys.exit(1)


@dataclass(frozen=True)
class Show(GamesFile):
    """Step through a recorded game on the terminal, or print it.

    Keys: the right and left arrow keys step forward and back, home and end go to the start and the end, a number and enter to
    that move, N and P to the next and the previous game, and q quits. Without a terminal, or with --plain, --brief, --move or
    --svg, the game is printed.
    """

    number: int = 1
    """Number of the game in the file, from 1."""
    move: int | None = None
    """Print only the position after this number of moves, 0 for the start."""
    plain: bool = False
    """Print all moves and positions, on a terminal too."""
    brief: bool = False
    """Print all moves, and the position only at the end."""
    svg: Path | None = None
    """Write the final position, or the position of --move, to this file, as a picture."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.cli.terminal import viewer
        from tilewe_jax.utils.files import replacing

        check_writable(self.svg)
        content = self.read()
        games = content.games
        chosen = chosen_game(games, self.number, self.file)
        moves = len(chosen.record.actions)
        common.check_move(self.move, moves, self.number)
        self.print_skipped(content)
        last = moves if self.move is None else self.move
        try:
            if not (self.plain or self.brief or self.svg or self.move is not None) and viewer.can_run():
                viewer.run(games, viewer.View(self.number - 1), in_color())
                return
            replay = viewer.Replay(chosen.game, chosen.record, self.number)
            with progress(None, ""), contextlib.suppress(records.RecordError):  # the moves before an illegal one are shown
                replay.position(last)
            if self.move is None:
                lines = viewer.printed(replay, self.brief, in_color())
            else:
                lines = iter([*([replay.move_line(last)] if last else []), replay.text(last, in_color())])
            for line in lines:
                print(line)
            if self.svg:
                with replacing(self.svg) as file:
                    file.write(replay.position(last).svg(last_action=replay.last_action(last)))
        except records.RecordError as error:
            raise records.RecordError(f"{self.file}: {error}") from None
