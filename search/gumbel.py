"""Gumbel AlphaZero: sequential halving at the root, a deterministic rule below (Danihelka et al. 2022)."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from search.tree import Tree, check_counts, first_highest

_LITTLE = -1e9


@dataclass(frozen=True)
class Gumbel:
    """The settings of the Gumbel search. Raises ``ValueError`` for values outside of what is described here."""

    simulations: int
    """How many the root plans for."""
    considered: int = 16
    """How many candidates the root begins with."""
    scale: float = 1.0
    """Of the Gumbel noise at the root; 0 plays the same in the same position."""
    value_scale: float = 0.1
    """How much values count against logits."""
    visits_offset: float = 50.0
    """Values count more with more visits of the most visited candidate; this is added to them."""
    rescale: bool = True
    """Values are stretched so that those of a node's candidates lie between 0 and 1."""

    def __post_init__(self) -> None:
        check_counts(simulations=self.simulations, considered=self.considered)
        if self.scale < 0 or self.value_scale < 0:
            raise ValueError(f"scale and value_scale must not be negative, not {self.scale} and {self.value_scale}")

    def keep(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """The logits as they are."""
        return logits

    def priors(self, kept: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """softmax(logits)."""
        there = kept > -jnp.inf
        return jnp.where(there, jax.nn.softmax(jnp.where(there, kept, _LITTLE)), 0.0)

    def begin(self, logits: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """The noise of the root's candidates."""
        return self.scale * jax.random.gumbel(key, logits.shape)

    def at_root(self, tree: Tree[Any], noise: Float32[Array, "K"], simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """The best of the candidates that have as many visits as sequential halving wants now."""
        there = jnp.sum(tree.action[0] >= 0, dtype=jnp.int32)
        table = jnp.asarray(schedule(min(self.considered, tree.action.shape[1]), self.simulations))
        wanted = table[jnp.minimum(there, table.shape[0] - 1), jnp.minimum(simulation, self.simulations - 1)]
        return self._best(tree, noise, wanted)

    def below(self, tree: Tree[Any], node: Int32[Array, ""]) -> Int32[Array, ""]:
        """The candidate whose share of the visits lags most behind its share in the improved policy."""
        visits, _ = tree.edges(node)
        shares = visits.astype(jnp.float32) / (1 + jnp.sum(visits).astype(jnp.float32))
        lag = jnp.where(tree.action[node] >= 0, self.improved(tree, node) - shares, -jnp.inf)
        return first_highest(lag)

    def is_settled(self, tree: Tree[Any], left: Int32[Array, ""]) -> Bool[Array, ""]:
        """Whether there is nothing to choose; else halving goes on to its end."""
        del left
        return jnp.sum(tree.action[0] >= 0) <= 1

    def finish(
        self, tree: Tree[Any], noise: Float32[Array, "K"], key: PRNGKeyArray
    ) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """The candidate to play, the best of the most visited ones, and the improved policy."""
        del key
        visits, _ = tree.edges(jnp.int32(0))
        return self._best(tree, noise, jnp.max(visits)), self.improved(tree, jnp.int32(0))

    def improved(self, tree: Tree[Any], node: Int32[Array, ""]) -> Float32[Array, "K"]:
        """softmax(logits + completed values)."""
        logits = tree.prior[node]
        there = logits > -jnp.inf
        policy = jax.nn.softmax(jnp.where(there, logits, _LITTLE) + self._completed(tree, node))
        return jnp.where(there, policy, 0.0)

    def _best(self, tree: Tree[Any], noise: Float32[Array, "K"], wanted: Int32[Array, ""]) -> Int32[Array, ""]:
        visits, _ = tree.edges(jnp.int32(0))
        logits = tree.prior[0] - jnp.max(tree.prior[0])
        score = jnp.maximum(noise + logits + self._completed(tree, jnp.int32(0)), _LITTLE)
        score = jnp.where(visits == wanted, score, -jnp.inf)
        return first_highest(jnp.where(tree.action[0] >= 0, score, -jnp.inf))

    def _completed(self, tree: Tree[Any], node: Int32[Array, ""]) -> Float32[Array, "K"]:
        """Values of the candidates, those without visits taken from their node, on the scale of logits."""
        visits, values = tree.edges(node)
        visited, total = visits > 0, jnp.sum(visits).astype(jnp.float32)
        there, priors = tree.prior[node] > -jnp.inf, self.priors(tree.prior[node])
        # The node's own value and those of its candidates, weighted by priors (appendix D of the paper).
        mass = jnp.maximum(jnp.sum(jnp.where(visited, priors, 0.0)), jnp.finfo(jnp.float32).tiny)
        weighted = jnp.sum(jnp.where(visited, jnp.maximum(priors, jnp.finfo(jnp.float32).tiny) * values, 0.0)) / mass
        mixed = (tree.own[node, tree.player[node]] + total * weighted) / (1 + total)
        completed = jnp.where(visited, values, mixed)
        if self.rescale:
            low = jnp.min(jnp.where(there, completed, jnp.inf))
            high = jnp.max(jnp.where(there, completed, -jnp.inf))
            completed = (completed - low) / jnp.maximum(high - low, 1e-8)
        most = jnp.max(visits).astype(jnp.float32)
        return jnp.where(there, (self.visits_offset + most) * self.value_scale * completed, 0.0)


@cache
def schedule(considered: int, simulations: int) -> np.ndarray:
    """For so many candidates, row by row, and each simulation, how many visits the next candidate to visit has.

    Sequential halving: all candidates are visited equally often, then the better half, and so on.
    """
    return np.array([_sequence(count, simulations) for count in range(considered + 1)], np.int32)


def _sequence(considered: int, simulations: int) -> list[int]:
    if considered <= 1:
        return list(range(simulations))
    rounds = (considered - 1).bit_length()
    sequence: list[int] = []
    visits, left = [0] * considered, considered
    while len(sequence) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            sequence.extend(visits[:left])
            visits[:left] = [count + 1 for count in visits[:left]]
        left = max(2, left // 2)
    return sequence[:simulations]
