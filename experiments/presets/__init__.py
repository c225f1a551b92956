"""Presets, settings of training runs by name: each module of this package, and any file of Python, that defines ``CONFIG``."""

import importlib
import pkgutil
import runpy
from pathlib import Path

from experiments.config import TrainConfig


def names() -> list[str]:
    """Names of the presets of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> TrainConfig:
    """The settings of a preset.

    Args:
        name: one of ``names()``, or the path of a file of Python (``.py``) that defines ``CONFIG``.

    Raises ``ValueError`` where there is none.
    """
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise ValueError(f"there is no preset {name}: there is no such file")
        config = runpy.run_path(name).get("CONFIG")
    elif name in names():
        config = importlib.import_module(f"{__name__}.{name}").CONFIG
    else:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(names())}, or give a file of Python")
    if not isinstance(config, TrainConfig):
        raise ValueError(f"preset {name} must define CONFIG, an experiments.config.TrainConfig, not {config!r}")
    return config
