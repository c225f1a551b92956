"""Checkpoints: the whole state of a run, in a folder that is there whole or not at all (Orbax)."""

import contextlib
import errno
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from experiments import settings
from experiments.config import TrainConfig
from tilewe_jax.files import read_json

FORMAT = 6
"""Raised whenever the state of a run or its settings change their form."""

_TEMPORARY = ".orbax-checkpoint-tmp"
"""Part of the name of the folder that Orbax renames once a checkpoint is finished."""


_OS_ERROR = re.compile(r"\[os_error_code='(\d+)'\]")
"""What TensorStore writes of an error of the operating system."""


class CheckpointError(Exception):
    """A checkpoint that does not exist, is damaged, or belongs to another run."""


def save(folder: Path, number: int, state: Any, config: TrainConfig, game_version: int) -> None:
    """Write a checkpoint, and then delete the oldest of this run beyond ``config.checkpoint.num_kept``.

    All processes of a run call this together. Nothing is deleted but folders that are checkpoints of this run. Raises
    ``OSError``, with the checkpoint as its file, where it cannot be written; then those before it are still there.
    """
    about = {
        "format": FORMAT,
        "config": settings.to_json(config),
        "game_version": game_version,
        "number": number,
        "slim": config.checkpoint.slim,
    }
    path = folder.absolute() / f"{number:06d}"
    if path.exists() and _about(path) is not None:
        return
    with _quiet_threads(), ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        try:
            checkpointer.save(
                path, args=ocp.args.Composite(state=ocp.args.StandardSave(state), about=ocp.args.JsonSave(about)), force=False
            )
        except OSError as error:  # Orbax's own files
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
        except jax.errors.JaxRuntimeError:  # other processes are gone
            raise
        except ValueError as error:  # TensorStore's error for what could not be written
            code = int(match[1]) if (match := _OS_ERROR.search(str(error))) else errno.EIO
            raise OSError(code, os.strerror(code) if match else str(error), str(path)) from error
    if jax.process_index() == 0:
        for old in numbers(folder)[: -config.checkpoint.num_kept]:
            shutil.rmtree(folder / f"{old:06d}")


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """Keep the threads of Orbax and TensorStore from printing tracebacks of an error that is raised anyway.

    Where writing fails, threads that are left over go on to fail, as there is no event loop any more. TensorStore reports these
    errors as unraisable (``PyErr_WriteUnraisable``). After a failure the hook stays, as these threads do.
    """
    logger, before = logging.getLogger("absl"), sys.unraisablehook
    level = logger.level

    def hook(unraisable: Any) -> None:
        error = unraisable.exc_value
        if not isinstance(error, RuntimeError) or str(error) != "Event loop is closed":
            before(unraisable)

    logger.setLevel(logging.CRITICAL)
    sys.unraisablehook = hook
    try:
        yield
    except BaseException:
        logger.setLevel(level)
        # What the other arrays of the checkpoint ran into, said when their tasks are deleted.
        logging.getLogger("asyncio").addFilter(lambda record: "exception was never retrieved" not in record.getMessage())
        raise
    logger.setLevel(level)
    sys.unraisablehook = before


def numbers(folder: Path) -> list[int]:
    """Numbers of the checkpoints in a folder, ascending; unfinished ones do not count."""
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal() and _about(path) is not None)


def has_no_other(folder: Path) -> bool:
    """Whether a folder of checkpoints holds nothing but unfinished ones, or does not exist."""
    return not folder.is_dir() or all(_TEMPORARY in path.name for path in folder.iterdir())


def delete_unfinished(folder: Path) -> None:
    """Delete what is left of checkpoints whose writing was cut off."""
    for path in folder.glob(f"*{_TEMPORARY}*") if folder.is_dir() else ():
        shutil.rmtree(path)


def is_slim(folder: Path, number: int) -> bool:
    """Whether a checkpoint was written by a run whose checkpoints leave out the replay buffer and the games under way."""
    about = _about(folder / f"{number:06d}") or {}
    return bool(about.get("slim"))


def restore(folder: Path, number: int, like: Any, config: TrainConfig, game_version: int) -> Any:
    """The state in a checkpoint.

    Args:
        folder: folder of the checkpoints.
        number: number of the checkpoint.
        like: gives shapes and shardings, which may be those of other devices; of what a slim checkpoint holds for such a one.
        config: settings of the run that is resumed.
        game_version: version of the game.

    Raises ``CheckpointError`` where the checkpoint is damaged, or was written in another format, with other settings or for
    another version of the game.
    """
    path = folder.absolute() / f"{number:06d}"
    about = _about(path)
    if about is None:
        raise CheckpointError(f"{path} is no checkpoint")
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {about.get('format')}, and this version reads {FORMAT}; its weights can still begin a new run"
            " (network.init)"
        )
    try:
        # The other game is not made: its id may name code.
        game = config.game.id
        if (other := about["config"]["game"]["id"]) != game:
            raise CheckpointError(f"{path} was made with other settings: game.id was {other!r} and is {game!r}")
        before = settings.from_json(TrainConfig, about["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} was made with settings of another version: {error}") from None
    if different := settings.differences(config, before, resuming=True):
        raise CheckpointError(f"{path} was made with other settings: {', '.join(different)}")
    if about.get("game_version") != game_version:
        version = about.get("game_version")
        raise CheckpointError(f"{path} is of version {version} of {config.game.id}, which now is {game_version}")
    try:
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            return checkpointer.restore(path, args=ocp.args.Composite(state=ocp.args.StandardRestore(like)))["state"]
    except (OSError, ValueError, KeyError, TypeError) as error:  # a missing file, TensorStore's errors, other shapes
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} is damaged: {reason}") from error


def _about(path: Path) -> dict[str, Any] | None:
    """What a checkpoint says of itself; ``None`` where it is none, or not a finished one."""
    try:
        about = read_json(path / "about" / "metadata")
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) and "config" in about else None
