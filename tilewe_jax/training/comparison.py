"""The report of several runs: one HTML file with their curves, and bands over runs that differ only in their seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewe_jax.training import curves, metrics, report
from tilewe_jax.training.config import CONFIG
from tilewe_jax.training.curves import Group
from tilewe_jax.utils.files import replacing

_NOT_COMPARED = ("seed", "iterations", "max_minutes", "tensorboard", "wandb", "checkpoint.")
"""Starts of the names of settings in which the runs of one group may differ."""


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of the runs in a folder, sorted by name: the folder itself if it has a run."""
    if (folder / CONFIG).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))


def write(folders: Sequence[Path], path: Path) -> Path:
    """Write the report of several runs to an HTML file, and return its path.

    Runs whose settings differ only in the seed, or in how long they went on, form a group. Each curve is the mean of a group.

    Raises ``ValueError`` for missing and damaged files, and ``MissingExtraError`` without the extra ``plots``.
    """
    settings = [dict(report.flat(report.settings_of(folder))) for folder in folders]
    names = dict.fromkeys(name for row in settings for name in row if not name.startswith(_NOT_COMPARED))
    differing = [name for name in names if any(row.get(name) != settings[0].get(name) for row in settings)]
    members: dict[str, list[Path]] = {}
    for folder, row in zip(folders, settings, strict=True):
        members.setdefault(", ".join(f"{name}={row.get(name)}" for name in differing) or "all runs", []).append(folder)
    groups = [Group(name, [_rows(folder) for folder in own]) for name, own in members.items()]
    opponents = dict.fromkeys(
        name for group in groups for _, rows in group.runs for row in rows for name in row["opponents"] if name != "last"
    )
    parts = [
        _table(groups, members, list(opponents)),
        report.section("Losses", curves.losses(groups)),
        report.section(
            "Strength", [curves.win_rates(groups, name, field) for name in opponents for field in ("games_before", "seconds")]
        ),
    ]
    with replacing(path, "w") as file:
        file.write(report.PAGE.format(title=f"Comparison of {len(folders)} runs", body="\n".join(parts), script=""))
    return path


@report.of_damaged_files
def _rows(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return metrics.read(folder / metrics.METRICS), metrics.read(folder / metrics.EVALUATIONS)


def _table(groups: Sequence[Group], members: dict[str, list[Path]], opponents: Sequence[str]) -> str:
    """Return the table of the groups, with the means of their runs and the 95 % intervals of the means over seeds."""

    def mean(values: list[float], form: str) -> str:
        if not values:
            return "-"
        interval = f" ± {curves.interval_of_mean(np.array(values)):{form}}" if len(values) > 1 else ""
        return f"{np.mean(values):{form}}{interval}"

    head = ["runs", "folders", "iterations", "games", "hours", *(f"won against {name}, last evaluation" for name in opponents)]
    lines = ["".join(f"<th>{report.escaped(cell)}" for cell in head)]
    for group in groups:
        rows, last = [rows for rows, _ in group.runs if rows], [rows[-1]["opponents"] for _, rows in group.runs if rows]
        cells = [
            group.name,
            ", ".join(map(str, members[group.name])),
            mean([row[-1]["iteration"] for row in rows], ",.0f"),
            mean([sum(line["games"] for line in row) for row in rows], ",.0f"),
            mean([row[-1]["seconds"] / 3600 for row in rows], ".2f"),
            *(mean([row[name]["win_rate"] for row in last if name in row], ".1%") for name in opponents),
        ]
        lines.append("".join(f"<td>{report.escaped(cell)}" for cell in cells))
    about = "Means over the runs of equal settings, with 95 % intervals of the means over seeds."
    return f"<p>{about}</p><table>{''.join(f'<tr>{line}' for line in lines)}</table>"
