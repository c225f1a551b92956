"""Four-player Tilewe on a CPU: self-play of the perceptron from the weights that are shipped for it."""

from dataclasses import replace

from tilewe_jax.presets import duo_official_cpu
from tilewe_jax.training.config import GameConfig, NetworkConfig

CONFIG = replace(
    duo_official_cpu.CONFIG,
    game=GameConfig("tilewe"),
    network=NetworkConfig(architecture="placement_policy_mlp", size="nano", init="tilewe"),
    selfplay=replace(duo_official_cpu.CONFIG.selfplay, warmup_iterations=0, unroll_length=16, temperature_plies=8),
    replay=replace(duo_official_cpu.CONFIG.replay, min_replay_size=96),
    evaluation=replace(duo_official_cpu.CONFIG.evaluation, eval_every=40, opponents=("simple_search",)),
)
