"""Searches with a time limit: the search runs in parts on the device, and the host checks the clock after each part."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax

T = TypeVar("T")
MAX_PARTS = 8
"""Maximum number of parts of a search: each part costs a call of the device, and the last one may exceed the limit."""


def part_size(num_rounds: int) -> int:
    """Return the number of rounds in each part of a search."""
    return -(-num_rounds // MAX_PARTS)


def timed(advance: Callable[[T, int], T], progress: T, num_rounds: int, seconds: float | None) -> T:
    """Run a search until its rounds or its time are used up; it runs at least one part.

    Args:
        advance: a compiled function of the progress and a number of rounds, like ``Search.advance``, for one game or a batch.
        progress: the progress from ``Search.start``.
        num_rounds: ``Search.num_rounds``.
        seconds: time limit in seconds; ``None`` means no limit.
    """
    if seconds is None:
        return advance(progress, num_rounds)
    size = part_size(num_rounds)
    started = last = time.perf_counter()
    for _ in range(0, num_rounds, size):
        progress = jax.block_until_ready(advance(progress, size))
        current = time.perf_counter()
        state: Any = progress
        # The next part is expected to take as long as this one.
        if current - started + current - last > seconds or bool(state.decided.all()):
            break
        last = current
    return progress
