"""Atomic replacement of files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file that replaces ``path`` atomically when the ``with`` block ends, and is deleted if it raises.

    Args:
      path: the file to create or replace; unchanged if anything fails.
      mode: mode for ``open``; text is UTF-8.

    Raises ``OSError`` where the file cannot be written.
    """
    path = Path(path)
    encoding = None if "b" in mode else "utf-8"
    with tempfile.NamedTemporaryFile(mode, dir=path.parent, prefix=path.name, delete=False, encoding=encoding) as file:
        try:
            yield file
            file.close()
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
