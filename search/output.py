"""What searches give: an action, and the policy and the values behind it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
from jaxtyping import Array, Float32, Int32

from tilewe_jax.search.tree import Tree

State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PolicyOutput:
    """The output of any search of one position; K candidates, P players."""

    action: Int32[Array, ""]
    """The action to play; -1 where the game is over."""
    candidates: Int32[Array, "K"]
    """Action ids that the search considered at the root; -1 where there are fewer."""
    prior_probs: Float32[Array, "K"]
    """Their probabilities before the search, without noise."""
    policy: Float32[Array, "K"]
    """The improved policy over them; sums to 1."""
    value: Float32[Array, "P"]
    """Mean value of the root over all its visits, by seat."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SearchOutput(PolicyOutput, Generic[State]):
    """The output of a tree search, its tree included; K candidates, P players."""

    action_index: Int32[Array, ""]
    """The index of the action among the candidates."""
    visits: Int32[Array, "K"]
    """Visits of the candidates."""
    raw_value: Float32[Array, "P"]
    """The evaluator's value of the root."""
    truncated_prior: Float32[Array, ""]
    """Prior probability of the legal actions that are no candidates."""
    num_truncated: Int32[Array, ""]
    """Number of these actions."""
    num_simulations: Int32[Array, ""]
    """Simulations run for this position; fewer than asked for where the search stopped early."""
    tree: Tree[State]

    @property
    def policy_output(self) -> PolicyOutput:
        """The output without the tree and what belongs to it."""
        return PolicyOutput(self.action, self.candidates, self.prior_probs, self.policy, self.value)
