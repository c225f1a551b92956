"""Reads untrusted files and JSON with limits; writes files atomically."""

import errno
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

JSON_LIMIT = 1 << 24
"""Maximum size of a JSON file, in bytes."""
JSON_DEPTH = 64
"""Maximum depth of lists and objects in JSON, which limits the recursion of later code."""

if sys.platform == "win32":
    _READ = os.O_RDONLY | os.O_BINARY
else:
    _READ = os.O_RDONLY | os.O_NONBLOCK  # opening a pipe must not wait for its writer

_DESCRIPTOR = re.compile(r"/dev/(?:fd/(?P<number>\d+)|(?P<name>stdout|stderr))|/proc/self/fd/(?P<process>\d+)")


@contextmanager
def open_input(path: str | Path, limit: int) -> Iterator[BinaryIO]:
    """Open an untrusted file for binary reading.

    Args:
      path: the file. Symbolic links are followed; pipes and devices are rejected without waiting.
      limit: maximum size in bytes.

    Raises ``OSError`` if the file cannot be read, is not a regular file, or is too large.
    """
    descriptor = os.open(path, _READ)
    status = os.fstat(descriptor)
    error: OSError | None = None
    if stat.S_ISDIR(status.st_mode):
        error = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    elif not stat.S_ISREG(status.st_mode):
        error = OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", str(path))
    elif status.st_size > limit:
        error = OSError(errno.EFBIG, f"it has {status.st_size:,} bytes; at most {limit:,} are read", str(path))
    if error:
        os.close(descriptor)
        raise error
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_input(path: str | Path, limit: int) -> bytes:
    """Read a file, with the arguments and errors of ``open_input``."""
    with open_input(path, limit) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # one allocation


def check_regular(folder: str | Path) -> None:
    """Raise ``OSError`` for a pipe or a device in a folder, because opening a pipe may wait forever."""
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(root, name)
            with suppress(FileNotFoundError):  # a broken link or a deleted file
                mode = os.stat(path).st_mode
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                    raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", path)


def read_json(path: str | Path, limit: int = JSON_LIMIT) -> Any:
    """Read a JSON file. Raises ``OSError`` as in ``open_input``, and ``ValueError`` as in ``parse_json``."""
    return parse_json(read_input(path, limit))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises ``ValueError`` for invalid JSON, nesting deeper than ``JSON_DEPTH`` and integers of thousands of digits.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    brackets = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if brackets > JSON_DEPTH and _is_deep(value):
        raise ValueError("it is nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects are nested deeper than ``JSON_DEPTH``."""
    level = [value]
    for _ in range(JSON_DEPTH + 1):
        level = [
            child
            for item in level
            if isinstance(item, (list, dict))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def check_writable(path: str | Path) -> None:
    """Raise ``OSError``, with the reason as ``strerror``, if ``replacing`` cannot write a file."""
    target, status = _target(path)
    if status is None or stat.S_ISREG(status.st_mode):
        folder = target.parent
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", str(path))
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, f"no permission to write in the folder {folder}", str(path))
    elif stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if status is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission", str(path))


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing, and replace it atomically at the end of the ``with`` block, unless it raises an error.

    Symbolic links are followed and stay. An existing file keeps its mode. Pipes, devices and descriptors like
    ``/dev/stdout`` are written directly.

    Args:
      path: the file to create or replace.
      mode: mode for ``open``; text is UTF-8.

    Raises ``OSError`` if the file cannot be written.
    """
    check_writable(path)
    encoding = None if "b" in mode else "utf-8"
    target, status = _target(path)
    descriptor = _descriptor(path)
    if descriptor is not None or (status is not None and not stat.S_ISREG(status.st_mode)):
        # Opening ``/dev/stdout`` again would overwrite a redirected standard output from its start.
        with naming(path), open(path if descriptor is None else os.dup(descriptor), mode, encoding=encoding) as file:
            yield file
        return
    temporary = target.with_name(f".writing-{secrets.token_hex(8)}")
    # The temporary file must not be readable by more users than the replaced file.
    permissions = 0o666 if status is None else 0o600
    try:
        with (
            naming(path),
            open(
                temporary, mode, encoding=encoding, opener=lambda name, flags: os.open(name, flags | os.O_EXCL, permissions)
            ) as file,
        ):
            yield file
        if status is not None:
            if sys.platform != "win32":
                with suppress(PermissionError):  # only root may give files away
                    os.chown(temporary, status.st_uid, status.st_gid)
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Context manager that adds the name of a file to an ``OSError``, for example after a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = str(path)
        raise


def _target(path: str | Path) -> tuple[Path, os.stat_result | None]:
    """Resolve symbolic links; returns the file and its status, ``None`` for a new file."""
    status = None
    with suppress(FileNotFoundError):
        status = os.stat(path)
    return Path(os.path.realpath(path)), status


def _descriptor(path: str | Path) -> int | None:
    """Return the file descriptor of a path like ``/dev/stdout``; ``None`` for other paths."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if not match:
        return None
    return {"stdout": 1, "stderr": 2}.get(match["name"] or "") or int(match["number"] or match["process"])
