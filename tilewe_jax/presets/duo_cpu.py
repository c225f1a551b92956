"""The modified Blokus Duo on a CPU: self-play from the weights that are shipped for it."""

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
