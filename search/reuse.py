"""Subtree reuse: continue the search of a game in the subtree of the actions played."""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, PRNGKeyArray

from tilewe_jax.search.mcts import Search
from tilewe_jax.search.output import SearchOutput
from tilewe_jax.search.tree import ROOT, Tree, subtree

State = TypeVar("State")


@dataclass(frozen=True)
class SubtreeReuse(Generic[State]):
    """A player of whole games that keeps its search tree; its methods are pure functions of one game and support ``vmap``.

    Call ``advance`` with every action played, including its own, to keep the subtree below it; ``act`` adds
    ``num_simulations`` simulations. Trees have the capacity of the search, by default ``2 * num_simulations + 1``. When a tree
    is full, further leaves are backed up but not stored.

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import PuctRule, Search, SearchSettings, SubtreeReuse, heuristic_evaluator
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> player = SubtreeReuse(Search(game, heuristic_evaluator(game), PuctRule(), SearchSettings(16, 16)))
    >>> state = game.init(jax.random.key(0))
    >>> output, memory = jax.jit(player.act)(player.init(state), state, jax.random.key(1))
    >>> memory = jax.jit(player.advance)(memory, output.action)
    >>> int(memory.visits[0]) == int(output.visits.max())
    True

    Raises ``ValueError`` for a game with hidden information, whose trees are about determinizations.
    """

    search: Search[State]

    def __post_init__(self) -> None:
        if self.search.game.has_hidden_information:
            raise ValueError(f"subtree reuse needs perfect information; {self.search.game.id} has hidden information")
        if self.search.capacity is None:
            capacity = 2 * self.search.settings.num_simulations + 1
            object.__setattr__(self, "search", replace(self.search, capacity=capacity))

    def init(self, state: State) -> Tree[State]:
        """Return the initial memory, an empty tree."""
        return self.search.init(state)

    def act(
        self, memory: Tree[State], state: State, key: PRNGKeyArray, params: Any = None
    ) -> tuple[SearchOutput[State], Tree[State]]:
        """Search a position, starting from the memory if its root is this position.

        Args:
            memory: a tree from ``init`` or ``advance``.
            state: the position.
            key: consumed.
            params: parameters of the evaluator.

        Returns:
            The output of the search and the new memory.
        """
        output = self.search.extend(self.recall(memory, state), key, params)
        return output, output.tree

    def recall(self, memory: Tree[State], state: State) -> Tree[State]:
        """Return the memory if its root is the position, otherwise an empty tree."""
        equal = jax.tree.map(lambda nodes, leaf: jnp.all(nodes[ROOT] == leaf), memory.state, state)
        return _where(jnp.all(jnp.stack(jax.tree.leaves(equal))), memory, self.search.init(state))

    def advance(self, memory: Tree[State], action: Int32[Array, ""]) -> Tree[State]:
        """Return the subtree below an action of any player, or an empty tree if the action was never visited."""
        matches = (memory.candidates[ROOT] == action) & (memory.children[ROOT] >= 0)
        # The root of the empty tree is not the new position; `recall` replaces it.
        kept = subtree(memory, jnp.argmax(matches).astype(jnp.int32))
        fresh = self.search.init(jax.tree.map(lambda leaf: leaf[ROOT], memory.state))
        return _where(jnp.any(matches), kept, fresh)


def _where(condition: Bool[Array, ""], kept: Tree[State], fresh: Tree[State]) -> Tree[State]:
    tree: Tree[State] = jax.tree.map(lambda old, new: jnp.where(condition, old, new), kept, fresh)
    return tree
