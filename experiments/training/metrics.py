"""What a run tells of itself while it goes on: JSON lines, TensorBoard events, and a line for people."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from tensorboardX import SummaryWriter

from experiments.config import Config
from experiments.training.loss import Losses
from experiments.training.selfplay import Tally
from tilewe_jax.files import replacing

LINES = "metrics.jsonl"
TESTS = "tests.jsonl"
_EVERY = 30.0
"""Seconds between two lines where nobody watches."""


class Log:
    """The log of a run in a folder; of one that goes on, what came after ``round`` is dropped. ``console`` is for people."""

    def __init__(self, folder: Path, config: Config, console: Console | None, round: int = 0) -> None:
        self.config, self.console = config, console
        self.paths = folder / LINES, folder / TESTS
        self.lines, self.tests = ([row for row in read(path) if row["round"] <= round] for path in self.paths)
        self.seconds = self.lines[-1]["seconds"] if self.lines else 0.0
        self.games = sum(row["games"] for row in self.lines)
        for path, rows in zip(self.paths, (self.lines, self.tests), strict=True):
            with replacing(path, "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        self.events = SummaryWriter(str(folder / "events"), purge_step=round)
        self.told = time.monotonic()
        # One line that changes where somebody watches, else a line now and then.
        self.status = console.status("") if console and console.is_terminal else None
        if self.status:
            self.status.start()
        self.begun = round

    def close(self) -> None:
        """Write what is left."""
        if self.status:
            self.status.stop()
        self.events.close()

    def round(self, number: int, seconds: float, played: float, learned: float, tally: Tally, losses: Sequence[Losses]) -> None:
        """Add a round."""
        games, full, simulations = int(tally.games), max(1, int(tally.full)), self._simulations(tally)
        self.seconds, self.games = seconds, self.games + games
        row: dict[str, Any] = {
            "round": number,
            "seconds": round(seconds, 3),
            "play_seconds": round(played, 3),
            "learn_seconds": round(learned, 3),
            "games": games,
            "moves": int(tally.moves),
            "simulations": simulations,
            "plies": int(tally.plies),
            "returns": np.asarray(tally.returns).tolist(),
            "search_entropy": float(tally.entropy) / full,
            "surprise": float(tally.surprise) / full,
            "given_up": int(tally.given_up),
            "given_up_checked": int(tally.checked),
            "given_up_wrong": int(tally.wrong),
        }
        if losses:
            names = ("policy", "win", "margin", "entropy", "agreement")
            row |= {name: float(np.mean([getattr(part, name) for part in losses])) for name in names}
            row["calibration"] = np.mean([part.calibration for part in losses], axis=0).round(5).tolist()
        self.lines.append(row)
        _append(self.paths[0], row)
        for name, value in row.items():
            if isinstance(value, (int, float)) and name != "round":
                self.events.add_scalar(name, value, number)
        self._tell(row)

    def test(self, number: int, seconds: float, found: dict[str, Any]) -> None:
        """Add the games of a test."""
        row = {"round": number, "seconds": round(seconds, 3), "games_before": self.games, **found}
        self.tests.append(row)
        _append(self.paths[1], row)
        for opponent, figures in found["opponents"].items():
            self.events.add_scalar(f"win_share/{opponent}", figures["win_share"], number)
            if self.console:
                share, error = figures["win_share"], figures["error"]
                self.console.print(f"round {number}: against {opponent} {share:.1%} ± {error:.1%}", markup=False)

    def _simulations(self, tally: Tally) -> int:
        fast = int(tally.moves) - int(tally.full)
        return int(tally.full) * self.config.simulations + fast * self.config.fast_simulations

    def _tell(self, row: dict[str, Any]) -> None:
        now = time.monotonic()
        if not self.console or not (self.status or now - self.told > _EVERY or row["round"] == self.begun + 1):
            return
        self.told = now
        last = self.lines[-10:]
        span = max(sum(line["play_seconds"] + line["learn_seconds"] for line in last), 1e-9)
        left = (self.config.rounds - row["round"]) * self.seconds / row["round"]
        if self.config.minutes:
            left = min(left, max(0.0, self.config.minutes * 60 - self.seconds))
        parts = [
            f"round {row['round']:,}",
            f"{self.games:,} games",
            f"{sum(line['games'] for line in last) / span:.1f} games/s",
            f"{row['simulations'] / max(row['play_seconds'], 1e-9):,.0f} simulations/s",
            f"buffer {min(1.0, row['round'] * self.config.steps / self.config.buffer):.0%}",
        ]
        if "policy" in row:
            parts.append(f"losses: policy {row['policy']:.3f}, win {row['win']:.3f}, margin {row['margin']:.3f}")
        parts.append(f"{left / 60:,.0f} min left")
        if self.status:
            self.status.update("  ".join(parts))
        else:
            self.console.print("  ".join(parts), markup=False, highlight=False)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; none where there is no file. A last line that was cut off does not count."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def _append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
