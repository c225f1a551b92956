"""Loops and conditionals of ``jax.lax`` that also work inside of ``jax.shard_map`` with its default ``check_vma=True``.

There the type of an array contains the mesh axes over which it varies. Constants vary over no axis, so ``jax.lax`` rejects a
loop that starts from constants and a conditional with a constant branch. The functions here cast the initial carry, or the
results of the branches, to vary over all required axes. Outside of ``shard_map`` they only call ``jax.lax``.
"""

from collections.abc import Callable
from functools import cache, partial, reduce
from importlib.util import find_spec
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PyTree

T = TypeVar("T")
X = TypeVar("X")
Y = TypeVar("Y")


def while_loop(condition: Callable[[T], Any], body: Callable[[T], T], initial: T) -> T:
    """``jax.lax.while_loop``."""
    result: T = lax.while_loop(condition, body, _as_varying_as_after(body, initial))
    return result


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, T], T], initial: T) -> T:
    """``jax.lax.fori_loop``."""
    result: T = lax.fori_loop(lower, upper, body, _as_varying_as_after(partial(body, jnp.asarray(lower, jnp.int32)), initial))
    return result


def scan(
    step: Callable[[T, X], tuple[T, Y]], initial: T, xs: X, length: int | None = None, reverse: bool = False
) -> tuple[T, Y]:
    """``jax.lax.scan``."""

    def carried(carry: T) -> T:
        return step(carry, jax.tree.map(lambda leaf: leaf[0], xs))[0]

    result: tuple[T, Y] = lax.scan(step, _as_varying_as_after(carried, initial), xs, length, reverse)
    return result


def cond(predicate: Any, if_true: Callable[..., T], if_false: Callable[..., T], *operands: Any) -> T:
    """``jax.lax.cond``."""
    result: T = lax.cond(predicate, *_equally_varying((if_true, if_false), operands), *operands)
    return result


def switch(index: Any, branches: list[Callable[..., T]], *operands: Any) -> T:
    """``jax.lax.switch``."""
    result: T = lax.switch(index, _equally_varying(tuple(branches), operands), *operands)
    return result


def platform_dependent(*operands: Any, default: Callable[..., T], **by_platform: Callable[..., T]) -> T:
    """``jax.lax.platform_dependent``."""
    first, *others = _equally_varying((default, *by_platform.values()), operands)
    result: T = lax.platform_dependent(*operands, default=first, **dict(zip(by_platform, others, strict=True)))
    return result


@cache
def compiles_for_gpus() -> bool:
    """Return whether a compiler for GPUs is installed, as a plugin of JAX in the package ``jax_plugins``."""
    return find_spec("jax_plugins") is not None


def by_platform(function: Callable[..., T], on_gpu: Callable[..., T], *args: Any) -> T:
    """Return ``on_gpu(*args)`` in programs for a GPU, and ``function(*args)`` in all others.

    A program contains only the form for its target platform, whatever devices the compiling machine has. Without a compiler for
    GPUs, ``on_gpu`` is not even traced, which saves time.

    Args:
      function: a function of pytrees of arrays.
      on_gpu: another form of the same function.
      *args: their arguments.
    """
    if not compiles_for_gpus():
        return function(*args)
    return platform_dependent(*args, default=function, cuda=on_gpu, rocm=on_gpu)


Axes = frozenset[str]


def _is_manual() -> bool:
    """Return whether the code is traced inside of ``shard_map`` with ``check_vma=True``."""
    axes = jax.sharding.get_abstract_mesh().manual_axes
    # With ``check_vma=False`` types contain no axes, not even the type of an index along an axis.
    return bool(axes) and bool(_axes(jax.eval_shape(partial(lax.axis_index, axes[0]))))


def _axes(leaf: Any) -> Axes:
    """Return the mesh axes over which an array varies."""
    kind: Any = jax.typeof(leaf)
    manual = getattr(kind, "mat", None)  # from JAX 0.10 on
    axes: Axes = getattr(kind, "vma", frozenset()) if manual is None else manual.varying
    return axes


def _vary(leaf: Array, axes: Axes) -> Array:
    missing = tuple(sorted(axes - _axes(leaf)))
    return lax.pcast(leaf, missing, to="varying") if missing else leaf


def _as_varying_as_after(step: Callable[[T], T], carry: T) -> T:
    """Cast a carry to the axes over which its leaves vary after any number of steps."""
    if not _is_manual():
        return carry
    while True:
        after = jax.eval_shape(step, carry)
        axes: PyTree[Axes] = jax.tree.map(lambda old, new: _axes(old) | _axes(new), carry, after)
        if jax.tree.leaves(axes) == list(map(_axes, jax.tree.leaves(carry))):
            return carry
        carry = jax.tree.map(_vary, carry, axes)


def _equally_varying(branches: tuple[Callable[..., T], ...], operands: tuple[Any, ...]) -> list[Callable[..., T]]:
    """Cast the results of branches to the union of their axes."""
    if not _is_manual():
        return list(branches)
    results = [jax.tree.map(_axes, jax.eval_shape(branch, *operands)) for branch in branches]
    axes: PyTree[Axes] = jax.tree.map(lambda *each: reduce(frozenset.union, each), *results)

    def varying(branch: Callable[..., T]) -> Callable[..., T]:
        def call(*operands: Any) -> T:
            result: T = jax.tree.map(_vary, branch(*operands), axes)
            return result

        return call

    return [varying(branch) for branch in branches]
