"""Four-player Tilewe on an accelerator."""

from dataclasses import replace

from tilewe_jax.presets.duo_official_gpu import CONFIG as BASE
from tilewe_jax.training.config import GameConfig, NetworkConfig

CONFIG = replace(
    BASE,
    game=GameConfig("tilewe"),
    network=NetworkConfig(size="medium"),
    selfplay=replace(BASE.selfplay, search=replace(BASE.selfplay.search, score_weight=0.3)),
    replay=replace(BASE.replay, min_replay_size=64),
    evaluation=replace(BASE.evaluation, opponents=("simple_search", "last")),
)
