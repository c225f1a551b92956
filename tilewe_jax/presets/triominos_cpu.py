"""Two-player Triominos on a CPU, after a warm-up with games of the best strategy."""

from tilewe_jax.search import PuctRule, SearchSettings
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
    game=GameConfig("triominos"),
    network=NetworkConfig(size="nano"),
    selfplay=SelfplayConfig(
        num_games=128,
        unroll_length=32,
        rule="puct",
        fast_simulations=8,
        num_determinizations=1,
        warmup_iterations=50,
        warmup_policy="block_hoard",
        temperature_plies=0,
        search=SearchSettings(
            num_simulations=32,
            num_candidates=32,
            candidate_pool=64,
            score_weight=0.5,
        ),
        puct=PuctRule(dirichlet_alpha=10 / 32, forced_playouts=2.0),
    ),
    replay=ReplayConfig(
        replay_size=1024,
        min_replay_size=64,
        replay_ratio=4.0,
    ),
    loss=LossConfig(root_value_weight=0.5),
    optimizer=OptimizerConfig(batch_size=128),
    evaluation=EvaluationConfig(
        eval_every=50,
        eval_games=128,
        eval_simulations=32,
        eval_opening=0,
        opponents=("block_hoard",),
    ),
    iterations=2000,
    max_minutes=60.0,
)
