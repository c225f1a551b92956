"""Curves of training runs, with bands over runs that differ only in their seed, as SVG."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from typing import Any

import numpy as np

from tilewe_jax.utils.plots import new_figure, svg

LOSSES = {
    "policy_loss": "cross-entropy of the policy",
    "outcome_loss": "cross-entropy of the outcomes",
    "score_loss": "cross-entropy of the scores",
    "policy_entropy": "entropy of the policy in nats",
    "agreement": "fraction of moves on which policy and search agree",
}
"""Fields of an iteration that are plotted, with the labels of their axes."""
_POINTS = 200
"""Maximum number of points of a curve; neighbouring ones are averaged."""
_NAME = 36
"""Maximum number of characters of a name in a plot."""

Row = dict[str, Any]
Point = tuple[int, float, float, float]
"""Iteration, place on the horizontal axis, value, and half the width of the 95 % interval of the value; NaN if unknown."""


@dataclass(frozen=True)
class Group:
    """Runs of the same settings and different seeds."""

    name: str
    """Settings in which the group differs from others."""
    runs: Sequence[tuple[list[Row], list[Row]]]
    """The rows of the iterations and of the evaluations of each run."""


def losses(groups: Sequence[Group]) -> list[str]:
    """Plot the losses of each group over its games of self-play; nothing before the first game has ended."""

    def points(field: str) -> Callable[[list[Row], list[Row]], list[Point]]:
        def of(rows: list[Row], _: list[Row]) -> list[Point]:
            games = accumulate(row["games"] for row in rows)
            known = [(row, count) for row, count in zip(rows, games, strict=True) if row.get(field) is not None]
            return [(row["iteration"], count, row[field], float("nan")) for row, count in known]

        return of

    fields = {name for group in groups for rows, _ in group.runs for row in rows for name in row}
    return [
        over(groups, field.replace("_", " ").capitalize(), points(field), "games of self-play", label)
        for field, label in LOSSES.items()
        if field in fields
    ]


def win_rates(groups: Sequence[Group], opponent: str, field: str = "games_before") -> str:
    """Plot the win rates of each group against an opponent over games of self-play, or over hours (``field="seconds"``)."""
    scale, label = (3600, "hours") if field == "seconds" else (1, "games of self-play")

    def points(_: list[Row], evaluations: list[Row]) -> list[Point]:
        known = [(row, row["opponents"][opponent]) for row in evaluations if opponent in row["opponents"]]
        return [
            (row["iteration"], row[field] / scale, figures["win_rate"], 1.96 * figures["standard_error"])
            for row, figures in known
        ]

    return over(groups, f"Win rate against {short(opponent)}", points, label, "win rate", bottom=0.0, top=1.03)


def over(
    groups: Sequence[Group],
    title: str,
    points: Callable[[list[Row], list[Row]], list[Point]],
    x_label: str,
    y_label: str,
    **limits: float,
) -> str:
    """Plot a curve of each group: the mean over its runs, with a band of its 95 % interval and a thin line for each run.

    Args:
        groups: the runs.
        title: title of the plot.
        points: returns the points of a run, of its iterations and evaluations.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        limits: ``bottom`` and ``top`` of the vertical axis.

    Returns the text of an SVG element.
    """

    def draw(axes: Any) -> None:
        bands = []
        for group in groups:
            runs = [points(*run) for run in group.runs]
            x, mean, ci95 = mean_curve(runs)
            (line,) = axes.plot(x, mean, marker="." if len(x) < 50 else "", label=short(group.name))
            bands.append((x, mean - ci95, mean + ci95, line.get_color()))
            for run in runs if len(runs) > 1 else ():
                places, values = _thinned(np.array([point[1:3] for point in run]).reshape(-1, 2).T)
                axes.plot(places, values, color=line.get_color(), alpha=0.35, linewidth=0.6)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_ylim(**limits or dict(zip(("bottom", "top"), axes.get_ylim(), strict=True)))  # the bands of two runs are wide
        for x, low, high, color in bands:
            axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        if len(groups) > 1:
            axes.legend(fontsize=8)

    return plot(title, draw)


def mean_curve(runs: Iterable[Sequence[Point]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over runs: places, values, and half the widths of the 95 % intervals, at most 200 points.

    The curve has the iterations that all runs have. The intervals of several runs are for the mean over seeds; a single run
    keeps the intervals of its points.
    """
    tables = [{iteration: rest for iteration, *rest in run} for run in runs]
    shared = [iteration for iteration in tables[0] if all(iteration in table for table in tables)]
    values = np.array([[table[iteration] for iteration in shared] for table in tables], float).reshape(len(tables), -1, 3)
    x, y, own = np.moveaxis(values, 2, 0)
    x, y, own = _thinned(x), _thinned(y), _thinned(own)
    return x.mean(axis=0), y.mean(axis=0), interval_of_mean(y) if len(tables) > 1 else own[0]


def interval_of_mean(values: np.ndarray) -> np.ndarray:
    """Return half the width of the 95 % interval (Student's t) of the mean of at least two values, along the first axis."""
    from scipy.special import stdtrit

    count = len(values)
    return np.asarray(stdtrit(count - 1, 0.975) * values.std(axis=0, ddof=1) / sqrt(count))


def _thinned(values: np.ndarray) -> np.ndarray:
    """Average neighbours along the last axis so that at most ``_POINTS`` are left."""
    count = values.shape[-1]
    parts = np.array_split(values, min(count, _POINTS) or 1, axis=-1)
    return np.stack([part.mean(axis=-1) for part in parts], axis=-1) if count > _POINTS else values


def plot(title: str, draw: Callable[[Any], None]) -> str:
    """Draw a plot of a report with a function of its axes. Returns the text of an SVG element."""
    figure = new_figure(5.6, 3.6)
    axes = figure.add_subplot()
    draw(axes)
    axes.set_title(title)
    axes.grid(color="#eee")
    text = svg(figure)
    return text[text.index("<svg") :]


def short(name: str) -> str:
    """Shorten the name of an agent or a group to fit into a plot."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
