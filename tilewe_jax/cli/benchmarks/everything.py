"""Every figure of the project within a limit of time, the most important first: for a machine that one has for minutes only.

Each measurement is a ``tilewe-jax bench`` of its own, and its figures are in a file before the next one begins, so that
whatever ends the machine leaves what was measured until then.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewe_jax.cli.benchmarks.pgx_protocol import PGX, PGX_GAMES
from tilewe_jax.cli.benchmarks.play import has_accelerator
from tilewe_jax.utils.files import replacing

SHORTEST = 20.0
"""Seconds below which no further measurement is begun: hardly anything compiles in less."""


@dataclass(frozen=True)
class Measurement:
    """A measurement and how it ended."""

    name: str
    """Names its file."""
    arguments: list[str]
    """Arguments of ``tilewe-jax bench``."""
    seconds: float = 0.0
    """Wall time that it took, with compilation."""
    failure: str | None = None
    """Why there are no figures; ``None`` where there are."""


def plan(accelerator: bool, with_pgx: bool) -> list[Measurement]:
    """What is measured, in this order.

    Args:
        accelerator: whether there is one, which wants larger batches, and networks of the size that are trained there.
        with_pgx: whether games of Pgx are measured by the protocol of Pgx too.
    """
    games = ["tilewe", "santorini", "duo_official", "triominos", "duo", "classic", "classic_2"]
    batches = ["65536", "8192"] if accelerator else ["4000"]
    kind, batch = ("gpu", "65536") if accelerator else ("cpu", "4000")
    trained = ["santorini", "duo_official", "tilewe", "triominos"]
    ours = [
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
            if row not in ours:
                ours.append(row)
    if not accelerator:
        ours.append(["board", "play", "--form", "board"])
    return [Measurement(name, arguments) for name, *arguments in ours]


def measure(folder: Path, minutes: float, seconds: float, seed: int, with_pgx: bool) -> Iterator[Measurement]:
    """Measure as much as fits, each into a file of JSON in a folder, ``<name>.json``; those that are there are left out.

    Args:
        folder: is made where it does not exist.
        minutes: limit of the wall time of all together; a measurement that is not done by then is ended.
        seconds: how long each measures after compilation.
        seed: seed of the random moves.
        with_pgx: see ``plan``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    for item in plan(has_accelerator(), with_pgx):
        path = folder / f"{item.name}.json"
        if path.exists():
            continue
        began = time.monotonic()
        if deadline - began < SHORTEST:
            return
        failure = _measure(path, [*item.arguments, "--seconds", str(seconds), *_seed(item, seed)], deadline - began)
        yield Measurement(item.name, item.arguments, round(time.monotonic() - began, 1), failure)


def _seed(item: Measurement, seed: int) -> list[str]:
    return [] if item.arguments[0] == "train" else ["--seed", str(seed)]


def _measure(path: Path, arguments: list[str], limit: float) -> str | None:
    """Write the figures of one measurement to a file, or say why there are none."""
    command = [sys.executable, "-m", "tilewe_jax", "bench", *arguments, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"not done within the {limit:.0f} s that were left"
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return lines[-1] if lines else f"ended with {done.returncode}"
    figures: Any = json.loads(done.stdout)
    with replacing(path, "w") as file:
        json.dump(figures, file, indent=1)
    return None
