"""The protocol of action selection: which candidate a simulation follows, and what the statistics of the root say in the end.

A rule sees the statistics of a node's candidates and never the tree itself, so any rule works in any search, ``Search`` and
``InformationSetSearch`` alike.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray


class ChildStats(NamedTuple):
    """Statistics of a node and of its K candidates, values being those of the player to move at the node."""

    available: Bool[Array, "K"]
    """Whether there is a candidate in this place."""
    prior: Float32[Array, "K"]
    """What ``SelectionRule.store_logits`` made of the candidates' logits."""
    visits: Int32[Array, "K"]
    value: Float32[Array, "K"]
    """Mean value of the visits; 0 without visits."""
    node_visits: Int32[Array, ""]
    """Visits of the node itself; one more than those of its candidates together where it was evaluated once."""
    node_value: Float32[Array, ""]
    """Mean value of the node's visits; 0 without visits."""
    raw_value: Float32[Array, ""]
    """The evaluator's value of the node, before anything below it was searched."""


class RootContext(NamedTuple):
    """What stays the same at the root throughout a search."""

    noise: Float32[Array, "K"]
    """What ``SelectionRule.root_noise`` gave."""
    kept_visits: Int32[Array, "K"]
    """Visits of the candidates before this search began; 0 unless it goes on in a kept subtree."""
    num_simulations: int
    """The simulations of this search, as its settings say; a Python number."""


@runtime_checkable
class SelectionRule(Protocol):
    """How candidates are selected: a frozen value, such as ``PuctRule`` or ``GumbelRule``."""

    def store_logits(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Map candidate logits (minus infinity: no candidate) to what ``Tree.prior`` stores, probabilities or logits."""

    def prior_probs(self, stored: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Map what ``store_logits`` gave to probabilities; 0 where there is no candidate."""

    def root_noise(self, stored: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """Root noise, drawn once per search: mixed priors (PUCT) or Gumbel noise."""

    def select_root(self, stats: ChildStats, root: RootContext, simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """The index of the candidate that a simulation (0, 1, ...) follows at the root."""

    def select_interior(self, stats: ChildStats) -> Int32[Array, ""]:
        """The index of the candidate that a simulation follows at any other node."""

    def is_decided(self, stats: ChildStats, root: RootContext, remaining: Int32[Array, ""]) -> Bool[Array, ""]:
        """Whether the remaining simulations cannot change the action, given the statistics of the root."""

    def output(self, stats: ChildStats, root: RootContext, key: PRNGKeyArray) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """The index of the candidate to play, and the improved policy over the candidates, which sums to 1."""


def first_argmax(scores: Float32[Array, "K"]) -> Int32[Array, ""]:
    """``argmax``, the first of equals. XLA's own compares one number at a time on a CPU, and takes eight times as long."""
    bits = lax.bitcast_convert_type(scores, jnp.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # as integers they compare as the numbers do
    count = scores.shape[0]
    return jnp.min(jnp.where(ordered == jnp.max(ordered), jnp.arange(count, dtype=jnp.int32), count))
