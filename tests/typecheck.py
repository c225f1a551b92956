"""Checks the shapes and dtypes in annotations during the tests, with beartype and jaxtyping's import hook."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from beartype import BeartypeConf, BeartypeStrategy, beartype

ROOT = Path(__file__).parents[1]
F = TypeVar("F", bound=Callable[..., Any])

_check = beartype(conf=BeartypeConf(strategy=BeartypeStrategy.O1, is_pep484_tower=True))


def modules() -> list[str]:
    """Return the names of the modules that annotate shapes; checking other modules would only cost time."""
    files = [file for package in ("tilewe_jax", "search", "experiments") for file in sorted((ROOT / package).rglob("[!_]*.py"))]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if "jaxtyping" in file.read_text()]


def typechecked(function: F) -> F:
    """Check the arguments and the result of a function in every call.

    ``__init__`` is excluded, because JAX transformations construct pytrees with batches, shapes, axes or ``None`` as fields.
    """
    return function if function.__qualname__.endswith("__init__") else _check(function)
