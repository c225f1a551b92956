"""Official Blokus Duo on a CPU: a perceptron, after a warm-up with games of searches with playouts."""

from tilewe_jax.search import SearchSettings
from tilewe_jax.training.config import (
    EvaluationConfig,
    GameConfig,
    LossConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)

CONFIG = TrainConfig(
    game=GameConfig("duo_official"),
    network=NetworkConfig(architecture="placement_policy_mlp", size="nano"),
    selfplay=SelfplayConfig(
        num_games=128,
        unroll_length=32,
        warmup_iterations=40,
        playout_weight=0.5,
        playout_max_legal=100,
        temperature_plies=6,
        random_opening=4,
        search=SearchSettings(
            num_simulations=48,
            num_candidates=64,
            candidate_pool=128,
            root_candidate_pool=512,
            widen_visits=0,
            score_weight=0.3,
        ),
    ),
    replay=ReplayConfig(
        replay_size=1024,
        min_replay_size=32,
        replay_ratio=6.0,
    ),
    loss=LossConfig(root_value_weight=0.5),
    optimizer=OptimizerConfig(batch_size=256, learning_rate=0.001),
    evaluation=EvaluationConfig(
        eval_every=20,
        eval_games=64,
        eval_simulations=64,
        opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=false,score_weight=0", "last"),
    ),
    iterations=2000,
    max_minutes=60.0,
)
