"""Residual network for the polyomino games."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from tilewe_jax.game import observation_shape
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.networks.base import Outputs, Size
from tilewe_jax.networks.layers import Conv, Linear, ResidualTower, ValueHead, global_pool


class PolyominoResNet(eqx.Module):
    """Residual tower with a convolutional policy head: one plane of logits per orientation, indexed by the anchor's cell."""

    tower: ResidualTower
    placements: Conv
    voluntary_pass: Linear | None
    """Logit of a pass, for games with voluntary passes."""
    value: ValueHead

    def __init__(self, game: PolyominoGame, size: Size, key: PRNGKeyArray) -> None:
        key_tower, key_placements, key_pass, key_value = jax.random.split(key, 4)
        planes, channels = observation_shape(game)[0], size.channels
        self.tower = ResidualTower(planes, game.config.colors + 2, channels, size.blocks, key_tower)
        self.placements = Conv(channels, len(ORIENTATIONS), 1, key_placements, scale=0.1)
        self.voluntary_pass = Linear(2 * channels, 1, key_pass, scale=0.1) if game.config.voluntary_pass else None
        self.value = ValueHead(2 * channels, game.num_players, key_value)

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        x = self.tower(observation)
        pooled = global_pool(x)
        logits = jnp.moveaxis(self.placements(x), -1, 0).ravel()
        if self.voluntary_pass:
            logits = jnp.concatenate([logits, self.voluntary_pass(pooled)])
        return Outputs(logits.astype(jnp.float32), *self.value(pooled), features=x)
