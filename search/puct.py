"""PUCT with first-play urgency, Dirichlet noise and forced playouts (Silver et al. 2017; Wu 2019)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.search.rules import ChildStats, RootContext, first_argmax
from tilewe_jax.settings import setting, validate


@dataclass(frozen=True)
class PuctRule:
    """Selection by PUCT; nodes store candidate probabilities. Raises ``ValueError`` for settings out of range."""

    c_init: float = setting(1.25, 0)
    """Weight of priors against values; ``pb_c_init`` in MuZero."""
    c_base: float = setting(19_652.0, 1)
    """Number of visits of a node after which the weight has grown by log(2); ``pb_c_base`` in MuZero."""
    fpu_value: float | None = setting(None)
    """First-play urgency: value of unvisited candidates; ``None`` uses the value of the node minus ``fpu_reduction``."""
    fpu_reduction: float = setting(0.1, 0)
    """First-play urgency reduction, scaled by the square root of the prior probability of the visited candidates (KataGo)."""
    dirichlet_alpha: float = setting(0.0, 0)
    """Concentration of the Dirichlet noise in the root priors; 0 means no noise."""
    dirichlet_fraction: float = setting(0.25, 0, 1)
    """Fraction of Dirichlet noise in the root priors."""
    forced_playouts: float = setting(0.0, 0)
    """A visited root candidate with prior p gets at least sqrt(forced_playouts * p * visits) visits; the policy excludes visits
    that only this rule explains (k in KataGo, which uses 2). 0 disables the rule."""
    temperature: float = setting(0.0, 0)
    """Sample the action in proportion to visits ** (1 / temperature); 0 plays the most visited candidate."""
    value_temperature: float = setting(0.0, 0)
    """Sample the action among the visited candidates in proportion to exp(mean value / value_temperature): weaker play that
    errs in small things, as people do. 0 disables it."""

    def __post_init__(self) -> None:
        validate(self)

    def store_logits(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Return the softmax of the logits, padded with 0."""
        available = logits > -jnp.inf
        return jnp.where(available, jax.nn.softmax(jnp.where(jnp.any(available), logits, 0.0)), 0.0)

    def prior_probs(self, stored: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Return the stored probabilities."""
        return stored

    def root_noise(self, stored: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """Return the root priors mixed with Dirichlet noise."""
        if not self.dirichlet_alpha:
            return stored
        noise = jnp.where(stored > 0, jax.random.gamma(key, self.dirichlet_alpha, stored.shape), 0.0)
        noise = noise / jnp.maximum(jnp.sum(noise), jnp.finfo(jnp.float32).tiny)
        return (1 - self.dirichlet_fraction) * stored + self.dirichlet_fraction * noise

    def select_root(self, stats: ChildStats, root: RootContext, simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """Return the candidate with the highest PUCT score under the noisy priors; forced playouts take precedence."""
        del simulation
        scores = self._scores(stats, root.noise)
        if self.forced_playouts:
            visits = stats.visits.astype(jnp.float32)
            required = jnp.sqrt(self.forced_playouts * root.noise * jnp.sum(stats.visits, dtype=jnp.int32).astype(jnp.float32))
            scores = jnp.where((stats.visits > 0) & (visits < required), jnp.inf, scores)
        return first_argmax(scores)

    def select_interior(self, stats: ChildStats) -> Int32[Array, ""]:
        """Return the candidate with the highest PUCT score."""
        return first_argmax(self._scores(stats, stats.prior))

    def is_decided(self, stats: ChildStats, root: RootContext, remaining: Int32[Array, ""]) -> Bool[Array, ""]:
        """Return whether no other candidate can still overtake the most visited one."""
        del root
        visits = stats.visits
        only_one = jnp.sum(stats.available, dtype=jnp.int32) <= 1
        if self.temperature or self.value_temperature or self.forced_playouts:
            return only_one
        most = jnp.max(visits)
        leads = (visits == most) & stats.available
        second = jnp.max(jnp.where(leads & (jnp.cumsum(leads, dtype=jnp.int32) == 1), 0, visits))
        return only_one | (most > second + remaining)

    def output(self, stats: ChildStats, root: RootContext, key: PRNGKeyArray) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """Return the most visited or sampled candidate, and the normalized visit counts without forced playouts.

        Without visits (a root proven by a lookahead, or a single candidate), priors replace the visit counts.
        """
        visits = stats.visits
        if self.forced_playouts:
            visits = self._without_forced(stats, root.noise)
        weights = jnp.where(jnp.any(visits > 0), visits.astype(jnp.float32), stats.prior)
        policy = weights / jnp.maximum(jnp.sum(weights), 1)
        most_visited = jnp.argmax(jnp.where(stats.available, weights, -1)).astype(jnp.int32)
        if self.value_temperature:
            logits = stats.value / self.value_temperature
        elif self.temperature:
            logits = jnp.log(visits.astype(jnp.float32)) / self.temperature
        else:
            return most_visited, policy
        sampled = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf)).astype(jnp.int32)
        return jnp.where(jnp.any(visits > 0), sampled, most_visited), policy

    def _scores(self, stats: ChildStats, priors: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Return Q + U of every candidate, padded with minus infinity."""
        count = stats.node_visits.astype(jnp.float32)
        priors = jnp.where(stats.available, priors, -1.0)
        if self.fpu_value is None:
            visited_prior = jnp.sum(jnp.where(stats.visits > 0, priors, 0.0))
            urgency = stats.node_value - self.fpu_reduction * jnp.sqrt(visited_prior)
        else:
            urgency = jnp.float32(self.fpu_value)
        weight = (self.c_init + jnp.log((count + self.c_base + 1) / self.c_base)) * jnp.sqrt(count)
        scores = jnp.where(stats.visits > 0, stats.value, urgency) + weight * priors / (1 + stats.visits.astype(jnp.float32))
        return jnp.where(priors >= 0, scores, -jnp.inf)

    def _without_forced(self, stats: ChildStats, priors: Float32[Array, "K"]) -> Int32[Array, "K"]:
        """Return the visits without forced playouts (policy target pruning, Wu 2019)."""
        visits, values = stats.visits, stats.value
        total = jnp.sum(visits, dtype=jnp.int32).astype(jnp.float32)
        best = jnp.argmax(visits).astype(jnp.int32)
        is_best = jnp.arange(visits.shape[0], dtype=jnp.int32) == best
        weight = self.c_init * jnp.sqrt(total)
        best_score = values[best] + weight * priors[best] / (1 + visits[best].astype(jnp.float32))
        # With fewer visits, the PUCT score of the candidate would exceed the score of the best one.
        enough = jnp.where(best_score > values, weight * priors / jnp.maximum(best_score - values, 1e-9) - 1, jnp.inf)
        forced = jnp.sqrt(self.forced_playouts * priors * total)
        count = visits.astype(jnp.float32)
        pruned = jnp.clip(jnp.ceil(enough), jnp.maximum(count - forced, 0), count)
        pruned = jnp.where(is_best | ~jnp.isfinite(pruned), count, pruned)
        return jnp.where((pruned <= 1) & ~is_best, 0.0, pruned).astype(jnp.int32)
