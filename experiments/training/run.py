"""A training run around its loop, as `tilewe-jax train` starts it: settings, processes, signals, and the report at the end."""

import contextlib
import errno
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import jax
from rich.console import Console

from experiments import config, interrupts, presets, settings
from experiments.config import TrainConfig
from experiments.progress import Progress
from experiments.training import report
from experiments.training.checkpoint import CheckpointError
from experiments.training.loop import Run
from experiments.training.metrics import Log
from experiments.training.program import Program
from experiments.trust import check, trusting
from tilewe_jax.files import read_json


class LostProcessError(Exception):
    """Another process of the run has ended."""


def train(
    config: TrainConfig,
    folder: Path,
    resume: bool = False,
    devices: int | None = None,
    console: Console | None = None,
    minutes: float = math.inf,
    trust: bool = False,
) -> dict[str, Any] | None:
    """Train, into a folder, and write the report.

    Args:
        config: settings of the run.
        folder: folder of the run.
        resume: whether to go on from the newest checkpoint in the folder.
        devices: number of devices of each process, by default all.
        console: where people follow.
        minutes: the call ends after so many minutes, as it does after ``config.max_minutes`` of the whole run.
        trust: whether the weights that the settings name may name code, see ``experiments.trust``.

    Returns figures of the run as JSON; ``None`` in processes that do not lead.

    Raises ``ValueError`` for settings that do not fit, ``MemoryError`` where memory does not suffice, ``CheckpointError`` where
    there is nothing to resume, ``OSError`` where the folder cannot be written, as on a full disk.
    """
    began = time.monotonic()
    with trusting(trust):
        run = Run(config, folder, Program(config, devices))
    total = None if config.iterations == settings.UNLIMITED else config.iterations
    with (
        trusting(trust),
        naming_what_is_kept(run),
        Progress(total=total, unit="iterations", console=console if run.leads else None) as progress,
    ):
        return _train(run, resume, console, began, progress, minutes)


@contextlib.contextmanager
def naming_what_is_kept(run: Run) -> Iterator[None]:
    """Give an ``OSError`` the folder of the run as its file, and a message that says with what the run can go on."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error.filename, str) and Path(error.filename) != run.folder:
            reason += f" ({os.path.relpath(error.filename, run.folder)})"
        number = run.newest_checkpoint()
        if number is not None:
            reason += f"; the checkpoint of iteration {number} is kept, and --resume goes on from it"
        raise OSError(error.errno or errno.EIO, reason, str(run.folder)) from error


def _train(
    run: Run, resume: bool, console: Console | None, began: float, progress: Progress, minutes: float
) -> dict[str, Any] | None:
    """A run, with its signals; see ``train``."""
    config, folder = run.config, run.folder
    if console and run.leads:
        parts = ", ".join(f"{what} {size / 1e6:,.0f} MB" for what, size in run.needed().items())
        console.print(f"memory of each device, about: {parts}", highlight=False)
    state = run.resume() if resume else run.start()
    if console and run.leads and run.note:
        console.print(run.note, markup=False, highlight=False, soft_wrap=True)
    log = Log(folder, config, console, int(state.iteration), progress) if run.leads else None
    stopped: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped or progress.is_compiling:
            interrupts.interrupt(number, frame)
            return
        stopped.append(number)
        if console:
            console.print("ending after this iteration; once more to end at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        state = run.train(state, log, lambda: bool(stopped), began, minutes)
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
        console.print(f"{int(state.iteration):,} iterations, {log.games:,} games, {log.seconds / 60:.1f} min; report: {path}")
    return {
        "iterations": int(state.iteration),
        "games": log.games,
        "seconds": round(log.seconds, 1),
        "report": str(path),
        "interrupted": bool(stopped),
    }


def join(coordinator: str | None, count: int | None, number: int | None) -> None:
    """Join the other processes of a run; without arguments as the cluster says.

    Raises ``ValueError`` for arguments that make no sense, or where there is no cluster.
    """
    if coordinator is not None:
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"the coordinator must be host:port, with a port from 1 to 65535, not {coordinator!r}")
    if count is not None and number is not None and not 0 <= number < count <= 1 << 16:
        raise ValueError(f"the number of a process must be from 0 to less than their number, not {number} of {count}")
    # Or JAX's own watch would abort the remaining processes before they can say what has happened.
    jax.config.update("jax_enable_recoverability", True)
    try:
        jax.distributed.initialize(coordinator, count, number, heartbeat_timeout_seconds=30)
    except (ValueError, RuntimeError, OSError) as error:
        cluster = "; give --coordinator, --num-processes and --process-id" if coordinator is None else ""
        raise ValueError(f"cannot join the other processes: {error}{cluster}") from None


def configured(preset: str | None, given: dict[str, str], folder: Path, resume: bool, trust: bool = False) -> TrainConfig:
    """The settings of a preset, or of the run in a folder that is to be resumed, with those that are given as text.

    With ``resume``, a preset that is a file of Python only registers its architectures and games, and changes no settings.
    ``trust`` allows the settings of the run to name code, see ``read_config``; ``given`` may name code.

    Raises ``ValueError`` for wrong or untrusted settings, ``CheckpointError`` if the folder has no run.
    """
    if not resume:
        return config.changed(presets.load(preset) if preset else TrainConfig(), given)
    if preset and not preset.endswith(".py"):
        raise ValueError(
            "--resume goes on with the settings of the run; beside it, --preset can only be a file of Python, for the"
            f" architectures and games that it registers, not {preset!r}"
        )
    if preset:
        presets.load(preset)
    path, content = _read_config(folder)
    return config.changed(_parsed(path, content, given, trust), given)


def read_config(folder: Path, trust: bool = False, known: TrainConfig | None = None) -> TrainConfig:
    """The settings of the run in a folder.

    Settings that name code (``experiments.config.code_in_settings``) are refused, unless they are the same in ``known``, or
    ``trust`` says that the file may name code.

    Raises ``CheckpointError`` for a missing run or a run of another version, ``UntrustedError`` for settings that name code.
    """
    path, content = _read_config(folder)
    values = {} if known is None else {name: value for name, _, _, value in settings.leaves(known)}
    return _parsed(path, content, values, trust)


def _read_config(folder: Path) -> tuple[Path, Any]:
    """The file of a run's settings, and its content. Raises ``CheckpointError``."""
    path = folder / "config.json"
    try:
        return path, read_json(path)
    except FileNotFoundError:
        raise CheckpointError(f"{folder} has no run: there is no {path.name} in it") from None
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _parsed(path: Path, content: Any, known: Mapping[str, Any], trust: bool) -> TrainConfig:
    """The settings in the JSON of a file. Those with the same value in ``known``, by dotted name, may name code.

    A setting that names code and has another value in ``known`` gets its default.
    """
    with trusting(trust):
        for name, text in list(config.code_in_settings(content)):
            value = known.get(name)
            if value is None:
                check(path, name, text)
            elif text != value and not (isinstance(value, tuple) and text in value):
                _delete(content, name)
        try:
            return settings.from_json(TrainConfig, content)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from None


def _delete(content: Any, name: str) -> None:
    """Delete the value of a dotted name in nested JSON, if it is still there."""
    *parents, last = name.split(".")
    for parent in parents:
        content = content.get(parent) if isinstance(content, dict) else None
    if isinstance(content, dict):
        content.pop(last, None)
