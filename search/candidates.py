"""The K candidate actions of a node, sampled by their priors without replacement (as in Sampled MuZero, Hubert et al. 2021)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game
from tilewe_jax.search.evaluators import LogitsFn, uniform_logits
from tilewe_jax.search.settings import DEFAULT_CANDIDATE_POOL


class Candidates(NamedTuple):
    """The candidates of a node, and what is left out."""

    actions: Int32[Array, "K"]
    """Action ids; -1 in places left over."""
    logits: Float32[Array, "K"]
    """Minus infinity in places left over."""
    truncated_prior: Float32[Array, ""]
    """Prior probability of the legal actions that are no candidates."""
    num_truncated: Int32[Array, ""]
    """Number of these actions."""
    outcome: Int32[Array, ""]
    """What a lookahead has proven of the position: 1 a win of the player to move, -1 a loss, 0 neither."""


def sample_candidates(
    game: Game[Any],
    state: Any,
    logits: LogitsFn,
    key: PRNGKeyArray,
    num_candidates: int,
    candidate_pool: int | None = None,
    lookahead: bool = False,
) -> Candidates:
    """K legal actions: all of them where they fit, else drawn without replacement by softmax(logits).

    They are drawn as the best by logit + Gumbel noise (Kool et al. 2019). Always the highest logits would be the lowest ids
    where priors are equal, which in Tilewe are the smallest pieces.

    Args:
        game: the game.
        state: the position.
        logits: the logits of legal actions. ``uniform_logits`` is recognised: nothing is scored then, K are drawn at once.
        key: consumed.
        num_candidates: K.
        candidate_pool: at most this many legal actions are scored, a uniform sample that stands for all of them. ``None`` is
            ``DEFAULT_CANDIDATE_POOL``.
        lookahead: whether actions are left out that provably lose, see ``Game.outcomes_of_actions``, as long as there are
            others; and all but those that win where there are some. Nothing that is left out so counts as truncated.
    """
    candidate_pool = DEFAULT_CANDIDATE_POOL if candidate_pool is None else candidate_pool
    key_actions, key_noise = jax.random.split(key)
    is_uniform = logits is uniform_logits and not lookahead
    size = num_candidates if is_uniform else min(candidate_pool, game.num_actions)
    actions = game.sample_actions(state, key_actions, max(size, num_candidates))
    available = actions >= 0
    count, legal = jnp.sum(available, dtype=jnp.int32), game.num_legal(state)
    outcome = jnp.int32(0)
    if lookahead:
        outcomes = jnp.where(available, game.outcomes_of_actions(state, actions), -2)
        best = jnp.max(outcomes)
        outcome = jnp.where((best == 1) | ((best == -1) & (count == legal)), best, 0)
        available = available & (outcomes == best)
        actions = jnp.where(available, actions, -1)
        num_refuted = count - jnp.sum(available, dtype=jnp.int32)
        count, legal = count - num_refuted, legal - num_refuted
    scores = jnp.where(available, logits(actions), -jnp.inf)
    # The mass of all legal actions, as that of the sample stands for it.
    total = jax.nn.logsumexp(scores) + jnp.log(legal.astype(jnp.float32) / jnp.maximum(count, 1).astype(jnp.float32))
    if actions.shape[0] > num_candidates:
        _, best = jax.lax.top_k(scores + jax.random.gumbel(key_noise, scores.shape, jnp.float32), num_candidates)
        # Without the barrier, a GPU scores the best actions again wherever they are used.
        actions, scores = (part[best] for part in jax.lax.optimization_barrier((actions, scores)))
    mass = jnp.exp(jax.nn.logsumexp(scores) - total)
    kept = jnp.sum(actions >= 0, dtype=jnp.int32)
    return Candidates(actions, scores, jnp.where(kept > 0, jnp.maximum(1 - mass, 0.0), 0.0), legal - kept, outcome)
