"""What the tests of bad inputs and the fuzzer share: commands run in this process up to their work, and hostile values."""

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
    "tilewe_jax.arena.match.Match._start",
    "tilewe_jax.training.run.Run.start",
    "tilewe_jax.interop.analysis.serve_standard_streams",
    "tilewe_jax.records.replay",
)
"""What commands call once all their arguments and files are checked: it compiles, plays, or starts processes."""


class ReachedWorkError(BaseException):
    """A command has accepted its input. Not an ``Exception``, which commands might handle."""


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    code: int | None
    """Its exit code; ``None`` where it accepted its input and was stopped before its work."""
    out: str
    """What it wrote to standard output."""
    err: str
    """What it wrote to standard error."""

    @property
    def is_one_line(self) -> bool:
        """Whether the command refused its input as it should."""
        return self.code in (1, 2) and self.err.startswith("tilewe-jax: ") and self.err.count("\n") == 1


@contextlib.contextmanager
def stopped_before_work() -> Iterator[None]:
    """Commands raise ``ReachedWorkError`` in place of their work, and make no devices."""
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
    """The header of an ``.npy`` file."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text


def rewritten(source: Path, target: Path, members: dict[str, bytes | None], about: Any = None) -> Path:
    """A copy of a file of weights with some members replaced, or left out (``None``), and with another description."""
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
    """An array as an ``.npy`` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()
