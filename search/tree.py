"""The search tree of one game, as arrays; ``vmap`` makes it thousands of trees.

A node keeps K candidate actions and not all of them: with six arrays over all actions in every node, as in mctx, a thousand
searches of 64 simulations among 36,400 actions would take 58 GB.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.search.rules import ChildStats
from tilewe_jax.utils.loops import scan, while_loop

State = TypeVar("State")

ROOT = 0
"""Index of the root."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree(Generic[State]):
    """N nodes in the order in which they were added, the root first; K candidate actions each; P players.

    Values are vectors over the players in absolute seats. A node's visits and values count its own evaluation and everything
    backed up through it. So visits are one more than those of its children together; except where it is proven, or as deep as
    the search goes, or where the tree had no more room.
    """

    state: State
    """``[N, ...]``"""
    player: Int32[Array, "N"]
    """The player to move."""
    proven: Bool[Array, "N"]
    """Whether ``raw_value`` is the outcome under best play: where the game is over, and, in searches with ``exact_endings``,
    where that follows from the children or from a lookahead."""
    visits: Int32[Array, "N"]
    """0 for the root before its evaluation, and for nodes that are not in use."""
    value_sum: Float32[Array, "N P"]
    """Sum over the visits."""
    raw_value: Float32[Array, "N P"]
    """The evaluator's value of the node itself, or the outcome where it is proven."""
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
    proven: Bool[Array, ""]
    """Whether ``raw_value`` is the outcome under best play: the game is over, or a lookahead has proven it."""
    raw_value: Float32[Array, "P"]
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
    action: Int32[Array, ""]
    """Its action; -1 where the leaf is the root."""
    child: Int32[Array, ""]
    """The leaf, where it is in the tree already; -1 elsewhere."""
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
        proven=empty(jnp.bool_),
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


def add_nodes(
    tree: Tree[State],
    index: Int32[Array, "L"],
    nodes: Node[State],
    parent: Int32[Array, "L"],
    candidate: Int32[Array, "L"],
) -> Tree[State]:
    """The tree with nodes stored at ``index``, as children of candidates of their parents.

    Where the index is the capacity, nothing is stored. The root, index 0, has no parent. ``nodes`` has a leading axis L.
    """

    def store(leaf: Array, value: Array) -> Array:
        return leaf.at[index].set(value, mode="drop")

    is_stored = index < tree.capacity
    parent = jnp.where(is_stored & (index > ROOT), parent, tree.capacity)
    stored = {item.name: jax.tree.map(store, getattr(tree, item.name), getattr(nodes, item.name)) for item in fields(nodes)}
    children = tree.children.at[parent, candidate].set(index, mode="drop")
    return replace(tree, children=children, num_nodes=tree.num_nodes + jnp.sum(is_stored, dtype=jnp.int32), **stored)


def backup(tree: Tree[State], paths: Path, leaves: Node[State], active: Bool[Array, "L"]) -> Tree[State]:
    """The tree with leaves added and their values backed up along their paths; those that are not ``active`` change nothing.

    ``paths`` and ``leaves`` have a leading axis L.
    """
    nodes = jnp.where(active[:, None], paths.nodes, tree.capacity)
    index = jnp.where(active, paths.store_at, tree.capacity)
    tree = add_nodes(tree, index, leaves, paths.parent, paths.candidate)
    return replace(
        tree,
        visits=tree.visits.at[nodes].add(1, mode="drop"),
        value_sum=tree.value_sum.at[nodes].add(leaves.raw_value[:, None], mode="drop"),
    )


def prove(tree: Tree[State], path: Path, winning: float, active: Bool[Array, ""]) -> Tree[State]:
    """The tree after what a new leaf proves: a path's nodes whose value now follows from their children.

    A node is proven where a candidate of its player is proven to be worth at least ``winning``, or where all legal actions are
    candidates and proven: it is then worth what the best of them for its player is, the first of equals (max^n). The mean value
    of a proven node becomes its proven value.

    Args:
        tree: the tree, the leaf of the path added.
        path: the path from the root to the leaf.
        winning: the value from which on a player has nothing to gain.
        active: whether the leaf was added.
    """
    depth = jnp.sum(path.nodes < tree.capacity, dtype=jnp.int32) - 1
    proves = active & (path.store_at < tree.capacity) & tree.proven[jnp.minimum(path.store_at, tree.capacity - 1)]

    def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
        depth, proves, _, _ = carry
        return proves & (depth > 0)

    def ascend(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        depth, _, index, value = carry
        node, below = path.nodes[depth - 1], path.nodes[depth]
        children, player = tree.children[node], tree.player[node]
        # What this leaf has proven below is not in the tree yet.
        is_proven = (children >= 0) & (tree.proven[children] | (children == below))
        values = jnp.where((children == below)[:, None], value[depth], tree.raw_value[children])
        own = jnp.where(is_proven, values[:, player], -jnp.inf)
        best = jnp.argmax(own).astype(jnp.int32)
        complete = (tree.num_truncated[node] == 0) & jnp.all(is_proven | (tree.candidates[node] < 0))
        proves = ((own[best] >= winning) | complete) & ~tree.proven[node]
        index = index.at[depth - 1].set(jnp.where(proves, node, tree.capacity))
        return depth - 1, proves, index, value.at[depth - 1].set(values[best])

    index = jnp.full(path.nodes.shape, tree.capacity, jnp.int32)
    value = jnp.zeros((path.nodes.shape[0], tree.raw_value.shape[1]), jnp.float32)
    value = value.at[depth].set(tree.raw_value[jnp.minimum(path.store_at, tree.capacity - 1)])
    _, _, index, value = while_loop(goes_on, ascend, (depth, proves, index, value))
    visits = jnp.take(tree.visits, index, mode="clip").astype(jnp.float32)
    return replace(
        tree,
        proven=tree.proven.at[index].set(True, mode="drop"),
        raw_value=tree.raw_value.at[index].set(value, mode="drop"),
        value_sum=tree.value_sum.at[index].set(value * visits[:, None], mode="drop"),
    )


def child_stats(
    tree: Tree[Any], node: Int32[Array, ""], pending: Int32[Array, "N"] | None = None, virtual_loss: float = 0.0
) -> ChildStats:
    """The statistics of a node and of its candidates, as selection rules see them.

    Args:
        tree: the tree.
        node: the node.
        pending: visits of each node that are under way and have no value yet; ``None`` for none. They count as visits of the
            mean value of the candidate (that of the node where it has none yet), less the virtual loss.
        virtual_loss: see ``SearchSettings``.
    """
    player, node_visits, children = tree.player[node], tree.visits[node], tree.children[node]
    visits, value = mean_values(tree.visits, tree.value_sum, children, player)
    node_value = tree.value_sum[node, player] / jnp.maximum(node_visits, 1).astype(jnp.float32)
    if pending is not None:
        under_way = jnp.where(children >= 0, pending[children], 0)
        all_visits = visits + under_way
        loss = virtual_loss * under_way.astype(jnp.float32) / jnp.maximum(all_visits, 1).astype(jnp.float32)
        value = jnp.where(all_visits > 0, jnp.where(visits > 0, value, node_value) - loss, 0.0)
        visits, node_visits = all_visits, node_visits + pending[node]
    return ChildStats(
        available=tree.candidates[node] >= 0,
        prior=tree.prior[node],
        visits=visits,
        value=value,
        node_visits=node_visits,
        node_value=node_value,
        raw_value=tree.raw_value[node, player],
    )


def without_refuted(tree: Tree[Any], stats: ChildStats) -> ChildStats:
    """The statistics of the root without candidates that are proven to be worth less than another one seems to be.

    Where the root is proven by its candidates, what is left are the best proven ones.
    """
    children = tree.children[ROOT]
    is_proven = (children >= 0) & tree.proven[children]
    value = jnp.where(stats.visits > 0, stats.value, -jnp.inf)
    best_proven = jnp.max(jnp.where(is_proven, value, -jnp.inf))
    refuted = is_proven & (value < jnp.max(value))
    # A lookahead proves a root without any of them.
    refuted = jnp.where(tree.proven[ROOT] & jnp.any(is_proven), ~is_proven | (value < best_proven), refuted)
    return stats._replace(available=stats.available & ~refuted, visits=jnp.where(refuted, 0, stats.visits))


def mean_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], nodes: Int32[Array, "K"], player: Int32[Array, ""]
) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
    """Visits of nodes and their mean values for a player; 0 for nodes -1."""
    count = jnp.where(nodes >= 0, visits[nodes], 0)
    return count, jnp.where(nodes >= 0, value_sum[nodes, player] / jnp.maximum(count, 1).astype(jnp.float32), 0.0)


def child_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], children: Int32[Array, "K"]
) -> tuple[Int32[Array, "K"], Float32[Array, "K P"]]:
    """Visits of nodes and their mean values by seat; 0 for nodes -1."""
    players = jnp.arange(value_sum.shape[1], dtype=jnp.int32)
    return jax.vmap(mean_values, in_axes=(None, None, None, 0), out_axes=(None, 1))(visits, value_sum, children, players)


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
        visits = jnp.where(tree.children[child] >= 0, tree.visits[tree.children[child]], 0)
        follows = (child >= 0) & jnp.any(visits > 0)
        return (child, jnp.where(follows, jnp.argmax(visits).astype(jnp.int32), -1)), action

    _, actions = scan(step, (jnp.int32(ROOT), jnp.asarray(candidate, jnp.int32)), None, length)
    return actions


def inner_visits(tree: Tree[Any]) -> Int32[Array, "N"]:
    """Visits of the nodes from whose values something is to be learned; 0 for the root and for proven nodes."""
    return jnp.where((jnp.arange(tree.capacity, dtype=jnp.int32) != ROOT) & ~tree.proven, tree.visits, 0)


def subtree(tree: Tree[State], candidate: Int32[Array, ""]) -> Tree[State]:
    """The subtree below one of the root's candidates, which must have been visited, as a tree of the same capacity.

    Args:
        tree: the tree.
        candidate: the index of the candidate among those of the root, such as ``SearchOutput.action_index``.
    """
    nodes = jnp.arange(tree.capacity, dtype=jnp.int32)
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
    new_index = jnp.cumsum(kept, dtype=jnp.int32) - 1

    def move(leaf: Array, fill: float = 0) -> Array:
        used = (nodes < num_nodes).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(used, leaf[source], jnp.asarray(fill, leaf.dtype))

    moved = {item.name: jax.tree.map(move, getattr(tree, item.name)) for item in fields(tree) if item.name != "num_nodes"}
    children = move(tree.children, -1)
    children = jnp.where(children >= 0, new_index[children], -1).astype(jnp.int32)
    return replace(tree, **moved | {"candidates": move(tree.candidates, -1), "children": children, "num_nodes": num_nodes})
