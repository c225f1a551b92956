"""Gumbel AlphaZero: sequential halving at the root, a deterministic rule below it (Danihelka et al. 2022)."""

from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.search.rules import ChildStats, RootContext, first_argmax
from tilewe_jax.settings import setting, validate

# Replaces minus infinity in sums that would otherwise become NaN.
_LOW = -1e9


@dataclass(frozen=True)
class GumbelRule:
    """Selection by Gumbel AlphaZero ("Policy improvement by planning with Gumbel"); nodes store candidate logits.

    In a kept subtree, sequential halving counts only the visits of the current search; values use all visits. Raises
    ``ValueError`` for settings out of range.
    """

    max_num_considered_actions: int = setting(16, 1)
    """Number of candidates in the first phase of sequential halving at the root."""
    gumbel_scale: float = setting(0.0, 0)
    """Scale of the Gumbel noise at the root: 1 for self-play, where it guarantees policy improvement; 0 for deterministic,
    strongest play."""
    value_scale: float = setting(0.1, 0)
    """Weight of values against logits, ``c_scale`` in the paper."""
    maxvisit_init: float = setting(50.0, 0)
    """Constant added to the visits of the most visited candidate, which scale the values; ``c_visit`` in the paper."""
    rescale_values: bool = True
    """Rescale the values of a node's candidates to [0, 1]."""

    def __post_init__(self) -> None:
        validate(self)

    def store_logits(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Return the logits unchanged."""
        return logits

    def prior_probs(self, stored: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Return the softmax of the logits."""
        available = stored > -jnp.inf
        return jnp.where(available, jax.nn.softmax(jnp.where(available, stored, _LOW)), 0.0)

    def root_noise(self, stored: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """Sample Gumbel noise for the root candidates."""
        return self.gumbel_scale * jax.random.gumbel(key, stored.shape, jnp.float32)

    def select_root(self, stats: ChildStats, root: RootContext, simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """Return the best candidate among those with the visit count that sequential halving considers next."""
        available = jnp.sum(stats.available, dtype=jnp.int32)
        table = jnp.asarray(schedule(min(self.max_num_considered_actions, stats.visits.shape[0]), root.num_simulations))
        considered_visit = table[jnp.minimum(available, table.shape[0] - 1), jnp.minimum(simulation, root.num_simulations - 1)]
        return self._best(stats, root, stats.visits - root.kept_visits, considered_visit)

    def select_interior(self, stats: ChildStats) -> Int32[Array, ""]:
        """Return the candidate whose share of the visits is furthest below its improved policy."""
        fractions = stats.visits.astype(jnp.float32) / (1 + jnp.sum(stats.visits, dtype=jnp.int32).astype(jnp.float32))
        return first_argmax(jnp.where(stats.available, self.improved_policy(stats) - fractions, -jnp.inf))

    def is_decided(self, stats: ChildStats, root: RootContext, remaining: Int32[Array, ""]) -> Bool[Array, ""]:
        """Return whether there is at most one candidate; otherwise sequential halving runs to its end."""
        del root, remaining
        return jnp.sum(stats.available, dtype=jnp.int32) <= 1

    def output(self, stats: ChildStats, root: RootContext, key: PRNGKeyArray) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """Return the best of the most visited candidates, and the improved policy."""
        del key
        visits = stats.visits - root.kept_visits
        return self._best(stats, root, visits, jnp.max(visits)), self.improved_policy(stats)

    def improved_policy(self, stats: ChildStats) -> Float32[Array, "K"]:
        """Return the softmax of logits + completed Q-values, padded with 0."""
        available = stats.prior > -jnp.inf
        policy = jax.nn.softmax(jnp.where(available, stats.prior, _LOW) + self._completed_values(stats))
        return jnp.where(available, policy, 0.0)

    def _best(
        self, stats: ChildStats, root: RootContext, visits: Int32[Array, "K"], considered_visit: Int32[Array, ""]
    ) -> Int32[Array, ""]:
        """Return the candidate with the highest noise + logit + completed Q-value among those with the visit count considered.

        If no candidate has this count, the closest counts are considered.
        """
        logits = stats.prior - jnp.max(stats.prior)
        score = jnp.maximum(root.noise + logits + self._completed_values(stats), _LOW)
        # The count can be missing only in an information-set search, whose candidates depend on the determinization.
        distance = jnp.abs(visits - considered_visit).astype(jnp.float32)
        score = jnp.where(visits == considered_visit, score, 2 * _LOW * distance)
        return first_argmax(jnp.where(stats.available, score, -jnp.inf))

    def _completed_values(self, stats: ChildStats) -> Float32[Array, "K"]:
        """Return Q-values on the scale of logits; unvisited candidates get the mixed value of the node."""
        visited, total = stats.visits > 0, jnp.sum(stats.visits, dtype=jnp.int32).astype(jnp.float32)
        available, priors = stats.prior > -jnp.inf, self.prior_probs(stats.prior)
        # Mixed value of the raw value and the candidates' values, weighted by priors (appendix D of the paper).
        tiny = jnp.finfo(jnp.float32).tiny
        mass = jnp.maximum(jnp.sum(jnp.where(visited, priors, 0.0)), tiny)
        weighted = jnp.sum(jnp.where(visited, jnp.maximum(priors, tiny) * stats.value, 0.0)) / mass
        mixed = (stats.raw_value + total * weighted) / (1 + total)
        completed = jnp.where(visited, stats.value, mixed)
        if self.rescale_values:
            low = jnp.min(jnp.where(available, completed, jnp.inf))
            high = jnp.max(jnp.where(available, completed, -jnp.inf))
            completed = (completed - low) / jnp.maximum(high - low, 1e-8)
        most = jnp.max(stats.visits).astype(jnp.float32)
        return jnp.where(available, (self.maxvisit_init + most) * self.value_scale * completed, 0.0)


@cache
def schedule(max_num_considered: int, num_simulations: int) -> np.ndarray:
    """Return the table of sequential halving, ``int32[max_num_considered + 1, num_simulations]``.

    Entry (n, i) is the visit count of the candidate to visit in simulation i if n candidates are considered: all of them are
    visited equally often, then the better half, and so on (``get_table_of_considered_visits`` in mctx).
    """
    return np.array([_sequence(count, num_simulations) for count in range(max_num_considered + 1)], np.int32)


def _sequence(num_considered: int, num_simulations: int) -> list[int]:
    if num_considered <= 1:
        return list(range(num_simulations))
    num_phases = (num_considered - 1).bit_length()
    sequence: list[int] = []
    visits, remaining = [0] * num_considered, num_considered
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * remaining))):
            sequence.extend(visits[:remaining])
            visits[:remaining] = [count + 1 for count in visits[:remaining]]
        remaining = max(2, remaining // 2)
    return sequence[:num_simulations]
