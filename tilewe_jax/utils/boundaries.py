"""Trace-time checks with chex of pytrees from user functions: structure, shapes and dtypes.

Compiled programs contain no checks. ``chex.disable_asserts`` turns them off.
"""

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.utils.checks import shown


def check_tree(source: str, value: Any, expected: Any, batch: tuple[int, ...] = ()) -> None:
    """Check the structure, the shapes and the dtypes of a pytree.

    Args:
      source: name of the value or of the function that returned it, for messages.
      value: a pytree of arrays. Python scalars match any dtype, and keys may have any implementation.
      expected: a pytree of ``jax.ShapeDtypeStruct``, see ``array``.
      batch: leading axes of every leaf of ``value``.

    Raises ``TypeError`` for a wrong structure or dtype, ``ValueError`` for a wrong shape.
    """
    needed = jax.tree_util.tree_leaves_with_path(expected)
    structure, given = jax.tree.structure(expected), jax.tree.structure(value)
    leaves = jax.tree.leaves(value)
    try:
        chex.assert_trees_all_equal_structs(expected, value, exception_type=TypeError)
    except TypeError:
        raise TypeError(f"{source}: expected {shown(structure)}, got {shown(given)}") from None
    for leaf, (path, spec) in zip(leaves, needed, strict=True):
        shape = (*batch, *spec.shape)
        is_free = not hasattr(leaf, "dtype") or jnp.issubdtype(spec.dtype, jax.dtypes.prng_key)
        try:
            chex.assert_shape(leaf, shape, exception_type=ValueError)
            if not is_free:
                chex.assert_type(leaf, spec.dtype, exception_type=TypeError)
        except (TypeError, ValueError) as error:
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "an array"
            got = _described(getattr(leaf, "dtype", spec.dtype), np.shape(leaf))
            raise type(error)(f"{source}: expected {name} {_described(spec.dtype, shape)}, got {got}") from None


def check_result(kind: str, function: Any, value: Any, expected: Any) -> None:
    """``check_tree`` of the result of a user function; ``kind``, such as "evaluator", and its name are in the message."""
    check_tree(f"result of the {kind} {name_of(function)}", value, expected)


def array(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
    """Describe an array by its dtype and shape."""
    return jax.ShapeDtypeStruct(shape, dtype)


def name_of(function: Any) -> str:
    """Return the name of a function, of the function of a ``partial``, or of the class of another callable."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _described(dtype: Any, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"
