"""What checks the shapes and dtypes in annotations while the tests run: beartype, with jaxtyping's import hook."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from beartype import BeartypeConf, BeartypeStrategy, beartype

ROOT = Path(__file__).parents[1]
F = TypeVar("F", bound=Callable[..., Any])

_check = beartype(conf=BeartypeConf(strategy=BeartypeStrategy.O1, is_pep484_tower=True))


def modules() -> list[str]:
    """Names of the modules that annotate shapes. Others, like the host boards, would only become slower."""
    files = [file for package in ("tilewe_jax", "search", "experiments") for file in sorted((ROOT / package).rglob("[!_]*.py"))]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if "jaxtyping" in file.read_text()]


def typechecked(function: F) -> F:
    """Check the arguments and the result of a function at every call.

    Not of ``__init__``: JAX makes pytrees anew with whatever a transformation puts in place of their arrays, through the
    constructor, so that the fields of a state may hold batches, shapes, axes or nothing at all.
    """
    return function if function.__qualname__.endswith("__init__") else _check(function)
