"""The four-colour game by the book on a CPU: self-play of the perceptron from the weights that are shipped for it."""

from dataclasses import replace

from tilewe_jax.presets import tilewe_cpu
from tilewe_jax.training.config import GameConfig

CONFIG = replace(
    tilewe_cpu.CONFIG,
    game=GameConfig("classic"),
    network=replace(tilewe_cpu.CONFIG.network, architecture="linear_policy_mlp", init="classic"),
)
