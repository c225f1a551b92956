"""One tree for a game with hidden information: over what the observer may know, with another world in each simulation.

The trees of ``determinize.Worlds`` know which world they are in, and plan as if the mover did. Here all worlds share one tree,
whose nodes are what has been done since the root, so that an action is judged by what it is worth on average over the worlds
(Cowling, Powley and Whitehouse 2012, single-observer information set search). That ends strategy fusion for what the observer
decides; except that what the observer draws within the tree is not told apart. The others decide as if they knew no more than
the observer.

States are not kept but computed again along the path, since they differ from world to world; that is what it costs.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from search.candidates import POOL, candidates
from search.evaluators import Evaluator, check_margin, outcome
from search.mcts import Decision
from search.puct import Puct
from search.tree import check_counts, edges, first_highest
from tilewe_jax.game import Game

State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Edges:
    """The tree: N nodes in the order in which they were made, the root first; up to K actions at each; P players."""

    visits: Int32[Array, "N"]
    values: Float32[Array, "N P"]
    """Sums over the visits."""
    action: Int32[Array, "N K"]
    """Actions that have been tried, in any world; -1 in places left over."""
    prior: Float32[Array, "N K"]
    """Their probabilities when they were first tried."""
    child: Int32[Array, "N K"]
    """The node each leads to; -1 in places left over."""
    size: Int32[Array, ""]
    """Number of nodes made."""


@dataclass(frozen=True)
class OneTree(Generic[State]):
    """A search of a position as its mover knows it. Raises ``ValueError`` for numbers below 1."""

    game: Game[State]
    evaluate: Evaluator
    selection: Puct
    simulations: int = 64
    candidates: int = 64
    """Actions that a node has room for; in each world the legal ones, or so many of them."""
    depth: int = 32
    """No simulation goes deeper."""
    pool: int = POOL
    margin: float = 0.0

    def __post_init__(self) -> None:
        check_counts(simulations=self.simulations, candidates=self.candidates, depth=self.depth, pool=self.pool)
        check_margin(self.margin)

    def __call__(self, state: State, key: PRNGKeyArray) -> Decision:
        """What to play. The candidates are the actions tried, their policy is their shares of the visits."""
        nodes, players = self.simulations + 1, self.game.num_players
        none = jnp.full((nodes, self.candidates), -1, jnp.int32)
        tree = Edges(
            jnp.zeros(nodes, jnp.int32),
            jnp.zeros((nodes, players), jnp.float32),
            none,
            jnp.zeros(none.shape, jnp.float32),
            none,
            jnp.int32(1),
        )
        observer = self.game.current_player(state)
        keys = jax.random.split(key, self.simulations)

        def simulate(i: Int32[Array, ""], tree: Edges) -> Edges:
            deal, go = jax.random.split(keys[i])
            return self._simulate(tree, self.game.determinize(state, observer, deal), go)

        tree = lax.fori_loop(0, self.simulations, simulate, tree)
        visits, _ = edges(tree.visits, tree.values, tree.child[0], observer)
        shares = visits.astype(jnp.float32) / jnp.maximum(jnp.sum(visits), 1).astype(jnp.float32)
        return Decision(
            action=tree.action[0, first_highest(shares)],
            actions=tree.action[0],
            prior=tree.prior[0],
            policy=shares,
            values=tree.values[0] / jnp.maximum(tree.visits[0], 1).astype(jnp.float32),
        )

    def _simulate(self, tree: Edges, world: State, key: PRNGKeyArray) -> Edges:
        """Follow actions that are legal in the world to one that has not been tried, and back its value up."""
        nodes = tree.visits.shape[0]

        def goes_on(descent: "_Descent") -> Array:
            return descent.going

        def go(descent: "_Descent") -> "_Descent":
            key, now = jax.random.split(descent.key)
            evaluate, choose = jax.random.split(now)
            state, node = descent.state, descent.node
            player = self.game.current_player(state)
            logits, _ = self.evaluate(state, evaluate)
            found = candidates(self.game, state, logits, choose, self.candidates, self.pool)
            same = (found.actions[:, None] == tree.action[node][None]) & (found.actions >= 0)[:, None]
            tried = jnp.any(same, axis=1)
            place = jnp.argmax(same, axis=1)
            child = jnp.where(tried, tree.child[node][place], -1)
            visits, values = edges(tree.visits, tree.values, child, player)
            count = tree.visits[node].astype(jnp.float32)
            mean = tree.values[node, player] / jnp.maximum(count, 1.0)
            priors = jnp.where(found.actions >= 0, self.selection.keep(found.logits), -1.0)
            chosen = first_highest(self.selection.scores(visits, values, priors, count, mean))
            new = ~tried[chosen]
            # A node that has tried all that it has room for keeps no more.
            free = jnp.sum(tree.action[node] >= 0, dtype=jnp.int32)
            to = jnp.where(new, jnp.where(free < self.candidates, tree.size, nodes), child[chosen])
            after = self.game.apply(state, found.actions[chosen])
            over = self.game.is_terminal(after) | new | (descent.depth + 1 >= self.depth)
            return _Descent(
                after,
                to,
                descent.depth + 1,
                descent.path.at[descent.depth + 1].set(to),
                node,
                found.actions[chosen],
                priors[chosen],
                new & (free < self.candidates),
                free,
                ~over,
                key,
            )

        path = jnp.full(self.depth + 1, nodes, jnp.int32).at[0].set(0)
        zero, no = jnp.int32(0), jnp.asarray(False)
        start = _Descent(world, zero, zero, path, zero, zero, jnp.float32(0), no, zero, ~self.game.is_terminal(world), key)
        end = lax.while_loop(goes_on, go, start)
        over = self.game.is_terminal(end.state)
        _, values = self.evaluate(end.state, end.key)
        values = jnp.where(over, outcome(self.game, end.state, self.margin), values)
        parent = jnp.where(end.new, end.parent, nodes)
        return replace(
            tree,
            visits=tree.visits.at[end.path].add(1, mode="drop"),
            values=tree.values.at[end.path].add(values[None], mode="drop"),
            action=tree.action.at[parent, end.place].set(end.action, mode="drop"),
            prior=tree.prior.at[parent, end.place].set(end.prior, mode="drop"),
            child=tree.child.at[parent, end.place].set(end.node, mode="drop"),
            size=tree.size + end.new.astype(jnp.int32),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Descent:
    """A simulation on its way down."""

    state: Any
    node: Int32[Array, ""]
    depth: Int32[Array, ""]
    path: Int32[Array, "depth+1"]
    parent: Int32[Array, ""]
    """The node before."""
    action: Int32[Array, ""]
    """What led here from there."""
    prior: Float32[Array, ""]
    """Its probability."""
    new: Bool[Array, ""]
    """Whether the node is to be made."""
    place: Int32[Array, ""]
    """Where its parent has room for it."""
    going: Bool[Array, ""]
    key: PRNGKeyArray
