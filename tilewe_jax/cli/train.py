"""Commands that train, and report on training."""

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from rich.padding import Padding
from rich.text import Text
from tyro.conf import Positional, arg

from tilewe_jax.cli import common
from tilewe_jax.cli.common import (
    FailedError,
    Flag,
    Imports,
    OptionalFile,
    OptionalFolder,
    OptionalInt,
    Trust,
    UsageError,
    check_positive,
    check_unused,
    check_writable,
    err,
    named,
    out,
)


@dataclass(frozen=True)
class Train(Trust):
    """Train a network by self-play, into a folder; Ctrl-C keeps a checkpoint, and --resume goes on from it.

    Over several hosts, start the same command on each, with --coordinator, --num-processes and --process-id, or with
    --distributed on SLURM, Kubernetes and other clusters that JAX knows.
    """

    preset: Annotated[str | None, arg(metavar="PRESET", help_behavior_hint="")] = None
    """Settings to begin with: a name that `tilewe-jax train --list` shows, or a file of Python that defines CONFIG."""
    set: Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE ...", help_behavior_hint="")] = ()
    """Settings that differ from the preset, such as selfplay.num_games=64 game.options.size=4; `--list` explains all."""
    out: OptionalFolder = None
    """Folder of the run, for its checkpoints, weights, metrics, evaluation games and report. Required."""
    resume: Flag = False
    """Go on with the run in the folder of --out, with its settings."""
    checkpoint: Annotated[int | None, arg(metavar="ITERATION", help_behavior_hint="")] = None
    """Checkpoint that --resume goes on from instead of the newest one, by its iteration. Later ones are renamed and kept."""
    minutes: Annotated[float | None, arg(help_behavior_hint="")] = None
    """Minutes after which this command ends, with a checkpoint; max_minutes is the limit of the whole run."""
    slim: Flag = False
    """Write small checkpoints, without the replay buffer, to go on with on another machine: checkpoint.slim=true."""
    devices: OptionalInt = None
    """Number of devices of each process, by default all; on a CPU, as many virtual ones are made."""
    coordinator: Annotated[str | None, arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Address of the first process, where several processes train together."""
    num_processes: OptionalInt = None
    """Number of processes that train together."""
    process_id: OptionalInt = None
    """Which of them this process is, from 0; process 0 is the first one."""
    distributed: Flag = False
    """Several processes train together, and JAX learns from the cluster which."""
    join_timeout: Annotated[float | None, arg(metavar="SECONDS", help_behavior_hint="")] = None
    """Seconds for which a process waits for the others at the start; 300 unless given."""
    list: Flag = False
    """List the presets, explain the settings, and train nothing."""
    json: Flag = False
    """Print one JSON object at the end and nothing else."""

    def run(self) -> None:
        if self.list:
            kept = ("list", "json", "import_", "trust")
            check_unused(self, "with --list", *(field.name for field in fields(self) if field.name not in kept))
            _list(self.json)
            return
        self._check()
        summary = self._train()
        if self.json and "report" in summary:
            print(json.dumps(summary))
        if summary["interrupted"]:
            raise KeyboardInterrupt

    def _check(self) -> None:
        """Raise ``UsageError`` if options do not fit together."""
        if self.out is None:
            raise UsageError("--out is needed, the folder of the run")
        if self.devices is not None:
            common.ask_for_devices(self.devices)
        if self.minutes is not None:
            check_positive(minutes=self.minutes)
        processes = (self.coordinator, self.num_processes, self.process_id)
        if any(value is not None for value in processes) and None in processes:
            raise UsageError("--coordinator, --num-processes and --process-id are given together")
        if self.distributed:
            check_unused(self, "with --distributed, as the cluster knows", "coordinator", "num_processes", "process_id")
        if self.checkpoint is not None and not self.resume:
            raise UsageError("--checkpoint needs --resume")
        if self.join_timeout is not None:
            check_positive(join_timeout=self.join_timeout)
            if not self._is_one_of_several:
                raise UsageError("--join-timeout needs --coordinator or --distributed")

    @property
    def _is_one_of_several(self) -> bool:
        return self.coordinator is not None or self.distributed

    def _train(self) -> dict[str, Any]:
        """Train, and return the figures of the run."""
        from tilewe_jax import presets
        from tilewe_jax.training import processes
        from tilewe_jax.training import run as training
        from tilewe_jax.training.checkpoint import CheckpointError
        from tilewe_jax.utils.extras import MissingExtraError
        from tilewe_jax.utils.trust import UntrustedError

        assert self.out
        given = named(self.set) | ({"checkpoint.slim": "true"} if self.slim else {})
        minutes = math.inf if self.minutes is None else self.minutes
        try:
            if self._is_one_of_several:
                self._join()
            with processes.reporting():
                config = presets.configured(self.preset, given, self.out, self.resume)
            self._print_note()
            return training.train(
                config, self.out, self.resume, self.devices, err, minutes, self.json, from_checkpoint=self.checkpoint
            )
        except (CheckpointError, MissingExtraError, UntrustedError, processes.MissingProcessError) as error:
            raise FailedError(str(error)) from None
        except (ValueError, MemoryError) as error:
            raise UsageError(str(error)) from None
        except processes.EndedProcessError as error:
            raise (UsageError if error.code == 2 else FailedError)(str(error)) from None
        except processes.LostProcessError as error:
            message = (
                f"another process of the run has ended, or cannot be reached ({error}); start all of them again with --resume"
            )
            raise FailedError(message) from None

    def _join(self) -> None:
        """Join the other processes, and end together with them."""
        from tilewe_jax.training import processes
        from tilewe_jax.utils import interrupts

        def say(line: str) -> None:
            if not self.json:
                err.print(line, markup=False, soft_wrap=True)

        timeout = processes.TIMEOUT if self.join_timeout is None else self.join_timeout
        processes.join(self.coordinator, self.num_processes, self.process_id, timeout, say)
        interrupts.is_shared = True
        interrupts.at_end.append(processes.leave)

    def _print_note(self) -> None:
        """Say that a preset beside --resume changes no settings."""
        if self.resume and self.preset and not self.json:
            note = f"the run in {self.out} keeps its settings, except for --set; {self.preset} only registers architectures"
            err.print(note, markup=False, soft_wrap=True)


def _list(as_json: bool) -> None:
    """Print the presets and all settings."""
    from tilewe_jax import presets, settings
    from tilewe_jax.training.config import TrainConfig

    rows = settings.listing(TrainConfig())
    if as_json:
        print(json.dumps({"presets": presets.names(), "settings": rows}))
        return
    out.print(f"presets: {', '.join(presets.names())}")
    for row in rows:
        out.print(f"\n{row['name']} = {row['default']}")
        out.print(Padding(Text(row["description"]), (0, 0, 0, 4)), soft_wrap=False)


@dataclass(frozen=True)
class Report(Imports):
    """Write the report of a run of `train`: one HTML file with its curves and games."""

    folder: Annotated[Positional[Path], arg(metavar="FOLDER")]
    """Folder of the run, as given to `train --out`."""
    curve: OptionalFile = None
    """Also write a picture of its win rates against each opponent to this file, as SVG."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        from tilewe_jax.training import report
        from tilewe_jax.utils.extras import MissingExtraError
        from tilewe_jax.utils.files import replacing

        check_writable(self.curve)
        try:
            path = report.write(self.folder)
            if self.curve:
                with replacing(self.curve) as file:
                    file.write(report.curve(self.folder))
        except MissingExtraError as error:
            raise FailedError(str(error)) from None
        except ValueError as error:
            raise UsageError(str(error)) from None
        print(json.dumps({"report": str(path)}) if self.json else path)
