"""Auto-reset of finished games, shared by environments, streams and self-play."""

from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key, PRNGKeyArray

from tilewe_jax.lanes import while_any

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)

RESET_DIVISOR = 32
"""A round of resets starts ``batch / RESET_DIVISOR`` games. Most games have more steps than this divisor, so that one round
suffices in most steps."""

batch_first = partial(jax.tree.map, lambda leaf: jnp.moveaxis(leaf, -1, 0))
"""Move the batch axis of every leaf from the last place to the first."""
batch_last = partial(jax.tree.map, lambda leaf: jnp.moveaxis(leaf, 0, -1))
"""Move the batch axis of every leaf from the first place to the last."""


@runtime_checkable
class Start(Protocol[S_co]):
    """Source of initial states: a ``Game``, or an object that starts games from other positions."""

    @property
    def fixed_start(self) -> bool:
        """True if ``init`` returns the same state for all keys."""
        ...

    def init(self, key: PRNGKeyArray, /) -> S_co:
        """The initial state of a game."""
        ...


def init_batch(game: Start[S], key: PRNGKeyArray, batch: int) -> S:
    """Initial states of ``batch`` games, ``[batch, ...]``."""
    states: S = jax.vmap(game.init)(jax.random.split(key, batch))
    return states


def auto_reset(game: Start[S], keys: Key[Array, "batch"], ended: Bool[Array, "batch"], state: S) -> S:
    """Replace finished games by new games.

    Args:
      game: the game, or another source of initial states.
      keys: one PRNG key per game; the keys of unfinished games are not used.
      ended: mask of the games to replace.
      state: states, ``[batch, ...]``.

    Returns:
      The states, ``[batch, ...]``, with ``game.init(keys[i])`` where ``ended[i]``.
    """
    reset: S = batch_first(auto_reset_lanes(game, keys, ended, batch_last(state)))
    return reset


def auto_reset_lanes(game: Start[S], keys: Key[Array, "lanes"], ended: Bool[Array, "lanes"], state: S) -> S:
    """``auto_reset`` for states with the batch axis last, ``[..., lanes]``.

    Unless the game has a fixed start, only the finished lanes are initialized.
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
