"""The protocol of action selection: selection at root and interior nodes, and the policy of the finished search.

A rule receives the statistics of a node's candidates, not the tree, so it works in ``Search`` and ``InformationSetSearch``.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray


class ChildStats(NamedTuple):
    """Statistics of a node and its K candidates; values are for the player to move at the node."""

    available: Bool[Array, "K"]
    """Mask of the candidates; false for padding."""
    prior: Float32[Array, "K"]
    """Candidate priors as stored by ``SelectionRule.store_logits``."""
    visits: Int32[Array, "K"]
    """Visit counts of the candidates."""
    value: Float32[Array, "K"]
    """Mean values of the candidates; 0 without visits."""
    node_visits: Int32[Array, ""]
    """Visit count of the node: 1 plus the visits of its candidates."""
    node_value: Float32[Array, ""]
    """Mean value of the node; 0 without visits."""
    raw_value: Float32[Array, ""]
    """The evaluator's value of the node."""


class RootContext(NamedTuple):
    """Data about the root that is constant during a search."""

    noise: Float32[Array, "K"]
    """Root noise, see ``SelectionRule.root_noise``."""
    kept_visits: Int32[Array, "K"]
    """Visits of the candidates before this search; 0 unless the search continues in a kept subtree."""
    num_simulations: int
    """``SearchSettings.num_simulations``, a Python integer."""


@runtime_checkable
class SelectionRule(Protocol):
    """Selection of candidates and of the final action: a frozen dataclass like ``PuctRule`` or ``GumbelRule``."""

    def store_logits(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Map candidate logits (padded with minus infinity) to the array that ``Tree.prior`` stores."""

    def prior_probs(self, stored: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """Map the result of ``store_logits`` to probabilities, padded with 0."""

    def root_noise(self, stored: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """Root noise, drawn once per search: mixed priors (PUCT) or Gumbel noise."""

    def select_root(self, stats: ChildStats, root: RootContext, simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """Return the index of the candidate to follow at the root in a simulation (0, 1, ...)."""

    def select_interior(self, stats: ChildStats) -> Int32[Array, ""]:
        """Return the index of the candidate to follow at any other node."""

    def is_decided(self, stats: ChildStats, root: RootContext, remaining: Int32[Array, ""]) -> Bool[Array, ""]:
        """Return whether the remaining simulations cannot change the action, given the statistics of the root."""

    def output(self, stats: ChildStats, root: RootContext, key: PRNGKeyArray) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """Return the index of the candidate to play, and the improved policy over the candidates, which sums to 1."""


def first_argmax(scores: Float32[Array, "K"]) -> Int32[Array, ""]:
    """Return the index of the first maximum, like ``jnp.argmax``, which XLA does not vectorize on CPUs (8 times slower)."""
    bits = lax.bitcast_convert_type(scores, jnp.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the same order as the floats
    count = scores.shape[0]
    return jnp.min(jnp.where(ordered == jnp.max(ordered), jnp.arange(count, dtype=jnp.int32), count))
