"""Binary planes: observations from the perspective of a player, and an encoding that includes the possible moves."""

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32

from tilewe_jax.games.santorini.bitboard import full_board, singleton, unpack
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.lookahead import climbable, reach_of
from tilewe_jax.games.santorini.rules import State

_WORKERS = tuple(f"{player} worker {number}" for player in ("own", "other's") for number in (1, 2))
_LEVELS = ("level 1 or higher", "level 2 or higher", "level 3 or higher", "dome")
CHANNEL_NAMES = (*_WORKERS, *_LEVELS, "the observer is to move")
"""Names of the planes of ``observe``; the last plane is constant."""


def observe(config: Config, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
    """The planes of ``CHANNEL_NAMES``, each 0 or 1, ``[channel, row, column]`` from the top left."""
    is_mover = player == state.current_player
    first, second, third, fourth = (singleton(config, worker) for worker in state.workers)
    by_turn = [unpack(config, cells) for cells in (first, second, third, fourth)]
    by_seat = [jnp.where(is_mover, by_turn[i], by_turn[i ^ 2]) for i in range(4)]
    levels = [unpack(config, level) for level in state.levels]
    return jnp.stack([*by_seat, *levels, jnp.broadcast_to(is_mover, levels[0].shape)]).astype(jnp.float32)


_REACH = ("workers", "workers on level 1 or 2", "workers on level 2", "targets", "climbs to level 3")
ENCODED_PLANES = (
    *_WORKERS[:2],
    *(f"{player} {name}" for player in ("own", "other's") for name in _REACH),
    *_LEVELS,
    "free",
    "board",
)
"""Names of the planes of ``encode``; the last plane is constant. Targets are the free cells within reach of a worker."""


def encode(config: Config, state: State) -> Float32[Array, "planes size size"]:
    """The planes of ``ENCODED_PLANES``, each 0 or 1, ``[plane, row, column]``; "own" is the player to move."""
    level_1, level_2, level_3, level_4 = state.levels
    own_1, own_2, other_1, other_2 = (singleton(config, worker) for worker in state.workers)
    board = full_board(config)
    free = board & ~(own_1 | own_2 | other_1 | other_2 | level_4)
    planes = [own_1, own_2]
    for workers in (own_1 | own_2, other_1 | other_2):
        reach = reach_of(config, state.levels, workers)
        targets = climbable(state.levels, reach) & free
        planes += [workers, workers & level_1, workers & level_2, targets, reach.from_2 & level_3 & free]
    return jnp.stack([unpack(config, cells) for cells in (*planes, *state.levels, free, board)]).astype(jnp.float32)
