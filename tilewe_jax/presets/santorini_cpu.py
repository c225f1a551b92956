"""Santorini 5 x 5 on a CPU: stronger than 64 random playouts after minutes, and strong after an hour."""

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
    network=NetworkConfig(architecture="reach_resnet", size="nano"),
    selfplay=SelfplayConfig(
        num_games=256,
        unroll_length=32,
        search=SearchSettings(
            num_simulations=32,
            num_candidates=128,
            exact_endings=True,
            lookahead=True,
        ),
    ),
    replay=ReplayConfig(
        replay_size=512,
        min_replay_size=64,
        replay_ratio=4.0,
    ),
    optimizer=OptimizerConfig(batch_size=256),
    evaluation=EvaluationConfig(
        eval_every=50,
        eval_games=128,
        opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=false,score_weight=0", "one_ply", "last"),
    ),
    iterations=400,
    max_minutes=60.0,
)
