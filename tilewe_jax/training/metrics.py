"""The log of a run: JSON lines, trackers of experiments, and progress on a console."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tilewe_jax.training import trackers
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.loss import Losses
from tilewe_jax.training.selfplay import SelfplayStats
from tilewe_jax.utils.files import naming, parse_json, read_input, replacing
from tilewe_jax.utils.progress import Progress

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
        config: settings of the run.
        console: shows the results of evaluations; ``None`` for no output.
        iteration: the last iteration of a resumed run. Rows after it are dropped, with a note.
        progress: shows the iterations.
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
        """Shows the phase and the figures of the run."""
        self.notes: list[str] = []
        """One line for each loss of rows."""
        self._paths = folder / METRICS, folder / EVALUATIONS
        self.lines, self.evaluations = (self._resumed(path, iteration) for path in self._paths)
        self.seconds = self.lines[-1]["seconds"] if self.lines else 0.0
        self.games = sum(row["games"] for row in self.lines)
        if missing := missing_iterations(self.lines, iteration):
            self.notes.append(f"{self._paths[0]} lacks the rows of {missing}; the totals of games and seconds exclude them")
        self._trackers = trackers.start(folder, config, iteration)

    def _resumed(self, path: Path, iteration: int) -> list[dict[str, Any]]:
        """Return the rows of a file up to an iteration, and drop the others from the file."""
        lines, cut_off = _read_lines(path)
        kept = [(line, row) for line, row in lines if row["iteration"] <= iteration]
        if dropped := [row["iteration"] for _, row in lines[len(kept) :]]:
            self.notes.append(
                f"{path}: dropped the rows of {_range(dropped[0], dropped[-1])}, which are after the checkpoint of iteration"
                f" {iteration}"
            )
        if cut_off:
            self.notes.append(f"{path}: dropped the incomplete last line")
        if dropped or cut_off or not path.exists() or (lines and not path.read_bytes().endswith(b"\n")):
            with replacing(path, "wb") as file:
                file.writelines(line + b"\n" for line, _ in kept)
        return [row for _, row in kept]

    def close(self) -> None:
        """Close the trackers."""
        for tracker in self._trackers:
            tracker.close()

    def _track(self, iteration: int, values: dict[str, Any]) -> None:
        """Send the numbers among the values to the trackers."""
        numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        for tracker in self._trackers:
            tracker.add(iteration, numbers)

    def add_iteration(
        self,
        iteration: int,
        seconds: float,
        play_seconds: float,
        learn_seconds: float,
        stats: SelfplayStats,
        losses: Sequence[Losses],
    ) -> None:
        """Add the row of an iteration.

        Args:
            iteration: number of the iteration.
            seconds: wall time of the run so far.
            play_seconds: wall time of self-play in this iteration.
            learn_seconds: wall time of learning in this iteration.
            stats: statistics of self-play.
            losses: losses of each optimizer step.
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
        if self.config.replay.solve_nodes:
            row["solved_positions"] = int(stats.solved)
        # Unfinished games contribute 0 to the mean losses, so that the means are divided by the fraction of finished games.
        fraction = float(np.sum([part.calibration[0] for part in losses])) / max(1, len(row["returns"]))
        if fraction > 0:
            for name in ("policy", "outcome", "score", *(["ownership"] if self.config.loss.ownership_loss_weight else [])):
                row[f"{name}_loss"] = float(np.sum([getattr(part, name) for part in losses])) / fraction
            row["policy_entropy"] = float(np.sum([part.entropy for part in losses])) / fraction
            row["agreement"] = float(np.sum([part.agreement for part in losses])) / fraction
            row["calibration"] = np.mean([part.calibration for part in losses], axis=0).round(5).tolist()
        self.lines.append(row)
        _append(self._paths[0], row)
        self._track(iteration, {name: value for name, value in row.items() if name != "iteration"})
        self.progress.update(iteration, partial(self._figures, row), "training")

    def add_evaluation(self, iteration: int, seconds: float, figures: dict[str, Any]) -> None:
        """Add the row of an evaluation."""
        row = {"iteration": iteration, "seconds": round(seconds, 3), "games_before": self.games, **figures}
        self.evaluations.append(row)
        _append(self._paths[1], row)
        for opponent, result in figures["opponents"].items():
            self._track(iteration, {f"win_rate/{opponent}": result["win_rate"]})
            if self.console:
                rate, error = result["win_rate"], result["standard_error"]
                self.console.print(f"iteration {iteration}: against {opponent} {rate:.1%} ± {error:.1%}", markup=False)
        if "values" in figures:
            total = figures["values"][-1]
            self._track(iteration, {f"value_{name}": total[name] for name in ("correlation", "brier")})
            if self.console:
                self.console.print(f"iteration {iteration}: values on games of others: {value_text(total)}", markup=False)

    def _simulations(self, stats: SelfplayStats) -> int:
        fast = int(stats.moves) - int(stats.opponent_moves) - int(stats.full_searches)
        selfplay = self.config.selfplay
        return int(stats.full_searches) * selfplay.search.num_simulations + fast * selfplay.fast_simulations

    def _figures(self, row: dict[str, Any]) -> str:
        """Describe an iteration and the previous nine in one line."""
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


def value_text(row: dict[str, Any]) -> str:
    """Describe a row of a test of values in a few words."""
    correlation = "undefined" if row["correlation"] is None else f"{row['correlation']:.2f}"
    return f"correlation {correlation}, Brier score {row['brier']:.3f} (of a constant {row['constant']:.3f})"


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of ``METRICS`` or ``EVALUATIONS``; an empty list if the file does not exist.

    Ignores an incomplete last line, which is being written or belongs to a process that was killed. Raises ``OSError`` if the
    file cannot be read, and ``ValueError``, which names the line, for other damage.
    """
    return [row for _, row in _read_lines(path)[0]]


def missing_iterations(rows: Sequence[dict[str, Any]], last: int | None = None) -> str:
    """Describe the iterations without a row, up to the last one; empty if there are none."""
    numbers = [0, *(row["iteration"] for row in rows)]
    if last is not None:
        numbers.append(last + 1)
    return ", ".join(_range(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1)


def _range(first: int, last: int) -> str:
    return f"iteration {first}" if first == last else f"iterations {first} to {last}"


def _read_lines(path: Path) -> tuple[list[tuple[bytes, dict[str, Any]]], bool]:
    """Return the lines of a file with their rows, and whether the last line is incomplete."""
    try:
        *lines, rest = read_input(path, _LIMIT).split(b"\n")
    except FileNotFoundError:
        return [], False
    rows: list[tuple[bytes, dict[str, Any]]] = []
    for number, line in enumerate([*lines, rest] if rest else lines, 1):
        try:
            row = parse_json(line)
            _check(path.name, row, rows[-1][1]["iteration"] if rows else 0)
        except json.JSONDecodeError as error:
            if number > len(lines):
                return rows, True
            raise ValueError(f"{path}, line {number} is damaged: not JSON ({error.msg}, column {error.colno})") from None
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is damaged: {error}") from None
        rows.append((line, row))
    return rows, False


def _check(file: str, row: Any, before: int) -> None:
    """Raise ``ValueError`` for a row with missing or invalid fields."""
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    for name, (accepts, wanted) in _FIELDS[file].items():
        if name not in row:
            raise ValueError(f"{name} is missing")
        if not accepts(row[name]):
            raise ValueError(f"{name} must be {wanted}, not {row[name]!r:.60}")
    if row["iteration"] <= before:
        raise ValueError(f"iteration {row['iteration']} comes after iteration {before}")
    missing = [name for name in _LEARNED if name not in row]
    if "policy_loss" in row and missing:
        raise ValueError(f"{missing[0]} is missing beside policy_loss")
    for name in ("policy_loss", *_LEARNED[:-1]):
        if not isinstance(row.get(name, 0.0), (int, float)):
            raise ValueError(f"{name} must be a number, not {row[name]!r:.60}")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1e300


def _is_figures(value: Any) -> bool:
    """Return whether a value holds the figures of the games against an opponent."""
    try:
        seating, results = np.asarray(value["seating"]), np.asarray(value["results"], np.float64)
        numbers = value["win_rate"], value["standard_error"]
    except (LookupError, OverflowError, TypeError, ValueError):
        return False
    same = seating.dtype.kind == "i" and seating.ndim == 2 and seating.shape == results.shape
    return same and bool(np.isin(seating, (0, 1)).all() and np.isfinite(results).all()) and all(map(_is_number, numbers))


_LEARNED = "outcome_loss", "score_loss", "policy_entropy", "agreement", "calibration"
"""Fields of iterations with learning, in addition to ``policy_loss``."""
_COUNT, _NUMBER = (_is_count, "an integer of at least 0"), (_is_number, "a number of at least 0")
_FIELDS: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    METRICS: {
        "iteration": _COUNT,
        **dict.fromkeys(("seconds", "play_seconds", "learn_seconds"), _NUMBER),
        **dict.fromkeys(("games", "moves", "simulations", "plies"), _COUNT),
        "returns": (lambda value: isinstance(value, list) and all(map(_is_number, value)), "a list of numbers"),
    },
    EVALUATIONS: {
        **dict.fromkeys(("iteration", "games_before"), _COUNT),
        "seconds": _NUMBER,
        "opponents": (
            lambda value: isinstance(value, dict) and all(map(_is_figures, value.values())),
            "an object with win_rate, standard_error, seating and results of each opponent",
        ),
    },
}
"""Required fields of the rows of each file, with a check of the value and a description of valid values."""


def _append(path: Path, row: dict[str, Any]) -> None:
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
