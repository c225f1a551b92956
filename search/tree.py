"""The search tree of one game as a pytree of arrays; ``jax.vmap`` adds a batch axis.

A node stores statistics for K candidate actions, not for all actions. With statistics for all 36,400 actions in every node, as
in mctx, a thousand searches of 64 simulations would take 58 GB.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.search.rules import ChildStats
from tilewe_jax.utils.loops import fori_loop, scan, while_loop

State = TypeVar("State")

ROOT = 0
"""Index of the root node."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree(Generic[State]):
    """A search tree with room for N nodes of K candidate actions, for P players; nodes are in order of insertion.

    Values are vectors over the players, indexed by seat. The visits and values of a node include its own evaluation, so its
    visit count is 1 plus the visits of its children, unless it is proven, at the maximum depth, or the tree was full.
    """

    state: State
    """Game states, ``[N, ...]``."""
    player: Int32[Array, "N"]
    """The player to move."""
    proven: Bool[Array, "N"]
    """True if ``raw_value`` is the outcome under best play: the game is over or, with ``exact_endings``, the outcome follows
    from the children or from a lookahead."""
    visits: Int32[Array, "N"]
    """Visit counts; 0 for unused nodes and for a root that is not evaluated yet."""
    value_sum: Float32[Array, "N P"]
    """Sum of the values of all visits."""
    raw_value: Float32[Array, "N P"]
    """The evaluator's value of the node, or the outcome of a proven node."""
    candidates: Int32[Array, "N K"]
    """Ids of the candidate actions, padded with -1."""
    prior: Float32[Array, "N K"]
    """Candidate priors as stored by ``SelectionRule.store_logits``: probabilities (PUCT) or logits (Gumbel)."""
    children: Int32[Array, "N K"]
    """Index of the child node of each candidate; -1 before its first visit."""
    truncated_prior: Float32[Array, "N"]
    """Prior probability of the legal actions that are not candidates."""
    num_truncated: Int32[Array, "N"]
    """Number of legal actions that are not candidates."""
    is_narrow: Bool[Array, "N"]
    """True for a node that can be widened: its candidates come from ``candidate_pool``, and it has more legal actions."""
    num_nodes: Int32[Array, ""]
    """Number of used nodes; 0 until the root is evaluated."""

    @property
    def capacity(self) -> int:
        """Maximum number of nodes, N."""
        return self.visits.shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Node(Generic[State]):
    """An evaluated position with K candidates, for P players; with the fields of ``Tree``."""

    state: State
    player: Int32[Array, ""]
    proven: Bool[Array, ""]
    raw_value: Float32[Array, "P"]
    candidates: Int32[Array, "K"]
    prior: Float32[Array, "K"]
    truncated_prior: Float32[Array, ""]
    num_truncated: Int32[Array, ""]
    is_narrow: Bool[Array, ""]


class Path(NamedTuple):
    """The path of a simulation from the root to a leaf: a new position, a proven node, or a node at the maximum depth."""

    nodes: Int32[Array, "max_depth+1"]
    """Nodes to back up through, including root and leaf, padded with the capacity of the tree."""
    parent: Int32[Array, ""]
    """The parent of the leaf."""
    candidate: Int32[Array, ""]
    """Index of the candidate taken at ``parent``."""
    action: Int32[Array, ""]
    """Action taken at ``parent``; -1 if the leaf is the root."""
    child: Int32[Array, ""]
    """Index of the leaf if it is already in the tree, otherwise -1."""
    store_at: Int32[Array, ""]
    """Index at which to store the leaf; the capacity of the tree if it does not fit, or is already stored and not widened."""
    is_wide: Bool[Array, ""]
    """True if the candidates of the leaf come from ``root_candidate_pool``: for the root, and for a node that is widened."""
    kept: Int32[Array, "K"]
    """The candidates with children of a leaf that is widened, at their places; -1 elsewhere."""


def init_tree(root: State, num_players: int, num_candidates: int, capacity: int) -> Tree[State]:
    """Instantiate a tree whose root has a state but is not evaluated yet.

    Args:
        root: the state of the root.
        num_players: P.
        num_candidates: K, the number of candidates of a node.
        capacity: N, the maximum number of nodes.
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
        is_narrow=empty(jnp.bool_),
        num_nodes=jnp.int32(0),
    )


def add_nodes(
    tree: Tree[State],
    index: Int32[Array, "L"],
    nodes: Node[State],
    parent: Int32[Array, "L"],
    candidate: Int32[Array, "L"],
) -> Tree[State]:
    """Store nodes at ``index`` and link them to the candidates of their parents.

    Args:
        tree: the tree.
        index: indices of the nodes, of new ones or of nodes to replace; nodes with the index ``tree.capacity`` are dropped.
        nodes: the nodes, with a leading axis L.
        parent: indices of the parents; ignored for the root.
        candidate: index of the candidate at each parent.
    """

    def store(leaf: Array, value: Array) -> Array:
        return leaf.at[index].set(value, mode="drop")

    is_stored = index < tree.capacity
    parent = jnp.where(is_stored & (index > ROOT), parent, tree.capacity)
    stored = {item.name: jax.tree.map(store, getattr(tree, item.name), getattr(nodes, item.name)) for item in fields(nodes)}
    children = tree.children.at[parent, candidate].set(index, mode="drop")
    num_new = jnp.sum(is_stored & (index >= tree.num_nodes), dtype=jnp.int32)
    return replace(tree, children=children, num_nodes=tree.num_nodes + num_new, **stored)


def backup(tree: Tree[State], paths: Path, leaves: Node[State], active: Bool[Array, "L"]) -> Tree[State]:
    """Add leaves to the tree and back up their values along their paths.

    Args:
        tree: the tree.
        paths: the paths, with a leading axis L.
        leaves: the evaluated leaves, with a leading axis L.
        active: mask of the leaves to use; the others change nothing.
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
    """Propagate a proven leaf up its path (MCTS-Solver for any number of players).

    A node is proven if one of its candidates is proven to be worth at least ``winning`` to the player to move, or if all legal
    actions are proven candidates. It then takes the value of the best of them for that player (max^n; the first one on ties),
    and its mean value becomes the proven value.

    Args:
        tree: the tree, including the leaf of the path.
        path: the path from the root to the leaf.
        winning: the value that a player cannot improve on.
        active: whether the leaf was added.
    """
    depth = jnp.sum(path.nodes < tree.capacity, dtype=jnp.int32) - 1
    proves = active & (path.store_at < tree.capacity) & tree.proven[jnp.minimum(path.store_at, tree.capacity - 1)]

    def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
        depth, proves, _, _ = carry
        return proves & (depth > 0)

    def ascend(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        depth, _, index, value = carry
        node, child = path.nodes[depth - 1], path.nodes[depth]
        children, player = tree.children[node], tree.player[node]
        # The tree does not contain yet that the child on the path is proven.
        is_proven = (children >= 0) & (tree.proven[children] | (children == child))
        values = jnp.where((children == child)[:, None], value[depth], tree.raw_value[children])
        player_value = jnp.where(is_proven, values[:, player], -jnp.inf)
        best = jnp.argmax(player_value).astype(jnp.int32)
        complete = (tree.num_truncated[node] == 0) & jnp.all(is_proven | (tree.candidates[node] < 0))
        proves = ((player_value[best] >= winning) | complete) & ~tree.proven[node]
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
    """Return the statistics of a node and its candidates that selection rules use.

    Args:
        tree: the tree.
        node: index of the node.
        pending: visits of each node that are under way and have no value yet. They count as visits with the mean value of the
            candidate (or of the node, for an unvisited candidate) minus the virtual loss. ``None`` means no such visits.
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
    """Remove root candidates that are proven to be worth less than the current value of another candidate.

    If the candidates prove the root, only the best proven candidates remain.
    """
    children = tree.children[ROOT]
    is_proven = (children >= 0) & tree.proven[children]
    value = jnp.where(stats.visits > 0, stats.value, -jnp.inf)
    best_proven = jnp.max(jnp.where(is_proven, value, -jnp.inf))
    refuted = is_proven & (value < jnp.max(value))
    # A lookahead can prove the root without any proven candidate.
    refuted = jnp.where(tree.proven[ROOT] & jnp.any(is_proven), ~is_proven | (value < best_proven), refuted)
    return stats._replace(available=stats.available & ~refuted, visits=jnp.where(refuted, 0, stats.visits))


def mean_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], nodes: Int32[Array, "K"], player: Int32[Array, ""]
) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
    """Return the visits of nodes and their mean values for one player; 0 for the index -1."""
    count = jnp.where(nodes >= 0, visits[nodes], 0)
    return count, jnp.where(nodes >= 0, value_sum[nodes, player] / jnp.maximum(count, 1).astype(jnp.float32), 0.0)


def child_values(
    visits: Int32[Array, "N"], value_sum: Float32[Array, "N P"], children: Int32[Array, "K"]
) -> tuple[Int32[Array, "K"], Float32[Array, "K P"]]:
    """Return the visits of nodes and their mean values for all players; 0 for the index -1."""
    players = jnp.arange(value_sum.shape[1], dtype=jnp.int32)
    return jax.vmap(mean_values, in_axes=(None, None, None, 0), out_axes=(None, 1))(visits, value_sum, children, players)


def principal_variation(tree: Tree[Any], candidate: Int32[Array, ""], length: int) -> Int32[Array, "length"]:
    """Return the action of a root candidate, followed by the most visited actions after it and padded with -1.

    Args:
        tree: the tree.
        candidate: index of the root candidate.
        length: maximum number of actions.
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
    """Return the visit counts of all nodes, with 0 for the root and for proven nodes."""
    return jnp.where((jnp.arange(tree.capacity, dtype=jnp.int32) != ROOT) & ~tree.proven, tree.visits, 0)


def subtree(tree: Tree[State], candidate: Int32[Array, ""]) -> Tree[State]:
    """Return the subtree below a visited root candidate as a tree of the same capacity.

    Args:
        tree: the tree.
        candidate: index of the root candidate, like ``SearchOutput.action_index``.
    """
    nodes = jnp.arange(tree.capacity, dtype=jnp.int32)
    parent = (
        jnp.zeros(tree.capacity, jnp.int32)
        .at[jnp.where(tree.children >= 0, tree.children, tree.capacity)]
        .set(jnp.broadcast_to(nodes[:, None], tree.children.shape), mode="drop")
    )
    root = tree.children[ROOT, candidate]

    def double(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """Include the ancestors up to twice the distance."""
        kept, ancestor = carry
        return kept | kept[ancestor], ancestor[ancestor]

    kept, _ = fori_loop(0, max(1, (tree.capacity - 1).bit_length()), double, (nodes == root, parent))
    kept = kept & (nodes < tree.num_nodes)
    num_nodes = jnp.sum(kept, dtype=jnp.int32)
    # Children come after their parents, so the new root stays first.
    new_index = jnp.cumsum(kept, dtype=jnp.int32) - 1
    source = jnp.zeros(tree.capacity, jnp.int32).at[jnp.where(kept, new_index, tree.capacity)].set(nodes, mode="drop")

    def move(leaf: Array, fill: float = 0) -> Array:
        used = (nodes < num_nodes).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(used, leaf[source], jnp.asarray(fill, leaf.dtype))

    moved = {item.name: jax.tree.map(move, getattr(tree, item.name)) for item in fields(tree) if item.name != "num_nodes"}
    children = move(tree.children, -1)
    children = jnp.where(children >= 0, new_index[children], -1).astype(jnp.int32)
    return replace(tree, **moved | {"candidates": move(tree.candidates, -1), "children": children, "num_nodes": num_nodes})
