"""All measurements within a time limit, the most important first, for a machine that is available for minutes only.

Each measurement is a ``tilewe-jax bench``, and its figures are in a file before the next one starts.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewe_jax.cli.benchmarks.pgx_protocol import PGX, PGX_GAMES
from tilewe_jax.cli.benchmarks.process import has_accelerator
from tilewe_jax.utils.files import replacing

SHORTEST = 20.0
"""Minimum remaining seconds to start a measurement; compilation alone takes longer."""


@dataclass(frozen=True)
class Measurement:
    """A measurement and its outcome."""

    name: str
    """Name of its file."""
    arguments: list[str]
    """Arguments of ``tilewe-jax bench``."""
    seconds: float = 0.0
    """Wall time with compilation."""
    failure: str | None = None
    """Reason for a failure; ``None`` after success."""


def plan(accelerator: bool, with_pgx: bool) -> list[Measurement]:
    """List the measurements in their order.

    Args:
        accelerator: whether to measure the larger batches and networks of accelerators.
        with_pgx: whether to measure games of Pgx by the protocol of Pgx too.
    """
    games = ["tilewe", "santorini", "duo_official", "triominos", "duo", "classic", "classic_2"]
    batches = ["65536", "8192"] if accelerator else ["4000"]
    kind, batch = ("gpu", "65536") if accelerator else ("cpu", "4000")
    trained = ["santorini", "duo_official", "tilewe", "triominos"]
    rows = [
        *([f"play-{game}", "play", "--game", game, "--batch", batch] for game in games[:4]),
        ["search", "search", *(["--batch", "4096"] if accelerator else [])],
        *([f"train-{game}", "train", "--preset", f"{game}_{kind}"] for game in trained[:2]),
        *([f"pgx-{game}-8192", "pgx", "--game", game, "--batch", "8192"] for game in games[:4]),
        *([f"play-{game}", "play", "--game", game, "--batch", batch] for game in games[4:]),
        *([f"step-{game}", "play", "--game", game, "--batch", batch, "--form", "step"] for game in games[:4]),
        *([f"search-{game}", "search", "--game", game] for game in trained[:2]),
        *([f"train-{game}", "train", "--preset", f"{game}_{kind}"] for game in trained[2:]),
        *([f"play-{game}-{size}", "play", "--game", game, "--batch", size] for size in batches[1:] for game in games[:4]),
    ]
    names = [*games, *((PGX + name for name in PGX_GAMES) if with_pgx else ())]
    for size in ("8192", "1024", "65536"):
        for name in names:
            row = [f"pgx-{name.removeprefix(PGX)}-{size}", "pgx", "--game", name, "--batch", size]
            if row not in rows:
                rows.append(row)
    if not accelerator:
        rows += ([f"board-{game}", "play", "--game", game, "--form", "board"] for game in games[:4])
    return [Measurement(name, arguments) for name, *arguments in rows]


def measure(folder: Path, minutes: float, seconds: float, seed: int, with_pgx: bool) -> Iterator[Measurement]:
    """Run measurements until the time is over, and write each to ``<name>.json``; existing files are skipped.

    Args:
        folder: folder of the files, created if needed.
        minutes: limit of the wall time of all measurements; the last one is killed.
        seconds: duration of a measurement after compilation.
        seed: seed of the random moves.
        with_pgx: see ``plan``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    for item in plan(has_accelerator(), with_pgx):
        path = folder / f"{item.name}.json"
        if path.exists():
            continue
        started = time.monotonic()
        if deadline - started < SHORTEST:
            return
        options = ["--seconds", str(seconds), *([] if item.arguments[0] == "train" else ["--seed", str(seed)])]
        failure = _measure(path, [*item.arguments, *options], deadline - started)
        yield Measurement(item.name, item.arguments, round(time.monotonic() - started, 1), failure)


def _measure(path: Path, arguments: list[str], limit: float) -> str | None:
    """Write the figures of a measurement to a file, or return the reason for its failure."""
    command = [sys.executable, "-m", "tilewe_jax", "bench", *arguments, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"not done within the remaining {limit:.0f} s"
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return lines[-1] if lines else f"exit code {done.returncode}"
    with replacing(path, "w") as file:
        json.dump(json.loads(done.stdout), file, indent=1)
    return None
