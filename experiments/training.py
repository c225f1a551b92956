"""What `tilewe-jax train` does around a run: settings, processes, signals, and the report at the end."""

import json
import signal
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

import jax
from rich.console import Console

from experiments import config as settings
from experiments import report
from experiments.checkpoint import CheckpointError
from experiments.config import Config
from experiments.metrics import Log
from experiments.train import Program, Run


class LostProcessError(Exception):
    """Another process of the run has ended."""


def train(
    preset: str | None, given: dict[str, str], folder: Path, resume: bool, devices: int | None, console: Console | None
) -> dict[str, Any] | None:
    """Train, and write the report; ``None`` in processes that do not lead.

    Raises ``ValueError`` for wrong settings, ``CheckpointError`` where there is nothing to resume, ``OSError`` where the folder
    cannot be written.
    """
    config = settings.changed(_config(preset, folder, resume), given)
    run = Run(config, folder, Program(config, devices))
    if console and run.leads:
        parts = ", ".join(f"{what} {size / 1e6:,.0f} MB" for what, size in run.needed().items())
        console.print(f"memory of each device, about: {parts}", highlight=False)
    state = run.resume() if resume else run.start()
    log = Log(folder, config, console, int(state.round)) if run.leads else None
    stopped: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)
        if console:
            console.print("ending after this round; once more to end at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        state = run.train(state, log, lambda: bool(stopped))
    except jax.errors.JaxRuntimeError as error:
        if jax.process_count() > 1:
            raise LostProcessError(str(error).splitlines()[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if log:
            log.close()
    if not log:
        return None
    path = report.write(folder)
    if console:
        console.print(f"{int(state.round):,} rounds, {log.games:,} games, {log.seconds / 60:.1f} min; report: {path}")
    return {
        "rounds": int(state.round),
        "games": log.games,
        "seconds": round(log.seconds, 1),
        "report": str(path),
        "interrupted": bool(stopped),
    }


def join(coordinator: str | None, count: int | None, number: int | None) -> None:
    """Join the other processes of a run; without arguments as the cluster tells."""
    # Or JAX's own watch would abort those that are left, before they can say what has happened.
    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(coordinator, count, number, heartbeat_timeout_seconds=30)


def _config(preset: str | None, folder: Path, resume: bool) -> Config:
    if not resume:
        return settings.preset(preset) if preset else Config()
    if preset:
        raise ValueError("--resume goes on with the settings of the run, so --preset has no meaning with it")
    path = folder / "config.json"
    try:
        return settings.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        raise CheckpointError(f"{folder} has no run to go on with: there is no {path.name} in it") from None
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: {error}") from None


def listing() -> dict[str, Any]:
    """The presets and the settings."""
    return {"presets": settings.presets(), "settings": {field.name: field.default for field in fields(Config)}}


def listing_text() -> str:
    """The same for people."""
    found = listing()
    return "\n".join(["presets: " + ", ".join(found["presets"]), *(f"{k}={v}" for k, v in found["settings"].items())])
