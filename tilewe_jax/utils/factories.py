"""Functions named by ``module:factory``, which are imported and called: code that is not ours."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any


def find(what: str, name: str) -> Callable[..., Any]:
    """The function that ``module:factory`` names.

    Args:
      what: what the function makes, for errors, like "game".
      name: the name.

    Raises ``ValueError`` where the module cannot be imported, whatever its code raises, or has no such function.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"{what} {name!r}: give module:factory")
    function: Callable[..., Any] = call(f"{what} {name!r}", lambda: getattr(_imported(module), attribute))
    if not callable(function):
        raise ValueError(f"{what} {name!r}: {function!r} is not a function")
    return function


def import_module(name: str) -> None:
    """Import a module of the user, which may register games, architectures and more.

    Args:
      name: the name of a module, which is looked for in the current folder as well, or the path of a file of Python (``.py``).

    Raises ``ValueError`` for an unknown module, and for all that its code raises.
    """
    with loading(name):
        call(f"module {name!r}", _run_file if name.endswith(".py") else _imported, name)


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Context in which ``being_loaded`` is the name of a module or a file."""
    token = _being_loaded.set(name)
    try:
        yield
    finally:
        _being_loaded.reset(token)


def being_loaded() -> str:
    """The module or file of the user that is being loaded, as the user gave it; empty otherwise."""
    return _being_loaded.get()


_being_loaded: ContextVar[str] = ContextVar("being_loaded", default="")


def _imported(name: str) -> ModuleType:
    """A module by its name, found in the current folder if it is nowhere else."""
    with _on_path(os.getcwd()):
        return importlib.import_module(name)


def _run_file(path: str) -> None:
    """Run a file of Python as the module of its name, with its folder among those in which it finds modules."""
    name, place = Path(path).stem, Path(path).resolve()
    if getattr(sys.modules.get(name), "__file__", None) == str(place):
        return
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    is_new = sys.modules.setdefault(name, module) is module
    try:
        with _on_path(str(place.parent)):
            spec.loader.exec_module(module)
    except BaseException:
        if is_new:
            del sys.modules[name]
        raise


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """Context in which modules are found in a folder, behind all others.

    Afterwards they are not: the folder must not provide optional packages that are not installed.
    """
    if folder in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def call(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that is not ours.

    Args:
      what: what it is, for errors, like "network 'mine:make'".
      function: the function.
      *arguments: its arguments.

    Raises ``ValueError`` with one line, and where in the code it was raised, for all that the function raises.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """One line about an error in code that is not ours: what it is, and where it was raised."""
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})" if error.lineno else error.msg
    if isinstance(error, (ImportError, AttributeError)) and text:
        return text
    # A mistake in a call of this project is in the line that calls.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OURS) and "<" not in frame.filename
    ]
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


_OURS = tuple(f"{Path(__file__).parents[2] / package}{os.sep}" for package in ("tilewe_jax", "search"))
