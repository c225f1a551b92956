"""Training on one core, two cores, two processes and eight virtual devices, and the pauses of a run with many hosts."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewe_jax.arguments import from_arguments
from tilewe_jax.cli.common import set_cpu_devices

WARM_UP = 3
"""Number of iterations before the measured ones; they compile, and fill the replay buffer."""
CASES = {"1 core": (1, 1, 1), "2 cores": (2, 1, 1), "2 processes": (1, 2, 1), "8 virtual devices": (2, 1, 8)}
"""Cores of each process, processes, and devices of each process."""
HOSTS = (1, 10, 100, 1000)
ITERATIONS = 400


@dataclass(frozen=True)
class Settings:
    """Measure self-play and learning on one and several devices, and simulate the pauses of a run with many hosts."""

    out: Path = Path("experiments/scale/scale.json")
    """File of the results."""
    iterations: int = 10
    """Number of measured iterations."""
    repeats: int = 3
    """Number of measurements of each case, in turns."""
    case: str = ""
    """Measure this case in this process: "training" or "pauses"."""
    devices: int = 1
    """Number of devices of this process."""
    port: int = 0
    """Port of process 0, for several processes."""
    count: int = 1
    """Number of processes."""
    number: int = 0
    """Number of this process."""


def config() -> Any:
    """Return the settings of the training: a small search with the network of Santorini."""
    from tilewe_jax import presets
    from tilewe_jax.training.config import changed

    given = {
        "selfplay.num_games": "64",
        "selfplay.unroll_length": "16",
        "selfplay.search.num_simulations": "16",
        "replay.replay_size": "128",
        "replay.min_replay_size": "32",
        "optimizer.batch_size": "64",
        "evaluation.opponents": "one_ply last",
    }
    return changed(presets.load("santorini_cpu"), given)


def training(given: Settings) -> dict[str, Any]:
    """Measure the iterations of this process: CPU and wall seconds of self-play and learning, and bytes."""
    set_cpu_devices(given.devices)
    from tilewe_jax.training import processes

    if given.count > 1:
        processes.join(f"localhost:{given.port}", given.count, given.number)
    import jax

    from tilewe_jax.training.program import Program

    settings = config()
    program = Program(settings)
    state, rows, games = program.init(0), [], 0
    if given.count > 1:
        processes.wait_for_all()
        program.connect()
    for iteration in range(WARM_UP + given.iterations):
        times = [(time.process_time(), time.perf_counter())]
        state, stats = program.play(state)
        stats = jax.device_get(stats)
        times.append((time.process_time(), time.perf_counter()))
        if iteration >= 1:
            for _ in range(settings.num_updates):
                state, losses = program.learn(state)
            jax.block_until_ready(losses)
        times.append((time.process_time(), time.perf_counter()))
        if iteration >= WARM_UP:
            rows.append(np.diff(np.array(times), axis=0).ravel())
            games += int(stats.games)
    processes.leave()
    names = ("play_cpu_seconds", "play_seconds", "learn_cpu_seconds", "learn_seconds")
    columns = dict(zip(names, np.array(rows).T.round(4).tolist(), strict=True))
    # Bytes of the parts of the state that this process holds.
    held = {
        name: sum(shard.data.nbytes for leaf in jax.tree.leaves(getattr(state, name)) for shard in leaf.addressable_shards)
        for name in ("learner", "games", "replay")
    }
    return {"games": games, "updates": settings.num_updates, "bytes": held, **columns}


def pauses(given: Settings) -> dict[str, Any]:
    """Measure the parts of a run that one process does alone, or that all processes wait for."""
    del given
    from tilewe_jax.training import Program, Run, metrics, report
    from tilewe_jax.training.evaluation import Evaluation

    def timed(function: Any, *arguments: Any) -> tuple[Any, list[float]]:
        started = time.process_time(), time.perf_counter()
        result = function(*arguments)
        return result, [round(time.process_time() - started[0], 3), round(time.perf_counter() - started[1], 3)]

    settings = config()
    settings = replace(settings, iterations=20, evaluation=replace(settings.evaluation, eval_every=10))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        run = Run(settings, folder, Program(settings))
        state, log = run.start(), metrics.Log(folder, settings, None)
        state = run.train(state, log)
        log.close()
        model, evaluation = run._keep(20, state, log), Evaluation(settings, run.game, folder, 10)
        evaluation.run(20, model)  # compiles
        _, evaluating = timed(evaluation.run, 21, model)
        saving = [timed(run._save, 21 + number, state)[1] for number in range(5)]
        files = [path.stat().st_size for path in (folder / "checkpoints" / "000025").rglob("*") if path.is_file()]
        reporting = timed(report.write, folder)[1]
    return {
        "checkpoint_seconds": saving,
        "checkpoint_bytes": sum(files),
        "checkpoint_files": len(files),
        "evaluation_seconds": evaluating,
        "report_seconds": reporting,
    }


def simulated(rows: dict[str, Any], parts: dict[str, Any], hosts: int) -> dict[str, float]:
    """Simulate a run of several hosts, and return the fractions of its time.

    Every host takes the seconds of a measured iteration at random, and all wait for the slowest one. One process evaluates
    every 50 iterations, and all hosts write a checkpoint every 50 iterations: each to its own disk, or all to one shared disk.
    """
    random = np.random.default_rng(0)
    seconds = np.add(rows["play_cpu_seconds"], rows["learn_cpu_seconds"])
    drawn = random.choice(seconds, (ITERATIONS, hosts))
    working, slowest = float(drawn.mean(axis=1).sum()), float(drawn.max(axis=1).sum())
    times = ITERATIONS // 50
    evaluation = times * parts["evaluation_seconds"][0]
    checkpoint = times * float(np.median([wall for _, wall in parts["checkpoint_seconds"]]))
    shared = checkpoint * hosts
    total = slowest + evaluation + checkpoint + parts["report_seconds"][0]
    return {
        "hosts": hosts,
        "waiting for the slowest host": (slowest - working) / total,
        "evaluation": evaluation / total,
        "checkpoints, each host on its disk": checkpoint / total,
        "report": parts["report_seconds"][0] / total,
        "checkpoints, all on one disk": shared / (total - checkpoint + shared),
    }


def _environment() -> dict[str, str]:
    """Return the environment of the measuring processes, which compile each program once."""
    cache = str(Path(tempfile.gettempdir()) / "tilewe_jax_scale")
    return {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def child(cores: list[int], *options: str) -> subprocess.Popen[str]:
    """Start a measuring process on some cores."""
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, "-m", "experiments.scale", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment())


def result(process: subprocess.Popen[str]) -> Any:
    """Return the result of a measuring process."""
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a measuring process ended with exit code {process.returncode}")
    return json.loads(text.splitlines()[-1])


def measured(name: str, given: Settings) -> list[dict[str, Any]]:
    """Measure a case in new processes, and return the result of each of them."""
    cores, count, devices = CASES[name]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = [f"--{key}={value}" for key, value in vars(replace(given, case="training", devices=devices)).items()]
    options += [f"--port={port}", f"--count={count}"]
    started = [child(list(range(cores)) if count == 1 else [number], *options, f"--number={number}") for number in range(count)]
    return [result(process) for process in started]


def summary(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return figures of all processes of a case."""
    cpu = sum(sum(part["play_cpu_seconds"]) + sum(part["learn_cpu_seconds"]) for part in parts)
    wall = max(sum(part["play_seconds"]) + sum(part["learn_seconds"]) for part in parts)
    updates = parts[0]["updates"] * len(parts[0]["learn_seconds"])
    return {
        "games_per_cpu_second": parts[0]["games"] / cpu,
        "games_per_second": parts[0]["games"] / wall,
        "cpu_ms_per_update": 1000 * sum(sum(part["learn_cpu_seconds"]) for part in parts) / updates,
        "bytes": [part["bytes"] for part in parts],
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    given = from_arguments(Settings, arguments, "python -m experiments.scale")
    if given.case:
        print(json.dumps((training if given.case == "training" else pauses)(given)))
        return
    runs: dict[str, list[Any]] = {name: [] for name in CASES}
    for _ in range(given.repeats):
        for name, each in runs.items():
            each.append(measured(name, given))
    alone = result(child([0], "--case=pauses"))
    first = runs["1 core"][0][0]
    content = {
        "cases": {name: [summary(parts) for parts in each] for name, each in runs.items()},
        "pauses": alone,
        "simulation": [simulated(first, alone, hosts) for hosts in HOSTS],
    }
    given.out.write_text(json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
