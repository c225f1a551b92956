"""Santorini 5 x 5 on an accelerator."""

from tilewe_jax.search import SearchSettings
from tilewe_jax.training.config import (
    EvaluationConfig,
    GameConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)

CONFIG = TrainConfig(
    game=GameConfig("santorini"),
    network=NetworkConfig(architecture="reach_resnet", size="small"),
    selfplay=SelfplayConfig(
        num_games=4096,
        unroll_length=32,
        search=SearchSettings(
            num_simulations=64,
            num_candidates=128,
            exact_endings=True,
            lookahead=True,
        ),
    ),
    replay=ReplayConfig(
        replay_size=512,
        min_replay_size=64,
        replay_ratio=2.0,
    ),
    optimizer=OptimizerConfig(
        batch_size=4096,
        ema_decay=0.99,
        learning_rate=0.003,
    ),
    evaluation=EvaluationConfig(
        eval_every=50,
        eval_games=512,
        eval_simulations=64,
        opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=false,score_weight=0", "one_ply", "last"),
    ),
    iterations=2000,
    max_minutes=60.0,
)
