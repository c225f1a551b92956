"""Observations: binary planes from the perspective of the observer, without hidden information. Functions of one game.

A seat here is a colour. Seat 0 is the observer's colour; with two colours, the one that is to move or comes first in turn.
Seat 1 is the next in turn, and so on, so that the observer's other colour is seat 2.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from tilewe_jax.bits import unpack_words
from tilewe_jax.games.polyomino.boards import planes
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import PIECE_NAMES
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import rule_per_lane


def channel_names(config: Config) -> tuple[str, ...]:
    """Return the names of the planes."""
    seats = range(config.colors)
    return (
        *(f"cells of seat {seat}" for seat in seats),
        "free to the observer",
        "open corners of the observer",
        *(f"seat {seat} is out" for seat in seats),
        *(f"seat {seat} to move" for seat in seats),
        *(f"seat {seat} has {PIECE_NAMES[piece]}" for seat in seats for piece in config.pieces),
    )


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
    """Return the planes of ``channel_names`` for an observer, each 0 or 1; y = 0 is the bottom row."""
    # The observer's colour that is to move, or is the first in turn.
    current = state.current_color
    color = player if config.colors_per_player == 1 else (current + (player - current) % config.players) % config.colors
    seats = (color + jnp.arange(config.colors, dtype=jnp.int32)) % config.colors
    free, corners, _ = rule_per_lane(planes, config)(state.occupied, state.hands, color)
    boards = [*state.occupied[seats], free, free & corners]
    spatial = jnp.stack([unpack_words(board, config.cells) for board in boards]).reshape(-1, config.size, config.size)

    has = (state.hands[seats][:, None] >> np.array(config.pieces, np.uint32)[None]) & np.uint32(1)
    flags = jnp.concatenate([state.out[seats], seats == current, has.ravel() != 0])
    constant = jnp.broadcast_to(flags[:, None, None], (flags.shape[0], config.size, config.size))
    return jnp.concatenate([spatial, constant]).astype(jnp.float32)


def unpack_boards(config: Config, boards: UInt32[Array, "boards words"]) -> Bool[Array, "boards size size"]:
    """Unpack packed boards into planes ``[board, y, x]``, with y = 0 the bottom row."""
    cells = jax.vmap(lambda words: unpack_words(words, config.cells))(boards)
    return cells.reshape(-1, config.size, config.size)
