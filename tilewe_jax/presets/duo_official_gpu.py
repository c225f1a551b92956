"""Official Blokus Duo on an accelerator, with the size of the strongest published network."""

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
    game=GameConfig("duo_official"),
    network=NetworkConfig(size="large"),
    selfplay=SelfplayConfig(
        num_games=2048,
        unroll_length=16,
        temperature_plies=4,
        search=SearchSettings(
            num_simulations=64,
            num_candidates=64,
            score_weight=0.2,
        ),
    ),
    replay=ReplayConfig(
        replay_size=512,
        min_replay_size=32,
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
        opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=false,score_weight=0", "last"),
    ),
    checkpoint=CheckpointConfig(checkpoint_every=50),
    iterations=5000,
)
