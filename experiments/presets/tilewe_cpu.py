"""Four-player Tilewe on a CPU, learned from searches by playouts."""

from experiments.config import (
    EvaluationConfig,
    GameConfig,
    LossConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)
from search import PuctRule, SearchSettings

CONFIG = TrainConfig(
    game=GameConfig("tilewe"),
    network=NetworkConfig(size="nano"),
    selfplay=SelfplayConfig(
        num_games=128,
        unroll_length=32,
        rule="puct",
        warmup_iterations=2000,  # all of them: 24 minutes of self-play took weights that won 79 % of games to 51 %
        temperature_plies=4,
        search=SearchSettings(
            num_simulations=48,
            num_candidates=48,
            candidate_pool=256,
            score_weight=0.3,
        ),
        puct=PuctRule(dirichlet_alpha=10 / 48, forced_playouts=2.0),
    ),
    replay=ReplayConfig(
        replay_size=512,
        min_replay_size=96,
        replay_ratio=2.0,
    ),
    loss=LossConfig(root_value_weight=0.5),
    optimizer=OptimizerConfig(batch_size=128),
    evaluation=EvaluationConfig(
        eval_every=15,
        eval_games=64,
        eval_simulations=64,
        eval_opening=0,
        opponents=("simple_search",),
    ),
    iterations=2000,
    max_minutes=60.0,
)
