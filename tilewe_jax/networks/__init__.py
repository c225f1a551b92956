"""Networks: layers, one architecture a file, architectures by name, and files of weights."""

from tilewe_jax.networks.base import SIZES, Model, Outputs, Size, evaluate, num_parameters, predict
from tilewe_jax.networks.registry import architectures, make, register_architecture

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
