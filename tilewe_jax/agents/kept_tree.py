"""The tree that a player keeps through a game under way, on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from tilewe_jax.search import TreePlayer


class KeptTree:
    """What a ``TreePlayer`` carries through one game at a time; with the moves of another game it begins anew.

    Args:
        agent: the player.
    """

    def __init__(self, agent: TreePlayer) -> None:
        self._agent = agent
        self._init, self._act, self._advance = (
            jax.jit(method) for method in (TreePlayer.init, TreePlayer.act, TreePlayer.advance)
        )
        self._moves: tuple[Any, ...] = ()
        self.memory: Any = None
        """The tree; ``None`` before the first position."""

    def forget(self) -> None:
        """Begin the next position with an empty tree."""
        self._moves, self.memory = (), None

    def follow(self, moves: Sequence[Any], state: Any, action_of: Callable[[Any], int] = int) -> None:
        """Bring the tree up to a position, by the moves after those of the last call where the game has gone on.

        Args:
            moves: all moves of the game so far.
            state: the position after them.
            action_of: gives the action of a move.
        """
        count = len(self._moves)
        if self.memory is None or tuple(moves[:count]) != self._moves:
            self.memory = self._init(self._agent, state)
        else:
            for move in moves[count:]:
                self.memory = self._advance(self._agent, self.memory, jnp.int32(action_of(move)))
        self._moves = tuple(moves)

    def act(self, state: Any, key: PRNGKeyArray) -> int:
        """The action to play in the position; ``key`` is consumed."""
        action, self.memory = self._act(self._agent, self.memory, state, key)
        return int(action)
