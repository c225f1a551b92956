"""Persistent compilation cache of the command line, in a folder of the user.

It consists of the cache of JAX and of the programs of ``utils.programs`` in a folder inside. The key of an entry contains the
program, the versions of JAX and XLA, and the machine type with its CPU features, so that several machines may share a home
folder. ``import tilewe_jax`` does not enable the cache.
"""

import contextlib
import os
import re
import time
import warnings
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 30
"""Size beyond which JAX deletes the least recently used entries."""
_SETTINGS = {
    "JAX_COMPILATION_CACHE_MAX_SIZE": str(MAX_BYTES),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
}
_PROGRAMS = "TILEWE_JAX_PROGRAMS"
"""``utils.programs.FOLDER``, whose module imports JAX."""
_MESSAGE = "Error (?:reading|writing) persistent compilation cache"
_SECONDS_TO_WRITE = 60.0
"""Age after which an entry without a time of access is the rest of a killed process."""


def enable() -> None:
    """Enable the cache in ``folder()`` for this process and its children, before JAX is imported.

    Does nothing if ``JAX_ENABLE_COMPILATION_CACHE`` is false. Otherwise, hides false errors of XLA. If
    ``JAX_COMPILATION_CACHE_DIR`` is set, the cache of JAX is configured already, and only the programs of
    ``utils.programs`` are added to this folder. If ``folder()`` is read-only, nothing is kept.
    """
    if _is_false(os.environ.get("JAX_ENABLE_COMPILATION_CACHE", "true")):
        return
    # XLA logs an error whenever it loads a program for CPUs: it takes the compiler option "prefer-no-gather" for a missing
    # feature of the CPU. Real features are part of the key.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if given := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        if "://" not in given:  # a folder, not a bucket
            os.environ.setdefault(_PROGRAMS, str(Path(given) / "programs"))
        return
    try:
        path = folder()
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter without a home folder
        return
    if not os.access(path, os.W_OK | os.X_OK):
        return
    _delete_unfinished(path)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(path)
    os.environ.setdefault(_PROGRAMS, str(path / "programs"))
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    _replace_damaged_entries(path)


def disable() -> None:
    """Disable the cache for this process and its children, before JAX is imported."""
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    os.environ[_PROGRAMS] = ""


def folder() -> Path:
    """Return the folder of the cache: ``tilewe_jax`` in ``XDG_CACHE_HOME``, by default ``~/.cache``."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "tilewe_jax"


def _is_false(text: str) -> bool:
    return text.lower() in ("false", "0", "no", "n", "off", "f")


def _delete_unfinished(path: Path) -> None:
    """Delete entries without a time of access, which break JAX's deletion of old entries."""
    clock = time.time()
    with contextlib.suppress(OSError):
        for entry in path.glob("*-cache"):
            is_old = clock - entry.stat().st_mtime > _SECONDS_TO_WRITE
            if is_old and not entry.with_name(entry.name.removesuffix("-cache") + "-atime").exists():
                entry.unlink(missing_ok=True)


def _replace_damaged_entries(path: Path) -> None:
    """Delete damaged entries silently when JAX warns about them; JAX then compiles and writes them again."""
    show = warnings.showwarning

    def showwarning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if not re.match(_MESSAGE, str(message)):
            show(message, *args, **kwargs)
        elif module := re.match(_MESSAGE + r" entry for '([\w.<>-]+)'", str(message)):
            with contextlib.suppress(OSError):
                for entry in path.glob(f"{module[1]}-*-cache"):
                    entry.unlink(missing_ok=True)

    warnings.showwarning = showwarning
    warnings.filterwarnings("always", message=_MESSAGE)
