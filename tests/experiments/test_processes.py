"""Training as processes: two that train together, and such that are killed or run out of disk."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.training import checkpoint, metrics
from tests.support import TINY_TRAINING

SETTINGS = [
    *TINY_TRAINING,
    "checkpoint.checkpoint_every=1",
    "evaluation.eval_every=1000",
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is compiled is kept for the processes that follow."""
    cache = str(tmp_path_factory.mktemp("cache"))
    return {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONWARNINGS": "default",
    }


class Training:
    """A process that trains."""

    def __init__(self, environment: dict[str, str], *arguments: str, within: tuple[str, ...] = ()) -> None:
        command = [*within, sys.executable, "-m", "experiments", "train", "--devices", "2", *arguments]
        self.process = subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE)

    def end(self, seconds: float = 180) -> tuple[int, str]:
        """Its exit code and what it said."""
        _, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, err


@pytest.fixture
def started() -> Iterator[list[Training]]:
    """Processes, of which none is left behind."""
    every: list[Training] = []
    yield every
    for training in every:
        training.process.kill()
        training.process.communicate()


def pair(environment: dict[str, str], *arguments: str) -> list[Training]:
    """The two processes of a run."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    several = "--coordinator", address, "--num-processes", "2", "--process-id"
    return [Training(environment, *arguments, *several, str(number)) for number in range(2)]


def wait_for_iterations(folder: Path, count: int, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while len(metrics.read(folder / metrics.METRICS)) < count:
        assert time.monotonic() < end, f"no {count} iterations after {seconds} s"
        time.sleep(0.05)


UNEVEN = """
import sys, time
from experiments.commands.common import set_cpu_devices
set_cpu_devices(2)
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec

def wait(seconds):
    time.sleep(float(seconds))
    return np.float32(1)

def work(seconds):
    mine = jnp.where(jax.lax.axis_index("data") == 1, seconds, 0.0)
    return jax.lax.psum(jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), mine), "data")

mesh, everywhere = Mesh(np.array(jax.devices()), ("data",)), PartitionSpec()
mapped = jax.shard_map(work, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)
print(len(jax.devices()), float(jax.jit(mapped)(jnp.float32(sys.argv[1]))))
"""
"""Two devices of a CPU, of which one works for some seconds and the other one waits for it."""


@pytest.mark.parametrize("seconds", [0, pytest.param(50, marks=pytest.mark.slow)])
def test_a_device_waits_for_one_that_is_slower(seconds: int) -> None:
    """XLA by itself ends the process after 40 seconds; where it does not know our flags, it ends at once."""
    flags = "--xla_cpu_collective_call_warn_stuck_timeout_seconds=1" if seconds else ""
    done = subprocess.run(
        [sys.executable, "-c", UNEVEN, str(seconds)],
        capture_output=True,
        text=True,
        env=os.environ | {"XLA_FLAGS": flags},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["2", "2.0"]
    assert ("may be stuck" in done.stderr) == bool(seconds), "flags of the user come after ours"


@pytest.mark.slow
def test_two_processes_train_together_and_end_together(
    environment: dict[str, str], tmp_path: Path, started: list[Training]
) -> None:
    folder = tmp_path / "run"
    started += pair(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=100000")
    wait_for_iterations(folder, 3)
    started[1].process.kill()
    code, err = started[0].end()
    assert code == 1
    assert re.search("another process of the run has ended.* start all of them again with --resume", err), err
    before = checkpoint.numbers(folder / "checkpoints")[-1]

    started += pair(environment, "--out", str(folder), "--resume", "--set", f"iterations={before + 2}")
    assert [training.end()[0] for training in started[2:]] == [0, 0]
    iterations = [row["iteration"] for row in metrics.read(folder / metrics.METRICS)]
    assert iterations == list(range(1, before + 3))
    assert (folder / "report.html").exists()


@pytest.mark.slow
def test_a_full_disk_leaves_the_checkpoint_before(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    folder = tmp_path / "run"
    started.append(Training(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=1"))
    assert started[0].end()[0] == 0

    more = "--resume", "--out", str(folder), "--set", "iterations=2"
    # No file may be longer than 15 blocks of 1,024 bytes: writing beyond that fails as on a full disk.
    started.append(Training(environment, *more, within=("bash", "-c", 'ulimit -f 15; exec "$@"', "bash")))
    code, err = started[1].end()
    assert code == 1
    kept = "the checkpoint of iteration 1 is kept, and --resume goes on from it"
    assert re.search(rf"{re.escape(str(folder))}: .* \(checkpoints/000002\); {kept}\n", err), err
    assert "Traceback" not in err
    assert checkpoint.numbers(folder / "checkpoints") == [0, 1]
    started.append(Training(environment, *more))
    assert started[2].end()[0] == 0
    assert checkpoint.numbers(folder / "checkpoints") == [1, 2]


@pytest.mark.slow
def test_killed_ten_times_at_random_moments(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    """It always goes on from a whole checkpoint, and in the end it is where a run is that nobody killed."""
    folder, straight, chance = tmp_path / "run", tmp_path / "straight", random.Random(0)
    settings = [*SETTINGS, "iterations=400"]
    begin = ["--out", str(folder), "--set", *settings]
    started.append(Training(environment, *begin))
    reached = 0
    for _ in range(10):
        wait_for_iterations(folder, reached + 2)
        time.sleep(3 * chance.random())
        started[-1].process.send_signal(signal.SIGKILL)
        started[-1].end()
        kept = checkpoint.numbers(folder / "checkpoints")
        assert kept
        assert kept[-1] >= reached
        reached = kept[-1]
        started.append(Training(environment, "--resume", "--out", str(folder), "--set", "iterations=400"))
    assert started[-1].end(600)[0] == 0
    started.append(Training(environment, "--out", str(straight), "--set", *settings))
    assert started[-1].end(600)[0] == 0

    def lines(path: Path) -> list[dict[str, Any]]:
        rows = metrics.read(path / metrics.METRICS)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]

    assert json.dumps(lines(folder)) == json.dumps(lines(straight))
