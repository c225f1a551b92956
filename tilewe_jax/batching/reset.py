"""Starting games anew: the one auto-reset of the environment, of streams and of self-play."""

from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key, PRNGKeyArray

from tilewe_jax.lanes import while_any

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)

RESET_DIVISOR = 32
"""One game in this many is started per round of resets. Games mostly last longer than this many steps, so that one round is
enough at most steps."""

batch_first = partial(jax.tree.map, lambda leaf: jnp.moveaxis(leaf, -1, 0))
"""Move the batch axis of every leaf from the last place to the first."""
batch_last = partial(jax.tree.map, lambda leaf: jnp.moveaxis(leaf, 0, -1))
"""Move the batch axis of every leaf from the first place to the last."""


@runtime_checkable
class Start(Protocol[S_co]):
    """How games begin: every ``Game`` says so of its own, and others may begin them elsewhere."""

    @property
    def fixed_start(self) -> bool:
        """Whether ``init`` gives the same state for all keys."""
        ...

    def init(self, key: PRNGKeyArray, /) -> S_co:
        """The state in which a game begins."""
        ...


def init_batch(game: Start[S], key: PRNGKeyArray, batch: int) -> S:
    """Initial states of ``batch`` games, ``[batch, ...]``."""
    states: S = jax.vmap(game.init)(jax.random.split(key, batch))
    return states


def auto_reset(game: Start[S], keys: Key[Array, "batch"], ended: Bool[Array, "batch"], state: S) -> S:
    """Replace the games that have ended by new ones.

    Args:
      game: the game, or another start of it.
      keys: one PRNG key a game, ``[batch]``; only those of games that have ended are used.
      ended: which games to replace.
      state: states, ``[batch, ...]``.

    Returns:
      The states, ``[batch, ...]``, with ``game.init(keys[i])`` where ``ended[i]``.
    """
    reset: S = batch_first(auto_reset_lanes(game, keys, ended, batch_last(state)))
    return reset


def auto_reset_lanes(game: Start[S], keys: Key[Array, "lanes"], ended: Bool[Array, "lanes"], state: S) -> S:
    """``auto_reset`` of states whose games stand on the last axis, ``[..., lanes]``.

    Where chance takes part in the start, no game is initialized for lanes that go on.
    """
    if game.fixed_start:
        initial: S = jax.tree.map(lambda leaf: leaf[..., None], game.init(jax.random.key(0)))
        return _select(ended, initial, state)
    impl = jax.random.key_impl(keys)

    def start(key_data: Array, carry: tuple[Array, S]) -> tuple[Array, S]:
        new: S = jax.vmap(game.init, out_axes=-1)(jax.random.wrap_key_data(key_data.T, impl=impl))
        return jnp.zeros_like(carry[0]), new

    return while_any(lambda carry: carry[0], start, jax.random.key_data(keys).T, (ended, state), RESET_DIVISOR)[1]


def _select(lanes: Bool[Array, "lanes"], new: S, old: S) -> S:
    def select(new: Array, old: Array) -> Array:
        return jnp.where(lanes.reshape((1,) * (old.ndim - 1) + (-1,)), new, old)

    selected: S = jax.tree.map(select, new, old)
    return selected
