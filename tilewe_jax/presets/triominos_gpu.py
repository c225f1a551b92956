"""Triominos for two on an accelerator."""

from tilewe_jax.search import PuctRule, SearchSettings
from tilewe_jax.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    GameConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)

CONFIG = TrainConfig(
    game=GameConfig("triominos"),
    network=NetworkConfig(size="small"),
    selfplay=SelfplayConfig(
        num_games=2048,
        unroll_length=32,
        rule="puct",
        num_determinizations=1,  # on a CPU one world with 32 simulations was stronger than four with 8
        temperature_plies=0,
        search=SearchSettings(
            num_simulations=64,
            num_candidates=64,
            candidate_pool=96,
            score_weight=0.5,
        ),
        puct=PuctRule(dirichlet_alpha=10 / 64, forced_playouts=2.0),
    ),
    replay=ReplayConfig(
        replay_size=512,
        min_replay_size=64,
        replay_ratio=2.0,
    ),
    optimizer=OptimizerConfig(
        batch_size=2048,
        ema_decay=0.999,
        learning_rate=0.001,
    ),
    evaluation=EvaluationConfig(
        eval_every=100,
        eval_games=512,
        eval_simulations=64,
        opponents=("block_hoard", "last"),
    ),
    checkpoint=CheckpointConfig(checkpoint_every=50),
    iterations=3000,
)
