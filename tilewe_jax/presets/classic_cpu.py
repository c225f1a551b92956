"""Classic four-player Blokus on a CPU: self-play of a perceptron, starting with the shipped weights."""

from dataclasses import replace

from tilewe_jax.presets.duo_official_cpu import CONFIG as BASE
from tilewe_jax.training.config import GameConfig, NetworkConfig

CONFIG = replace(
    BASE,
    game=GameConfig("classic"),
    network=NetworkConfig(architecture="linear_policy_mlp", size="nano", init="classic"),
    selfplay=replace(BASE.selfplay, warmup_iterations=0, unroll_length=16, temperature_plies=8),
    replay=replace(BASE.replay, min_replay_size=96),
    evaluation=replace(BASE.evaluation, eval_every=40, opponents=("simple_search",)),
)
