"""The search tree of one game, as arrays; ``vmap`` makes it thousands of trees.

A node keeps K candidate actions and not all of them: with six arrays over all actions in every node, as in mctx, a thousand
searches of 64 simulations among 36,400 actions would take 58 GB.
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from search.rules import ChildStats

State = TypeVar("State")

ROOT = 0
"""Index of the root."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree(Generic[State]):
    """N nodes in the order in which they were added, the root first; K candidate actions each; P players.

    Values are vectors over the players in absolute seats. A node's visits and values count its own evaluation and everything
    backed up through it. So visits are one more than those of its children together; except where it is terminal, or as deep as
    the search goes, or where the tree had no more room.
    """

    state: State
    """``[N, ...]``"""
    player: Int32[Array, "N"]
    """The player to move."""
    terminal: Bool[Array, "N"]
    visits: Int32[Array, "N"]
    """0 for the root before its evaluation, and for nodes that are not in use."""
    value_sum: Float32[Array, "N P"]
    """Sum over the visits."""
    raw_value: Float32[Array, "N P"]
    """The evaluator's value of the node itself, or the outcome where it is terminal."""
    candidates: Int32[Array, "N K"]
    """Action ids; -1 where there are fewer."""
    prior: Float32[Array, "N K"]
    """What ``SelectionRule.store_logits`` made of the candidates' logits."""
    children: Int32[Array, "N K"]
    """The node that a candidate leads to; -1 before its first visit."""
    truncated_prior: Float32[Array, "N"]
    """Prior probability of the legal actions that are no candidates."""
    num_truncated: Int32[Array, "N"]
    """Number of these actions."""
    num_nodes: Int32[Array, ""]
    """Nodes in use; 0 as long as the root is not evaluated."""

    @property
    def capacity(self) -> int:
        """N."""
        return self.visits.shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Node(Generic[State]):
    """An evaluated position with K candidates; P players."""

    state: State
    player: Int32[Array, ""]
    terminal: Bool[Array, ""]
    value: Float32[Array, "P"]
    candidates: Int32[Array, "K"]
    prior: Float32[Array, "K"]
    truncated_prior: Float32[Array, ""]
    num_truncated: Int32[Array, ""]


class Path(NamedTuple):
    """The way of a simulation from the root to a leaf: a position that is not in the tree yet, or where simulations end."""

    nodes: Int32[Array, "max_depth+1"]
    """Nodes to back up through, root and leaf included; the capacity of the tree in places left over."""
    parent: Int32[Array, ""]
    """The node before the leaf."""
    candidate: Int32[Array, ""]
    """Index of the candidate that leads from there to the leaf."""
    store_at: Int32[Array, ""]
    """Where the leaf is to be stored; the capacity of the tree where it is in the tree already, or does not fit."""


def init_tree(root: State, num_players: int, num_candidates: int, capacity: int) -> Tree[State]:
    """The tree of a root that is not evaluated yet: it has a state, but no visits and no candidates.

    Args:
        root: the state of the root.
        num_players: P.
        num_candidates: K, the candidates of a node.
        capacity: N, the nodes for which there is room.
    """

    def empty(dtype: Any, *shape: int, fill: float = 0) -> Array:
        return jnp.full((capacity, *shape), fill, dtype)

    return Tree(
        state=jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype).at[ROOT].set(leaf), root),
        player=empty(jnp.int32),
        terminal=empty(jnp.bool_),
        visits=empty(jnp.int32),
        value_sum=empty(jnp.float32, num_players),
        raw_value=empty(jnp.float32, num_players),
        candidates=empty(jnp.int32, num_candidates, fill=-1),
        prior=empty(jnp.float32, num_candidates),
        children=empty(jnp.int32, num_candidates, fill=-1),
        truncated_prior=empty(jnp.float32),
        num_truncated=empty(jnp.int32),
        num_nodes=jnp.int32(0),
    )


def add_node(
    tree: Tree[State],
    index: Int32[Array, ""],
    node: Node[State],
    parent: Int32[Array, ""],
    candidate: Int32[Array, ""],
) -> Tree[State]:
    """The tree with a node stored at ``index``, as the child of a parent's candidate; unchanged where that is the capacity.

    The root, index 0, has no parent.
    """

    def store(leaf: Array, value: Array) -> Array:
        return leaf.at[index].set(value, mode="drop")

    is_stored = index < tree.capacity
    return replace(
        tree,
        state=jax.tree.map(store, tree.state, node.state),
        player=store(tree.player, node.player),
        terminal=store(tree.terminal, node.terminal),
        raw_value=store(tree.raw_value, node.value),
        candidates=store(tree.candidates, node.candidates),
        prior=store(tree.prior, node.prior),
        truncated_prior=store(tree.truncated_prior, node.truncated_prior),
        num_truncated=store(tree.num_truncated, node.num_truncated),
        children=tree.children.at[jnp.where(is_stored & (index > ROOT), parent, tree.capacity), candidate].set(
            index, mode="drop"
        ),
        num_nodes=tree.num_nodes + is_stored.astype(jnp.int32),
    )


def backup(tree: Tree[State], path: Path, leaf: Node[State], active: Bool[Array, ""] | bool = True) -> Tree[State]:
    """The tree with the leaf added and its value backed up along the path; unchanged where not ``active``."""
    nodes = jnp.where(active, path.nodes, tree.capacity)
    index = jnp.where(active, path.store_at, tree.capacity)
    tree = add_node(tree, index, leaf, path.parent, path.candidate)
    return replace(
        tree,
        visits=tree.visits.at[nodes].add(1, mode="drop"),
        value_sum=tree.value_sum.at[nodes].add(leaf.value[None], mode="drop"),
    )


def child_stats(tree: Tree[Any], node: Int32[Array, ""]) -> ChildStats:
    """The statistics of a node and of its candidates, as selection rules see them."""
    player, node_visits = tree.player[node], tree.visits[node]
    visits, value = mean_values(tree.visits, tree.value_sum, tree.children[node], player)
    return ChildStats(
        available=tree.candidates[node] >= 0,
        prior=tree.prior[node],
        visits=visits,
        value=value,
        node_visits=node_visits,
        node_value=tree.value_sum[node, player] / jnp.maximum(node_visits, 1).astype(jnp.float32),
        raw_value=tree.raw_value[node, player],
    )


def child_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], children: Int32[Array, "K"]
) -> tuple[Int32[Array, "K"], Float32[Array, "K P"]]:
    """Visits of nodes and their mean values by seat; 0 for nodes -1."""
    count = jnp.where(children >= 0, visits[children], 0)
    mean = value_sum[children] / jnp.maximum(count, 1).astype(jnp.float32)[:, None]
    return count, jnp.where((children >= 0)[:, None], mean, 0.0)


def principal_variation(tree: Tree[Any], candidate: Int32[Array, ""], length: int) -> Int32[Array, "length"]:
    """The action of one of the root's candidates and the most visited actions after it; -1 after the last visited one.

    Args:
        tree: the tree.
        candidate: the index of the candidate among those of the root.
        length: number of actions at most.
    """

    def step(place: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        node, candidate = place
        action = jnp.where(candidate >= 0, tree.candidates[node, candidate], -1)
        child = jnp.where(candidate >= 0, tree.children[node, candidate], -1)
        visits, _values = child_values(tree.visits, tree.value_sum, tree.children[child])
        follows = (child >= 0) & jnp.any(visits > 0)
        return (child, jnp.where(follows, jnp.argmax(visits).astype(jnp.int32), -1)), action

    _, actions = jax.lax.scan(step, (jnp.int32(ROOT), jnp.asarray(candidate, jnp.int32)), None, length)
    return actions


def mean_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], nodes: Int32[Array, "K"], player: Int32[Array, ""]
) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
    """Visits of nodes and their mean values for a player; 0 for nodes -1."""
    count = jnp.where(nodes >= 0, visits[nodes], 0)
    return count, jnp.where(nodes >= 0, value_sum[nodes, player] / jnp.maximum(count, 1).astype(jnp.float32), 0.0)


def subtree(tree: Tree[State], candidate: Int32[Array, ""]) -> Tree[State]:
    """The subtree below one of the root's candidates, which must have been visited, as a tree of the same capacity.

    Args:
        tree: the tree.
        candidate: the index of the candidate among those of the root, such as ``SearchOutput.action_index``.
    """
    nodes = jnp.arange(tree.capacity)
    parent = (
        jnp.zeros(tree.capacity, jnp.int32)
        .at[jnp.where(tree.children >= 0, tree.children, tree.capacity)]
        .set(jnp.broadcast_to(nodes[:, None], tree.children.shape), mode="drop")
    )
    root = tree.children[ROOT, candidate]
    kept, ancestor = nodes == root, parent
    for _ in range(max(1, (tree.capacity - 1).bit_length())):  # twice as far up each time
        kept, ancestor = kept | kept[ancestor], ancestor[ancestor]
    kept = kept & (nodes < tree.num_nodes)
    num_nodes = jnp.sum(kept, dtype=jnp.int32)
    # Nodes are added after their parents, so that the subtree's root stays first.
    (source,) = jnp.nonzero(kept, size=tree.capacity, fill_value=0)
    new_index = jnp.cumsum(kept) - 1

    def move(leaf: Array, fill: float = 0) -> Array:
        used = (nodes < num_nodes).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(used, leaf[source], jnp.asarray(fill, leaf.dtype))

    children = move(tree.children, -1)
    return Tree(
        state=jax.tree.map(move, tree.state),
        player=move(tree.player),
        terminal=move(tree.terminal),
        visits=move(tree.visits),
        value_sum=move(tree.value_sum),
        raw_value=move(tree.raw_value),
        candidates=move(tree.candidates, -1),
        prior=move(tree.prior),
        children=jnp.where(children >= 0, new_index[children], -1).astype(jnp.int32),
        truncated_prior=move(tree.truncated_prior),
        num_truncated=move(tree.num_truncated),
        num_nodes=num_nodes,
    )
