"""Commands that train, and report on training."""

import json
import math
import sys
import textwrap
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option, width
from tilewe_jax.cli import common
from tilewe_jax.cli.common import (
    FailedError,
    Folder,
    Json,
    Trust,
    UsageError,
    check_positive,
    check_unused,
    check_writable,
    err,
    named,
    out,
    usage_errors,
)
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import did_you_mean


@dataclass(frozen=True)
class Train(Trust, Json):
    """Train a network by self-play, into a folder. Ctrl-C writes a checkpoint, from which --resume continues.

    On several hosts, start the same command on each, with --coordinator, --num-processes and --process-id, or with
    --distributed on SLURM, Kubernetes and other clusters that JAX detects.
    """

    preset: Annotated[str | None, Option("PRESET")] = None
    """Initial settings: a name that `tilewe-jax train --list` shows, or a file of Python that defines CONFIG."""
    set: Annotated[tuple[str, ...], Option("SETTING=VALUE ...")] = ()
    """Settings that differ from the preset, such as selfplay.num_games=64 game.options.size=4; `--list` explains them."""
    out: Folder = None
    """Folder of the run, for its checkpoints, weights, metrics, evaluation games and report (required)."""
    resume: bool = False
    """Continue the run in the folder of --out, with its settings."""
    resume_or_start: bool = False
    """Continue the run in the folder of --out, or start it there if the folder has none: the same command for each attempt of a
    job that is queued again."""
    checkpoint: Annotated[int | None, Option("ITERATION")] = None
    """Checkpoint from which --resume continues, instead of the newest one. Later ones are renamed and kept."""
    seeds: int | None = None
    """Train this many runs one after another, with consecutive seeds from the setting seed, in the folders seed0, seed1... of
    --out, and compare them in its report.html."""
    minutes: float | None = None
    """Minutes after which this command ends, with a checkpoint; max_minutes is the limit of the whole run."""
    slim: bool = False
    """Write small checkpoints, without the replay buffer, to continue on another machine: checkpoint.slim=true."""
    devices: int | None = None
    """Number of devices of each process, by default all; on a CPU they are virtual."""
    coordinator: Annotated[str | None, Option("HOST:PORT", is_rare=True)] = None
    """Address of process 0, if several processes train together."""
    num_processes: Annotated[int | None, Option(is_rare=True)] = None
    """Number of processes that train together."""
    process_id: Annotated[int | None, Option(is_rare=True)] = None
    """Index of this process among them, from 0."""
    distributed: bool = False
    """Train together with the other processes of the cluster, which JAX detects."""
    join_timeout: Annotated[float | None, Option("SECONDS", is_rare=True)] = None
    """Seconds that a process waits for the others at the start; 300 by default."""
    list: Annotated[tuple[str, ...] | None, Option("[SECTION]")] = None
    """List the presets, or explain the settings of a section such as selfplay, and train nothing."""

    def run(self) -> None:
        if self.list is not None:
            kept = ("list", "json", "import_", "trust")
            check_unused(self, "with --list", *(field.name for field in fields(self) if field.name not in kept))
            _list(self.list, self.json)
            return
        self._check()
        summary = self._train()
        if self.json and "report" in summary:
            print(json.dumps(summary))
        if summary["interrupted"]:
            raise KeyboardInterrupt

    def _check(self) -> None:
        """Raise ``UsageError`` for options that contradict each other."""
        if self.out is None:
            raise UsageError("--out is needed, the folder of the run")
        if self.devices is not None:
            common.ask_for_devices(self.devices)
        check_positive(minutes=self.minutes, join_timeout=self.join_timeout, seeds=self.seeds)
        processes = (self.coordinator, self.num_processes, self.process_id)
        if any(value is not None for value in processes) and None in processes:
            raise UsageError("--coordinator, --num-processes and --process-id must be given together")
        if self.distributed:
            check_unused(self, "with --distributed", "coordinator", "num_processes", "process_id")
        if self.resume and self.resume_or_start:
            raise UsageError("--resume and --resume-or-start exclude each other; give one of them")
        if self.checkpoint is not None and not self.resume:
            raise UsageError("--checkpoint needs --resume")
        if self.seeds is not None:
            check_unused(self, "with --seeds", "checkpoint")
        if self.join_timeout is not None and not self._is_one_of_several:
            raise UsageError("--join-timeout needs --coordinator or --distributed")

    @property
    def _is_one_of_several(self) -> bool:
        return self.coordinator is not None or self.distributed

    def _train(self) -> dict[str, Any]:
        """Train, and return the figures of the run, or of the runs with ``--seeds``."""
        from tilewe_jax.training import processes
        from tilewe_jax.training.checkpoint import CheckpointError

        assert self.out
        try:
            with usage_errors():
                if self._is_one_of_several:
                    self._join()
                return self._train_in(self.out) if self.seeds is None else self._train_seeds(self.out, self.seeds)
        except (CheckpointError, processes.MissingProcessError) as error:
            raise FailedError(str(error)) from None
        except processes.EndedProcessError as error:
            raise (UsageError if error.code == 2 else FailedError)(str(error)) from None
        except processes.LostProcessError as error:
            raise FailedError(f"lost another process of the run ({error}); start all of them again with --resume") from None

    def _train_seeds(self, folder: Path, count: int) -> dict[str, Any]:
        """Train runs that differ in their seed one after another, and compare them."""
        from tilewe_jax.training import comparison, processes

        began, limit = time.monotonic(), math.inf if self.minutes is None else self.minutes * 60
        runs: list[dict[str, Any]] = []
        for index in range(count):
            late = processes.led(lambda: time.monotonic() - began > limit)
            if runs and late:
                break
            runs.append(self._train_in(folder / f"seed{index}", index, time.monotonic() - began))
            if runs[-1]["interrupted"]:
                break
        figures = {"runs": runs, "interrupted": runs[-1]["interrupted"]}
        if "report" not in runs[-1]:  # not the leading process
            return figures
        path = str(comparison.write(comparison.runs_in(folder), folder / "report.html"))
        if not self.json:
            err.print(f"{len(runs)} runs; report: {path}")
        return {**figures, "report": path}

    def _train_in(self, folder: Path, index: int = 0, used_seconds: float = 0.0) -> dict[str, Any]:
        """Train a run in a folder, and return its figures.

        Args:
            folder: folder of the run.
            index: number added to the setting ``seed`` of a new run.
            used_seconds: time of this command that other runs have used.
        """
        from tilewe_jax import presets
        from tilewe_jax.training import processes
        from tilewe_jax.training import run as training
        from tilewe_jax.training.loop import is_free

        given = named(self.set) | ({"checkpoint.slim": "true"} if self.slim else {})
        minutes = math.inf if self.minutes is None else self.minutes - used_seconds / 60
        with processes.reporting():
            resume = self.resume or (self.resume_or_start and bool(processes.led(lambda: not is_free(folder))))
            is_named = self.preset is not None and not presets.is_file(self.preset)
            preset = None if self.resume_or_start and resume and is_named else self.preset
            config = presets.configured(preset, given, folder, resume)
            if index and not resume:
                config = replace(config, seed=config.seed + index)
        self._print_note(resume)
        return training.train(config, folder, resume, self.devices, err, minutes, self.json, from_checkpoint=self.checkpoint)

    def _join(self) -> None:
        """Join the other processes, and end together with them."""
        from tilewe_jax.training import processes
        from tilewe_jax.utils import interrupts

        def say(line: str) -> None:
            if not self.json:
                err.print(line)

        timeout = processes.TIMEOUT if self.join_timeout is None else self.join_timeout
        processes.join(self.coordinator, self.num_processes, self.process_id, timeout, say)
        interrupts.is_shared = True
        interrupts.at_end.append(processes.leave)

    def _print_note(self, resume: bool) -> None:
        """Note that a preset changes no settings of a resumed run."""
        from tilewe_jax import presets

        if resume and self.preset and not self.json:
            role = "only registers architectures" if presets.is_file(self.preset) else "is not used"
            err.print(f"the run in {self.out} keeps its settings, except for --set; {self.preset} {role}")


def _list(section: tuple[str, ...], as_json: bool) -> None:
    """Print the presets, and explain the settings of a section."""
    from tilewe_jax import settings
    from tilewe_jax.training.config import TrainConfig

    rows = settings.listing(TrainConfig())
    sections = ["all", "run", *dict.fromkeys(row["name"].partition(".")[0] for row in rows if "." in row["name"])]
    if as_json:
        print(json.dumps({"presets": {row["preset"]: row for row in _presets()}, "settings": rows}))
    elif not section:
        table = Rows("preset", "game", "network", "device", "minutes", wrap=("network",))
        for row in _presets():
            table.add(*list(row.values())[:-1])
        table.print(out)
        for row in _presets():
            out.print(f"{row['preset']}: {row['about']}")
        out.print(f"\n--list SECTION explains the settings of a section: {', '.join(sections)}")
    else:
        name = " ".join(section)
        chosen = [row for row in rows if name in ("all", row["name"]) or f"{row['name']}.".startswith(f"{name}.")]
        if name == "run":
            chosen = [row for row in rows if "." not in row["name"]]
        if not chosen:
            raise UsageError(f"unknown section {name!r}{did_you_mean(name, sections)}; sections are {', '.join(sections)}")
        for row in chosen:
            out.print(f"{row['name']} = {settings.printed(row['default'])}")
            text = row["description"].replace("``", "")
            out.print(textwrap.fill(text, width(), initial_indent=" " * 4, subsequent_indent=" " * 4))


def _presets() -> list[dict[str, str]]:
    """Describe the presets as JSON."""
    from tilewe_jax import presets

    def row(name: str) -> dict[str, str]:
        config = presets.load(name)
        return {
            "preset": name,
            "game": config.game.id,
            "network": f"{config.network.architecture} {config.network.size}",
            "device": name.rpartition("_")[2].upper(),
            "minutes": f"{config.max_minutes:g}" if config.max_minutes else "-",
            "about": (sys.modules[f"{presets.__name__}.{name}"].__doc__ or "").strip(),
        }

    return [row(name) for name in presets.names()]


@dataclass(frozen=True)
class Report(Json):
    """Write the report of a run of `train`: an HTML file with its curves and games.

    Given several runs, or a folder that `train --seeds` filled with runs, compare them: curves of the losses and of the win
    rates, with 95 % bands over the runs that differ only in their seed.
    """

    folders: Annotated[tuple[Path, ...], Option("FOLDER ...")]
    """Folder of the run, as given to `train --out`, or folders to compare."""
    out: Annotated[Path | None, Option("FILE")] = None
    """HTML file of a comparison; report.html of the folder if the runs are in one folder."""
    curve: Path | None = None
    """Also write a picture of a run's win rates against each opponent to this file, as SVG."""

    def run(self) -> None:
        from tilewe_jax.training import comparison, report
        from tilewe_jax.utils.files import replacing

        check_writable(self.out)
        check_writable(self.curve)
        runs = [run for folder in self.folders for run in comparison.runs_in(folder) or [folder]]
        with usage_errors():
            if list(self.folders) == runs[:1]:
                check_unused(self, "with one run", "out")
                path = report.write(runs[0])
                if self.curve:
                    with replacing(self.curve) as file:
                        file.write(report.curve(runs[0]))
            else:
                check_unused(self, "with several runs", "curve")
                if self.out is None and len(self.folders) > 1:
                    raise UsageError("--out is needed, the HTML file of the comparison")
                path = comparison.write(runs, self.out or self.folders[0] / "report.html")
        print(json.dumps({"report": str(path)}) if self.json else path)
