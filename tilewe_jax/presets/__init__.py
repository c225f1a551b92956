"""Presets, settings of training runs by name: each module of this package, and any file of Python, that defines ``CONFIG``."""

import importlib
import pkgutil
import runpy
from pathlib import Path

from tilewe_jax.training.config import TrainConfig, changed
from tilewe_jax.training.run import read_config
from tilewe_jax.utils import factories
from tilewe_jax.utils.files import open_input
from tilewe_jax.utils.words import did_you_mean

_LIMIT = 1 << 20
"""Maximum size of a preset, in bytes."""


def names() -> list[str]:
    """Names of the presets of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> TrainConfig:
    """The settings of a preset.

    Args:
        name: one of ``names()``, or the path of a file of Python (``.py``) that defines ``CONFIG``.

    A preset is a program, which runs; take it only from people you trust.

    Raises ``ValueError`` where there is none, or where its code raises.
    """
    if name.endswith(".py"):
        try:
            with open_input(name, _LIMIT):
                pass
        except OSError as error:
            raise ValueError(f"there is no preset {name}: {error.strerror}") from None
        with factories.loading(name):
            config = factories.call(f"preset {name}", runpy.run_path, name).get("CONFIG")
    elif name in names():
        config = importlib.import_module(f"{__name__}.{name}").CONFIG
    else:
        known = ", ".join(names())
        raise ValueError(
            f"there is no preset {name!r}{did_you_mean(name, names())}; there are {known}, or give a file of Python"
        )
    if not isinstance(config, TrainConfig):
        raise ValueError(f"preset {name} must define CONFIG, a tilewe_jax.training.config.TrainConfig, not {config!r}")
    return config


def configured(preset: str | None, given: dict[str, str], folder: Path, resume: bool, trust: bool = False) -> TrainConfig:
    """The settings of a preset, or of the run in a folder that is to be resumed, with those that are given as text.

    With ``resume``, a preset that is a file of Python only registers its architectures and games, and changes no settings.
    ``trust`` allows the settings of the run to name code, see ``read_config``; ``given`` may name code.

    Raises ``ValueError`` for wrong or untrusted settings, ``CheckpointError`` if the folder has no run.
    """
    if not resume:
        return changed(load(preset) if preset else TrainConfig(), given)
    if preset and not preset.endswith(".py"):
        raise ValueError(
            "--resume goes on with the settings of the run; beside it, --preset can only be a file of Python, for the"
            f" architectures and games that it registers, not {preset!r}"
        )
    if preset:
        load(preset)
    return changed(read_config(folder, trust, given), given)
