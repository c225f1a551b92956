"""Training runs with lock, signals and report, as ``tilewe-jax train`` starts them."""

import contextlib
import errno
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import filelock
import jax
from rich.console import Console

from tilewe_jax import settings
from tilewe_jax.training import config, processes, report
from tilewe_jax.training.checkpoint import CheckpointError
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.loop import LOCK, Run, is_free
from tilewe_jax.training.metrics import Log
from tilewe_jax.training.program import Program, memory_needed
from tilewe_jax.utils import interrupts
from tilewe_jax.utils.extras import MissingExtraError
from tilewe_jax.utils.files import check_regular
from tilewe_jax.utils.progress import Progress
from tilewe_jax.utils.trust import check, trusting


def train(
    config: TrainConfig,
    folder: Path,
    resume: bool = False,
    devices: int | None = None,
    console: Console | None = None,
    minutes: float = math.inf,
    quiet: bool = False,
    from_checkpoint: int | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Train in a folder, and write the report.

    Args:
        config: settings of the run.
        folder: folder of the run.
        resume: whether to continue from the newest checkpoint in the folder.
        devices: number of devices of each process, by default all.
        console: where progress is shown, by default standard error.
        minutes: limit of this call, in addition to ``config.max_minutes`` of the whole run.
        quiet: hides progress.
        from_checkpoint: number of the checkpoint to resume from instead of the newest one.
        trust: whether weights named in the settings may name code, see ``tilewe_jax.utils.trust``.

    Returns figures of the run as JSON; only ``iterations`` and ``interrupted`` in processes other than the leading one.

    Raises ``ValueError`` for wrong settings, or settings that differ between processes, ``MemoryError`` if the run does not fit
    into memory, ``CheckpointError`` if there is nothing to resume, ``OSError`` if the folder is in use or cannot be written,
    and ``LostProcessError`` if another process of the run is lost.
    """
    began, folder = time.monotonic(), Path(folder)
    # The progress bar of rich for Jupyter needs another package.
    notes = console or Console(stderr=True, highlight=False, force_jupyter=False)
    shown = None if quiet else notes
    with trusting(trust), processes.reporting(), processes.naming_lost_processes():
        if processes.are_several():
            processes.check_equal(_compared(config, folder, resume, devices, from_checkpoint))
            processes.check_devices()
        run = Run(config, folder, Program(config, devices))
        total = None if config.iterations == settings.UNLIMITED else config.iterations
        with (
            locked(folder),
            naming(folder, run.newest_checkpoint),
            Progress(total=total, unit="iterations", console=shown if run.leads else None) as progress,
        ):
            return _train(run, resume, from_checkpoint, shown, notes, began, progress, minutes)


def _compared(
    config: TrainConfig, folder: Path, resume: bool, devices: int | None, from_checkpoint: int | None
) -> dict[str, Any]:
    """Return the settings, options and versions that must agree in all processes of a run, by name."""
    return {
        **{name: settings.plain(value) for name, _, _, value in settings.leaves(config)},
        "game version": config.game.make().version,
        "--out": str(folder.absolute()),
        "--resume": resume,
        "--devices": devices,
        "--checkpoint": from_checkpoint,
        "tilewe-jax": version("tilewe-jax"),
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
        "JAX_ENABLE_X64": jax.dtypes.canonicalize_dtype(float).itemsize == 8,
    }


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other runs. The processes of one run share the lock.

    Raises ``OSError`` in all processes if another run has locked it.
    """
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]

    def acquire() -> bool:
        if not is_free(folder) and not (folder / config.CONFIG).exists():
            return False  # a folder with other files, which is refused later, gets no lock file
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            check_regular(folder)
            try:
                lock.acquire()
            except filelock.Timeout:
                reason = "another process trains in this folder; wait until it ends, or choose another folder"
                raise OSError(errno.EBUSY, reason, str(folder)) from None
            except NotImplementedError:  # a file system without locks
                return False
        return True

    processes.led(acquire)
    try:
        yield
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                (folder / LOCK).unlink()
            lock.release()
            with contextlib.suppress(OSError):  # a run that was refused leaves no empty folder
                for path in missing:
                    path.rmdir()


@contextlib.contextmanager
def naming(folder: Path, newest_checkpoint: Callable[[], int | None] = lambda: None) -> Iterator[None]:
    """Give an ``OSError`` the folder of the run as its file, and name the checkpoint that can be resumed."""
    try:
        yield
    except OSError as error:
        reason, number = error.strerror or str(error), newest_checkpoint()
        if isinstance(error.filename, str) and Path(error.filename) != folder:
            reason += f" ({os.path.relpath(error.filename, folder)})"
        if number is not None:
            reason += f"; the checkpoint of iteration {number} is kept: continue with --resume"
        raise OSError(error.errno or errno.EIO, reason, str(folder)) from error


def _train(
    run: Run,
    resume: bool,
    from_checkpoint: int | None,
    console: Console | None,
    notes: Console,
    began: float,
    progress: Progress,
    minutes: float,
) -> dict[str, Any]:
    """Train with the signals handled, see ``train``. Notes on lost rows are printed even if ``console`` is ``None``."""
    folder, are_several = run.folder, processes.are_several()
    stopped: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        # Several processes end together after an iteration, because none of them knows whether the others still compile.
        if stopped or (progress.is_compiling and not are_several):
            interrupts.interrupt(number, frame)
            return
        stopped.append(number)
        if console:
            with contextlib.suppress(OSError):  # after SIGHUP the terminal is gone
                console.print("ending after this iteration; repeat to end immediately")

    with interrupts.handled_by(stop):
        if console and run.leads:
            needed = memory_needed(run.config, run.game, run.program.mesh.devices.size)
            parts = ", ".join(f"{purpose} {size / 1e6:,.0f} MB" for purpose, size in needed.items())
            console.print(f"estimated memory per device: {parts}", highlight=False)
        state = run.resume(from_checkpoint) if resume else run.start()
        log = Log(folder, run.config, console, int(state.iteration), progress) if run.leads else None
        try:
            for note in (*run.notes, *(log.notes if log else ())) if run.leads else ():
                notes.print(note, markup=False, highlight=False, soft_wrap=True)
            state = run.train(state, log, lambda: bool(stopped), began, minutes, progress)
        finally:
            if log:
                log.close()
        figures = {"iterations": int(state.iteration), "interrupted": run.is_stopped or bool(stopped)}
        if not log:
            return figures
        try:
            path = str(report.write(folder))
        except MissingExtraError as error:
            path = f"none, {error}"
    if console:
        console.print(f"{int(state.iteration):,} iterations, {log.games:,} games, {log.seconds / 60:.1f} min; report: {path}")
    figures["interrupted"] |= bool(stopped)
    return {**figures, "games": log.games, "seconds": round(log.seconds, 1), "report": path}


def read_config(folder: Path, trust: bool = False, known: Mapping[str, Any] | None = None) -> TrainConfig:
    """Read the settings of the run in a folder.

    Args:
        folder: folder of the run.
        trust: whether settings may name code, see ``training.config.code_in_settings``. Other settings that name code are
            accepted only if they are the same in ``known``.
        known: settings by dotted name. A setting that names code and differs from its value here gets its default.

    Raises ``CheckpointError`` for a missing run or a run of another version, ``UntrustedError`` for settings that name code.
    """
    path = folder / config.CONFIG
    try:
        content = config.read_settings(folder)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    with trusting(trust):
        for name, text in list(config.code_in_settings(content)):
            value = (known or {}).get(name)
            if value is None:
                check(path, name, text)
            elif text != value and not (isinstance(value, tuple) and text in value):
                _delete(content, name)
        try:
            return settings.from_json(TrainConfig, content)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from None


def _delete(content: Any, name: str) -> None:
    """Delete the value of a dotted name in nested JSON if it exists."""
    *parents, last = name.split(".")
    for parent in parents:
        content = content.get(parent) if isinstance(content, dict) else None
    if isinstance(content, dict):
        content.pop(last, None)
