"""Perft: how many sequences of legal actions there are, of each length. The way to find a wrong rule."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.game import Game

BATCH = 256  # states expanded at once; with 36,400 actions their masks take 9 MB


class Perft:
    """Counts sequences of legal actions of a game; sequences cut short by the end of the game do not count."""

    def __init__(self, game: Game[Any], batch: int = BATCH) -> None:
        self.batch = batch
        self._counts = jax.jit(jax.vmap(game.num_legal))
        self._masks = jax.jit(jax.vmap(game.legal_actions))
        self._apply = jax.jit(jax.vmap(game.apply))

    def leaves(self, state: Any, depth: int, progress: Callable[[int], None] = lambda leaves: None) -> int:
        """Number of sequences of ``depth`` actions from one state. ``progress`` is told how many more were found."""
        if depth < 0:
            raise ValueError(f"depth must not be negative, but is {depth}")
        if depth == 0:
            return 1
        return self._leaves(jax.tree.map(lambda leaf: np.asarray(leaf)[None], state), depth, progress)

    def _leaves(self, states: Any, depth: int, progress: Callable[[int], None]) -> int:
        if depth == 1:
            leaves = sum(int(np.asarray(self._counts(part))[:size].sum()) for part, size in self._parts(states))
            progress(leaves)
            return leaves
        return sum(self._leaves(children, depth - 1, progress) for children in self._children(states))

    def _children(self, states: Any) -> Iterator[Any]:
        """The states after every legal action, some at a time."""
        for part, size in self._parts(states):
            parent, action = np.nonzero(np.asarray(self._masks(part))[:size])
            for start in range(0, len(action), self.batch):
                span = slice(start, start + self.batch)
                some = jax.tree.map(lambda leaf, some=parent[span]: np.asarray(leaf)[some], part)
                (padded, actions), size_ = self._pad((some, action[span].astype(np.int32)))
                children = jax.device_get(self._apply(padded, jnp.asarray(actions)))
                yield jax.tree.map(lambda leaf, size_=size_: leaf[:size_], children)

    def _parts(self, states: Any) -> Iterator[tuple[Any, int]]:
        count = len(jax.tree.leaves(states)[0])
        for start in range(0, count, self.batch):
            yield self._pad(jax.tree.map(lambda leaf, start=start: leaf[start : start + self.batch], states))

    def _pad(self, states: Any) -> tuple[Any, int]:
        """Repeat the last state up to a full batch, so that everything is compiled once; and how many are real."""
        size = len(jax.tree.leaves(states)[0])
        return jax.tree.map(
            lambda leaf: np.pad(leaf, [(0, self.batch - size)] + [(0, 0)] * (leaf.ndim - 1), "edge"), states
        ), size
