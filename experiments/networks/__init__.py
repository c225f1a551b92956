"""Networks: layers, one architecture a file, architectures by name, and files of weights."""

from experiments.networks.base import SIZES, Model, Outputs, Size, evaluate, num_parameters, predict
from experiments.networks.registry import architectures, make, register_architecture

__all__ = [
    "SIZES",
    "Model",
    "Outputs",
    "Size",
    "architectures",
    "evaluate",
    "make",
    "num_parameters",
    "predict",
    "register_architecture",
]
