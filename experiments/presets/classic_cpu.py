"""The four-colour game by the book on a CPU: self-play of the perceptron from the weights that are shipped for it."""

from dataclasses import replace

from experiments.config import GameConfig
from experiments.presets import tilewe_cpu

CONFIG = replace(
    tilewe_cpu.CONFIG,
    game=GameConfig("classic"),
    network=replace(tilewe_cpu.CONFIG.network, architecture="linear_policy_mlp", init="classic"),
)
