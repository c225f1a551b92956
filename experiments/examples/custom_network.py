"""A custom network: a small transformer over the cells of a board, selected by name in the settings of a run.

Run it with ``python -m experiments.examples.custom_network``. It trains Santorini on 4 x 4 cells for about a minute. Without
``network.architecture``, the same run trains the default residual tower of Santorini.
"""

import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from tilewe_jax.game import Game, observation_shape
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.networks import Outputs, Size, register_architecture
from tilewe_jax.networks.layers import Linear, RMSNorm, ValueHead

HEADS = 4


class AttentionBlock(eqx.Module):
    """Pre-norm self-attention over cells and a two-layer perceptron for each cell."""

    norms: list[RMSNorm]
    queries_keys_values: Linear
    out: Linear
    wide: Linear
    narrow: Linear

    def __init__(self, width: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 4)
        self.norms = [RMSNorm(width), RMSNorm(width)]
        self.queries_keys_values = Linear(width, 3 * width, keys[0])
        self.out = Linear(width, width, keys[1], scale=0.1)
        self.wide = Linear(width, 2 * width, keys[2])
        self.narrow = Linear(2 * width, width, keys[3], scale=0.1)

    def __call__(self, x: Float[Array, "cells width"]) -> Float[Array, "cells width"]:
        cells, width = x.shape
        projected = self.queries_keys_values(self.norms[0](x)).reshape(1, cells, 3, HEADS, width // HEADS)
        attended = jax.nn.dot_product_attention(projected[:, :, 0], projected[:, :, 1], projected[:, :, 2])
        x = x + self.out(attended.reshape(cells, width))
        return x + self.narrow(jax.nn.relu(self.wide(self.norms[1](x))))


class CellTransformer(eqx.Module):
    """A transformer with one token per cell, for any game with observations ``[planes, height, width]``."""

    stem: Linear
    positions: Float[Array, "cells width"]
    blocks: list[AttentionBlock]
    policy: Linear
    value: ValueHead

    def __init__(self, game: Game[Any], size: Size, key: PRNGKeyArray) -> None:
        planes, height, width = observation_shape(game)
        keys = jax.random.split(key, size.blocks + 4)
        self.stem = Linear(planes, size.channels, keys[0])
        self.positions = 0.1 * jax.random.normal(keys[1], (height * width, size.channels), jnp.float32)
        self.blocks = [AttentionBlock(size.channels, key) for key in keys[4:]]
        self.policy = Linear(2 * size.channels, game.num_logits, keys[2], scale=0.1)
        self.value = ValueHead(2 * size.channels, game.num_players, keys[3])

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        cells = observation.reshape(observation.shape[0], -1).T
        x = self.stem(cells) + self.positions.astype(cells.dtype)
        for block in self.blocks:
            x = block(x)
        pooled = jnp.concatenate([jnp.mean(x, axis=0), jnp.max(x, axis=0)])
        return Outputs(self.policy(pooled).astype(jnp.float32), *self.value(pooled))


def main(iterations: int = 20) -> None:
    """Train a network of the architecture and print a summary."""
    from tilewe_jax.training.config import TrainConfig, changed

    # Register the architecture; in a preset, do so above the settings.
    register_architecture("transformer", CellTransformer, SantoriniGame)
    from tilewe_jax.training.run import train

    config = changed(
        TrainConfig(),
        {
            "game.id": "santorini",
            "game.options.size": "4",
            "network.architecture": "transformer",
            "network.size": "tiny",
            "selfplay.num_games": "64",
            "selfplay.search.num_simulations": "16",
            "optimizer.batch_size": "64",
            "iterations": str(iterations),
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        summary = train(config, Path(folder) / "run", devices=1)
    print(summary)


if __name__ == "__main__":
    main()
