"""Training by self-play: replay buffer, loss, training loop, checkpoints, evaluation, metrics and report."""

from tilewe_jax.training.loop import Run
from tilewe_jax.training.program import Program, TrainState
from tilewe_jax.training.run import train

__all__ = ["Program", "Run", "TrainState", "train"]
