"""Estimates of the memory of batches of games and of search trees, checked before allocation."""

from pathlib import Path
from typing import Any

import jax
import psutil

from tilewe_jax.game import Game, state_bytes

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the memory limit of a container, for control groups v2 and v1."""


def bytes_per_node(game: Game[Any], num_candidates: int) -> int:
    """Return the size of one node of a ``Tree`` in bytes."""
    fixed = 4 + 1 + 4 + 2 * 4 * game.num_players + 4 + 4 + 1
    return state_bytes(game) + fixed + num_candidates * (4 + 4 + 4)


def device_memory() -> int:
    """Return the memory of the first device in bytes; for a CPU, the memory of the host."""
    device = jax.local_devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return host_memory()


def host_memory() -> int:
    """Return the memory of the machine, or the limit of its container, in bytes."""
    limits = [int(psutil.virtual_memory().total)]
    for name in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(name).read_text("utf-8")))
        except (OSError, ValueError):  # no such file, or no limit ("max")
            continue
    return min(limits)


def check_fits(what: str, count: int, bytes_each: float, available: int | None = None) -> None:
    """Raise ``MemoryError`` if ``count`` items do not fit into memory; the message gives the number that fits.

    Args:
        what: description of the items in the plural, like "games at once (--batch)".
        count: number of items.
        bytes_each: estimated bytes per item.
        available: available bytes; by default of the first device.
    """
    available = device_memory() if available is None else available
    if count * bytes_each > available:
        fitting = int(available // bytes_each)
        raise MemoryError(
            f"{count:,} {what} need about {count * bytes_each / 1e9:,.1f} GB of {available / 1e9:.1f} GB memory;"
            f" at most {fitting:,} would fit"
        )


def check_batch(game: Game[Any], batch: int, actions_kept: bool = False, devices: int = 1) -> None:
    """Raise ``MemoryError`` if a batch of games does not fit into memory; the message gives the batch that fits.

    The estimate is a lower bound before compilation; ``check_compiled`` is exact.

    Args:
        game: the game.
        batch: number of games on all devices.
        actions_kept: whether all actions and their players are stored.
        devices: number of devices that share the games.
    """
    # The state, its successor and temporaries; with the actions, the initial state too.
    needed = 4 * state_bytes(game) + 8 * game.max_steps if actions_kept else 3 * state_bytes(game)
    check_fits(_GAMES, batch, needed, _shared_memory(devices))


def check_compiled(batch: int, *functions: jax.stages.Compiled, devices: int = 1) -> None:
    """Raise ``MemoryError`` if a compiled function needs too much memory; the message gives the batch that fits.

    Args:
        batch: number of games of one call on all devices.
        functions: functions of a batch of games; skipped if the compiler does not report their memory.
        devices: number of devices that share the games.
    """
    for function in functions:
        if usage := function.memory_analysis():
            sizes = usage.temp_size_in_bytes, usage.output_size_in_bytes, usage.argument_size_in_bytes
            needed = devices * (sum(sizes) - usage.alias_size_in_bytes)
            check_fits(_GAMES, batch, needed / batch, _shared_memory(devices))


_GAMES = "games at once (--batch)"


def _shared_memory(devices: int) -> int:
    """Return the total memory of several devices in bytes; CPU devices share the memory of the host."""
    return device_memory() * (1 if jax.local_devices()[0].platform == "cpu" else devices)


def check_memory(game: Game[Any], num_nodes: int, num_candidates: int, num_trees: int) -> None:
    """Raise ``MemoryError`` if search trees do not fit into the memory of a device.

    The estimate is twice the size of the trees: a step of a search needs the same amount.

    Args:
        game: the game.
        num_nodes: number of nodes of a tree, ``num_simulations + 1``.
        num_candidates: number of candidates of a node.
        num_trees: number of trees on the device.
    """
    node = bytes_per_node(game, num_candidates)
    what = f"trees of {num_nodes:,} nodes with {num_candidates} candidates, {node:,} bytes a node,"
    check_fits(what, num_trees, 2 * num_nodes * node)
