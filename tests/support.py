"""What several tests share: compiled functions, traces, comparisons."""

import gzip
import hashlib
import json
import os
import signal
from collections.abc import Iterator
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
"""The traces that they are drawn from; not part of the repository."""
sampled_and_full = pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["sample", "full"])
"""Runs a test on the sampled traces and, among the slow tests, on the full ones; its argument ``full`` is for ``traces``."""


def slow(*values: Any) -> Any:
    """Arguments of ``parametrize`` that only the slow tests try."""
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
"""Settings of ``train`` with which an iteration takes milliseconds."""


@lru_cache(maxsize=4)  # what is compiled for a game takes hundreds of megabytes
def batched(game: Game[Any]) -> SimpleNamespace:
    """The functions of a game over batches, compiled once for tests that follow each other."""
    names = (
        "apply apply_deferred resolve_passes step is_legal legal_action_mask num_legal sample_action current_player is_terminal"
        " is_truncated scores returns observe determinize playout init"
    )
    return SimpleNamespace(**{name: jax.jit(jax.vmap(getattr(game, name))) for name in names.split()})


def traces(path: str, full: bool = False) -> list[dict[str, Any]]:
    """The lines of a sampled trace file, or of the full one; skips the test where that is not available."""
    file = (FULL_TRACES if full else SAMPLES) / path
    if full and not file.exists():
        pytest.skip(f"needs the full trace {path}; TILEWE_TRACES names the folder that has it")
    with gzip.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def assert_same(left: Any, right: Any) -> None:
    """Two trees have the same structure and the same values, dtypes included."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def content(folder: Path) -> dict[str, str]:
    """The checksums of all files, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rows(tree: Any, index: Any) -> Any:
    """These rows of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def positions(game: Game[Any], batch: int, seed: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
    """Random play: the states of a batch after 0, 1, 2, ... moves, and the moves that follow (-1 at the end)."""
    play = batched(game)
    key = jax.random.key(seed)
    state = play.init(jax.random.split(key, batch))
    for step in range(game.max_steps + 1):
        action = play.sample_action(state, jax.random.split(jax.random.fold_in(key, step), batch))
        yield state, np.asarray(action)
        if np.all(np.asarray(action) < 0):
            return
        state = play.step(state, action)
    raise AssertionError(f"{game.id} goes on after {game.max_steps} steps")


@contextmanager
def heeding_hangups() -> Iterator[None]:
    """Processes that are started here do not ignore SIGHUP, although the tests may run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
