"""A toy game that a short run learns perfectly, and functions that train it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.search import SearchSettings
from tilewe_jax.training import Program, Run, TrainState
from tilewe_jax.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    GameConfig,
    LossConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)
from tilewe_jax.training.metrics import Log

TOY = TrainConfig(
    game=GameConfig("tilewe", {"players": 2, "size": 4, "pieces": ("I2", "L3")}),
    network=NetworkConfig(size="tiny"),
    selfplay=SelfplayConfig(
        num_games=64,
        unroll_length=16,
        search=SearchSettings(num_simulations=16, num_candidates=24, candidate_pool=64, max_depth=6),
        temperature_plies=1,
    ),
    replay=ReplayConfig(replay_size=128, min_replay_size=32),
    loss=LossConfig(root_value_weight=0.0),
    optimizer=OptimizerConfig(batch_size=128, learning_rate=5e-3, warmup_steps=20, ema_decay=0.98),
    evaluation=EvaluationConfig(eval_every=10, eval_games=16, eval_simulations=4, eval_opening=0, opponents=("random",)),
    checkpoint=CheckpointConfig(checkpoint_every=10),
    tensorboard=True,
    iterations=20,
)
GAME = TOY.game.make()
SHORT = replace(
    TOY,
    iterations=3,
    checkpoint=replace(TOY.checkpoint, checkpoint_every=2),
    evaluation=replace(TOY.evaluation, eval_every=100),
)
"""``TOY`` with three iterations."""


def trained_in(folder: Path, program: Program, config: TrainConfig, resume: bool = False) -> TrainState:
    """Start or resume a run and train it to the end."""
    training = Run(config, folder, program)
    state = training.resume() if resume else training.start()
    log = Log(folder, config, None, int(state.iteration))
    try:
        return training.train(state, log)
    finally:
        log.close()


def raw(leaf: Any) -> np.ndarray:
    """Convert a leaf to NumPy, PRNG keys to their data."""
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
