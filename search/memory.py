"""The memory that search trees take, estimated before anything is allocated."""

import os
from typing import Any

import jax

from tilewe_jax.game import Game, state_bytes


def bytes_per_node(game: Game[Any], num_candidates: int) -> int:
    """Bytes of one node of a ``Tree``."""
    fixed = 4 + 1 + 4 + 2 * 4 * game.num_players + 4 + 4
    return state_bytes(game) + fixed + num_candidates * (4 + 4 + 4)


def device_memory() -> int:
    """Bytes of memory of a device; of the machine, where the device is its processor."""
    device = jax.local_devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(game: Game[Any], num_nodes: int, num_candidates: int, num_trees: int) -> None:
    """Raise ``MemoryError`` where trees do not fit into the memory of a device.

    An estimate: the trees, and as much again for one step of a search.

    Args:
        game: the game that is searched.
        num_nodes: nodes of a tree, ``num_simulations + 1``.
        num_candidates: candidates of a node.
        num_trees: trees at the same time on one device.
    """
    node = bytes_per_node(game, num_candidates)
    needed, available = 2 * num_trees * num_nodes * node, device_memory()
    if needed > available:
        raise MemoryError(
            f"{num_trees:,} trees of {num_nodes:,} nodes with {num_candidates} candidates, {node:,} bytes a node, need about"
            f" {needed / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB; ask for fewer games, simulations or candidates"
        )
