"""The network for any game: a residual multilayer perceptron."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from experiments.networks.base import Outputs, Size
from experiments.networks.layers import Linear, ValueHead
from search.exported import observation_shape
from tilewe_jax.game import Game


class ResidualMLP(eqx.Module):
    """A residual perceptron of the flattened observation."""

    stem: Linear
    blocks: list[Linear]
    policy: Linear
    value: ValueHead

    def __init__(self, game: Game[Any], size: Size, key: PRNGKeyArray) -> None:
        key_stem, key_blocks, key_policy, key_value = jax.random.split(key, 4)
        width = 4 * size.channels
        self.stem = Linear(int(np.prod(observation_shape(game))), width, key_stem)
        self.blocks = [Linear(width, width, key) for key in jax.random.split(key_blocks, 2 * size.blocks)]
        self.policy = Linear(width, game.num_logits, key_policy, scale=0.1)
        self.value = ValueHead(width, game.num_players, key_value)

    def __call__(self, observation: Float[Array, "..."]) -> Outputs:
        x = jax.nn.relu(self.stem(observation.ravel()))
        for block in self.blocks:
            x = x + jax.nn.relu(block(x))
        return Outputs(self.policy(x).astype(jnp.float32), *self.value(x))
