"""What a player sees: planes from the player's seat. Polyomino games are open, so every player sees all."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32

from tilewe_jax.bits import unpack_words
from tilewe_jax.games.polyomino.boards import planes
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import PIECE_NAMES
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import per_lane


def channel_names(config: Config) -> tuple[str, ...]:
    """What each plane shows; seat 0 is the observer, seat 1 the next in turn, and so on."""
    seats = range(config.players)
    return (
        *(f"cells of seat {seat}" for seat in seats),
        "free to the observer",
        "open corners of the observer",
        *(f"seat {seat} is out" for seat in seats),
        *(f"seat {seat} to move" for seat in seats),
        *(f"seat {seat} has {PIECE_NAMES[piece]}" for seat in seats for piece in config.pieces),
    )


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
    """The planes of ``channel_names``, each 0 or 1, ``[channel, y, x]`` with y = 0 at the bottom."""
    seats = (player + jnp.arange(config.players)) % config.players
    free, corners, _ = per_lane(lambda *args: planes(config, *args))(state.occupied, state.hands, player)
    boards = [*state.occupied[seats], free, free & corners]
    spatial = jnp.stack([unpack_words(board, config.cells) for board in boards]).reshape(-1, config.size, config.size)

    has = (state.hands[seats][:, None] >> np.array(config.pieces, np.uint32)[None]) & np.uint32(1)
    flags = jnp.concatenate([state.out[seats], seats == state.current_player, has.ravel() != 0])
    constant = jnp.broadcast_to(flags[:, None, None], (flags.shape[0], config.size, config.size))
    return jnp.concatenate([spatial, constant]).astype(jnp.float32)
