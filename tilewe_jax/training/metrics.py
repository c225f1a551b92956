"""The log of a run: JSON lines, TensorBoard events, and a line for people."""

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from tensorboardX import SummaryWriter

from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.loss import BINS, Losses
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
        config: its settings.
        console: where people follow, if they do.
        iteration: the last iteration of a run that is resumed; rows after it are dropped, which ``notes`` says.
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
        self.notes: list[str] = []
        """Notes on missing and dropped rows, a line each."""
        self._paths = folder / METRICS, folder / EVALUATIONS
        self.lines, self.evaluations = (self._resumed(path, iteration) for path in self._paths)
        self.seconds = self.lines[-1]["seconds"] if self.lines else 0.0
        self.games = sum(row["games"] for row in self.lines)
        if missing := missing_iterations(self.lines, iteration):
            self.notes.append(f"{self._paths[0]} lacks the rows of {missing}; their games and seconds are not counted")
        self._events = SummaryWriter(str(folder / "events"), purge_step=iteration)

    def _resumed(self, path: Path, iteration: int) -> list[dict[str, Any]]:
        """The rows of a file up to an iteration, the others being dropped from the file."""
        lines, cut_off = _read_lines(path)
        kept = [(line, row) for line, row in lines if row["iteration"] <= iteration]
        if dropped := [row["iteration"] for _, row in lines[len(kept) :]]:
            self.notes.append(
                f"{path}: the rows of {_range(dropped[0], dropped[-1])} are dropped, as the run goes on from the checkpoint of"
                f" iteration {iteration}"
            )
        if cut_off:
            self.notes.append(f"{path}: the last line was cut off, and is dropped")
        if dropped or cut_off or not path.exists() or (lines and not path.read_bytes().endswith(b"\n")):
            with replacing(path, "wb") as file:
                file.writelines(line + b"\n" for line, _ in kept)
        return [row for _, row in kept]

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
        # Positions of unfinished games count as 0 in the mean losses, so the means are divided by the fraction of the others.
        fraction = float(np.sum([part.calibration[0] for part in losses])) / max(1, len(row["returns"]))
        if fraction > 0:
            for name in ("policy", "outcome", "score", *(["ownership"] if self.config.loss.ownership_loss_weight else [])):
                row[f"{name}_loss"] = float(np.sum([getattr(part, name) for part in losses])) / fraction
            row["policy_entropy"] = float(np.sum([part.entropy for part in losses])) / fraction
            row["agreement"] = float(np.sum([part.agreement for part in losses])) / fraction
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
    """Return the rows of ``METRICS`` or ``EVALUATIONS``; an empty list if the file does not exist.

    An incomplete last line, which a process that was killed leaves, and which stands there while a row is being written, is
    left out. Raises ``OSError`` if the file cannot be read, and ``ValueError``, which names the line, for any other damage.
    """
    return [row for _, row in _read_lines(path)[0]]


def missing_iterations(rows: Sequence[dict[str, Any]], last: int | None = None) -> str:
    """Return the iterations up to the last one that lack a row, in words; empty if all have one."""
    numbers = [0, *(row["iteration"] for row in rows)]
    if last is not None:
        numbers.append(last + 1)
    return ", ".join(_range(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1)


def is_learned(row: dict[str, Any]) -> bool:
    """Whether the network learned in an iteration. In older files losses are 0 before the first game ended."""
    return "policy_loss" in row and (np.sum(row["calibration"][0]) > 0 or row["policy_loss"] != 0)


def _range(first: int, last: int) -> str:
    return f"iteration {first}" if first == last else f"iterations {first} to {last}"


def _read_lines(path: Path) -> tuple[list[tuple[bytes, dict[str, Any]]], bool]:
    """The lines of a file and their rows, and whether a last line was cut off."""
    fields = _METRICS if path.name == METRICS else _EVALUATIONS
    try:
        lines = read_input(path, _LIMIT).split(b"\n")
    except FileNotFoundError:
        return [], False
    if not lines[-1]:
        lines.pop()
        is_ended = True
    else:
        is_ended = False
    rows: list[tuple[bytes, dict[str, Any]]] = []
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        try:
            row = parse_json(line)
        except ValueError as error:
            if number == len(lines) and not is_ended:
                return rows, True
            raise ValueError(f"{place} is damaged: {_in_short(error)}") from None
        if problem := _problem(fields, row, rows[-1][1]["iteration"] if rows else 0):
            raise ValueError(f"{place} is damaged: {problem}")
        rows.append((line, row))
    return rows, False


def _in_short(error: ValueError) -> str:
    return f"it is not JSON ({error.msg}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)


def _problem(fields: "_Fields", row: Any, before: int) -> str:
    """The problem of a row, in words; empty for a valid row."""
    if not isinstance(row, dict):
        return "it is not a JSON object"
    for name, (is_needed, accepts, wanted) in fields.items():
        if name not in row:
            if is_needed:
                return f"{name} is missing"
        elif not accepts(row[name]):
            return f"{name} must be {wanted}, not {_shown(row[name])}"
    if row["iteration"] <= before:
        return f"iteration {row['iteration']} comes after iteration {before}"
    for group in (_LEARNED, _AGAINST):
        present, missing = [name for name in group if name in row], [name for name in group if name not in row]
        if present and missing:
            return f"{missing[0]} is missing beside {present[0]}"
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e300


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_loss(value: Any) -> bool:
    """A learner that diverges has losses that are not finite."""
    return _is_number(value) or (type(value) is float and not math.isfinite(value))


def _is_table(value: Any, accepts: Callable[[Any], bool], rows: int | None = None, columns: int | None = None) -> bool:
    """Whether a value is a list of lists of the same length, with at least one entry."""
    if not isinstance(value, list) or not value or (rows is not None and len(value) != rows):
        return False
    width = columns or (len(value[0]) if isinstance(value[0], list) else 0)
    return width > 0 and all(isinstance(row, list) and len(row) == width and all(map(accepts, row)) for row in value)


def _is_figures(value: Any) -> bool:
    """Whether a value has the figures of the games against an opponent."""
    if not isinstance(value, dict) or not {"win_rate", "standard_error", "seating", "results"} <= value.keys():
        return False
    seating, results = value["seating"], value["results"]
    return (
        _is_positive(value["win_rate"])
        and _is_positive(value["standard_error"])
        and _is_table(seating, lambda seat: _is_count(seat) and seat <= 1)
        and _is_table(results, _is_number, len(seating), len(seating[0]))
    )


_Fields = dict[str, tuple[bool, Callable[[Any], bool], str]]
"""Whether a field is needed, the check of its value, and its valid values in words."""
_COUNT = _is_count, "an integer of at least 0"
_NUMBER = _is_number, "a number"
_POSITIVE = _is_positive, "a number of at least 0"
_LOSS = _is_loss, "a number"
_LEARNED = "policy_loss", "outcome_loss", "score_loss", "policy_entropy", "agreement", "calibration"
"""Fields of iterations in which the network learned; a row has all of them or none."""
_AGAINST = "opponent_games", "opponent_moves", "learner_returns"
"""Fields of iterations with games against an opponent."""
_METRICS: _Fields = {
    "iteration": (True, *_COUNT),
    **dict.fromkeys(("seconds", "play_seconds", "learn_seconds"), (True, *_POSITIVE)),
    **dict.fromkeys(("games", "moves", "simulations", "plies"), (True, *_COUNT)),
    "returns": (True, lambda value: _is_table([value], _is_number), "a list of numbers"),
    **dict.fromkeys(("search_entropy", "surprise"), (True, *_LOSS)),
    "opponent_games": (False, *_COUNT),
    "opponent_moves": (False, *_COUNT),
    "learner_returns": (False, *_NUMBER),
    **dict.fromkeys(_LEARNED, (False, *_LOSS)),
    "calibration": (False, lambda value: _is_table(value, _is_number, 3, BINS), f"3 lists of {BINS} numbers"),
}
_EVALUATIONS: _Fields = {
    "iteration": (True, *_COUNT),
    "seconds": (True, *_POSITIVE),
    "games_before": (True, *_COUNT),
    "opponents": (
        True,
        lambda value: isinstance(value, dict) and all(map(_is_figures, value.values())),
        "an object with win_rate, standard_error, seating and results of each opponent",
    ),
}


def _append(path: Path, row: dict[str, Any]) -> None:
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
