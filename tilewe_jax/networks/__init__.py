"""Networks: layers, architectures, their registry, and files of weights."""

from tilewe_jax.networks.base import SIZES, Model, Outputs, Size, check_outputs, evaluate, num_parameters, predict
from tilewe_jax.networks.registry import architectures, make, register_architecture

__all__ = [
    "SIZES",
    "Model",
    "Outputs",
    "Size",
    "architectures",
    "check_outputs",
    "evaluate",
    "make",
    "num_parameters",
    "predict",
    "register_architecture",
]
