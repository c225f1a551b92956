"""Memory, estimated before anything is allocated: one rule for batches of games and for search trees."""

from pathlib import Path
from typing import Any

import jax
import psutil

from tilewe_jax.game import Game, state_bytes

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the limit of a container, of both versions of control groups."""


def bytes_per_node(game: Game[Any], num_candidates: int) -> int:
    """Bytes of one node of a ``Tree``."""
    fixed = 4 + 1 + 4 + 2 * 4 * game.num_players + 4 + 4
    return state_bytes(game) + fixed + num_candidates * (4 + 4 + 4)


def device_memory() -> int:
    """Bytes of memory of a device; of the machine, or of its container, where the device is its processor."""
    device = jax.local_devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return host_memory()


def host_memory() -> int:
    """Bytes of memory of the machine, or of the container that this process runs in."""
    limits = [int(psutil.virtual_memory().total)]
    for name in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(name).read_text("utf-8")))
        except (OSError, ValueError):  # there is no such group, or no limit ("max")
            continue
    return min(limits)


def check_fits(what: str, count: int, bytes_each: float, available: int | None = None) -> None:
    """Raise ``MemoryError``, which says how many would fit, where so many things do not fit into memory together.

    Args:
        what: the things, in the plural, like "games at once (--batch)".
        count: their number.
        bytes_each: bytes that each needs, estimated.
        available: bytes that there are, by default those of a device.
    """
    available = device_memory() if available is None else available
    if count * bytes_each > available:
        fitting = int(available // bytes_each)
        raise MemoryError(
            f"{count:,} {what} need about {count * bytes_each / 1e9:,.1f} GB, and there are {available / 1e9:.1f} GB;"
            f" {f'at most {fitting:,}' if fitting else 'not a single one'} would fit"
        )


def check_batch(game: Game[Any], batch: int, actions_kept: bool = False, devices: int = 1) -> None:
    """Raise ``MemoryError``, which names the batch that would fit, where games do not fit into memory when played together.

    A lower bound, for the time before anything is compiled; ``check_compiled`` knows exactly.

    Args:
        game: the game that is played.
        batch: number of games played at once, on all devices together.
        actions_kept: whether every action is kept, and the player of each.
        devices: number of devices that share the games.
    """
    # A state, the state after it, and what lies between; with the actions, the initial state too.
    needed = 4 * state_bytes(game) + 8 * game.max_steps if actions_kept else 3 * state_bytes(game)
    check_fits(_GAMES, batch, needed, _shared_memory(devices))


def check_compiled(batch: int, *functions: jax.stages.Compiled, devices: int = 1) -> None:
    """Raise ``MemoryError``, which names the batch that would fit, where a compiled function needs more memory than there is.

    Args:
        batch: number of games of one call, on all devices together.
        functions: functions of a batch of games; nothing is checked where the compiler does not say what they need.
        devices: number of devices that share the games.
    """
    for function in functions:
        if usage := function.memory_analysis():
            sizes = usage.temp_size_in_bytes, usage.output_size_in_bytes, usage.argument_size_in_bytes
            needed = devices * (sum(sizes) - usage.alias_size_in_bytes)
            check_fits(_GAMES, batch, needed / batch, _shared_memory(devices))


_GAMES = "games at once (--batch)"


def _shared_memory(devices: int) -> int:
    """Bytes of memory of several devices together; those of the processor share that of the machine."""
    return device_memory() * (1 if jax.local_devices()[0].platform == "cpu" else devices)


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
    what = f"trees of {num_nodes:,} nodes with {num_candidates} candidates, {node:,} bytes a node,"
    check_fits(what, num_trees, 2 * num_nodes * node)
