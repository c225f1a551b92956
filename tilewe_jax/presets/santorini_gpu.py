"""Santorini 5 x 5 on an accelerator."""

from dataclasses import replace

from tilewe_jax.presets.santorini_cpu import CONFIG as BASE
from tilewe_jax.training.config import NetworkConfig, OptimizerConfig

CONFIG = replace(
    BASE,
    network=NetworkConfig(architecture="reach_resnet", size="small"),
    selfplay=replace(BASE.selfplay, num_games=4096, search=replace(BASE.selfplay.search, num_simulations=64)),
    replay=replace(BASE.replay, replay_ratio=2.0),
    optimizer=OptimizerConfig(batch_size=4096, ema_decay=0.99, learning_rate=0.003),
    evaluation=replace(BASE.evaluation, eval_games=512, eval_simulations=64),
    iterations=2000,
)
