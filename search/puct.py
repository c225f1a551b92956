"""PUCT: which candidate a simulation follows, and what its visits say in the end (Silver et al. 2017)."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from search.tree import Tree, first_highest


@dataclass(frozen=True)
class Puct:
    """The settings of PUCT. Raises ``ValueError`` for values outside of what is described here."""

    exploration: float = 1.25
    """How much priors count against values."""
    exploration_base: float = 19_652.0
    """After so many visits exploration has grown by log(2)."""
    unvisited: float | None = None
    """What a candidate without visits is taken to be worth; ``None`` is the value of its node, less the following."""
    reduction: float = 0.1
    """First-play urgency: what is taken off that value, times the root of the visited candidates' share of the prior."""
    dirichlet_alpha: float = 0.0
    """Noise in the priors at the root, a Dirichlet distribution with this parameter; 0 for none."""
    dirichlet_share: float = 0.25
    """Share of the noise in the priors."""
    forced: float = 0.0
    """At the root a visited candidate of prior p is visited at least sqrt(forced * p * visits) times; 0 for no such rule."""
    temperature: float = 0.0
    """The action is drawn by visits ** (1 / temperature); 0 takes the most visited one."""

    def __post_init__(self) -> None:
        for name in ("exploration", "exploration_base", "dirichlet_alpha", "forced", "temperature", "reduction"):
            if not (value := getattr(self, name)) >= 0:
                raise ValueError(f"{name} must not be negative, not {value}")
        if not 0 <= self.dirichlet_share <= 1:
            raise ValueError(f"dirichlet_share must be between 0 and 1, not {self.dirichlet_share}")

    def keep(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Probabilities; 0 where there is no candidate."""
        there = logits > -jnp.inf
        return jnp.where(there, jax.nn.softmax(jnp.where(jnp.any(there), logits, 0.0)), 0.0)

    def priors(self, kept: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """What a node keeps."""
        return kept

    def begin(self, priors: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """The priors at the root, with noise."""
        if not self.dirichlet_alpha:
            return priors
        noise = jnp.where(priors > 0, jax.random.gamma(key, self.dirichlet_alpha, priors.shape), 0.0)
        noise = noise / jnp.maximum(jnp.sum(noise), jnp.finfo(jnp.float32).tiny)
        return (1 - self.dirichlet_share) * priors + self.dirichlet_share * noise

    def at_root(self, tree: Tree[Any], priors: Float32[Array, "K"], simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """The candidate that a simulation follows from the root."""
        del simulation
        scores = self._at(tree, jnp.int32(0), priors)
        if self.forced:
            visits, _ = tree.edges(jnp.int32(0))
            needed = jnp.sqrt(self.forced * priors * jnp.sum(visits).astype(jnp.float32))
            scores = jnp.where((visits > 0) & (visits.astype(jnp.float32) < needed), jnp.inf, scores)
        return first_highest(scores)

    def below(self, tree: Tree[Any], node: Int32[Array, ""]) -> Int32[Array, ""]:
        """The candidate that a simulation follows from any other node."""
        return first_highest(self._at(tree, node, tree.prior[node]))

    def is_settled(self, tree: Tree[Any], left: Int32[Array, ""]) -> Bool[Array, ""]:
        """Whether the most visited candidate has more visits than any other can get."""
        visits, _ = tree.edges(jnp.int32(0))
        if self.temperature or self.forced:
            return jnp.sum(tree.action[0] >= 0) <= 1
        most = jnp.max(visits)
        leads = (visits == most) & (tree.action[0] >= 0)
        second = jnp.max(jnp.where(leads & (jnp.cumsum(leads) == 1), 0, visits))
        return (jnp.sum(tree.action[0] >= 0) <= 1) | (most > second + left)

    def finish(
        self, tree: Tree[Any], priors: Float32[Array, "K"], key: PRNGKeyArray
    ) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """The candidate to play, and the shares of the visits; those that were forced are taken off first."""
        visits, values = tree.edges(jnp.int32(0))
        if self.forced:
            visits = self._without_forced(visits, values, priors)
        shares = visits.astype(jnp.float32) / jnp.maximum(jnp.sum(visits), 1).astype(jnp.float32)
        most = jnp.argmax(jnp.where(tree.action[0] >= 0, visits, -1)).astype(jnp.int32)
        if not self.temperature:
            return most, shares
        logits = jnp.log(visits.astype(jnp.float32)) / self.temperature
        drawn = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf)).astype(jnp.int32)
        return jnp.where(jnp.any(visits > 0), drawn, most), shares

    def _at(self, tree: Tree[Any], node: Int32[Array, ""], priors: Float32[Array, "K"]) -> Float32[Array, "K"]:
        visits, values = tree.edges(node)
        count = tree.visits[node].astype(jnp.float32)
        mean = tree.values[node, tree.player[node]] / count
        return self.scores(visits, values, jnp.where(tree.action[node] >= 0, priors, -1.0), count, mean)

    def scores(
        self,
        visits: Int32[Array, "K"],
        values: Float32[Array, "K"],
        priors: Float32[Array, "K"],
        count: Float32[Array, ""],
        mean: Float32[Array, ""],
    ) -> Float32[Array, "K"]:
        """What candidates are followed by, given visits and mean values; those of their node are ``count`` and ``mean``.

        A prior is negative where there is no candidate.
        """
        if self.unvisited is None:
            urgency = mean - self.reduction * jnp.sqrt(jnp.sum(jnp.where(visits > 0, priors, 0.0)))
        else:
            urgency = jnp.float32(self.unvisited)
        weight = (self.exploration + jnp.log((count + self.exploration_base + 1) / self.exploration_base)) * jnp.sqrt(count)
        scores = jnp.where(visits > 0, values, urgency) + weight * priors / (1 + visits.astype(jnp.float32))
        return jnp.where(priors >= 0, scores, -jnp.inf)

    def _without_forced(
        self, visits: Int32[Array, "K"], values: Float32[Array, "K"], priors: Float32[Array, "K"]
    ) -> Int32[Array, "K"]:
        """Visits less those that only the rule of forced playouts explains (Wu 2019, policy target pruning)."""
        total = jnp.sum(visits).astype(jnp.float32)
        best = jnp.argmax(visits)
        weight = self.exploration * jnp.sqrt(total)
        aim = values[best] + weight * priors[best] / (1 + visits[best].astype(jnp.float32))
        # With fewer visits than this a candidate's score would have been above that of the best.
        enough = jnp.where(aim > values, weight * priors / jnp.maximum(aim - values, 1e-9) - 1, jnp.inf)
        forced = jnp.sqrt(self.forced * priors * total)
        count = visits.astype(jnp.float32)
        pruned = jnp.clip(jnp.ceil(enough), jnp.maximum(count - forced, 0), count)
        pruned = jnp.where((jnp.arange(visits.shape[0]) == best) | ~jnp.isfinite(pruned), count, pruned)
        return jnp.where((pruned <= 1) & (jnp.arange(visits.shape[0]) != best), 0.0, pruned).astype(jnp.int32)
