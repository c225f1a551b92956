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
from experiments.config import Config
from experiments.training import report
from experiments.training.checkpoint import CheckpointError
from experiments.training.loop import Program, Run
from experiments.training.metrics import Log


class LostProcessError(Exception):
    """Another process of the run has ended."""


def train(
    config: Config, folder: Path, resume: bool = False, devices: int | None = None, console: Console | None = None
) -> dict[str, Any] | None:
    """Train, into a folder, and write the report; ``None`` in processes that do not lead.

    ``resume`` goes on from the newest checkpoint in the folder, ``devices`` is their number in each process, all unless given,
    and ``console`` is where people may follow.

    Raises ``ValueError`` for settings that do not fit, ``MemoryError`` where memory does not suffice, ``CheckpointError`` where
    there is nothing to resume, ``OSError`` where the folder cannot be written.
    """
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


def configured(preset: str | None, given: dict[str, str], folder: Path, resume: bool) -> Config:
    """The settings of a preset, or of the run in a folder that is to go on, with those that are given as text.

    Raises ``ValueError`` for wrong settings, ``CheckpointError`` where there is no run.
    """
    return settings.changed(_settings_of(folder, preset) if resume else settings.preset(preset) if preset else Config(), given)


def _settings_of(folder: Path, preset: str | None) -> Config:
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
