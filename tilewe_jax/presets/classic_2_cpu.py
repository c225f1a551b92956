"""The classic game for two players with two colours each on a CPU: the perceptron, after a warm start with playouts."""

from dataclasses import replace

from tilewe_jax.presets.duo_official_cpu import CONFIG as BASE
from tilewe_jax.training.config import GameConfig

CONFIG = replace(BASE, game=GameConfig("classic_2"))
"""No weights are shipped for this game, and those of others have other numbers of players."""
