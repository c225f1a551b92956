"""Perft: counts of the sequences of legal actions of each length, which reveal wrong rules."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.game import Game

BATCH = 256  # states per call; with 36,400 actions their masks take 9 MB


class Perft:
    """Counter of sequences of legal actions of a game. Games that end earlier do not count.

    Args:
        game: the game.
        batch: number of states expanded per call.
    """

    def __init__(self, game: Game[Any], batch: int = BATCH) -> None:
        self.batch = batch
        self._counts = jax.jit(jax.vmap(game.num_legal))
        self._masks = jax.jit(jax.vmap(game.legal_action_mask))
        self._apply = jax.jit(jax.vmap(game.apply))

    def leaves(self, state: Any, depth: int, progress: Callable[[int], None] = lambda leaves: None) -> int:
        """Count the sequences of ``depth`` actions from a state.

        ``progress`` is called with the number of sequences counted so far. Raises ``ValueError`` for a negative depth.
        """
        if depth < 0:
            raise ValueError(f"depth must be at least 0, got {depth}")
        if depth == 0:
            return 1
        # Iterators of the positions after 0, 1, 2, ... actions. Recursion could exceed Python's stack.
        levels = [iter([jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)])]
        leaves = 0
        while levels:
            states = next(levels[-1], None)
            if states is None:
                levels.pop()
            elif len(levels) < depth:
                levels.append(self._children(states))
            else:
                leaves += sum(int(np.asarray(self._counts(part))[:size].sum()) for part, size in self._parts(states))
                progress(leaves)
        return leaves

    def _children(self, states: Any) -> Iterator[Any]:
        """Yield the states after every legal action, in batches."""
        for part, size in self._parts(states):
            parent, action = np.nonzero(np.asarray(self._masks(part))[:size])
            for start in range(0, len(action), self.batch):
                span = slice(start, start + self.batch)
                parents = jax.tree.map(lambda leaf, rows=parent[span]: np.asarray(leaf)[rows], part)
                (padded, actions), count = self._pad((parents, action[span].astype(np.int32)))
                children = jax.device_get(self._apply(padded, jnp.asarray(actions)))
                yield jax.tree.map(lambda leaf, count=count: leaf[:count], children)

    def _parts(self, states: Any) -> Iterator[tuple[Any, int]]:
        count = len(jax.tree.leaves(states)[0])
        for start in range(0, count, self.batch):
            yield self._pad(jax.tree.map(lambda leaf, start=start: leaf[start : start + self.batch], states))

    def _pad(self, states: Any) -> tuple[Any, int]:
        """Repeat the last state up to a full batch, so that functions are compiled once; return the states and their number."""
        size = len(jax.tree.leaves(states)[0])
        return jax.tree.map(
            lambda leaf: np.pad(leaf, [(0, self.batch - size)] + [(0, 0)] * (leaf.ndim - 1), "edge"), states
        ), size
