"""Modified Blokus Duo on a CPU: self-play, starting with the shipped weights."""

from dataclasses import replace

from tilewe_jax.presets.duo_official_cpu import CONFIG as BASE
from tilewe_jax.training.config import GameConfig, NetworkConfig

CONFIG = replace(
    BASE,
    game=GameConfig("duo"),
    network=NetworkConfig(architecture="placement_policy_mlp", size="nano", init="duo"),
    selfplay=replace(BASE.selfplay, warmup_iterations=0),
    max_minutes=30.0,
)
