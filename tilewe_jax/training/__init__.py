"""Training: self-play, replay, loss, the loop around them, checkpoints, evaluation, metrics and the report."""

from tilewe_jax.training.loop import Run
from tilewe_jax.training.program import Program, TrainState
from tilewe_jax.training.run import train

__all__ = ["Program", "Run", "TrainState", "train"]
