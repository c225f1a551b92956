"""Compiled programs: compiled in parallel, named while they compile, and kept in files for later processes.

The persistent cache of JAX finds a program by its lowered form, so each process first traces and lowers it, which takes several
times as long as loading it. The files here are found by everything that determines the program instead: the source code of the
package, the versions of Python, JAX and NumPy, the settings of JAX and XLA, the processor, the shapes of the arguments, and a
text that identifies the function. Programs without such a text, and programs for other devices than one CPU, are not kept.

A program that comes from the cache of JAX is not kept either: XLA serializes a program for CPUs only once, and the second time
without some of its functions.
"""

import contextlib
import gc
import hashlib
import os
import pickle
import platform
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable

from tilewe_jax.utils import progress
from tilewe_jax.utils.files import replacing

FOLDER = "TILEWE_JAX_PROGRAMS"
"""Environment variable with the folder of the files; if it is unset or empty, no program is kept."""
MAX_BYTES = 1 << 29
"""Total size beyond which the least recently used files are deleted."""


@dataclass(frozen=True)
class Program:
    """A function to compile for arguments of given shapes."""

    title: str
    """Name of the program for people, such as "the search"."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    """Pytrees of arrays or of ``jax.ShapeDtypeStruct``."""
    donated: tuple[int, ...] = ()
    """Indices of the arguments whose memory the program may reuse."""
    identity: str | None = None
    """Text that determines the program for given shapes, the title and the source code of the package; ``None`` if code outside
    of the package does, so that the program is not kept."""


def compile_all(programs: Sequence[Program]) -> list[jax.stages.Compiled]:
    """Load or compile programs, in parallel, because XLA compiles a program mostly in one thread."""
    files = [_file(program) for program in programs]
    compiled: list[Any] = [file and _load(file, program) for file, program in zip(files, programs, strict=True)]
    missing = [index for index, program in enumerate(compiled) if program is None]
    with ThreadPoolExecutor() as pool:
        futures = []
        for place, index in enumerate(missing, 1):
            program = programs[index]
            progress.compiling(program.title, place, len(missing))
            with _without_garbage_collection():
                lowered = jax.jit(program.function, donate_argnums=program.donated).lower(*program.arguments)
            futures.append(pool.submit(_compile, lowered))
        for place, (index, future) in enumerate(zip(missing, futures, strict=True), 1):
            progress.compiling(programs[index].title, place, len(missing))
            compiled[index], is_new = future.result()
            if is_new and (file := files[index]):
                _save(file, compiled[index])
    progress.compiling("", 0, 0)
    return compiled


def _compile(lowered: jax.stages.Lowered) -> tuple[jax.stages.Compiled, bool]:
    """Compile a program; also return whether it is new, and not from the cache of JAX."""
    _count_cache_hits()
    before = getattr(_hits, "count", 0)
    compiled = lowered.compile()
    return compiled, getattr(_hits, "count", 0) == before


_hits = threading.local()
"""Number of programs that this thread has loaded from the cache of JAX, as ``count``."""


@cache
def _count_cache_hits() -> None:
    def count(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            _hits.count = getattr(_hits, "count", 0) + 1

    jax.monitoring.register_event_listener(count)


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Stop the garbage collector: tracing creates many objects, few of them garbage, and is a quarter faster without it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Kept:
    """``jax.jit`` of a function whose programs are kept in files.

    Args:
        title: see ``Program``.
        function: a function of pytrees of arrays.
        identity: returns ``Program.identity`` for the first argument.
    """

    def __init__(self, title: str, function: Callable[..., Any], identity: Callable[[Any], str | None]) -> None:
        self._title, self._function, self._identity = title, function, identity
        self._jit = jax.jit(function)
        self._programs: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; leaves of the arguments are arrays."""
        if not _keeps():
            return self._jit(*arguments)
        key = _shapes(arguments)
        if key not in self._programs:
            identity = self._identity(arguments[0])
            program = Program(self._title, self._function, arguments, identity=identity)
            self._programs[key] = self._jit if identity is None else compile_all([program])[0]
        return self._programs[key](*arguments)


def _shapes(arguments: Any) -> tuple[Any, ...]:
    """Return the pytree of arguments with the shapes and dtypes of its leaves."""
    leaves, structure = jax.tree.flatten(arguments)
    return structure, tuple((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves)


def _keeps() -> bool:
    """Return whether programs of this process are kept."""
    return bool(os.environ.get(FOLDER)) and _is_one_cpu()


@cache
def _is_one_cpu() -> bool:
    return jax.default_backend() == "cpu" and jax.device_count() == 1


def _file(program: Program) -> Path | None:
    """Return the file of a program, which need not exist; ``None`` if it is not kept."""
    if program.identity is None or not _keeps():
        return None
    structure, shapes = _shapes(program.arguments)
    text = repr((program.identity, program.title, program.donated, _without_addresses(str(structure)), shapes))
    name = hashlib.sha256(f"{_environment()}\n{text}".encode()).hexdigest()
    return Path(os.environ[FOLDER]) / name


def _without_addresses(text: str) -> str:
    """Remove the addresses of functions; ``Program.identity`` says that they are functions of the package."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@cache
def _environment() -> str:
    """Return a hash of everything that all programs depend on."""
    content, package = hashlib.sha256(), Path(__file__).parents[1]
    for folder, folders, names in os.walk(package, followlinks=True):  # `search` is a link in a checkout
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                content.update(f"{folder}/{name}\n".encode() + Path(folder, name).read_bytes())
    # The folder of the cache does not change a program.
    settings = sorted((name, repr(value)) for name, value in jax.config.values.items() if "cache" not in name)
    variables = sorted(item for item in os.environ.items() if item[0].startswith(("JAX_", "XLA_")) and "CACHE" not in item[0])
    versions = [version(name) for name in ("jax", "jaxlib", "numpy")]
    content.update(repr((settings, variables, versions, sys.version, platform.platform(), _processor())).encode())
    return content.hexdigest()


def _processor() -> str:
    """Return the processor and its features, for which XLA compiles."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return platform.processor()


def _load(file: Path, program: Program) -> jax.stages.Compiled | None:
    """Load a program; ``None`` if its file is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    try:
        executable, out = pickle.loads(zlib.decompress(content))
        arguments = jax.tree.structure((program.arguments, {}))
        load: Any = serialize_executable.deserialize_and_load
        compiled: jax.stages.Compiled = load(executable, arguments, out, execution_devices=jax.devices()[:1])
    except Exception:  # the exceptions for damaged files are not documented
        with contextlib.suppress(OSError):
            file.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    return compiled


def _save(file: Path, compiled: jax.stages.Compiled) -> None:
    """Write a program; not if the disk is full, or if JAX cannot serialize it."""
    with contextlib.suppress(OSError, NotImplementedError, ValueError):
        executable, _, out = serialize_executable.serialize(compiled)
        content = zlib.compress(pickle.dumps((executable, out)), level=1)
        file.parent.mkdir(parents=True, exist_ok=True)
        _make_space(file.parent, MAX_BYTES - len(content))
        with replacing(file, "wb") as opened:
            opened.write(content)


def _make_space(folder: Path, max_bytes: int) -> None:
    """Delete the least recently used files until at most ``max_bytes`` bytes are left."""
    used = sorted(((status := path.stat()).st_mtime, status.st_size, path) for path in folder.iterdir())
    total = sum(size for _, size, _ in used)
    for _, size, path in used:
        if total <= max_bytes:
            break
        path.unlink(missing_ok=True)
        total -= size
