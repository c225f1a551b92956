"""Two-player Triominos on an accelerator."""

from dataclasses import replace

from tilewe_jax.presets.triominos_cpu import CONFIG as BASE
from tilewe_jax.search import PuctRule
from tilewe_jax.training.config import CheckpointConfig, LossConfig, NetworkConfig, OptimizerConfig

CONFIG = replace(
    BASE,
    network=NetworkConfig(size="small"),
    selfplay=replace(
        BASE.selfplay,
        num_games=2048,
        fast_simulations=0,
        num_determinizations=1,  # on a CPU, 1 x 32 simulations were stronger than 4 x 8
        warmup_iterations=0,
        warmup_policy="",
        search=replace(BASE.selfplay.search, num_simulations=64, num_candidates=64, candidate_pool=96),
        puct=PuctRule(dirichlet_alpha=10 / 64, forced_playouts=2.0),
    ),
    replay=replace(BASE.replay, replay_size=512, replay_ratio=2.0),
    loss=LossConfig(),
    optimizer=OptimizerConfig(batch_size=2048, ema_decay=0.999, learning_rate=0.001),
    evaluation=replace(
        BASE.evaluation, eval_every=100, eval_games=512, eval_simulations=64, eval_opening=2, opponents=("block_hoard", "last")
    ),
    checkpoint=CheckpointConfig(checkpoint_every=50),
    iterations=3000,
    max_minutes=0.0,
)
