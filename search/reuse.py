"""Subtree reuse: a player of a whole game searches on in the subtree of the actions that have been played."""

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
    """A player whose memory is the tree of its last search; all functions are pure, for one game, and can be mapped.

    Before its turn the player hears of every action that was played, its own included, and keeps the subtree below it. A search
    adds ``num_simulations`` to what is kept. Trees have the capacity of the search, by default twice its simulations and the
    root: where a subtree leaves room for fewer nodes than there are simulations, the last of these count, but are not kept.

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import PuctRule, Search, SearchSettings, SubtreeReuse, heuristic_evaluator
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> player = SubtreeReuse(Search(game, heuristic_evaluator(game), PuctRule(), SearchSettings(16, 16)))
    >>> state = game.init(jax.random.key(0))
    >>> output, memory = jax.jit(player.act)(player.init(state), state, jax.random.key(1))
    >>> memory = jax.jit(player.advance)(memory, output.action)
    >>> int(memory.visits[0]) == int(output.visits.max())
    True

    Raises ``ValueError`` for a game with hidden information: its trees are about other positions than what is played.
    """

    search: Search[State]

    def __post_init__(self) -> None:
        if self.search.game.has_hidden_information:
            raise ValueError(f"{self.search.game.id} has hidden information; the tree of a determinization cannot be kept")
        if self.search.capacity is None:
            capacity = 2 * self.search.settings.num_simulations + 1
            object.__setattr__(self, "search", replace(self.search, capacity=capacity))

    def init(self, state: State) -> Tree[State]:
        """The memory at the beginning of a game: an empty tree."""
        return self.search.init(state)

    def act(
        self, memory: Tree[State], state: State, key: PRNGKeyArray, params: Any = None
    ) -> tuple[SearchOutput[State], Tree[State]]:
        """Search a position, on top of the memory where that is about it, else anew.

        Args:
            memory: the tree that ``init`` or ``advance`` gave.
            state: the position.
            key: consumed.
            params: parameters of the evaluator.

        Returns:
            The output of the search and the memory after it.
        """
        tree = _where(_is_root(memory, state), memory, self.search.init(state))
        output = self.search.extend(tree, key, params)
        return output, output.tree

    def advance(self, memory: Tree[State], action: Int32[Array, ""]) -> Tree[State]:
        """The memory after an action of any player: the subtree below it; an empty tree where the action was never visited."""
        matches = (memory.candidates[ROOT] == action) & (memory.children[ROOT] >= 0)
        after = self.search.game.apply(jax.tree.map(lambda leaf: leaf[ROOT], memory.state), action)
        kept, fresh = subtree(memory, jnp.argmax(matches).astype(jnp.int32)), self.search.init(after)
        return _where(jnp.any(matches), kept, fresh)


def _is_root(tree: Tree[Any], state: Any) -> Bool[Array, ""]:
    """Whether a state is that of the root of a tree."""
    equal = jax.tree.map(lambda nodes, leaf: jnp.all(nodes[ROOT] == leaf), tree.state, state)
    return jnp.all(jnp.stack(jax.tree.leaves(equal)))


def _where(condition: Bool[Array, ""], kept: Tree[State], fresh: Tree[State]) -> Tree[State]:
    tree: Tree[State] = jax.tree.map(lambda old, new: jnp.where(condition, old, new), kept, fresh)
    return tree
