"""The tree of one game's search, as arrays; ``vmap`` makes it thousands of trees.

A node keeps K candidate actions and not all of them: with six arrays over all actions in every node, as in mctx, a thousand
searches of 64 simulations among 36,400 actions would take 58 GB.
"""

import os
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.game import Game, state_bytes

State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree(Generic[State]):
    """N nodes in the order in which they were made, the root first; K candidate actions each; P players.

    Values are vectors over the players in absolute seats. A node's visits and values count its own evaluation and everything
    backed up through it. So visits are one more than those of its children together; except where it is terminal, or as deep as
    the search goes, or where the tree had no more room.
    """

    state: State
    """``[N, ...]``"""
    player: Int32[Array, "N"]
    """Who is to move."""
    terminal: Bool[Array, "N"]
    visits: Int32[Array, "N"]
    values: Float32[Array, "N P"]
    """Sums over the visits."""
    own: Float32[Array, "N P"]
    """What the evaluator, or the end of the game, said of the node itself."""
    action: Int32[Array, "N K"]
    """Candidates; -1 where there are fewer."""
    prior: Float32[Array, "N K"]
    """What the selection keeps of the candidates' logits, see there."""
    child: Int32[Array, "N K"]
    """The node that a candidate leads to; -1 before its first visit."""
    dropped: Float32[Array, "N"]
    """The share of the prior that the candidates leave out."""
    left_out: Int32[Array, "N"]
    """How many legal actions they leave out."""
    size: Int32[Array, ""]
    """Number of nodes made."""

    @property
    def capacity(self) -> int:
        """N."""
        return self.visits.shape[0]

    def edges(self, node: Int32[Array, ""]) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
        """Visits of each candidate of a node, and the mean value of those visits for whoever moves there; 0 without visits."""
        return edges(self.visits, self.values, self.child[node], self.player[node])


def edges(
    visits: Int32[Array, "N"], values: Float32[Array, "N P"], child: Int32[Array, "K"], player: Int32[Array, ""]
) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
    """Visits of these nodes and their mean values for a player; 0 for -1."""
    count = jnp.where(child >= 0, visits[child], 0)
    return count, jnp.where(child >= 0, values[child, player] / jnp.maximum(count, 1).astype(jnp.float32), 0.0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Node(Generic[State]):
    """A position with what is known of it before anything is searched."""

    state: State
    player: Int32[Array, ""]
    terminal: Bool[Array, ""]
    values: Float32[Array, "P"]
    action: Int32[Array, "K"]
    prior: Float32[Array, "K"]
    dropped: Float32[Array, ""]
    left_out: Int32[Array, ""]


def plant(game: Game[State], state: State, capacity: int, candidates: int) -> Tree[State]:
    """A tree without nodes, but for the state of the root to come."""

    def room(dtype: Any, *shape: int, empty: float = 0) -> Array:
        return jnp.full((capacity, *shape), empty, dtype)

    return Tree(
        state=jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype).at[0].set(leaf), state),
        player=room(jnp.int32),
        terminal=room(jnp.bool_),
        visits=room(jnp.int32),
        values=room(jnp.float32, game.num_players),
        own=room(jnp.float32, game.num_players),
        action=room(jnp.int32, candidates, empty=-1),
        prior=room(jnp.float32, candidates),
        child=room(jnp.int32, candidates, empty=-1),
        dropped=room(jnp.float32),
        left_out=room(jnp.int32),
        size=jnp.int32(0),
    )


def grow(tree: Tree[State], at: Int32[Array, ""], node: Node[State]) -> Tree[State]:
    """The tree with a node written at an index; unchanged where the index is the capacity."""

    def write(leaf: Array, value: Array) -> Array:
        return leaf.at[at].set(value, mode="drop")

    return replace(
        tree,
        state=jax.tree.map(write, tree.state, node.state),
        player=write(tree.player, node.player),
        terminal=write(tree.terminal, node.terminal),
        own=write(tree.own, node.values),
        action=write(tree.action, node.action),
        prior=write(tree.prior, node.prior),
        dropped=write(tree.dropped, node.dropped),
        left_out=write(tree.left_out, node.left_out),
    )


def reroot(tree: Tree[State], candidate: Int32[Array, ""]) -> Tree[State]:
    """The subtree of one of the root's candidates, which must have been visited, as a tree of the same capacity."""
    nodes = jnp.arange(tree.capacity)
    parent = (
        jnp.zeros(tree.capacity, jnp.int32)
        .at[jnp.where(tree.child >= 0, tree.child, tree.capacity)]
        .set(jnp.broadcast_to(nodes[:, None], tree.child.shape), mode="drop")
    )
    root = tree.child[0, candidate]
    keep, ancestor = nodes == root, parent
    for _ in range(max(1, (tree.capacity - 1).bit_length())):  # twice as far up each time
        keep, ancestor = keep | keep[ancestor], ancestor[ancestor]
    keep = keep & (nodes < tree.size)
    size = jnp.sum(keep, dtype=jnp.int32)
    # Nodes are made after their parents, so that the subtree's root stays first.
    (source,) = jnp.nonzero(keep, size=tree.capacity, fill_value=0)
    number = jnp.cumsum(keep) - 1

    def move(leaf: Array, empty: float = 0) -> Array:
        there = (nodes < size).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(there, leaf[source], jnp.asarray(empty, leaf.dtype))

    return Tree(
        state=jax.tree.map(move, tree.state),
        player=move(tree.player),
        terminal=move(tree.terminal),
        visits=move(tree.visits),
        values=move(tree.values),
        own=move(tree.own),
        action=move(tree.action, -1),
        prior=move(tree.prior),
        dropped=move(tree.dropped),
        left_out=move(tree.left_out),
        child=jnp.where(move(tree.child, -1) >= 0, number[move(tree.child, -1)], -1).astype(jnp.int32),
        size=size,
    )


def first_highest(scores: Float32[Array, "K"]) -> Int32[Array, ""]:
    """``argmax``, the first of equals. XLA's own compares one number at a time on a CPU, and takes eight times as long."""
    bits = lax.bitcast_convert_type(scores, jnp.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # as integers they compare as the numbers do
    count = scores.shape[0]
    return jnp.min(jnp.where(ordered == jnp.max(ordered), jnp.arange(count, dtype=jnp.int32), count))


def check_counts(**counts: int) -> None:
    """Raise ``ValueError`` for numbers below 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")


def check_memory(game: Game[Any], nodes: int, candidates: int, trees: int) -> None:
    """Raise ``MemoryError`` where so many trees do not fit into the memory of the device, or of the machine.

    An estimate, before anything is allocated: the trees, and as much again for one step of a search.
    """
    node = bytes_per_node(game, candidates)
    needed, there = 2 * trees * nodes * node, memory()
    if needed > there:
        raise MemoryError(
            f"{trees:,} trees of {nodes:,} nodes with {candidates} candidates, {node:,} bytes a node, need about"
            f" {needed / 1e9:.1f} GB, and there are {there / 1e9:.1f} GB; ask for fewer games, simulations or candidates"
        )


def memory() -> int:
    """Bytes of memory of a device; of the machine, where the device is its processor."""
    device = jax.local_devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def bytes_per_node(game: Game[Any], candidates: int) -> int:
    """Bytes that a node of a tree takes."""
    fixed = 4 + 1 + 4 + 2 * 4 * game.num_players + 4 + 4
    return state_bytes(game) + fixed + candidates * (4 + 4 + 4)
