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

from search.candidates import POOL, candidates
from search.evaluators import Evaluator, check_margin, outcome
from search.tree import Node, Tree, check_counts, grow, plant
from tilewe_jax.game import Game
from tilewe_jax.lanes import any_lane

State = TypeVar("State")


class Selection(Protocol):
    """How candidates are chosen, ``Puct`` or ``Gumbel``."""

    def keep(self, logits: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """What a node keeps of its candidates' logits, minus infinity where there are fewer candidates."""

    def priors(self, kept: Float32[Array, "K"]) -> Float32[Array, "K"]:
        """The probabilities, from what a node has kept; 0 where there is no candidate."""

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
    """Weight of by how much, and not only whether, a game that ends in the tree is won, see ``Game.heuristic_value``."""

    def __post_init__(self) -> None:
        check_counts(
            simulations=self.simulations, candidates=self.candidates, depth=self.depth, pool=self.pool, capacity=self.nodes
        )
        check_margin(self.margin)

    @property
    def nodes(self) -> int:
        """Nodes for which there is room."""
        return self.simulations + 1 if self.capacity is None else self.capacity

    def __call__(self, state: State, key: PRNGKeyArray) -> "Result[State]":
        """Search a position."""
        return self._run(plant(self.game, state, self.nodes, self.candidates), None, key)

    def begin(self, state: State, key: PRNGKeyArray) -> Tree[State]:
        """A tree of which the root is evaluated, and nothing more."""
        tree = plant(self.game, state, self.nodes, self.candidates)
        return self.simulate(tree, jnp.zeros(self.candidates, jnp.float32), jnp.int32(0), key)

    def extend(self, tree: Tree[State], key: PRNGKeyArray, drawn: Float32[Array, "K"] | None = None) -> "Result[State]":
        """Search on in a tree. What it has no more room for is evaluated, and counts, but is not kept.

        ``drawn`` is what ``selection.begin`` draws, unless it is given.
        """
        draw, key = jax.random.split(key)
        return self._run(tree, self.selection.begin(tree.prior[0], draw) if drawn is None else drawn, key)

    def _run(self, tree: Tree[State], drawn: Float32[Array, "K"] | None, key: PRNGKeyArray) -> "Result[State]":
        """All simulations; before them, where nothing is drawn yet, one that evaluates the root.

        The root is evaluated in the loop like any other node, so that what evaluates is compiled once.
        """
        before = 1 if drawn is None else 0
        draw, finish, key = jax.random.split(key, 3)
        keys = jax.random.split(key, before + self.simulations)

        def goes_on(run: "_Run") -> Array:
            going: Array = run.number < keys.shape[0]
            # Of a batch, all go on together until the last is settled.
            return going & any_lane(~run.settled) if self.stop_early else going

        def go(run: "_Run") -> "_Run":
            counts = ~run.settled if self.stop_early else True
            tree = self.simulate(run.tree, run.drawn, run.number - before, keys[run.number], counts)
            drawn, settled = run.drawn, run.settled
            if before:  # not by a condition of each game's own, which would draw at every step
                drawn = lax.cond(run.number == 0, lambda: self.selection.begin(tree.prior[0], draw), lambda: run.drawn)
            made = run.made + jnp.where(counts, 1, 0)
            if self.stop_early:
                settled = settled | self.selection.is_settled(tree, keys.shape[0] - run.number - 1)
            return _Run(tree, drawn, run.number + 1, made, settled)

        none = jnp.zeros(self.candidates, jnp.float32)
        start = _Run(tree, none if drawn is None else drawn, jnp.int32(0), jnp.int32(0), jnp.asarray(False))
        run = lax.while_loop(goes_on, go, start)
        tree = run.tree
        chosen, policy = self.selection.finish(tree, run.drawn, finish)
        visits, _ = tree.edges(jnp.int32(0))
        return Result(
            action=tree.action[0, chosen],
            chosen=chosen,
            actions=tree.action[0],
            prior=self.selection.priors(tree.prior[0]),
            policy=policy,
            visits=visits,
            values=tree.values[0] / tree.visits[0].astype(jnp.float32),
            dropped=tree.dropped[0],
            left_out=tree.left_out[0],
            simulations=run.made - before,
            tree=tree,
        )

    def node(self, state: State, key: PRNGKeyArray) -> Node[State]:
        """A position, evaluated, with its candidates."""
        one, other = jax.random.split(key)
        logits, values = self.evaluate(state, one)
        found = candidates(self.game, state, logits, other, self.candidates, self.pool)
        over = self.game.is_terminal(state)
        return Node(
            state=state,
            player=self.game.current_player(state),
            terminal=over,
            values=jnp.where(over, outcome(self.game, state, self.margin), values),
            action=found.actions,
            prior=self.selection.keep(found.logits),
            dropped=found.dropped,
            left_out=found.left_out,
        )

    def simulate(
        self,
        tree: Tree[State],
        drawn: Float32[Array, "K"],
        number: Int32[Array, ""],
        key: PRNGKeyArray,
        counts: Bool[Array, ""] | bool = True,
    ) -> Tree[State]:
        """Follow candidates from the root to one without a node, make it, and back its value up; where it ``counts``.

        In a tree that is only planted, evaluate the root.
        """
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
        fresh = self.node(state, key)
        # Without an action the root is terminal, or not evaluated yet, and a visit to it is all there is. A child that is there
        # already is terminal, or as deep as simulations go.
        made = jnp.where(child >= 0, child, jnp.minimum(tree.size, tree.capacity))
        made = jnp.where(action >= 0, made, tree.capacity)
        path = jnp.where(counts, path.at[depth].set(made), tree.capacity)
        new = (action >= 0) & (child < 0) & (made < tree.capacity) & counts
        planted = tree.size == 0
        tree = grow(tree, jnp.where(planted, 0, jnp.where(new, made, tree.capacity)), fresh)
        return replace(
            tree,
            visits=tree.visits.at[path].add(1, mode="drop"),
            values=tree.values.at[path].add(fresh.values[None], mode="drop"),
            child=tree.child.at[jnp.where(new, node, tree.capacity), candidate].set(made, mode="drop"),
            size=tree.size + (new | planted).astype(jnp.int32),
        )


_Descent = tuple[Array, Array, Array, Array]
"""Node, candidate, depth, and the path so far."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Run:
    """A search under way."""

    tree: Any
    drawn: Float32[Array, "K"]
    number: Int32[Array, ""]
    """Simulations, of this and of the other games of a batch."""
    made: Int32[Array, ""]
    """Those of this one."""
    settled: Bool[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Decision:
    """What to play in a position; K candidates, P players."""

    action: Int32[Array, ""]
    """The action to play; -1 at the end."""
    actions: Int32[Array, "K"]
    """The candidates of the root, -1 where there are fewer."""
    prior: Float32[Array, "K"]
    """Their probabilities before the search."""
    policy: Float32[Array, "K"]
    """The improved policy over them."""
    values: Float32[Array, "P"]
    """The mean of all visits to the root."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Result(Decision, Generic[State]):
    """What a search found; K candidates."""

    chosen: Int32[Array, ""]
    """The index of the action among the candidates."""
    visits: Int32[Array, "K"]
    dropped: Float32[Array, ""]
    """The share of the prior that the candidates of the root leave out."""
    left_out: Int32[Array, ""]
    """How many legal actions they leave out."""
    simulations: Int32[Array, ""]
    """How many were made."""
    tree: Tree[State]

    @property
    def decision(self) -> Decision:
        """Without the tree and what goes with it."""
        return Decision(self.action, self.actions, self.prior, self.policy, self.values)
