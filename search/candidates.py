"""The K candidate actions of a node, sampled by their priors without replacement (as in Sampled MuZero, Hubert et al. 2021)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.bits import hash32, systematic_sample
from tilewe_jax.game import Game
from tilewe_jax.lanes import any_lane, mapped_together, random_words, subkey
from tilewe_jax.search.evaluators import LogitsFn, uniform_logits
from tilewe_jax.search.settings import DEFAULT_CANDIDATE_POOL
from tilewe_jax.utils.loops import cond, while_loop


class Candidates(NamedTuple):
    """The candidate actions of a node."""

    actions: Int32[Array, "K"]
    """Action ids, padded with -1."""
    logits: Float32[Array, "K"]
    """Logits of the actions, padded with minus infinity."""
    truncated_prior: Float32[Array, ""]
    """Prior probability of the legal actions that are not candidates."""
    num_truncated: Int32[Array, ""]
    """Number of legal actions that are not candidates."""
    is_narrow: Bool[Array, ""]
    """True if ``root_candidate_pool`` would score more legal actions."""
    outcome: Int32[Array, ""]
    """Outcome for the player to move that a lookahead has proven: 1 a win, -1 a loss, 0 unknown."""


class Widening(NamedTuple):
    """The larger pool of roots and of nodes that are widened."""

    pool: int
    """Maximum number of legal actions to score."""
    is_wide: Bool[Array, ""] | bool
    """True if this node uses it."""
    kept: Int32[Array, "K"] | None = None
    """Candidates that keep their places, -1 in free places and, without ``is_wide``, in all. ``None``: all places are free."""


def sample_candidates(
    game: Game[Any],
    state: Any,
    logits: LogitsFn,
    key: PRNGKeyArray,
    num_candidates: int,
    candidate_pool: int | None = None,
    lookahead: bool = False,
    widening: Widening | None = None,
) -> Candidates:
    """Return K legal actions: all of them if they fit, otherwise a sample without replacement from softmax(logits).

    The sample is the top K by logit + Gumbel noise (Kool et al. 2019). Without noise, equal priors would always select the
    lowest action ids, which in Tilewe are the smallest pieces.

    Args:
        game: the game.
        state: the position.
        logits: logits of legal actions; with ``uniform_logits`` nothing is scored, and K actions are drawn directly.
        key: consumed.
        num_candidates: K.
        candidate_pool: maximum number of legal actions to score; beyond that, a uniform sample of them. ``None`` means
            ``DEFAULT_CANDIDATE_POOL``.
        lookahead: whether to drop all actions except proven wins if there are any, and proven losses if there are other
            actions, see ``Game.outcomes_of_actions``. Dropped actions do not count as truncated.
        widening: a larger pool for some nodes, and candidates that are kept. ``None`` means the same pool for all nodes.
    """
    candidate_pool = DEFAULT_CANDIDATE_POOL if candidate_pool is None else candidate_pool
    largest = num_candidates if logits is uniform_logits and not lookahead else game.num_actions
    size, wide = (max(min(pool, largest), num_candidates) for pool in (candidate_pool, widening.pool if widening else 0))

    def choose(pool: _Pool, kept: Array | None = None) -> Candidates:
        legal, outcome = game.num_legal(state), jnp.int32(0)
        if lookahead:
            pool, legal, outcome = _with_best_outcome(game, state, pool, legal)
        return _choose(pool, legal, subkey(key, 1), num_candidates, kept)._replace(outcome=outcome)

    if widening is None or wide <= size:
        actions = game.sample_actions(state, subkey(key, 0), size)
        return choose(_Pool(actions, logits(actions)))
    is_wide = jnp.asarray(widening.is_wide)
    pool = _score_in_parts(game, state, logits, subkey(key, 0), jnp.where(is_wide, wide, size).astype(jnp.int32), size, wide)
    chosen: Candidates = cond(
        any_lane(is_wide),
        lambda pool: choose(pool.first(wide), widening.kept),
        lambda pool: choose(pool.first(size)),
        pool,
    )
    return chosen._replace(is_narrow=~is_wide & (game.num_legal(state) > size))


class _Pool(NamedTuple):
    """The legal actions that are scored."""

    actions: Int32[Array, "size"]
    """Action ids, padded with -1."""
    logits: Float32[Array, "size"]
    """Their logits; arbitrary in the padding."""

    def first(self, size: int) -> "_Pool":
        """Return the first actions."""
        return _Pool(self.actions[:size], self.logits[:size])


def _score_in_parts(
    game: Game[Any],
    state: Any,
    logits: LogitsFn,
    key: PRNGKeyArray,
    size: Int32[Array, ""],
    part: int,
    max_size: int,
) -> _Pool:
    """Draw ``size`` actions like ``Game.sample_actions``, and score them, ``part`` actions at a time.

    Pools of different sizes thus share one program, most of which draws and scores actions.

    Args:
        game: the game.
        state: the position.
        logits: logits of legal actions.
        key: consumed.
        size: size of the pool, at most ``max_size``.
        part: number of actions that the program processes together.
        max_size: size of the result.
    """
    bits, legal = random_words(key, 1)[0], game.num_legal(state)

    def goes_on(carry: tuple[Array, _Pool]) -> Array:
        first, _ = carry
        going: Array = any_lane((first < size) & (first < legal))
        return going

    def score_part(carry: tuple[Array, _Pool]) -> tuple[Array, _Pool]:
        first, pool = carry
        members = first + jnp.arange(part, dtype=jnp.int32)
        actions = game.nth_legal(state, systematic_sample(bits, legal, size, members))
        scored = _Pool(actions, logits(actions))
        return first + part, jax.tree.map(lambda all, new: jax.lax.dynamic_update_slice(all, new, (first,)), pool, scored)

    padded = -(-max_size // part) * part
    empty = mapped_together(_Pool(jnp.full(padded, -1, jnp.int32), jnp.zeros(padded, jnp.float32)))
    pool: _Pool
    _, pool = while_loop(goes_on, score_part, (jnp.int32(0), empty))
    return pool


def _with_best_outcome(
    game: Game[Any], state: Any, pool: _Pool, legal: Int32[Array, ""]
) -> tuple[_Pool, Int32[Array, ""], Int32[Array, ""]]:
    """Drop the actions that a lookahead refutes; return the pool, the number of the other legal actions, and the outcome."""
    available = pool.actions >= 0
    count = jnp.sum(available, dtype=jnp.int32)
    outcomes = jnp.where(available, game.outcomes_of_actions(state, pool.actions), -2)
    best = jnp.max(outcomes)
    outcome = jnp.where((best == 1) | ((best == -1) & (count == legal)), best, 0)
    available = available & (outcomes == best)
    num_refuted = count - jnp.sum(available, dtype=jnp.int32)
    return pool._replace(actions=jnp.where(available, pool.actions, -1)), legal - num_refuted, outcome


def _choose(
    pool: _Pool, legal: Int32[Array, ""], key: PRNGKeyArray, num_candidates: int, kept: Int32[Array, "K"] | None
) -> Candidates:
    """Choose among the scored actions of a node that has ``legal`` actions; see ``sample_candidates`` and ``Widening``."""
    actions = pool.actions
    available = actions >= 0
    count = jnp.sum(available, dtype=jnp.int32)
    scores = jnp.where(available, pool.logits, -jnp.inf)
    # Estimate of the mass of all legal actions from the sample.
    total = jax.nn.logsumexp(scores) + jnp.log(legal.astype(jnp.float32) / jnp.maximum(count, 1).astype(jnp.float32))
    if kept is not None:
        is_kept = (actions[:, None] == kept[None]) & (kept >= 0)[None]
        # A kept action outside of the sample gets the lowest logit of the sample.
        kept_scores = jnp.max(jnp.where(is_kept, scores[:, None], jnp.min(jnp.where(available, scores, jnp.inf))), axis=0)
        is_new = ~jnp.any(is_kept, axis=1)
        actions, scores = jnp.where(is_new, actions, -1), jnp.where(is_new, scores, -jnp.inf)
    if actions.shape[0] > num_candidates:
        _, best = jax.lax.top_k(scores + _gumbel(key, scores.shape[0]), num_candidates)
        # Without the barrier, a GPU recomputes the scores at every use.
        actions, scores = (part[best] for part in jax.lax.optimization_barrier((actions, scores)))
    if kept is not None:
        free = kept < 0
        place = jnp.cumsum(free, dtype=jnp.int32) - 1
        actions, scores = jnp.where(free, actions[place], kept), jnp.where(free, scores[place], kept_scores)
    mass = jnp.exp(jax.nn.logsumexp(scores) - total)
    chosen = jnp.sum(actions >= 0, dtype=jnp.int32)
    truncated_prior = jnp.where(chosen > 0, jnp.maximum(1 - mass, 0.0), 0.0)
    return Candidates(actions, scores, truncated_prior, legal - chosen, jnp.asarray(False), jnp.int32(0))


def _gumbel(key: PRNGKeyArray, count: int) -> Float32[Array, "count"]:
    """Draw from the standard Gumbel distribution, at a fraction of the cost of ``jax.random.gumbel``, see ``subkey``."""
    words = hash32(random_words(key, 1), jnp.arange(count, dtype=jnp.int32))
    uniform = ((words >> np.uint32(9)).astype(jnp.float32) + 0.5) / 2**23  # less than 1 in float32
    return -jnp.log(-jnp.log(uniform))
