"""Tic-tac-toe, a small game for tests."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.support import batched
from tilewe_jax.game import Game

LINES = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])

BATCH = 8
"""Number of positions of ``opening``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    cells: Any
    """``int8[9]``: the player on each cell, -1 for an empty cell."""
    current_player: Any


class TicTacToe(Game[State]):
    version = 1
    id = "tictactoe"
    num_players = 2
    num_actions = 9
    max_steps = 9
    fixed_start = True

    @property
    def options(self):
        return {}

    def init(self, key):
        del key
        return State(jnp.full(9, -1, jnp.int8), jnp.int32(0))

    def apply(self, state, action):
        target = (jnp.arange(9) == action) & (action >= 0)
        cells = jnp.where(target, state.current_player.astype(jnp.int8), state.cells)
        return replace(
            state, cells=cells, current_player=jnp.where(action >= 0, 1 - state.current_player, state.current_player)
        )

    def _won(self, state):
        lines = state.cells[LINES]
        return jnp.stack([jnp.any(jnp.all(lines == player, axis=1)) for player in range(2)])

    def is_legal(self, state, action):
        return ((action >= 0) & (action < 9)) & self.legal_action_mask(state)[jnp.clip(action, 0, 8)]

    def legal_action_mask(self, state):
        return (state.cells < 0) & ~jnp.any(self._won(state))

    def current_player(self, state):
        return state.current_player

    def is_terminal(self, state):
        return jnp.any(self._won(state)) | jnp.all(state.cells >= 0)

    def scores(self, state):
        return self._won(state).astype(jnp.int32)

    def returns(self, state):
        won = self._won(state)
        shares = jnp.where(jnp.any(won), won.astype(jnp.float32), 0.5)
        return jnp.where(self.is_terminal(state), shares, 0.0)

    def observe(self, state, player):
        mine = jnp.int8(0) + player.astype(jnp.int8)
        return jnp.stack([state.cells == mine, state.cells == 1 - mine]).astype(jnp.float32)

    def text(self, state, color=False):
        del color
        return "\n".join("".join("XO."[cell] for cell in row) for row in np.asarray(state.cells).reshape(3, 3))

    def svg(self, state):
        return f"<svg>{self.text(state)}</svg>"

    def action_name(self, action, state):
        del state
        return "abc"[action % 3] + "123"[action // 3]

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))


def opening(game: TicTacToe, plies: int, seed: int) -> State:
    """Return positions after some random moves."""
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (BATCH, *leaf.shape)), game.init(None))
    for ply in range(plies):
        action = batched(game).sample_action(state, jax.random.split(jax.random.key(seed + ply), BATCH))
        state = batched(game).step(state, action)
    return state
