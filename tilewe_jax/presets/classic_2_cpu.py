"""Classic Blokus for two players with two colours each on a CPU: a perceptron, after a warm-up with playouts."""

from dataclasses import replace

from tilewe_jax.presets.duo_official_cpu import CONFIG as BASE
from tilewe_jax.training.config import GameConfig

CONFIG = replace(BASE, game=GameConfig("classic_2"))
