"""Searches under a limit of time: they run in parts on the device, and after each the host looks at the clock."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax

T = TypeVar("T")
MAX_PARTS = 8
"""Maximum number of parts of a search: each costs a call of the device, and the last one may exceed the limit."""


def parts_of(num_rounds: int) -> tuple[int, int]:
    """The number of parts of a search of so many rounds at most, and the number of rounds of each."""
    size = -(-num_rounds // MAX_PARTS)
    return -(-num_rounds // size), size


def timed(advance: Callable[[T, int], T], progress: T, num_rounds: int, seconds: float | None) -> T:
    """Run a search until its rounds or its seconds are over: at least one part, and others that are likely to end in time.

    Args:
        advance: ``Search.advance`` or ``Determinized.advance``, of a game or of a batch, as a compiled function of the progress
            and a number of rounds.
        progress: what ``begin`` gave.
        num_rounds: ``Search.num_rounds``.
        seconds: the limit; ``None`` for none.
    """
    if seconds is None:
        return advance(progress, num_rounds)
    count, size = parts_of(num_rounds)
    started = last = time.perf_counter()
    for _ in range(count):
        progress = jax.block_until_ready(advance(progress, size))
        now = time.perf_counter()
        state: Any = progress
        if now - started + now - last > seconds or bool(state.decided.all()):
            break
        last = now
    return progress
