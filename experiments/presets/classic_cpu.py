"""The four-colour game by the book on a CPU; it begins with what was learned of Tilewe."""

from dataclasses import replace

from experiments.config import GameConfig
from experiments.presets import tilewe_cpu

CONFIG = replace(
    tilewe_cpu.CONFIG,
    game=GameConfig("classic"),
    network=replace(tilewe_cpu.CONFIG.network, init="tilewe"),
    max_minutes=30.0,
)
