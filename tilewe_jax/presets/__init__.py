"""Presets: settings of training runs by name. Each module of this package, or a Python file, defines ``CONFIG``."""

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
    """Return the names of the built-in presets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def is_file(name: str) -> bool:
    """Return whether the name of a preset is that of a Python file, which may register architectures and games."""
    return name.endswith(".py")


def load(name: str) -> TrainConfig:
    """Load the settings of a preset.

    Args:
        name: one of ``names()``, or the path of a Python file (``.py``) that defines ``CONFIG``. The file is run, so that it
            must be trusted.

    Raises ``ValueError`` for unknown presets, and if the file raises.
    """
    if is_file(name):
        try:
            with open_input(name, _LIMIT):
                pass
        except OSError as error:
            raise ValueError(f"preset {name}: {error.strerror}") from None
        with factories.loading(name):
            config = factories.call(f"preset {name}", runpy.run_path, name).get("CONFIG")
    elif name in names():
        config = importlib.import_module(f"{__name__}.{name}").CONFIG
    else:
        hint = did_you_mean(name, names())
        raise ValueError(f"unknown preset {name!r}{hint}; `tilewe-jax train --list` shows them, or give a Python file")
    if not isinstance(config, TrainConfig):
        raise ValueError(f"preset {name} must define CONFIG, a tilewe_jax.training.config.TrainConfig, not {config!r}")
    return config


def configured(preset: str | None, given: dict[str, str], folder: Path, resume: bool, trust: bool = False) -> TrainConfig:
    """Return the settings of a preset, or of a run to resume, with changes given as text.

    Args:
        preset: name or Python file; ``None`` for the default settings. With ``resume``, only a file, which registers
            architectures and games but does not change settings.
        given: changes by dotted name, which may name code.
        folder: folder of the run.
        resume: whether to read the settings of the run in the folder.
        trust: whether these settings may name code, see ``read_config``.

    Raises ``ValueError`` for wrong or untrusted settings, ``CheckpointError`` for a folder without a run.
    """
    if not resume:
        return changed(load(preset) if preset else TrainConfig(), given)
    if preset and not is_file(preset):
        raise ValueError(
            "--resume uses the settings of the run; with it, --preset must be a Python file that registers architectures or"
            f" games, got {preset!r}"
        )
    if preset:
        load(preset)
    return changed(read_config(folder, trust, given), given)
