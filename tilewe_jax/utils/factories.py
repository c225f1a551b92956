"""User code: functions named by ``module:factory``, modules and files of Python."""

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
    """Import the function that ``module:factory`` names.

    Args:
      what: kind of its result for messages, such as "game".
      name: the name.

    Raises ``ValueError`` if the import fails or the module lacks the function.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"{what} {name!r}: give module:factory")
    function: Callable[..., Any] = call(f"{what} {name!r}", lambda: getattr(_imported(module), attribute))
    if not callable(function):
        raise ValueError(f"{what} {name!r}: {function!r} is not a function")
    return function


def import_module(name: str) -> None:
    """Import a user module, which may register games and architectures.

    Args:
      name: name of a module, also in the current folder, or path of a file of Python (``.py``).

    Raises ``ValueError`` for an unknown module and for all errors of its code.
    """
    with loading(name):
        call(f"module {name!r}", _run_file if name.endswith(".py") else _imported, name)


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Context manager in which ``being_loaded`` returns a name."""
    token = _being_loaded.set(name)
    try:
        yield
    finally:
        _being_loaded.reset(token)


def being_loaded() -> str:
    """Return the name of the user module or file that is being loaded; empty otherwise."""
    return _being_loaded.get()


_being_loaded: ContextVar[str] = ContextVar("being_loaded", default="")


def _imported(name: str) -> ModuleType:
    """Import a module, from the current folder if it is not installed."""
    with _on_path(os.getcwd()):
        return importlib.import_module(name)


def _run_file(path: str) -> None:
    """Import a file of Python as the module of its name; it can import modules of its folder."""
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
    """Context manager that appends a folder to ``sys.path``. Afterwards the folder must not provide optional packages."""
    if folder in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def call(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call user code; all its errors become a ``ValueError`` in one line.

    Args:
      what: description for messages, such as "network 'mine:make'".
      function: the function.
      *arguments: its arguments.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Describe an error of user code and its place in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})" if error.lineno else error.msg
    if isinstance(error, (ImportError, AttributeError)) and text:
        return text
    # An error inside of this project is in the user code that calls it.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OURS) and "<" not in frame.filename
    ]
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


_OURS = tuple(f"{Path(__file__).parents[2] / package}{os.sep}" for package in ("tilewe_jax", "search"))
