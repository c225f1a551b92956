"""Functions named by ``module:factory``, which are imported and called: code that is not ours."""

import importlib
import os
import traceback
from collections.abc import Callable
from pathlib import Path
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
    function: Callable[..., Any] = call(f"{what} {name!r}", lambda: getattr(importlib.import_module(module), attribute))
    if not callable(function):
        raise ValueError(f"{what} {name!r}: {function!r} is not a function")
    return function


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


_OURS = tuple(f"{Path(__file__).parents[1] / package}{os.sep}" for package in ("tilewe_jax", "search", "experiments"))
