"""Four-player Tilewe on an accelerator."""

from tilewe_jax.search import SearchSettings
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
    game=GameConfig("tilewe"),
    network=NetworkConfig(size="medium"),
    selfplay=SelfplayConfig(
        num_games=2048,
        unroll_length=16,
        temperature_plies=4,
        search=SearchSettings(
            num_simulations=64,
            num_candidates=64,
            score_weight=0.3,
        ),
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
        eval_games=256,
        eval_simulations=64,
        opponents=("simple_search", "last"),
    ),
    checkpoint=CheckpointConfig(checkpoint_every=50),
    iterations=5000,
)
