"""Searches under a limit of time: they run in parts, and after each the clock is looked at."""

MAX_PARTS = 8
"""Maximum number of parts of a search: each costs a call of the device, and the last one may exceed the limit."""


def parts_of(num_simulations: int) -> tuple[int, int]:
    """The number of parts of a search of so many simulations at most, and the number of simulations of each."""
    size = -(-num_simulations // MAX_PARTS)
    return num_simulations // size, size
