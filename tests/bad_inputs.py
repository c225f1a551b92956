"""Helpers for tests of bad inputs and the fuzzer: commands that stop before their work, and damaged files."""

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tilewe_jax.cli import main as cli

WORK = (
    "tilewe_jax.agents.analysis.SearchProgram.analyze",
    "tilewe_jax.cli.benchmarks.host.measure",
    "tilewe_jax.cli.benchmarks.perft.Perft.leaves",
    "tilewe_jax.cli.benchmarks.rollouts.batching.over_devices",
    "tilewe_jax.cli.benchmarks.process.subprocess.Popen",
    "tilewe_jax.cli.benchmarks.signature.signature",
    "tilewe_jax.arena.device_games.DeviceGames.start",
    "tilewe_jax.training.run.Run.start",
    "tilewe_jax.interop.analysis.serve_standard_streams",
    "tilewe_jax.records.replay",
)
"""Functions that commands call after all checks of arguments and files, to compile, play, or start processes."""


class ReachedWorkError(BaseException):
    """A command has accepted its input. Not an ``Exception``, which commands might handle."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command."""

    code: int | None
    """Exit code; ``None`` for an accepted input, after which the command is stopped before its work."""
    out: str
    """Standard output."""
    err: str
    """Standard error."""

    @property
    def is_one_line(self) -> bool:
        """The command rejected its input in one line."""
        return self.code in (1, 2) and self.err.startswith("tilewe-jax: ") and self.err.count("\n") == 1


@contextlib.contextmanager
def stopped_before_work() -> Iterator[None]:
    """Context manager in which commands raise ``ReachedWorkError`` instead of their work, and configure no devices."""
    with contextlib.ExitStack() as stack:
        for name in WORK:
            stack.enter_context(mock.patch(name, side_effect=ReachedWorkError))
        stack.enter_context(mock.patch("tilewe_jax.cli.common.set_cpu_devices"))
        yield


def run(*arguments: str) -> Outcome:
    """Run a command in this process, within ``stopped_before_work``."""
    out, err = io.StringIO(), io.StringIO()
    code: int | None = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(list(arguments))
        except SystemExit as stop:
            code = int(stop.code or 0)
        except ReachedWorkError:
            code = None
    return Outcome(code, out.getvalue(), err.getvalue())


def header(shape: Any, descr: Any = "<f2", version: bytes = b"\x01\x00") -> bytes:
    """Return the header of an ``.npy`` file."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text


def rewritten(source: Path, target: Path, members: dict[str, bytes | None], about: Any = None) -> Path:
    """Copy a file of weights with some members replaced or removed (``None``), and with another description."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = members.get(name, old.read(name))
            if name == "about.npy" and about is not None:
                content = npy(np.array(about if isinstance(about, str) else json.dumps(about)))
            if content is not None:
                new.writestr(name, content)
        for name, content in members.items():
            if name not in old.namelist() and content is not None:
                new.writestr(name, content)
    return target


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    """Return an array as the bytes of an ``.npy`` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()
