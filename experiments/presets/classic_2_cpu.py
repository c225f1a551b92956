"""The classic game for two players with two colours each on a CPU, learned from searches by playouts."""

from dataclasses import replace

from experiments.config import GameConfig
from experiments.presets import tilewe_cpu

CONFIG = replace(tilewe_cpu.CONFIG, game=GameConfig("classic_2"), max_minutes=30.0)
"""As four-player Tilewe on a CPU; no weights are shipped for this game, and those of others have other numbers of players."""
