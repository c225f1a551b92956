"""Shared by tests: compiled functions, traces, comparisons."""

import gzip
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from tilewe_jax.game import Game

SAMPLES = Path(__file__).parent / "data" / "traces"
"""Sampled traces of other implementations, see ``tests/data/README.md``."""
FULL_TRACES = Path(os.environ.get("TILEWE_TRACES") or Path(__file__).parents[2] / "shared" / "oracles")
"""The full traces, which are not part of the repository."""
sampled_and_full = pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["sample", "full"])
"""Parametrises a test with ``full``, an argument of ``traces``: sampled traces by default, full traces among the slow tests."""


def slow(*values: Any) -> Any:
    """Mark arguments of ``parametrize`` as slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


TINY_TRAINING = [
    "game.id=santorini",
    "game.options.size=3",
    "network.size=tiny",
    "selfplay.num_games=8",
    "selfplay.unroll_length=8",
    "selfplay.search.num_simulations=4",
    "selfplay.search.num_candidates=16",
    "selfplay.search.max_depth=4",
    "selfplay.gumbel.max_num_considered_actions=4",
    "replay.replay_size=16",
    "replay.min_replay_size=8",
    "optimizer.batch_size=8",
]
"""Settings of ``train`` for iterations of some milliseconds."""


@lru_cache(maxsize=4)  # the compiled functions of a game take hundreds of megabytes
def batched(game: Game[Any]) -> SimpleNamespace:
    """Return the batched functions of a game, compiled once for consecutive tests."""
    names = (
        "apply apply_deferred resolve_passes step is_legal legal_action_mask num_legal sample_action current_player is_terminal"
        " is_truncated scores returns observe determinize playout init"
    )
    return SimpleNamespace(**{name: jax.jit(jax.vmap(getattr(game, name))) for name in names.split()})


def traces(path: str, full: bool = False) -> list[dict[str, Any]]:
    """Read a sampled or full trace file; skips the test if the full file is missing."""
    file = (FULL_TRACES if full else SAMPLES) / path
    if full and not file.exists():
        pytest.skip(f"needs the full trace {path} in the folder TILEWE_TRACES")
    with gzip.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def assert_same(left: Any, right: Any) -> None:
    """Assert that two trees have equal structures, values and dtypes."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def content(folder: Path) -> dict[str, str]:
    """Return the checksums of all files by relative path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rows(tree: Any, index: Any) -> Any:
    """Index the first axis of every leaf; on the host, because JAX would compile a selection for each shape."""

    def select(leaf: Any) -> Any:
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if is_key or not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
            return leaf[index]
        return jax.numpy.asarray(np.asarray(leaf)[index])

    return jax.tree.map(select, tree)


def positions(game: Game[Any], batch: int, seed: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
    """Play a batch at random; yield the states before each move with the moves, -1 in finished games."""
    play = batched(game)
    key = jax.random.key(seed)
    state = play.init(jax.random.split(key, batch))
    for step in range(game.max_steps + 1):
        action = play.sample_action(state, jax.random.split(jax.random.fold_in(key, step), batch))
        yield state, np.asarray(action)
        if np.all(np.asarray(action) < 0):
            return
        state = play.step(state, action)
    raise AssertionError(f"{game.id} is not over after {game.max_steps} steps")


def zero_sum_rewards(scores: Sequence[int]) -> np.ndarray:
    """The outcome of a finished game by seat, in which each of several winners takes an equal fraction of the win."""
    wins = np.array(scores) == max(scores)
    return (len(wins) * wins / wins.sum() - 1) / (len(wins) - 1)


@contextmanager
def heeding_hangups() -> Iterator[None]:
    """Make child processes handle SIGHUP even if the tests run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until a condition holds; fail after a time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.002)
