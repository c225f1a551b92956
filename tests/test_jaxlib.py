"""Reproducers of the CPU miscompilations for which ``pyproject.toml`` excludes versions of jaxlib."""

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest


def check(result: jax.Array, expected: np.ndarray, issue: str) -> None:
    """Fail with the version of jaxlib and the issue if the result differs."""
    wrong = np.flatnonzero(np.asarray(result) != expected)
    if wrong.size:
        pytest.fail(
            f"jaxlib {jaxlib.__version__} miscompiles on this machine ({issue}): {wrong.size} of {expected.size} values are"
            f" wrong, the first at {wrong[0]}. All results may be wrong with this version; install another that pyproject.toml"
            " allows, and exclude this version there.",
            pytrace=False,
        )


@pytest.mark.parametrize("rows", [32_769, 33_000, 40_000])
def test_fused_products_of_many_rows(rows: int) -> None:
    """jaxlib 0.10.2 computes earlier rows in the last, partial chunk of a parallel loop over rows."""
    number = np.arange(rows, dtype=np.float32)
    points = np.stack([number, np.zeros_like(number), np.zeros_like(number)], axis=1)
    squared_norms = jax.jit(jax.vmap(lambda matrix, row: jnp.sum((matrix @ row) ** 2), in_axes=(None, 0)))
    check(squared_norms(np.eye(3, dtype=np.float32), points), number**2, "jax#39103")


def test_gathers_of_constants() -> None:
    """jaxlib 0.8.1 and older mix the rows of a batched gather of constants at compile time."""
    table = np.tile(np.arange(6, dtype=np.int32), (2, 1))
    result = jax.jit(lambda: jax.vmap(lambda row: row[jnp.arange(6)])(jnp.asarray(table)) + 1)()
    check(result.ravel(), table.ravel() + 1, "jax#33479")
