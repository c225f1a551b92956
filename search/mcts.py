"""Monte Carlo tree search for any number of players: one game's search, a plain function; ``vmap`` makes it thousands.

Values are vectors over the players, and whoever moves follows their own component (max^n, Luckhardt and Irani 1986). So turns
need not alternate, and players may be passed over or move twice.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from search.candidates import POOL, Candidates, candidates
from search.evaluators import Evaluator, check_margin, outcome
from search.tree import Node, Tree, grow, plant
from tilewe_jax.game import Game
from tilewe_jax.lanes import any_lane

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

    def is_settled(self, tree: Tree[Any], left: Int32[Array, ""]) -> Bool[Array, ""]:
        """Whether so many simulations more could not change the action to play."""

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
    pool: int = POOL
    """Legal actions among which a node finds its candidates, see ``candidates``."""
    stop_early: bool = False
    """Whether a game's search ends once its remaining simulations cannot change the action to play. The policy is then that of
    the simulations made."""
    margin: float = 0.0
    """Weight of by how much, and not only whether, a game that ends in the tree is won, see ``Game.estimate``."""

    def __post_init__(self) -> None:
        for name in ("simulations", "candidates", "depth", "pool"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {self.capacity}")
        check_margin(self.margin)

    @property
    def nodes(self) -> int:
        """Nodes for which there is room."""
        return self.simulations + 1 if self.capacity is None else self.capacity

    def __call__(self, state: State, key: PRNGKeyArray) -> "Result[State]":
        """Search a position."""
        plant_key, key = jax.random.split(key)
        root, found = self.node(state, plant_key)
        return replace(self.extend(plant(root, self.nodes), key), dropped=found.dropped, left_out=found.left_out)

    def extend(self, tree: Tree[State], key: PRNGKeyArray) -> "Result[State]":
        """Search on in a tree. What it has no more room for is evaluated, and counts, but is not kept."""
        begin, key = jax.random.split(key)
        return self.simulate(tree, self.selection.begin(tree.prior[0], begin), key)

    def simulate(self, tree: Tree[State], drawn: Float32[Array, "K"], key: PRNGKeyArray) -> "Result[State]":
        """``extend``, given what ``selection.begin`` has drawn."""
        finish, key = jax.random.split(key)
        keys = jax.random.split(key, self.simulations)
        made = jnp.int32(self.simulations)
        if self.stop_early:
            tree, made = self._simulate_until_settled(tree, drawn, keys)
        else:
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
            left_out=jnp.int32(0),
            simulations=made,
            tree=tree,
        )

    def node(self, state: State, key: PRNGKeyArray) -> tuple[Node[State], Candidates]:
        """A position, evaluated, and its candidates with what they leave out."""
        one, other = jax.random.split(key)
        logits, values = self.evaluate(state, one)
        found = candidates(self.game, state, logits, other, self.candidates, self.pool)
        over = self.game.is_terminal(state)
        values = jnp.where(over, outcome(self.game, state, self.margin), values)
        prior = self.selection.keep(found.logits)
        return Node(state, self.game.current_player(state), over, values, found.actions, prior), found

    def _simulate_until_settled(
        self, tree: Tree[State], drawn: Float32[Array, "K"], keys: PRNGKeyArray
    ) -> tuple[Tree[State], Int32[Array, ""]]:
        """The tree, and the number of simulations made. Of a batch, all go on together until the last is settled."""

        def goes_on(carry: tuple[Tree[State], Array, Array, Array]) -> Array:
            _, number, _, settled = carry
            going: Array = (number < self.simulations) & any_lane(~settled)
            return going

        def go(carry: tuple[Tree[State], Array, Array, Array]) -> tuple[Tree[State], Array, Array, Array]:
            tree, number, made, settled = carry
            tree = self._simulate(tree, drawn, number, keys[number], ~settled)
            made = made + (~settled).astype(jnp.int32)
            settled = settled | self.selection.is_settled(tree, self.simulations - number - 1)
            return tree, number + 1, made, settled

        start = self.selection.is_settled(tree, jnp.int32(self.simulations))
        tree, _, made, _ = lax.while_loop(goes_on, go, (tree, jnp.int32(0), jnp.int32(0), start))
        return tree, made

    def _simulate(
        self,
        tree: Tree[State],
        drawn: Float32[Array, "K"],
        number: Int32[Array, ""],
        key: PRNGKeyArray,
        counts: Bool[Array, ""] | bool = True,
    ) -> Tree[State]:
        """Follow candidates from the root to one without a node, make it, and back its value up; where it ``counts``."""
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
        path = jnp.where(counts, path.at[depth].set(made), tree.capacity)
        new = (action >= 0) & (child < 0) & (made < tree.capacity) & counts
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
    """The share of the prior that the candidates of the root leave out; 0 where the root is not made by this search."""
    left_out: Int32[Array, ""]
    """How many legal actions they leave out; likewise."""
    simulations: Int32[Array, ""]
    """How many were made."""
    tree: Tree[State]
