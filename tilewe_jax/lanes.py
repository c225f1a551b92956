"""The convention for batching inside the games: functions of lanes, and the tools that need them.

The functions of a ``Game`` take one game, and ``jax.vmap`` batches them. Inside, the expensive rules are *functions of lanes*:
every array that they take and return has an additional last axis with one game per index, a *lane*. Shapes name it, as in
``UInt32[Array, "words lanes"]``. ``per_lane`` turns a function of lanes into a function of one game that ``jax.vmap`` batches;
a ``Game`` calls functions of lanes only through it.

They exist because of two optimizations that cannot be expressed for one game:

* ``while_any`` continues a loop only for the lanes that need another round, whereas a ``while_loop`` under ``vmap`` repeats the
  body for every lane until the slowest is done.
* ``materialize`` writes a value to memory once, instead of letting XLA recompute it in each of its consumers.

Lanes are the last axis so that loops over them are innermost and fill the vector registers of a CPU, and neighbouring threads
of a GPU read neighbouring words.
"""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import cache, partial, reduce, wraps
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxtyping import Array, Bool, Int32, Key, PRNGKeyArray, PyTree, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, kth_set_bit, popcount
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import shown
from tilewe_jax.utils.loops import by_platform, platform_dependent, while_loop

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")

CHUNK_DIVISOR = 14
"""Default of ``while_any``: a round processes this fraction of the lanes. A smaller divisor wastes work on finished lanes, a
larger divisor takes more rounds. In the polyomino games about one move in 15 leads to a blocked player."""
VECTOR = 32
"""The number of lanes processed per round is a multiple of this, so that vectorized loops over them leave no remainder."""

each = partial(jax.vmap, in_axes=-1, out_axes=-1)
"""Turn a function of one game into a function of lanes, the inverse of ``per_lane``."""


def per_lane(function: Callable[P, T]) -> Callable[P, T]:
    """Turn a function of lanes into a function of one game.

    Under ``vmap``, nested or not, all mapped axes are merged into the lane axis.

    Args:
      function: maps positional arguments to a result, all pytrees of arrays ``[..., lanes]``.

    Returns:
      The same function of pytrees of arrays ``[...]``. It raises ``TypeError`` for keyword arguments.
    """
    traced: Callable[..., T] = traced_once(function)

    @jax.custom_batching.custom_vmap
    def lanes(*args: Any) -> Any:
        expected = _expected_lanes.get()
        is_one_game = jax.tree.leaves(args)[0].shape[-1] == 1
        if expected == 1 or not is_one_game or not jax.sharding.get_abstract_mesh().empty:
            return traced(*args)
        return _traced_if_compiled(traced, expected, args)

    @lanes.def_vmap
    def batched(size: int, mapped: PyTree, *args: PyTree) -> tuple[PyTree, PyTree]:
        def merge(leaf: Array, is_mapped: bool) -> Array:
            leaf = leaf if is_mapped else jnp.broadcast_to(leaf, (size, *leaf.shape))
            leaf = jnp.moveaxis(leaf, 0, -2)
            return leaf.reshape(*leaf.shape[:-2], -1)

        def split(leaf: Array) -> Array:
            return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], size, -1), -2, 0)

        out = jax.tree.map(split, lanes(*jax.tree.map(merge, args, tuple(mapped))))
        return out, jax.tree.map(lambda _: True, out)

    @wraps(function)
    def of_one_game(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs:
            raise TypeError("a function of lanes takes positional arguments only")
        out: T = lanes(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], args))
        return cast(T, jax.tree.map(lambda leaf: leaf[..., 0], out))

    return of_one_game


_expected_lanes: ContextVar[int] = ContextVar("expected_lanes", default=1)


def expecting_lanes(lanes: int, function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that is traced faster if ``jax.vmap`` merges ``lanes`` games in it.

    ``jax.vmap`` needs the shapes of the results for one game, for which JAX would trace each function of lanes twice: for one
    lane, and for all. Here the shapes come from the function of ``lanes`` lanes. Programs are the same for any number; a wrong
    one only saves no time.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _expected_lanes.set(lanes)
        try:
            return function(*args, **kwargs)
        finally:
            _expected_lanes.reset(token)

    return call


def _traced_if_compiled(function: Callable[..., Any], expected: int, args: PyTree) -> Any:
    """Call a function of one lane without tracing it; its shapes are those with ``expected`` lanes."""

    def with_lanes(leaf: Any, lanes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*leaf.shape[:-1], lanes), leaf.dtype, weak_type=getattr(leaf, "weak_type", False))

    shapes = jax.eval_shape(function, *jax.tree.map(lambda leaf: with_lanes(leaf, expected), args))
    flat, structure = jax.tree.flatten(args)
    results = [with_lanes(leaf, 1) for leaf in jax.tree.leaves(shapes)]
    flat_results = _one_lane.bind(*flat, function=function, structure=structure, results=tuple(results))
    return jax.tree.unflatten(jax.tree.structure(shapes), flat_results)


def _call_one_lane(*flat: Array, function: Callable[..., Any], structure: Any, results: Any) -> list[Array]:
    del results
    return jax.tree.leaves(function(*jax.tree.unflatten(structure, flat)))


def _shapes_of_one_lane(*flat: Any, function: Any, structure: Any, results: tuple[jax.ShapeDtypeStruct, ...]) -> list[Any]:
    del flat, function, structure
    return [jax.core.ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type) for leaf in results]


_one_lane = Primitive("one_lane")
"""Calls a function of one lane; traced only if it is compiled, and not if ``jax.vmap`` replaces it by the function of lanes."""
_one_lane.multiple_results = True
_one_lane.def_impl(_call_one_lane)
_one_lane.def_abstract_eval(_shapes_of_one_lane)
mlir.register_lowering(_one_lane, mlir.lower_fun(_call_one_lane, multiple_results=True))


def traced_once(function: Callable[P, T]) -> Callable[P, T]:
    """Apply ``jax.jit`` such that the function is traced once for each shape, wherever it is called.

    ``jax.jit`` traces again for another mesh, and JAX sets an empty mesh instead of none while it maps the body of a loop or of
    a conditional. This function always sets the empty mesh.
    """
    traced: Callable[P, T] = jax.jit(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        require_backend()
        with jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()):
            return traced(*args, **kwargs)

    return call


def rule_per_lane(rule: Callable[..., T], config: Hashable, materialized: bool = False, **settings: int) -> Callable[..., T]:
    """Apply ``per_lane`` to a rule of a game, cached, so that it is traced and compiled once for each shape.

    This saves time for calls outside of ``jit``, move by move.

    Args:
      rule: a function of the settings of a game and of lanes, ``rule(config, ..., **settings)``.
      config: the settings.
      materialized: whether to write the result to memory once, see ``materialize``.
      **settings: further fixed arguments.
    """
    return cast(Callable[..., T], _rule_per_lane(rule, config, materialized, **settings))


@cache
def _rule_per_lane(rule: Callable[..., Any], config: Hashable, materialized: bool, **settings: int) -> Callable[..., Any]:
    function = partial(rule, config, **settings)
    return per_lane(partial(materialize, function) if materialized else function)


def materialize(function: Callable[..., T], *args: Any) -> T:
    """Return ``function(*args)``, written to memory once instead of fused into each of its consumers.

    XLA's CPU compiler fuses a producer into every consumer, however expensive it is to recompute, and drops
    ``optimization_barrier`` before that. It does not fuse across a call, so on CPUs the function is called and not inlined.
    Other platforms use a barrier. XLA computes all results of the call, used or not, so the function should return nothing
    that only some callers need.

    Args:
      function: a function of pytrees of arrays.
      *args: its arguments.
    """
    function = traced_once(function)  # It is called twice below.

    def behind_call(*args: PyTree) -> PyTree:
        return set_xla_metadata(function(*args), inlineable="false")

    def behind_barrier(*args: PyTree) -> PyTree:
        return lax.optimization_barrier(function(*args))

    return cast(T, platform_dependent(*args, cpu=behind_call, default=behind_barrier))


@jax.custom_batching.custom_vmap
def any_lane(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    """Return the flag of one game; under ``vmap`` the logical OR over the batch, which is not batched itself.

    A mapped ``while_loop`` with this condition keeps a single condition. With a condition per game, ``vmap`` would select
    between the old and the new carry at each step, which copies all of it.
    """
    return flag


@any_lane.def_vmap
def _any_of_batch(size: int, mapped: list[bool], flags: Bool[Array, "batch"]) -> tuple[Bool[Array, ""], bool]:
    del size
    return any_lane(jnp.any(flags) if mapped[0] else flags), False


@jax.custom_batching.custom_vmap
def mapped_together(tree: T) -> T:
    """Return the tree; under ``vmap``, all its leaves become mapped.

    JAX traces a loop with a partly mapped initial carry repeatedly, until it knows which leaves become mapped.
    """
    return tree


@mapped_together.def_vmap
def _broadcast_to_batch(size: int, mapped: list[PyTree], tree: T) -> tuple[T, PyTree]:
    # A constant of an enclosing conditional may be an array of NumPy.
    def broadcast(leaf: Any, is_mapped: bool) -> Any:
        return leaf if is_mapped else jnp.broadcast_to(leaf, (size, *leaf.shape))

    tree = mapped_together(jax.tree.map(broadcast, tree, mapped[0]))
    return tree, jax.tree.map(lambda _: True, tree)


def typed_key(key: Any) -> PRNGKeyArray:
    """Convert a key of ``jax.random.PRNGKey`` (an array of words) to a key of ``jax.random.key``; return the latter unchanged.

    Raises ``TypeError`` for other values.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return cast(PRNGKeyArray, key)
    if dtype != jnp.uint32:
        raise TypeError(f"key must be a PRNG key, such as jax.random.key(0), got {shown(key)}")
    return cast(PRNGKeyArray, jax.random.wrap_key_data(key))


def subkey(key: PRNGKeyArray, number: Int32[Array, ""] | int) -> PRNGKeyArray:
    """Derive a PRNG key from a key and a number by hashing its words with ``bits.hash32``.

    It replaces ``jax.random.split`` and ``fold_in`` in inner loops: on a CPU each of them is a loop of about eighty tiny
    kernels, a third of all kernels of a move in a playout. All keys derived from one key depend on 32 bits of it.

    Args:
      key: PRNG key; not to be used otherwise.
      number: any number; different numbers give independent keys.
    """
    data = jax.random.key_data(key)
    word = reduce(lambda word, more: hash32(word, more.astype(jnp.int32)), data)
    words = jnp.asarray(number, jnp.int32) * len(data) + jnp.arange(len(data), dtype=jnp.int32)
    derived: PRNGKeyArray = jax.random.wrap_key_data(hash32(word[None], words), impl=jax.random.key_impl(key))
    return derived


def subkeys(key: PRNGKeyArray, count: int) -> Key[Array, "count"]:
    """Derive PRNG keys from a key and the numbers from 0, see ``subkey``."""
    return jax.vmap(partial(subkey, key))(jnp.arange(count, dtype=jnp.int32))


def random_words(key: PRNGKeyArray, count: int) -> UInt32[Array, "count"]:
    """Draw random words by hashing the words of a PRNG key with ``bits.hash32``.

    A key from ``jax.random.split`` is already random; running it through its generator again would cost more than a whole move
    of a simple game. The hash also decorrelates keys of consecutive seeds.

    Args:
      key: PRNG key, consumed.
      count: number of words.
    """
    require_backend()
    return rule_per_lane(_words_of_keys, count)(jax.random.key_data(key))


def _words_of_keys(count: int, data: UInt32[Array, "data lanes"]) -> UInt32[Array, "count lanes"]:
    # Materialized on a CPU, because the words of keys are interleaved: fused with the hash, other arrays would be read with
    # their stride. A GPU would launch an additional kernel.
    words = partial(_words, count)
    return by_platform(partial(materialize, words), words, data)


def _words(count: int, data: UInt32[Array, "data lanes"]) -> UInt32[Array, "count lanes"]:
    word = reduce(lambda word, more: hash32(word, more.astype(jnp.int32)), data)
    return hash32(word[None], jnp.arange(count, dtype=jnp.int32)[:, None])


def while_any(
    condition: Callable[[T], Bool[Array, "lanes"]],
    body: Callable[[C, T], T],
    constants: C,
    carry: T,
    divisor: int = CHUNK_DIVISOR,
) -> T:
    """Repeat ``carry = body(constants, carry)`` in each lane while ``condition(carry)`` holds for it.

    Each round gathers a chunk of the lanes whose condition holds, processes them, and scatters them back. If a chunk would have
    all lanes, a round processes them in place.

    Args:
      condition: returns one bool per lane.
      body: a function of lanes. It is called with fewer lanes than ``carry`` has.
      constants: pytree of arrays ``[..., lanes]`` that the loop only reads.
      carry: pytree of arrays ``[..., lanes]``, the initial carry.
      divisor: a chunk has ``lanes / divisor`` lanes, rounded up to a multiple of ``VECTOR``.

    Returns:
      The carry after the loop. Lanes whose condition never holds are unchanged.
    """
    lanes = jax.tree.leaves(carry)[0].shape[-1]
    chunk = chunk_size(lanes, divisor)

    def process_all(carry: T) -> T:
        needed, processed = condition(carry), materialize(body, constants, carry)
        return cast(
            T, jax.tree.map(lambda leaf, new: jnp.where(jnp.broadcast_to(needed, leaf.shape), new, leaf), carry, processed)
        )

    def process_chunk(carry: T) -> T:
        lane = some_set(condition(carry), chunk)
        gathered = jax.tree.map(lambda leaf: jnp.take(leaf, lane, axis=-1, mode="clip"), (constants, carry))
        processed = materialize(body, *gathered)
        scattered: T = jax.tree.map(lambda leaf, new: leaf.at[..., lane].set(new, mode="drop"), carry, processed)
        return scattered

    def any_left(carry: T) -> Array:
        return jnp.any(condition(carry))

    return while_loop(any_left, process_all if chunk == lanes else process_chunk, carry)


def chunk_size(lanes: int, divisor: int) -> int:
    """Number of lanes that are processed at a time: ``lanes / divisor``, rounded up to whole vectors."""
    return min(lanes, -(-lanes // (divisor * VECTOR)) * VECTOR)


def where_needed(
    needed: Bool[Array, "lanes"],
    function: Callable[..., Int32[Array, "lanes"]],
    args: tuple[PyTree, ...],
    otherwise: Int32[Array, "lanes"],
    divisor: int = CHUNK_DIVISOR,
) -> Int32[Array, "lanes"]:
    """Return ``jnp.where(needed, function(*args), otherwise)``, evaluating the expensive function only in lanes that need it.

    Args:
      needed: lanes in which to evaluate the function.
      function: a function of lanes.
      args: its arguments.
      otherwise: the result in the other lanes.
      divisor: see ``while_any``.
    """

    def once(args: tuple[PyTree, ...], carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return jnp.zeros_like(carry[0]), function(*args)

    return while_any(lambda carry: carry[0], once, args, (needed, otherwise), divisor)[1]


def some_set(flags: Bool[Array, "lanes"], count: int) -> Int32[Array, "count"]:
    """Return the indices of ``count`` set flags, in no particular order; padded with ``lanes`` if fewer are set.

    Twice as fast on a CPU as ``jnp.nonzero(size=count)``: flags are packed into words, flag ``i`` into word ``i % words``, and
    the j-th set flag is found by prefix sums over words, then by ``kth_set_bit``. All sums run over a leading axis.
    """
    words = -(-flags.shape[0] // WORD_BITS)
    rows = jnp.pad(flags, (0, words * WORD_BITS - flags.shape[0])).reshape(WORD_BITS, words).astype(jnp.uint32)
    packed = reduce(jnp.bitwise_or, [row << np.uint32(i) for i, row in enumerate(rows)])
    sizes = popcount(packed)
    before = jnp.sum(jnp.where(np.tri(words, k=-1, dtype=bool).T, sizes[:, None], 0), axis=0, dtype=jnp.int32)
    rank = jnp.arange(count, dtype=jnp.int32)
    word = jnp.sum(before[:, None] <= rank[None], axis=0, dtype=jnp.int32) - 1
    bit = kth_set_bit(packed[word], rank - before[word])
    return jnp.where(rank < jnp.sum(sizes, dtype=jnp.int32), bit * words + word, flags.shape[0])
