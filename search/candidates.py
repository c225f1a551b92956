"""The K actions that a node keeps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from search.evaluators import Logits
from tilewe_jax.game import Game

POOL = 1024
"""Of more legal actions than this, so many are looked at."""


class Candidates(NamedTuple):
    """The candidates of a node, and what is left out."""

    actions: Int32[Array, "K"]
    """-1 in places left over."""
    logits: Float32[Array, "K"]
    """Minus infinity in places left over."""
    dropped: Float32[Array, ""]
    """The share of the prior that other legal actions have."""
    left_out: Int32[Array, ""]
    """The number of these."""


def candidates(game: Game[Any], state: Any, logits: Logits, key: PRNGKeyArray, k: int, pool: int = POOL) -> Candidates:
    """K legal actions.

    They are all legal actions where those fit. Else they are drawn without replacement by softmax(logits), that is, they are
    the best by logit + Gumbel noise (Kool et al. 2019); without logits all are equally likely. Always the highest logits would
    be the lowest ids where priors are equal, which in Tilewe are the smallest pieces.

    No more than ``pool`` legal actions are looked at, and taken for the others.
    """
    one, other = jax.random.split(key)
    size = min(pool, game.num_actions) if logits is not None else k
    actions = game.sample_actions(state, one, max(size, k))
    there = actions >= 0
    count, legal = jnp.sum(there, dtype=jnp.int32), game.num_legal(state)
    if logits is None:
        found = jnp.zeros(actions.shape, jnp.float32)
    else:
        found = logits(actions) if callable(logits) else jnp.take(logits, actions, mode="clip")
    found = jnp.where(there, found, -jnp.inf)
    every = jax.nn.logsumexp(found) + jnp.log(legal.astype(jnp.float32) / jnp.maximum(count, 1).astype(jnp.float32))
    if actions.shape[0] > k:
        _, best = jax.lax.top_k(found + jax.random.gumbel(other, found.shape), k)
        actions, found = actions[best], found[best]
    mass = jnp.exp(jax.nn.logsumexp(found) - every)
    kept = jnp.sum(actions >= 0, dtype=jnp.int32)
    return Candidates(actions, found, jnp.where(kept > 0, jnp.maximum(1 - mass, 0.0), 0.0), legal - kept)
