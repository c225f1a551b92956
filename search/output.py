"""Outputs of searches: the action, the improved policy and the values."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
from jaxtyping import Array, Float32, Int32

from tilewe_jax.search.tree import Tree

State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PolicyOutput:
    """Output of any search of one position; K candidates, P players."""

    action: Int32[Array, ""]
    """The action to play; -1 if the game is over."""
    candidates: Int32[Array, "K"]
    """Ids of the candidate actions at the root, padded with -1."""
    prior_probs: Float32[Array, "K"]
    """Prior probabilities of the candidates, without noise."""
    policy: Float32[Array, "K"]
    """Improved policy over the candidates; sums to 1."""
    value: Float32[Array, "P"]
    """Mean value of the root, by seat."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SearchOutput(PolicyOutput, Generic[State]):
    """Output of a tree search, including its tree; K candidates, P players."""

    action_index: Int32[Array, ""]
    """Index of the action among the candidates."""
    visits: Int32[Array, "K"]
    """Visit counts of the candidates."""
    raw_value: Float32[Array, "P"]
    """The evaluator's value of the root."""
    truncated_prior: Float32[Array, ""]
    """Prior probability of the legal actions that are not candidates."""
    num_truncated: Int32[Array, ""]
    """Number of legal actions that are not candidates."""
    num_simulations: Int32[Array, ""]
    """Number of simulations run for this position, smaller than the setting if the search stopped early."""
    tree: Tree[State]

    @property
    def policy_output(self) -> PolicyOutput:
        """The output without the tree and its statistics."""
        return PolicyOutput(self.action, self.candidates, self.prior_probs, self.policy, self.value)
