"""Observations: binary planes from the seat of a player. Santorini has no hidden information, so both seats see everything."""

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from tilewe_jax.games.santorini.bitboard import singleton, unpack
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
"""What each plane shows; the last plane is constant."""


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
    """The planes of ``CHANNEL_NAMES``, each 0 or 1, ``[channel, row, column]`` from the top left."""
    is_mover = player == state.current_player
    first, second, third, fourth = (singleton(config, worker) for worker in state.workers)
    by_turn = [unpack(config, cells) for cells in (first, second, third, fourth)]
    by_seat = [jnp.where(is_mover, by_turn[i], by_turn[i ^ 2]) for i in range(4)]
    levels = [unpack(config, level) for level in state.levels]
    return jnp.stack([*by_seat, *levels, jnp.broadcast_to(is_mover, levels[0].shape)]).astype(jnp.float32)
