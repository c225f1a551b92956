"""Residual multilayer perceptron, for any game."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from tilewe_jax.game import Game, observation_shape
from tilewe_jax.networks.base import Outputs, Size
from tilewe_jax.networks.layers import BFloat16Linear, RMSNorm, ValueHead


class DenseResidualBlock(eqx.Module):
    """Pre-activation residual block of two dense layers."""

    norm: RMSNorm
    first: BFloat16Linear
    second: BFloat16Linear

    def __init__(self, width: int, key: PRNGKeyArray) -> None:
        key_first, key_second = jax.random.split(key)
        self.norm = RMSNorm(width)
        self.first = BFloat16Linear(width, width, key_first, scale=2**0.5)
        self.second = BFloat16Linear(width, width, key_second, scale=0.1)  # close to the identity at first

    def __call__(self, x: Float[Array, "width"]) -> Float[Array, "width"]:
        return x + self.second(jax.nn.relu(self.first(jax.nn.relu(self.norm(x)))))


class ResidualMLP(eqx.Module):
    """Residual multilayer perceptron of the flattened observation."""

    stem: BFloat16Linear
    blocks: list[DenseResidualBlock]
    norm: RMSNorm
    policy: BFloat16Linear
    value: ValueHead

    def __init__(self, game: Game[Any], size: Size, key: PRNGKeyArray) -> None:
        key_stem, key_policy, key_value, *block_keys = jax.random.split(key, 3 + size.blocks)
        width = 4 * size.channels
        self.stem = BFloat16Linear(int(np.prod(observation_shape(game))), width, key_stem, scale=2**0.5)
        self.blocks = [DenseResidualBlock(width, block_key) for block_key in block_keys]
        self.norm = RMSNorm(width)
        self.policy = BFloat16Linear(width, game.num_logits, key_policy, scale=0.1)
        self.value = ValueHead(width, game.num_players, key_value)

    def __call__(self, observation: Float[Array, "..."]) -> Outputs:
        x = self.stem(observation.ravel())
        for block in self.blocks:
            x = block(x)
        x = jax.nn.relu(self.norm(x))
        return Outputs(self.policy(x), *self.value(x), features=x)
