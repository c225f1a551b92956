"""Speed of games and searches on a GPU: the figures of the other benchmarks at the batches of a GPU."""

from collections.abc import Iterator
from typing import Any

from tilewe_jax.cli.benchmarks import pgx_protocol, play, search

BATCH = 65_536
"""Number of games in parallel."""
TREES = 1_024
"""Number of searches in parallel."""


def measure(name: str, options: dict[str, Any], seconds: float, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of play in both forms, of the protocol of Pgx and of searches, each as JSON.

    Each figure is measured in another process, which frees the memory of the device when it ends.

    Args:
        name: id of the game.
        options: options of the game.
        seconds: duration of each measurement.
        seed: seed of the moves.

    Raises ``RuntimeError`` without a GPU, and if a measurement fails.
    """
    if not play.has_accelerator():
        raise RuntimeError("no GPU found; JAX needs the extra cuda: pip install 'tilewe-jax[cuda]'")
    for form in ("stream", "step"):
        yield play.measure(name, options, form, None, BATCH, seconds, 1, seed)
    yield pgx_protocol.measure(name, options, BATCH, seconds, seed)
    yield search.measure(name, options, TREES, 64, 64, seconds, seed)
