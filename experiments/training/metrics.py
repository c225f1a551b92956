"""The log of a run: JSON lines, TensorBoard events, and a line for people."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from tensorboardX import SummaryWriter

from experiments.config import TrainConfig
from experiments.progress import Progress
from experiments.training.loss import Losses
from experiments.training.selfplay import SelfplayStats
from tilewe_jax.files import naming, parse_json, read_input, replacing

METRICS = "metrics.jsonl"
"""File with one line per iteration."""
EVALUATIONS = "evaluations.jsonl"
"""File with one line per evaluation."""
_LIMIT = 1 << 30
"""Maximum size of a file that is read, in bytes."""


class Log:
    """The log of a run in a folder.

    Args:
        folder: folder of the run.
        config: its settings.
        console: where people follow, if they do.
        iteration: the last iteration of a run that is resumed; what was logged after it is dropped.
        progress: shows how far the run is.
    """

    def __init__(
        self,
        folder: Path,
        config: TrainConfig,
        console: Console | None,
        iteration: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.config, self.console = config, console
        self.progress = progress or Progress(console=None)
        """Shows what the run is doing."""
        self._paths = folder / METRICS, folder / EVALUATIONS
        self.lines, self.evaluations = ([row for row in read(path) if row["iteration"] <= iteration] for path in self._paths)
        self.seconds = self.lines[-1]["seconds"] if self.lines else 0.0
        self.games = sum(row["games"] for row in self.lines)
        for path, rows in zip(self._paths, (self.lines, self.evaluations), strict=True):
            with replacing(path, "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        self._events = SummaryWriter(str(folder / "events"), purge_step=iteration)

    def close(self) -> None:
        """Write what is buffered."""
        self._events.close()

    def add_iteration(
        self,
        iteration: int,
        seconds: float,
        play_seconds: float,
        learn_seconds: float,
        stats: SelfplayStats,
        losses: Sequence[Losses],
    ) -> None:
        """Add an iteration.

        Args:
            iteration: its number.
            seconds: wall time of the run so far.
            play_seconds: wall time of self-play in this iteration.
            learn_seconds: wall time of learning in this iteration.
            stats: statistics of self-play.
            losses: losses of each step of the optimizer.
        """
        games, full, simulations = int(stats.games), max(1, int(stats.full_searches)), self._simulations(stats)
        self.seconds, self.games = seconds, self.games + games
        row: dict[str, Any] = {
            "iteration": iteration,
            "seconds": round(seconds, 3),
            "play_seconds": round(play_seconds, 3),
            "learn_seconds": round(learn_seconds, 3),
            "games": games,
            "moves": int(stats.moves),
            "simulations": simulations,
            "plies": int(stats.plies),
            "returns": np.asarray(stats.returns).tolist(),
            "search_entropy": float(stats.entropy) / full,
            "surprise": float(stats.surprise) / full,
            "resigned": int(stats.resigned),
            "resignations_checked": int(stats.resignations_checked),
            "false_resignations": int(stats.false_resignations),
        }
        if self.config.selfplay.opponent:
            row["opponent_moves"] = int(stats.opponent_moves)
            row["opponent_games"] = int(stats.opponent_games)
            row["learner_returns"] = float(stats.learner_returns)
        if losses:
            weights = self.config.loss
            learned = ["policy", "outcome", "score"]
            learned += ["soft_policy"] if weights.soft_policy_weight else []
            learned += ["ownership"] if weights.ownership_loss_weight else []
            learned += ["short_term"] if weights.short_term_loss_weight else []
            for name in learned:
                row[f"{name}_loss"] = float(np.mean([getattr(part, name) for part in losses]))
            row["policy_entropy"] = float(np.mean([part.entropy for part in losses]))
            row["agreement"] = float(np.mean([part.agreement for part in losses]))
            row["calibration"] = np.mean([part.calibration for part in losses], axis=0).round(5).tolist()
        self.lines.append(row)
        _append(self._paths[0], row)
        for name, value in row.items():
            if isinstance(value, (int, float)) and name != "iteration":
                self._events.add_scalar(name, value, iteration)
        self.progress.update(iteration, partial(self._figures, row), "training")

    def add_evaluation(self, iteration: int, seconds: float, figures: dict[str, Any]) -> None:
        """Add the games of an evaluation."""
        row = {"iteration": iteration, "seconds": round(seconds, 3), "games_before": self.games, **figures}
        self.evaluations.append(row)
        _append(self._paths[1], row)
        for opponent, result in figures["opponents"].items():
            self._events.add_scalar(f"win_rate/{opponent}", result["win_rate"], iteration)
            if self.console:
                rate, error = result["win_rate"], result["standard_error"]
                self.console.print(f"iteration {iteration}: against {opponent} {rate:.1%} ± {error:.1%}", markup=False)

    def _simulations(self, stats: SelfplayStats) -> int:
        fast = int(stats.moves) - int(stats.opponent_moves) - int(stats.full_searches)
        selfplay = self.config.selfplay
        return int(stats.full_searches) * selfplay.search.num_simulations + fast * selfplay.fast_simulations

    def _figures(self, row: dict[str, Any]) -> str:
        """The figures of an iteration and the ones before it, in one line."""
        recent = self.lines[-10:]
        span = max(sum(line["play_seconds"] + line["learn_seconds"] for line in recent), 1e-9)
        left = (self.config.iterations - row["iteration"]) * self.seconds / row["iteration"]
        if self.config.max_minutes:
            left = min(left, max(0.0, self.config.max_minutes * 60 - self.seconds))
        filled = min(1.0, row["iteration"] * self.config.selfplay.unroll_length / self.config.replay.replay_size)
        parts = [
            f"{self.games:,} games",
            f"{sum(line['games'] for line in recent) / span:.1f} games/s",
            f"{row['simulations'] / max(row['play_seconds'], 1e-9):,.0f} simulations/s",
            f"replay buffer {filled:.0%}",
        ]
        if against := sum(line.get("opponent_games", 0) for line in recent):
            parts.append(f"{sum(line['learner_returns'] for line in recent) / against:.0%} won against the opponent")
        if "policy_loss" in row:
            losses = (f"{name} {row[f'{name}_loss']:.3f}" for name in ("policy", "outcome", "score"))
            parts.append(f"losses: {', '.join(losses)}")
        parts.append(f"{left / 60:,.0f} min left")
        return ", ".join(parts)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines, none where there is no file; a last line that was cut off is left out.

    Raises ``OSError`` where the file cannot be read, ``ValueError`` where a line is not that of an iteration.
    """
    try:
        lines = read_input(path, _LIMIT).splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
        except ValueError:
            break
        if not isinstance(row, dict) or type(row.get("iteration")) is not int:
            raise ValueError(f"{path}, line {number}: this is not the row of an iteration")
        rows.append(row)
    return rows


def _append(path: Path, row: dict[str, Any]) -> None:
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
