"""Packages of the optional extras, which a plain installation does not have."""

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """A package of an optional extra is not installed. The message names the extra that has it."""


def optional_import(module: str, extra: str = "interop", install: str | None = None) -> Any:
    """Import a module of a package that an extra of this project installs.

    Args:
      module: the full name of the module.
      extra: the extra that has its package.
      install: what ``pip install`` takes for a package that no extra has.

    Raises ``MissingExtraError`` with one line where the package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:  # the package is there, and one that it needs is not
            raise
        install = install or f"'tilewe-jax[{extra}]'"
        raise MissingExtraError(f"this needs the package {error.name}: pip install {install}") from None
