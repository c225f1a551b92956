"""Measurements in separate processes, pinned to a core before JAX starts its threads."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewe_jax.utils import factories

IMPORTS = "TILEWE_JAX_BENCH_IMPORTS"
"""Environment variable with the modules of ``--import``, a JSON list, for the measuring processes."""
_REFUSED = "refused: "
"""Prefix of the line in which a measuring process reports that memory does not suffice."""


class RefusedError(RuntimeError):
    """A measurement does not fit into memory."""


def start(function: Callable[..., Any], *settings: Any, core: int | None = None) -> subprocess.Popen[str]:
    """Start a process that calls a function of a module and prints its result.

    Args:
        function: the measurement; returns figures as JSON.
        *settings: its arguments, as JSON.
        core: CPU core to pin the process to; ``None`` for any.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    command = [sys.executable, "-m", "tilewe_jax.cli.benchmarks.process", name, json.dumps([core, *settings])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for the figures of a process. Raises ``RefusedError`` or ``RuntimeError`` if it failed."""
    output, _ = process.communicate()
    if process.returncode:
        raise failure(output)
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def in_process(function: Callable[..., Any], *settings: Any, core: int | None = None) -> dict[str, Any]:
    """``start`` and ``result``."""
    process = start(function, *settings, core=core)
    try:
        return result(process)
    finally:
        process.kill()


def failure(output: str) -> RuntimeError:
    """Return the error of a failed process: its reason if it reported one."""
    last = (output.splitlines() or [""])[-1]
    if last.startswith(_REFUSED):
        return RefusedError(last.removeprefix(_REFUSED))
    return RuntimeError("a measuring process failed; see above")


def has_accelerator() -> bool:
    """Return whether JAX will find an accelerator, without starting JAX."""
    if os.environ.get("JAX_PLATFORMS", "") == "cpu":
        return False
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
    device = any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/accel0", "/dev/vfio/0"))
    return device and any(importlib.util.find_spec(plugin) for plugin in plugins)


def free_cores(count: int) -> list[int | None]:
    """Return cores to pin processes to; ``None`` with an accelerator or without pinning. Raises ``ValueError`` if too few."""
    if has_accelerator():
        return [None]
    if sys.platform != "linux":
        return [None] * count
    available = sorted(os.sched_getaffinity(0))
    if not 1 <= count <= len(available):
        raise ValueError(f"--cores must be 1 to {len(available)}, the cores of this machine, not {count}")
    return list(available[:count])


def main(name: str, settings: str) -> None:
    """Measure in this process, and print the figures. Ends silently if their reader has gone."""
    core, *arguments = json.loads(settings)
    if core is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {core})
    for module in json.loads(os.environ.get(IMPORTS, "[]")):
        factories.import_module(module)
    module, _, function = name.partition(":")
    try:
        print(json.dumps(getattr(import_module(module), function)(*arguments)), flush=True)
    except BrokenPipeError:
        os._exit(1)  # the interpreter would print again at its end
    except MemoryError as error:
        print(f"{_REFUSED}{' '.join(str(error).split())}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
