"""The K actions that a node keeps."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game


def candidates(
    game: Game[Any], state: Any, logits: Float32[Array, "num_actions"] | None, key: PRNGKeyArray, k: int
) -> tuple[Int32[Array, "K"], Float32[Array, "K"], Float32[Array, ""]]:
    """K legal actions, -1 where there are fewer, their logits, and the share of the prior that was dropped.

    They are all legal actions where those fit. Else they are drawn without replacement by softmax(logits), that is, they are
    the best by logit + Gumbel noise; without logits all are equally likely. Always the highest logits would be the lowest ids
    where priors are equal, which in Tilewe are the smallest pieces.
    """
    if logits is None:
        actions = game.random_actions(state, key, k)
        kept = jnp.sum(actions >= 0, dtype=jnp.int32)
        share = kept.astype(jnp.float32) / jnp.maximum(game.num_legal(state), 1).astype(jnp.float32)
        return actions, jnp.where(actions >= 0, 0.0, -jnp.inf), 1 - jnp.where(kept > 0, share, 1.0)
    actions, kept_logits = game.candidates(state, logits, key, k)
    every = jax.nn.logsumexp(jnp.where(game.legal_actions(state), logits, -jnp.inf))
    kept_mass = jnp.exp(jax.nn.logsumexp(kept_logits) - every)
    return actions, kept_logits, jnp.where(jnp.any(actions >= 0), jnp.maximum(1 - kept_mass, 0.0), 0.0)
