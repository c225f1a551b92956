"""The modified Blokus Duo on a CPU; it begins with what was learned of the official one."""

from dataclasses import replace

from experiments.config import GameConfig
from experiments.presets import duo_official_cpu

CONFIG = replace(
    duo_official_cpu.CONFIG,
    game=GameConfig("duo"),
    network=replace(duo_official_cpu.CONFIG.network, architecture="resnet", init="duo_official"),
    selfplay=replace(duo_official_cpu.CONFIG.selfplay, warmup_iterations=0),
    max_minutes=30.0,
)
