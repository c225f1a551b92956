"""Many games side by side: functions whose arrays carry one game a lane, on the last axis.

The rules are functions of one game, and ``vmap`` makes them thousands. Inside, the heavy ones are written for all lanes at
once, because two things that make them fast cannot be said about one game:

* ``while_any`` goes on with the few lanes that need another round, where a ``while_loop`` under ``vmap`` repeats the body for
  every lane until the slowest is done.
* ``materialize`` has a value written to memory once, where XLA would compute it anew in each of its uses.

``per_lane`` connects the two worlds. The lane axis is the last one, so that loops over lanes are the innermost and fill the
vector registers, and neighbouring threads of a GPU read neighbouring words.
"""

from collections.abc import Callable
from functools import partial, reduce, wraps
from typing import Any, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, PRNGKeyArray, PyTree, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, kth_set_bit, popcount

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")

# A round of `while_any` takes one lane in so many. More at a time waste work on lanes that need no round, fewer take more
# rounds. In the polyomino games, for which this was written, one lane in 15 meets a blocked player at a move.
CHUNK_SHARE = 14
VECTOR = 32
"""Lanes are taken by multiples of this, so that loops over them need no remainder."""


def per_lane(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function of lanes (every leaf ``[..., lanes]``, in and out) a function of one game.

    Under ``vmap``, nested or not, all mapped axes are merged into the lane axis.
    """
    traced = jax.jit(function)  # once for each shape

    @jax.custom_batching.custom_vmap
    def lanes(*args: Any) -> Any:
        return traced(*args)

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
    def one(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs:
            raise TypeError("a function of lanes takes positional arguments only")
        out: T = lanes(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], args))
        return cast(T, jax.tree.map(lambda leaf: leaf[..., 0], out))

    return one


def materialize(function: Callable[..., T], *args: Any) -> T:
    """``function(*args)``, written to memory before anybody reads it.

    XLA's CPU compiler fuses a producer into each of its consumers, however dear, and drops ``optimization_barrier`` before
    it does. It does not look into a conditional, so there the call stands in the branch of one that is always taken.
    """
    function = jax.jit(function)  # traced once, however often it is called below

    def behind_conditional(*args: PyTree) -> PyTree:
        some = jax.tree.leaves(args)[0].ravel()[0]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *args))
        return lax.cond((some.astype(jnp.uint32) | 1) != 0, function, lambda *_: zeros, *args)

    def behind_barrier(*args: PyTree) -> PyTree:
        return lax.optimization_barrier(function(*args))

    return cast(T, lax.platform_dependent(*args, cpu=behind_conditional, default=behind_barrier))


@jax.custom_batching.custom_vmap
def any_lane(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    """The flag of one game; under ``vmap`` whether that of any game is set, one answer for all of them.

    A ``while_loop`` with this as its condition stays a loop with one condition when it is mapped. With a condition of each
    game's own, the whole carry would be copied at each step, to keep games as they are that have finished.
    """
    return flag


@any_lane.def_vmap
def _any_of_batch(size: int, mapped: list[bool], flags: Bool[Array, "batch"]) -> tuple[Bool[Array, ""], bool]:
    del size
    return any_lane(jnp.any(flags) if mapped[0] else flags), False


def random_words(key: PRNGKeyArray, count: int) -> UInt32[Array, "count"]:
    """Random words, by hashing the words of the key.

    A key that ``jax.random.split`` made is random already. To run it through its generator again would cost more than a whole
    move of a simple game.
    """

    def words(data: UInt32[Array, "data lanes"]) -> UInt32[Array, "count lanes"]:
        word = reduce(lambda word, more: hash32(word, more.astype(jnp.int32)), data)
        return hash32(word[None], jnp.arange(count, dtype=jnp.int32)[:, None])

    # Materialized, since keys lie interleaved, and whatever the hash were fused with would be read as slowly as they are.
    return per_lane(partial(materialize, words))(jax.random.key_data(key))


def while_any(
    condition: Callable[[T], Bool[Array, "lanes"]],
    body: Callable[[C, T], T],
    constants: C,
    carry: T,
    share: int = CHUNK_SHARE,
) -> T:
    """Repeat ``carry = body(constants, carry)`` in each lane while ``condition(carry)`` holds there.

    ``condition`` gives one bool a lane. Each round gathers one in ``share`` of all lanes from those that still want one, and
    no others.
    """
    lanes = jax.tree.leaves(carry)[0].shape[-1]
    chunk = min(lanes, -(-lanes // (share * VECTOR)) * VECTOR)

    def round_(carry: T) -> T:
        lane = some_set(condition(carry), chunk)
        some = jax.tree.map(lambda leaf: jnp.take(leaf, lane, axis=-1, mode="clip"), (constants, carry))
        some = materialize(body, *some)
        after: T = jax.tree.map(lambda leaf, new: leaf.at[..., lane].set(new, mode="drop"), carry, some)
        return after

    def any_left(carry: T) -> Array:
        return jnp.any(condition(carry))

    return lax.while_loop(any_left, round_, carry)


def where_needed(
    needed: Bool[Array, "lanes"],
    function: Callable[..., Int32[Array, "lanes"]],
    args: tuple[PyTree, ...],
    otherwise: Int32[Array, "lanes"],
    share: int = CHUNK_SHARE,
) -> Int32[Array, "lanes"]:
    """``where(needed, function(*args), otherwise)``, for a function too dear to ask in every lane; ``share`` as above."""

    def once(args: tuple[PyTree, ...], carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return jnp.zeros_like(carry[0]), function(*args)

    return while_any(lambda carry: carry[0], once, args, (needed, otherwise), share)[1]


def some_set(flags: Bool[Array, "lanes"], count: int) -> Int32[Array, "count"]:
    """Indices of ``count`` flags that are set; ``lanes`` where there are no more. In no particular order.

    Twice as fast on a CPU as ``jnp.nonzero(size=count)``: the flags are packed into words, flag ``i`` into word
    ``i % words``, and the j-th is found by counting words, then bits. All sums run over a leading axis.
    """
    words = -(-flags.shape[0] // WORD_BITS)
    rows = jnp.pad(flags, (0, words * WORD_BITS - flags.shape[0])).reshape(WORD_BITS, words).astype(jnp.uint32)
    packed = reduce(jnp.bitwise_or, [row << np.uint32(i) for i, row in enumerate(rows)])
    sizes = popcount(packed)
    before = jnp.sum(jnp.where(np.tri(words, k=-1, dtype=bool).T, sizes[:, None], 0), axis=0)
    rank = jnp.arange(count)
    word = jnp.sum(before[:, None] <= rank[None], axis=0) - 1
    bit = kth_set_bit(packed[word], rank - before[word])
    return jnp.where(rank < jnp.sum(sizes), bit * words + word, flags.shape[0])
