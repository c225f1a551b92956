"""Checkpoints: save and restore the state of a run atomically (Orbax), with a checksum of every file.

``checkpoints/000020`` is a finished checkpoint. Its file ``SHA256SUMS``, in the format of ``sha256sum``, lists all its other
files, so that damage to any of them is detected before anything is restored.
"""

import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from tilewe_jax import settings
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.utils.files import naming, open_input, read_input, read_json, replacing

FORMAT = 8
"""Version of the format of the state and the settings."""
CHECKSUMS = "SHA256SUMS"
"""File with the checksums of all other files of a checkpoint."""

_UNFINISHED = ".unfinished"
"""Suffix of the name of a checkpoint until its checksums are written."""
_TEMPORARY = ".orbax-checkpoint-tmp"
"""Part of the name of a folder that Orbax is writing."""
_ASIDE = ".aside"
"""Suffix of the name of a checkpoint that is later than the one from which the run was resumed."""
_NUMBER = re.compile(r"[0-9]{6,}")
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_BLOCK = 1 << 20
"""Size of the blocks in which a file is read for its checksum, in bytes."""

_OS_ERROR = re.compile(r"\[os_error_code='(\d+)'\]")
"""Code of the operating system in an error message of TensorStore."""


class CheckpointError(Exception):
    """Raised for a checkpoint that does not exist, is damaged, or belongs to another run."""


def save(folder: Path, number: int, state: Any, config: TrainConfig, game_version: int) -> None:
    """Write a checkpoint, and delete the oldest ones of this run beyond ``config.checkpoint.num_kept``.

    All processes of a run call this together. Unfinished checkpoints are deleted first. Raises ``OSError``, with the checkpoint
    as its file, if it cannot be written; earlier checkpoints are kept.
    """
    about = {
        "format": FORMAT,
        "config": settings.to_json(config),
        "game_version": game_version,
        "number": number,
        "slim": config.checkpoint.slim,
    }
    path = folder.absolute() / f"{number:06d}"
    unfinished, leads = path.with_name(path.name + _UNFINISHED), jax.process_index() == 0
    if leads:
        delete_unfinished(folder)
    with _quiet_threads(), ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        try:
            checkpointer.save(
                unfinished,
                args=ocp.args.Composite(state=ocp.args.StandardSave(state), about=ocp.args.JsonSave(about)),
                force=False,
            )
        except OSError as error:  # from Orbax
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
        except jax.errors.JaxRuntimeError:  # another process has ended
            raise
        except ValueError as error:  # from TensorStore
            code = int(match[1]) if (match := _OS_ERROR.search(str(error))) else errno.EIO
            raise OSError(code, os.strerror(code) if match else str(error), str(path)) from error
    if leads:
        _write_checksums(unfinished)
        with naming(path):
            os.rename(unfinished, path)
        for old in numbers(folder)[: -config.checkpoint.num_kept]:
            shutil.rmtree(folder / f"{old:06d}")


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """Suppress tracebacks that threads of Orbax and TensorStore print in addition to the exception raised.

    After a failed write the remaining threads fail too, because the event loop is closed. TensorStore reports these errors as
    unraisable (``PyErr_WriteUnraisable``). After a failure the hook remains as long as these threads may run.
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
        # asyncio logs the errors of the other arrays when their tasks are deleted.
        logging.getLogger("asyncio").addFilter(lambda record: "exception was never retrieved" not in record.getMessage())
        raise
    logger.setLevel(level)
    sys.unraisablehook = before


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the finished checkpoints in a folder, ascending. They may be damaged, see ``verify``."""
    return [number for number in _named(folder) if _is_checkpoint(folder / f"{number:06d}")]


def newest(folder: Path) -> int | None:
    """Return the number of the newest finished checkpoint, which may be damaged, or ``None``."""
    return max(_named(folder), default=None)


def hash_of_sums(folder: Path, number: int) -> str:
    """Return a hash of the checksums of a checkpoint; empty if this host does not see them."""
    path = folder / f"{number:06d}" / CHECKSUMS
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


def newest_whole(folder: Path, before: int) -> int | None:
    """Return the number of the newest undamaged checkpoint before a number, or ``None``."""
    for number in reversed(numbers(folder)):
        if number < before:
            with contextlib.suppress(CheckpointError):
                verify(folder, number)
                return number
    return None


def _named(folder: Path) -> list[int]:
    """Return the numbers that are names of entries in a folder, ascending."""
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if _NUMBER.fullmatch(path.name))


def _is_checkpoint(path: Path) -> bool:
    return (path / CHECKSUMS).exists() or _about(path) is not None


def has_no_other(folder: Path) -> bool:
    """Return whether a folder of checkpoints has only unfinished ones, or does not exist."""
    return not folder.is_dir() or all(map(_is_unfinished, folder.iterdir()))


def _is_unfinished(path: Path) -> bool:
    return _TEMPORARY in path.name or path.name.endswith(_UNFINISHED)


def delete_unfinished(folder: Path) -> None:
    """Delete unfinished checkpoints."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if _is_unfinished(path):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def set_aside(folder: Path, after: int) -> list[Path]:
    """Rename the checkpoints later than a number, so that a resumed run can write new ones. Returns the new paths."""
    renamed = []
    for number in _named(folder):
        if number > after:
            path = folder / f"{number:06d}"
            target, copies = path.with_name(path.name + _ASIDE), 1
            while os.path.lexists(target):
                copies += 1
                target = path.with_name(f"{path.name}{_ASIDE}-{copies}")
            with naming(path):
                os.rename(path, target)
            renamed.append(target)
    return renamed


def verify(folder: Path, number: int) -> None:
    """Compare every file of a checkpoint with its checksum.

    Raises ``CheckpointError`` if the checkpoint is damaged, or if its folder contains something else.
    """
    path = folder / f"{number:06d}"
    try:
        text = read_input(path / CHECKSUMS, _BLOCK << 6).decode()
    except FileNotFoundError:
        _check_format(path, _about(path) or {"format": FORMAT})
        raise CheckpointError(f"{path} is damaged: {CHECKSUMS} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is damaged: {CHECKSUMS}: {_reason(error)}") from None
    lines = [_LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    listed = {line[2]: line[1] for line in lines if line}
    if len(listed) != len(lines):
        raise CheckpointError(f"{path} is damaged: {CHECKSUMS} is not a list of checksums")
    try:
        files = _files(path)
        if different := sorted(files.keys() ^ listed.keys()):
            name = different[0]
            problem = "is missing" if name in listed else f"is not listed in {CHECKSUMS}"
            raise CheckpointError(f"{path} is damaged: {name} {problem}")
        for name, checksum in _checksums(files).items():
            if checksum != listed[name]:
                raise CheckpointError(f"{path} is damaged: {name} differs from its checksum")
    except OSError as error:
        name = os.path.relpath(error.filename, path) if error.filename else path.name
        raise CheckpointError(f"{path} is damaged: {name}: {_reason(error)}") from None


def _check_format(path: Path, about: dict[str, Any]) -> None:
    if about.get("format") != FORMAT:
        wanted = f"has format {about.get('format')}, and this version reads {FORMAT}"
        raise CheckpointError(f"{path} {wanted}; a new run can start with its weights (network.init)")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _write_checksums(path: Path) -> None:
    rows = (f"{checksum}  {name}\n" for name, checksum in _checksums(_files(path)).items())
    with replacing(path / CHECKSUMS) as file:
        file.writelines(rows)


def _files(path: Path) -> dict[str, Path]:
    """Return all files of a checkpoint except its checksums, by name. Raises ``OSError`` for pipes and devices."""
    files = {}
    for root, _, names in os.walk(path, onerror=_raise):
        for name in names:
            file = Path(root, name)
            relative = file.relative_to(path).as_posix()
            if not stat.S_ISREG(file.stat().st_mode):
                raise OSError(errno.EINVAL, "not a regular file", str(file))
            # Hidden files are not from Orbax, but from file systems and file managers.
            if relative != CHECKSUMS and not name.startswith("."):
                files[relative] = file
    return dict(sorted(files.items()))


def _raise(error: OSError) -> None:
    raise error


def _checksums(files: dict[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of files, computed in parallel, because a replay buffer may have gigabytes."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return dict(zip(files, pool.map(_checksum, files.values()), strict=True))


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with naming(path), open_input(path, sys.maxsize) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_slim(folder: Path, number: int) -> bool:
    """Return whether a checkpoint is slim: without replay buffer and games, see ``CheckpointConfig.slim``."""
    about = _about(folder / f"{number:06d}") or {}
    return bool(about.get("slim"))


def restore(folder: Path, number: int, like: Any, config: TrainConfig, game_version: int) -> Any:
    """Return the state in a checkpoint, which ``verify`` has accepted.

    Args:
        folder: folder of the checkpoints.
        number: number of the checkpoint.
        like: pytree with the shapes and shardings to restore to. For a slim checkpoint, only the parts that it contains.
        config: settings of the run that is resumed.
        game_version: version of the game.

    Raises ``CheckpointError`` if the checkpoint has another format, other settings or another version of the game, or cannot be
    restored.
    """
    path = folder.absolute() / f"{number:06d}"
    about = _about(path)
    if about is None:
        raise CheckpointError(f"{path} is not a checkpoint")
    _check_format(path, about)
    try:
        # Compare ids before the game of the checkpoint is made, because an id may name code.
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
        raise CheckpointError(f"{path} is for version {version} of {config.game.id}, not for version {game_version}")
    try:
        with _quiet_threads(), ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            return checkpointer.restore(path, args=ocp.args.Composite(state=ocp.args.StandardRestore(like)))["state"]
    except (OSError, ValueError, KeyError, TypeError) as error:  # a missing file, TensorStore's errors, other shapes
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{path} is damaged: {reason}") from error


def _about(path: Path) -> dict[str, Any] | None:
    """Return the metadata of a checkpoint, or ``None`` if the path is not a finished checkpoint."""
    try:
        about = read_json(path / "about" / "metadata")
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) and "config" in about else None
