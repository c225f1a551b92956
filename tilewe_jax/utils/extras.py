"""Imports of packages of the optional extras."""

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """A package of an optional extra is not installed. The message names the extra that has it."""


def optional_import(module: str, extra: str = "interop", install: str | None = None) -> Any:
    """Import a module of an optional package.

    Args:
      module: full name of the module.
      extra: extra that installs the package.
      install: argument of ``pip install`` for a package outside of the extras.

    Raises ``MissingExtraError`` if the package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:  # the package is installed, but lacks a dependency
            raise
        install = install or f"'tilewe-jax[{extra}]'"
        raise MissingExtraError(f"this needs the package {error.name}: pip install {install}") from None
