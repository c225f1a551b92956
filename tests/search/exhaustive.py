"""Exhaustive search of small game trees, the reference for proven values."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.support import rows

CHUNK = 64


class Solver:
    """Exhaustive search (max^n) level by level, in chunks of positions.

    Args:
        game: the game.
        most: maximum number of positions of a game tree; larger trees are not solved.
    """

    def __init__(self, game: Any, most: int) -> None:
        def look(state: Any) -> tuple[Any, Any, Any, Any]:
            return game.legal_action_mask(state), game.current_player(state), game.is_terminal(state), game.returns(state)

        self.look, self.apply, self.most = jax.jit(jax.vmap(look)), jax.jit(jax.vmap(game.apply)), most

    def in_chunks(self, function: Any, *args: Any) -> Any:
        """Apply a batched function to a batch of any size."""
        count = jax.tree.leaves(args)[0].shape[0]
        results = []
        for start in range(0, count, CHUNK):
            index = np.minimum(np.arange(start, start + CHUNK), count - 1)
            results.append(jax.device_get(function(*jax.tree.map(lambda leaf, index=index: np.asarray(leaf)[index], args))))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *results)

    def value(self, state: Any) -> np.ndarray | None:
        """Return the value of a position by seat under best play; ``None`` if its tree is too large."""
        values = self._solve(state)
        return None if values is None else values[0]

    def action_values(self, state: Any) -> dict[int, np.ndarray] | None:
        """Return the values of the positions after each legal action; ``None`` if the tree is too large."""
        values = self._solve(state)
        return None if values is None else values[1]

    def _solve(self, state: Any) -> tuple[np.ndarray, dict[int, np.ndarray]] | None:
        level = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        levels, size = [], 0
        while True:
            legal, player, terminal, returns = self.in_chunks(self.look, level)
            parent, action = np.nonzero(legal)
            levels.append((parent, action, player, terminal, returns))
            size += len(parent)
            if size > self.most:
                return None
            if not len(parent):
                break
            level = self.in_chunks(self.apply, rows(level, parent), action.astype(np.int32))
        below = np.zeros((0, levels[0][4].shape[1]))
        for parent, action, player, terminal, returns in reversed(levels):
            actions = dict(zip(action.tolist(), below, strict=True)) if parent is levels[0][0] else {}
            value = np.where(terminal[:, None], returns, -np.inf)
            for index, node in enumerate(parent):
                if below[index, player[node]] > value[node, player[node]]:
                    value[node] = below[index]
            below = value
        return below[0], actions


def with_distinct_payoffs(game: Any) -> Any:
    """Return the game with distinct payoffs in every terminal state, so that max^n has a unique solution."""

    def returns(self: Any, state: Any) -> jax.Array:
        leaves = [leaf.astype(jnp.uint32).ravel() for leaf in jax.tree.leaves(state)]
        words = jnp.concatenate(leaves)
        code = jnp.sum(
            words * (2 * jnp.arange(words.shape[0], dtype=jnp.uint32) + 1) * jnp.uint32(2654435761), dtype=jnp.uint32
        )
        noise = jnp.sin((code >> 8).astype(jnp.float32) * 1e-3 + 2.1 * jnp.arange(game.num_players, dtype=jnp.float32))
        return jnp.where(self.is_terminal(state), 0.5 + 0.5 * noise, 0.0)

    return type("Distinct", (type(game),), {"returns": returns})(game.config)
