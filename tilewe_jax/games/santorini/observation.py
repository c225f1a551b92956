"""What a player sees: planes from the player's seat. Santorini is open, so both see all."""

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from tilewe_jax.games.santorini.bitboard import dense, single
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.rules import State

CHANNEL_NAMES = (
    "own worker 1",
    "own worker 2",
    "other's worker 1",
    "other's worker 2",
    "level 1 or higher",
    "level 2 or higher",
    "level 3 or higher",
    "dome",
    "the observer is to move",
)
"""What each plane shows; the last is constant."""


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
    """The planes of ``CHANNEL_NAMES``, each 0 or 1, ``[channel, row, column]`` from the top left."""
    mine = player == state.current_player
    first, second, third, fourth = (single(config, worker) for worker in state.workers)
    workers = [dense(config, cells) for cells in (first, second, third, fourth)]
    seen = [jnp.where(mine, workers[i], workers[i ^ 2]) for i in range(4)]
    levels = [dense(config, level) for level in state.levels]
    return jnp.stack([*seen, *levels, jnp.broadcast_to(mine, levels[0].shape)]).astype(jnp.float32)
