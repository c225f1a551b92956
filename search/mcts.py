"""Monte Carlo tree search for any number of players: one game's search, a plain function; ``vmap`` makes it thousands.

Values are vectors over the players, and whoever moves follows their own component (max^n, Luckhardt and Irani 1986). So turns
need not alternate, and players may be passed over or move twice.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from search.candidates import candidates
from search.evaluators import Evaluator
from search.tree import Node, Tree, grow, plant
from tilewe_jax.game import Game

State = TypeVar("State")


class Selection(Protocol):
    """How candidates are chosen, ``Puct`` or ``Gumbel``."""

    def keep(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """What a node keeps of its candidates' logits, minus infinity where there are fewer candidates."""

    def begin(self, prior: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """What is drawn once for the root, where this was kept."""

    def at_root(self, tree: Tree[Any], drawn: Float32[Array, "K"], simulation: Int32[Array, ""]) -> Int32[Array, ""]:
        """The candidate that a simulation follows from the root."""

    def below(self, tree: Tree[Any], node: Int32[Array, ""]) -> Int32[Array, ""]:
        """The candidate that a simulation follows from any other node."""

    def finish(
        self, tree: Tree[Any], drawn: Float32[Array, "K"], key: PRNGKeyArray
    ) -> tuple[Int32[Array, ""], Float32[Array, "K"]]:
        """The candidate to play, and the improved policy."""


@dataclass(frozen=True)
class Search(Generic[State]):
    """A search of positions of one game. Raises ``ValueError`` for numbers below 1."""

    game: Game[State]
    evaluate: Evaluator
    selection: Selection
    simulations: int = 64
    candidates: int = 64
    """Actions that a node keeps."""
    depth: int = 32
    """No simulation goes deeper."""
    capacity: int | None = None
    """Nodes for which there is room; ``None`` is one a simulation, and the root."""

    def __post_init__(self) -> None:
        for name in ("simulations", "candidates", "depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {self.capacity}")

    @property
    def nodes(self) -> int:
        """Nodes for which there is room."""
        return self.simulations + 1 if self.capacity is None else self.capacity

    def __call__(self, state: State, key: PRNGKeyArray) -> "Result[State]":
        """Search a position."""
        plant_key, key = jax.random.split(key)
        root, dropped = self.node(state, plant_key)
        return replace(self.extend(plant(root, self.nodes), key), dropped=dropped)

    def extend(self, tree: Tree[State], key: PRNGKeyArray) -> "Result[State]":
        """Search on in a tree. What it has no more room for is evaluated, and counts, but is not kept."""
        begin, key = jax.random.split(key)
        return self.simulate(tree, self.selection.begin(tree.prior[0], begin), key)

    def simulate(self, tree: Tree[State], drawn: Float32[Array, "K"], key: PRNGKeyArray) -> "Result[State]":
        """``extend``, given what ``selection.begin`` has drawn."""
        finish, key = jax.random.split(key)
        keys = jax.random.split(key, self.simulations)
        tree = lax.fori_loop(0, self.simulations, lambda i, tree: self._simulate(tree, drawn, i, keys[i]), tree)
        chosen, policy = self.selection.finish(tree, drawn, finish)
        visits, _ = tree.edges(jnp.int32(0))
        return Result(
            action=tree.action[0, chosen],
            chosen=chosen,
            actions=tree.action[0],
            policy=policy,
            visits=visits,
            values=tree.values[0] / tree.visits[0].astype(jnp.float32),
            dropped=jnp.float32(0),
            tree=tree,
        )

    def node(self, state: State, key: PRNGKeyArray) -> tuple[Node[State], Float32[Array, ""]]:
        """A position, evaluated, and the share of the prior that its candidates leave out."""
        one, other = jax.random.split(key)
        logits, values = self.evaluate(state, one)
        action, kept, dropped = candidates(self.game, state, logits, other, self.candidates)
        over = self.game.is_terminal(state)
        values = jnp.where(over, self.game.returns(state), values)
        return Node(state, self.game.current_player(state), over, values, action, self.selection.keep(kept)), dropped

    def _simulate(
        self, tree: Tree[State], drawn: Float32[Array, "K"], number: Int32[Array, ""], key: PRNGKeyArray
    ) -> Tree[State]:
        """Follow candidates from the root to one without a node, make it, and back its value up."""
        path = jnp.full(self.depth + 1, tree.capacity, jnp.int32).at[0].set(0)

        def goes_on(descent: _Descent) -> Array:
            node, candidate, depth, _ = descent
            child = tree.child[node, candidate]
            return (child >= 0) & ~tree.terminal[child] & (depth < self.depth)

        def go(descent: _Descent) -> _Descent:
            node, candidate, depth, path = descent
            child = tree.child[node, candidate]
            return child, self.selection.below(tree, child), depth + 1, path.at[depth].set(child)

        # The tree is only read here. Carried, it would be copied at each step, as long as any game of a batch goes on.
        start = jnp.int32(0), self.selection.at_root(tree, drawn, number), jnp.int32(1), path
        node, candidate, depth, path = lax.while_loop(goes_on, go, start)

        action, child = tree.action[node, candidate], tree.child[node, candidate]
        state = self.game.apply(jax.tree.map(lambda leaf: leaf[node], tree.state), action)
        fresh, _ = self.node(state, key)
        # Without an action the root is terminal, and a visit to it is all there is. A child that is there already is terminal,
        # or as deep as simulations go.
        made = jnp.where(child >= 0, child, jnp.minimum(tree.size, tree.capacity))
        made = jnp.where(action >= 0, made, tree.capacity)
        path = path.at[depth].set(made)
        new = (action >= 0) & (child < 0) & (made < tree.capacity)
        tree = grow(tree, jnp.where(new, made, tree.capacity), fresh)
        return replace(
            tree,
            visits=tree.visits.at[path].add(1, mode="drop"),
            values=tree.values.at[path].add(fresh.values[None], mode="drop"),
            child=tree.child.at[jnp.where(new, node, tree.capacity), candidate].set(made, mode="drop"),
            size=tree.size + new.astype(jnp.int32),
        )


_Descent = tuple[Array, Array, Array, Array]
"""Node, candidate, depth, and the path so far."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Result(Generic[State]):
    """What a search found; K candidates, P players."""

    action: Int32[Array, ""]
    """The action to play; -1 at the end."""
    chosen: Int32[Array, ""]
    """Its index among the candidates."""
    actions: Int32[Array, "K"]
    """The candidates of the root, -1 where there are fewer."""
    policy: Float32[Array, "K"]
    """The improved policy over them."""
    visits: Int32[Array, "K"]
    values: Float32[Array, "P"]
    """The mean of all visits to the root."""
    dropped: Float32[Array, ""]
    """The share of the prior that the candidates of the root leave out."""
    tree: Tree[State]
