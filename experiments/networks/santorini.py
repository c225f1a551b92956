"""The residual network for Santorini."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from experiments.networks.base import Outputs, Size
from experiments.networks.layers import Conv, Linear, ResidualTower, ValueHead, global_pool
from tilewe_jax.game import observation_shape
from tilewe_jax.games.santorini.config import NUM_TURNS
from tilewe_jax.games.santorini.game import SantoriniGame


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
