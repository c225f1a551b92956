"""Training: self-play, replay, loss, the loop around them, checkpoints, evaluation, metrics and the report."""

from experiments.training.loop import Run
from experiments.training.program import Program, TrainState
from experiments.training.run import train

__all__ = ["Program", "Run", "TrainState", "train"]
