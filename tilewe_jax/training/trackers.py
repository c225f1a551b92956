"""Trackers of experiments, to which a run sends its metrics: TensorBoard and Weights & Biases."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from tilewe_jax import settings
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.utils.extras import optional_import
from tilewe_jax.utils.files import replacing


class Tracker(Protocol):
    """Receives the numbers of a run."""

    def add(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add numbers of an iteration by name."""

    def close(self) -> None:
        """Send all numbers that are still buffered."""


def check(config: TrainConfig) -> None:
    """Raise ``MissingExtraError`` if the package of a tracker in the settings is not installed."""
    if config.tensorboard:
        optional_import("tensorboardX", "tensorboard")
    if config.wandb:
        optional_import("wandb", "wandb")


def start(folder: Path, config: TrainConfig, iteration: int) -> list[Tracker]:
    """Start the trackers of the settings, for a run in a folder that continues after an iteration."""
    trackers: list[Tracker] = []
    if config.tensorboard:
        trackers.append(_TensorBoard(folder, iteration))
    if config.wandb:
        trackers.append(_WeightsAndBiases(folder, config))
    return trackers


class _TensorBoard:
    """Events in the folder ``events`` of the run. TensorBoard hides the events of iterations that a resumed run repeats."""

    def __init__(self, folder: Path, iteration: int) -> None:
        module = optional_import("tensorboardX", "tensorboard")
        self._writer: Any = module.SummaryWriter(str(folder / "events"), purge_step=iteration)

    def add(self, iteration: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)

    def close(self) -> None:
        self._writer.close()


class _WeightsAndBiases:
    """A run of Weights & Biases, named like the folder. A resumed run continues it by the identifier in ``wandb.id``."""

    def __init__(self, folder: Path, config: TrainConfig) -> None:
        identifier = folder / "wandb.id"
        if not identifier.exists():
            with replacing(identifier) as file:
                file.write(uuid4().hex)
        self._run: Any = optional_import("wandb", "wandb").init(
            project=config.wandb,
            name=folder.name,
            dir=str(folder),
            id=identifier.read_text(),
            resume="allow",
            config=settings.to_json(config),
        )
        self._run.define_metric("*", step_metric="iteration")

    def add(self, iteration: int, values: Mapping[str, float]) -> None:
        self._run.log({"iteration": iteration, **values})

    def close(self) -> None:
        self._run.finish()
