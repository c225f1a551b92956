"""The residual networks for Santorini."""

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
    """A residual tower with logits of moves times builds per own worker, from the features of the worker's cell."""

    tower: ResidualTower
    turns: Linear
    placements: Conv | None
    """Logits of the cells to place a worker on, in games in which the players place them."""
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
        # The first two planes are one-hot: the cells of the own workers.
        workers = jnp.einsum("whk,hkc->wc", observation[:2].astype(x.dtype), x)
        logits = self.turns(jnp.concatenate([workers, jnp.broadcast_to(pooled, (2, pooled.shape[0]))], axis=1)).ravel()
        if self.placements:
            logits = jnp.concatenate([logits, self.placements(x).ravel()])
        return Outputs(logits.astype(jnp.float32), *self.value(pooled), features=x)


_PAIRED = 16
"""Length of the vectors whose products stand for the two cells of a turn."""


@dataclass(frozen=True)
class Encoded:
    """The interface of a network that reads ``SantoriniGame.encode``."""

    game: SantoriniGame

    @property
    def num_logits(self) -> int:
        """Number of actions."""
        return self.game.num_logits

    def observe(self, state: Any, player: Int32[Array, ""]) -> Float32[Array, "planes size size"]:
        """The encoding of a position; ``player`` is to move."""
        del player
        return self.game.encode(state)

    def gather_logits(self, state: Any, logits: Float32[Array, "actions"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """The logits of actions, one to one."""
        return self.game.gather_logits(state, logits, actions)


class SantoriniReachNet(eqx.Module):
    """A residual tower that reads what both players could do, with logits by the cells that a turn moves to and builds on.

    It reads ``SantoriniGame.encode``. The workers of a player are one plane, so that their numbers change nothing but the order
    of the logits. The logit of a turn is what the worker's cell says of its two directions, plus the product of two short
    vectors, one of the cell moved to and one of the cell built on.
    """

    tower: ResidualTower
    turns: Linear
    pairs: Conv
    value: ValueHead
    interface: Encoded = eqx.field(static=True)

    def __init__(self, game: SantoriniGame, size: Size, key: PRNGKeyArray) -> None:
        if game.num_actions > NUM_TURNS:
            raise ValueError("reach_resnet has no logits for placing workers, as placement=chosen needs them")
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
        """For each worker the products of the vectors of the cells of its turns; 0 where a cell is outside of the board."""
        moved_to, built_on = vectors[..., :_PAIRED], vectors[..., _PAIRED:]
        around = jnp.stack([_in_direction(built_on, r, c) for r, c in DIRECTIONS], axis=2)
        products = jnp.einsum("hkp,hkbp->hkb", moved_to, around) * _PAIRED**-0.5
        targets = jnp.stack([_in_direction(jnp.moveaxis(workers, 0, 2), -r, -c) for r, c in DIRECTIONS], axis=3)
        return jnp.einsum("hkwt,hkb->wtb", targets, products).reshape(2, NUM_TURNS // 2)


def _in_direction(x: Float[Array, "height width *rest"], row: int, column: int) -> Float[Array, "height width *rest"]:
    """At each cell what ``x`` has at its neighbour in a direction; 0 where that is outside of the board."""
    height, width = x.shape[:2]
    padded = jnp.pad(x, ((1, 1), (1, 1), *((0, 0),) * (x.ndim - 2)))
    return padded[1 + row : 1 + row + height, 1 + column : 1 + column + width]
