"""Commands that train, and report on training."""

import json
import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from rich.padding import Padding
from rich.text import Text
from tyro.conf import Positional, arg

from experiments.commands import common
from experiments.commands.common import FailedError, UsageError, check_positive, check_unused, check_writable, err, named, out


@dataclass(frozen=True)
class Train:
    """Train a network by self-play, into a folder; Ctrl-C keeps a checkpoint, and --resume goes on from it.

    Over several hosts, start the same command on each, with --coordinator, --num-processes and --process-id, or with
    --distributed on SLURM, Kubernetes and other clusters that JAX knows.
    """

    preset: str | None = None
    """Settings by name (`tilewe-jax train --list`), or a file of Python that defines CONFIG."""
    set: Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE ...")] = ()
    """Settings that differ, like selfplay.num_games=64 game.options.size=4; `--list` shows all."""
    out: Path | None = None
    """Folder of the run: checkpoints, weights, metrics, games of its evaluations, and the report."""
    resume: bool = False
    """Go on with the run in the folder, with its settings."""
    devices: int | None = None
    """Number of devices of each process, by default all; on a CPU they are made."""
    coordinator: str | None = None
    """Address of the first process, like host:port, where there are several."""
    num_processes: int | None = None
    """Number of processes."""
    process_id: int | None = None
    """Number of this process, from 0."""
    distributed: bool = False
    """Several processes, which the cluster knows."""
    list: bool = False
    """List the presets and the settings, and train nothing."""
    json: bool = False
    """Print one JSON object at the end and nothing else."""

    def run(self) -> None:
        from experiments.training import run as training
        from experiments.training.checkpoint import CheckpointError

        if self.list:
            check_unused(self, "with --list", *(field.name for field in fields(self) if field.name not in ("list", "json")))
            _list(self.json)
            return
        if self.out is None:
            raise UsageError("--out is needed, the folder of the run")
        if self.devices is not None:
            check_positive(devices=self.devices)
            common.ask_for_devices(self.devices)
        given = named(self.set)
        processes = (self.coordinator, self.num_processes, self.process_id)
        if any(value is not None for value in processes) and None in processes:
            raise UsageError("--coordinator, --num-processes and --process-id are given together")
        if self.distributed:
            check_unused(self, "with --distributed, as the cluster knows", "coordinator", "num_processes", "process_id")
        try:
            if self.coordinator is not None or self.distributed:
                training.join(self.coordinator, self.num_processes, self.process_id)
            config = training.configured(self.preset, given, self.out, self.resume)
            summary = training.train(config, self.out, self.resume, self.devices, None if self.json else err)
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        except CheckpointError as error:
            raise FailedError(str(error)) from None
        except training.LostProcessError as error:
            # JAX would wait for the other processes before it lets this one go.
            message = (
                f"another process of the run has ended, or cannot be reached ({error}); start all of them again with --resume"
            )
            print(f"tilewe-jax: {message}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
        if self.json and summary:
            print(json.dumps(summary))
        if summary and summary["interrupted"]:
            raise KeyboardInterrupt


def _list(as_json: bool) -> None:
    """Print the presets and all settings."""
    from experiments import presets, settings
    from experiments.config import TrainConfig

    rows = settings.listing(TrainConfig())
    if as_json:
        print(json.dumps({"presets": presets.names(), "settings": rows}))
        return
    out.print(f"presets: {', '.join(presets.names())}", soft_wrap=True)
    for row in rows:
        out.print(f"\n{row['name']} = {row['default']}", soft_wrap=True, markup=False)
        out.print(Padding(Text(row["description"]), (0, 0, 0, 4)))


@dataclass(frozen=True)
class Report:
    """Write the report of a run of `train`: one HTML file with all its curves and games."""

    folder: Positional[Path]
    """Folder of the run."""
    curve: Path | None = None
    """Also write a picture of its wins against each opponent to this file, as SVG."""
    json: bool = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from experiments.training import report
        from tilewe_jax.files import replacing

        check_writable(self.curve)
        try:
            path = report.write(self.folder)
            if self.curve:
                with replacing(self.curve) as file:
                    file.write(report.curve(self.folder))
        except ValueError as error:
            raise UsageError(str(error)) from None
        print(json.dumps({"report": str(path)}) if self.json else path)
