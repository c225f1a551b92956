"""Residual networks for Santorini."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import observation_shape
from tilewe_jax.games.santorini.config import DIRECTIONS, NUM_TURNS
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.games.santorini.observation import ENCODED_PLANES
from tilewe_jax.networks.base import Outputs, Size
from tilewe_jax.networks.layers import Conv, Linear, ResidualTower, ValueHead, global_pool


class SantoriniResNet(eqx.Module):
    """Residual tower with logits of moves times builds for each own worker, from the features of the worker's cell."""

    tower: ResidualTower
    turns: Linear
    placements: Conv | None
    """Logits of the cells for a worker, in games in which the players place the workers."""
    value: ValueHead

    def __init__(self, game: SantoriniGame, size: Size, key: PRNGKeyArray) -> None:
        key_tower, key_turns, key_placements, key_value = jax.random.split(key, 4)
        planes, channels = observation_shape(game)[0], size.channels
        self.tower = ResidualTower(planes, planes - 1, channels, size.blocks, key_tower)
        self.turns = Linear(3 * channels, NUM_TURNS // 2, key_turns, scale=0.1)
        self.placements = Conv(channels, 1, 1, key_placements, scale=0.1) if game.num_actions > NUM_TURNS else None
        self.value = ValueHead(2 * channels, game.num_players, key_value)

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        x = self.tower(observation)
        pooled = global_pool(x)
        # The first two planes are one-hot encodings of the cells of the own workers.
        workers = jnp.einsum("whk,hkc->wc", observation[:2].astype(x.dtype), x)
        logits = self.turns(jnp.concatenate([workers, jnp.broadcast_to(pooled, (2, pooled.shape[0]))], axis=1)).ravel()
        if self.placements:
            logits = jnp.concatenate([logits, self.placements(x).ravel()])
        return Outputs(logits.astype(jnp.float32), *self.value(pooled), features=x)


_PAIRED = 16
"""Length of the vectors whose product is the pair logit of the two cells of a turn."""


@dataclass(frozen=True)
class Encoded:
    """Interface of a network that reads ``SantoriniGame.encode``."""

    game: SantoriniGame

    @property
    def num_logits(self) -> int:
        """Number of actions."""
        return self.game.num_logits

    def observe(self, state: Any, player: Int32[Array, ""]) -> Float32[Array, "planes size size"]:
        """Return the encoding of a position; ``player`` is to move."""
        del player
        return self.game.encode(state)

    def gather_logits(self, state: Any, logits: Float32[Array, "actions"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Return the logits of actions, unchanged."""
        return self.game.gather_logits(state, logits, actions)


class SantoriniReachNet(eqx.Module):
    """Residual tower that reads the possible turns of both players (``SantoriniGame.encode``).

    Both workers of a player share a plane, so that swapping their numbers only permutes the logits. The logit of a turn is a
    logit of its two directions from the worker's cell, plus the product of two short vectors, one from the cell moved to and
    one from the cell built on.
    """

    tower: ResidualTower
    turns: Linear
    pairs: Conv
    value: ValueHead
    interface: Encoded = eqx.field(static=True)

    def __init__(self, game: SantoriniGame, size: Size, key: PRNGKeyArray) -> None:
        if game.num_actions > NUM_TURNS:
            raise ValueError("reach_resnet has no logits for placing workers, which placement=chosen needs")
        key_tower, key_turns, key_pairs, key_value = jax.random.split(key, 4)
        self.interface = Encoded(game)
        planes, channels = len(ENCODED_PLANES) - 2, size.channels
        self.tower = ResidualTower(planes, planes - 1, channels, size.blocks, key_tower)
        self.turns = Linear(3 * channels, NUM_TURNS // 2, key_turns, scale=0.1)
        self.pairs = Conv(channels, 2 * _PAIRED, 1, key_pairs, scale=0.3)
        self.value = ValueHead(2 * channels, game.num_players, key_value)

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        workers = observation[:2]  # one-hot
        x = self.tower(observation[2:])
        pooled = global_pool(x)
        at_workers = jnp.einsum("whk,hkc->wc", workers, x)
        logits = self.turns(jnp.concatenate([at_workers, jnp.broadcast_to(pooled, (2, pooled.shape[0]))], axis=1))
        logits = (logits + self._pair_logits(workers, self.pairs(x))).ravel()
        return Outputs(logits.astype(jnp.float32), *self.value(pooled), features=x)

    def _pair_logits(
        self, workers: Float[Array, "2 height width"], vectors: Float[Array, "height width vectors"]
    ) -> Float[Array, "2 turns"]:
        """Return the pair logits of the turns of each worker; 0 for cells outside of the board."""
        moved_to, built_on = vectors[..., :_PAIRED], vectors[..., _PAIRED:]
        around = jnp.stack([_in_direction(built_on, r, c) for r, c in DIRECTIONS], axis=2)
        products = jnp.einsum("hkp,hkbp->hkb", moved_to, around) * _PAIRED**-0.5
        targets = jnp.stack([_in_direction(jnp.moveaxis(workers, 0, 2), -r, -c) for r, c in DIRECTIONS], axis=3)
        return jnp.einsum("hkwt,hkb->wtb", targets, products).reshape(2, NUM_TURNS // 2)


def _in_direction(x: Float[Array, "height width *rest"], row: int, column: int) -> Float[Array, "height width *rest"]:
    """Shift ``x`` so that each cell has the value of its neighbour in a direction; 0 outside of the board."""
    height, width = x.shape[:2]
    padded = jnp.pad(x, ((1, 1), (1, 1), *((0, 0),) * (x.ndim - 2)))
    return padded[1 + row : 1 + row + height, 1 + column : 1 + column + width]
