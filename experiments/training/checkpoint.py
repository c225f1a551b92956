"""Checkpoints: everything that a run is, in a folder that is there whole or not at all (Orbax)."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from experiments.config import Config, from_json

_FORMAT = 1


class CheckpointError(Exception):
    """A checkpoint that is not there, is damaged, or belongs to something else."""


def save(folder: Path, number: int, state: Any, config: Config, game_version: int, keep: int) -> None:
    """Write a checkpoint, and then delete the oldest of this run beyond ``keep``.

    All processes of a run call this together. Nothing is deleted but folders that are checkpoints of this run. Raises
    ``OSError`` where it cannot be written; then those before are still there.
    """
    about = {"format": _FORMAT, "config": config.json(), "game_version": game_version, "number": number}
    path = folder.absolute() / f"{number:06d}"
    if path.exists() and _about(path) is not None:
        return
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        try:
            checkpointer.save(
                path, args=ocp.args.Composite(state=ocp.args.StandardSave(state), about=ocp.args.JsonSave(about)), force=False
            )
        except (OSError, jax.errors.JaxRuntimeError):  # the latter where other processes are gone
            raise
        except Exception as error:
            raise OSError(f"cannot write the checkpoint {path}: {error}") from error
    if jax.process_index() == 0:
        for old in numbers(folder)[:-keep]:
            shutil.rmtree(folder / f"{old:06d}")


def numbers(folder: Path) -> list[int]:
    """The checkpoints in a folder, by their numbers, ascending; unfinished ones do not count."""
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal() and _about(path) is not None)


def restore(folder: Path, number: int, like: Any, config: Config, game_version: int) -> Any:
    """The state in a checkpoint; ``like`` gives shapes and shardings, which may be those of other devices.

    Raises ``CheckpointError`` where it is damaged, or was made with other settings or another version of the game.
    """
    path = folder.absolute() / f"{number:06d}"
    about = _about(path)
    if about is None:
        raise CheckpointError(f"{path} is no checkpoint")
    if about.get("format") != _FORMAT:
        raise CheckpointError(f"{path} has format {about.get('format')}, not {_FORMAT}")
    try:
        made = from_json(about["config"])
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} was made with settings of another version: {error}") from None
    if different := config.differences(made):
        lists = ", ".join(f"{name} was {getattr(made, name)!r} and is {getattr(config, name)!r}" for name in different)
        raise CheckpointError(f"{path} was made with other settings: {lists}")
    if about["game_version"] != game_version:
        raise CheckpointError(f"{path} is of version {about['game_version']} of {config.game}, which now is {game_version}")
    try:
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            return checkpointer.restore(path, args=ocp.args.Composite(state=ocp.args.StandardRestore(like)))["state"]
    except Exception as error:  # damage shows in many ways
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} is damaged: {reason}") from error


def _about(path: Path) -> dict[str, Any] | None:
    """What a checkpoint says of itself; ``None`` where it is none, or not a finished one."""
    try:
        found = json.loads((path / "about" / "metadata").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "config" in found else None
