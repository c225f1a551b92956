"""Training in several processes, signals, kills, and full disks."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import pytest

import tilewe_jax
from tests.support import TINY_TRAINING, heeding_hangups
from tilewe_jax.networks import registry, weights
from tilewe_jax.training import checkpoint, metrics, processes
from tilewe_jax.utils.agreement import differences

SETTINGS = [
    *TINY_TRAINING,
    "checkpoint.checkpoint_every=1",
    "evaluation.eval_every=1000",
]

RARELY_SAVED = [*TINY_TRAINING, "checkpoint.checkpoint_every=100000", "evaluation.eval_every=100000", "iterations=100000"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of the processes, with a shared compilation cache."""
    cache = str(tmp_path_factory.mktemp("cache"))
    return {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONWARNINGS": "default",
        "TF_CPP_MIN_LOG_LEVEL": "3",  # as in `tilewe_jax.cli.compilation_cache`
    }


class Training:
    """A training process."""

    def __init__(self, environment: dict[str, str], *arguments: str, within: tuple[str, ...] = ()) -> None:
        command = [*within, sys.executable, "-m", "tilewe_jax", "train", "--devices", "2", *arguments]
        # A full pipe would block the process while a test waits for something else.
        self._err = tempfile.TemporaryFile("w+")  # noqa: SIM115
        with heeding_hangups():
            self.process = subprocess.Popen(command, env=environment, stderr=self._err)

    def end(self, seconds: float = 600) -> tuple[int, str]:
        """Wait for the process, and return its exit code and its error output."""
        code = self.process.wait(timeout=seconds)
        self._err.seek(0)
        return code, self._err.read()

    def kill(self) -> None:
        """Kill the process if it has not ended."""
        self.process.kill()
        self.process.wait()
        self._err.close()


@pytest.fixture
def started() -> Iterator[list[Training]]:
    """List of processes that are killed after the test."""
    every: list[Training] = []
    yield every
    for training in every:
        training.kill()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port: int = free.getsockname()[1]
    return port


def one_of_two(number: int, port: int) -> list[str]:
    """Return the options of a process in a run of two processes."""
    return ["--coordinator", f"localhost:{port}", "--num-processes", "2", "--process-id", str(number)]


def pair(environment: dict[str, str], *arguments: str) -> list[Training]:
    """Start the two processes of a run."""
    port = free_port()
    return [Training(environment, *one_of_two(number, port), *arguments) for number in range(2)]


def said(err: str) -> list[str]:
    """Return the final error lines of the command."""
    assert "Traceback" not in err
    assert "Check failure" not in err
    return [line for line in err.splitlines() if line.startswith("tilewe-jax: ")]


def wait_for_iterations(folder: Path, count: int, trainings: Sequence[Training] = (), seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while len(metrics.read(folder / metrics.METRICS)) < count:
        assert all(training.process.poll() is None for training in trainings), "a process has ended"
        assert time.monotonic() < end
        time.sleep(0.05)


UNEVEN = """
import sys, time
from tilewe_jax.cli.common import set_cpu_devices
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
"""Two CPU devices; one waits for the other, which works for some seconds."""


@pytest.mark.parametrize("seconds", [0, pytest.param(50, marks=pytest.mark.slow)])
def test_device_waits_for_a_slower_device(seconds: int) -> None:
    """By default, XLA ends the process after 40 seconds; it also ends at unknown flags."""
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
    assert ("may be stuck" in done.stderr) == bool(seconds)


@pytest.mark.slow
def test_two_processes_train_and_end_together(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    folder = tmp_path / "run"
    started += pair(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=100000")
    wait_for_iterations(folder, 3)
    started[1].process.kill()
    code, err = started[0].end()
    assert code == 1
    assert "--resume" in said(err)[-1]
    before = checkpoint.numbers(folder / "checkpoints")[-1]

    started += pair(environment, "--out", str(folder), "--resume", "--set", f"iterations={before + 2}")
    assert [training.end()[0] for training in started[2:]] == [0, 0]
    iterations = [row["iteration"] for row in metrics.read(folder / metrics.METRICS)]
    assert iterations == list(range(1, before + 3))
    assert (folder / "report.html").exists()


@pytest.mark.slow
def test_full_disk_keeps_the_previous_checkpoint(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    folder = tmp_path / "run"
    started.append(Training(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=1"))
    assert started[0].end()[0] == 0

    more = "--resume", "--out", str(folder), "--set", "iterations=2"
    # Writing more than 15 blocks of 1,024 bytes to a file fails as on a full disk.
    started.append(Training(environment, *more, within=("bash", "-c", 'ulimit -f 15; exec "$@"', "bash")))
    code, err = started[1].end()
    assert code == 1
    assert re.search(rf"{re.escape(str(folder))}: .* \(checkpoints/000002\); .* iteration 1 .*\n", err), err
    assert "Traceback" not in err
    assert checkpoint.numbers(folder / "checkpoints") == [0, 1]
    started.append(Training(environment, *more))
    assert started[2].end()[0] == 0
    assert checkpoint.numbers(folder / "checkpoints") == [1, 2]


@pytest.mark.slow
def test_run_killed_at_random_moments(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    """The same command, queued again, ends with the same metrics as an uninterrupted run."""
    folder, straight, chance = tmp_path / "run", tmp_path / "straight", random.Random(0)
    settings = [*SETTINGS, "iterations=400"]
    job = ["--resume-or-start", "--out", str(folder), "--set", *settings]
    started.append(Training(environment, *job))
    reached = 0
    for attempt in range(20):
        wait_for_iterations(folder, reached + 2)
        time.sleep(3 * chance.random())
        number = (signal.SIGKILL, signal.SIGUSR1, signal.SIGTERM)[attempt % 3]
        started[-1].process.send_signal(number)
        assert started[-1].end()[0] == (-signal.SIGKILL if number == signal.SIGKILL else 130)
        kept = checkpoint.numbers(folder / "checkpoints")
        assert kept
        assert kept[-1] >= reached
        reached = kept[-1]
        started.append(Training(environment, *job))
    assert started[-1].end(600)[0] == 0
    started.append(Training(environment, "--out", str(straight), "--set", *settings))
    assert started[-1].end(600)[0] == 0

    def lines(path: Path) -> list[dict[str, Any]]:
        rows = metrics.read(path / metrics.METRICS)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]

    assert json.dumps(lines(folder)) == json.dumps(lines(straight))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signalled", "number"), [((0, 1), signal.SIGTERM), ((0,), signal.SIGHUP), ((1,), signal.SIGTERM)], ids=["both", "0", "1"]
)
def test_signal_ends_all_processes_with_a_checkpoint(
    environment: dict[str, str], tmp_path: Path, started: list[Training], signalled: tuple[int, ...], number: int
) -> None:
    folder = tmp_path / "run"
    started += pair(environment, "--out", str(folder), "--set", *RARELY_SAVED)
    wait_for_iterations(folder, 2, started)
    for index in signalled:
        started[index].process.send_signal(number)
    outcomes = [training.end() for training in started]
    assert [code for code, _ in outcomes] == [130, 130]
    assert [said(err) for _, err in outcomes] == [["tilewe-jax: interrupted"]] * 2
    last = metrics.read(folder / metrics.METRICS)[-1]["iteration"]
    assert checkpoint.numbers(folder / "checkpoints")[-1] == last
    assert not (folder / ".lock").exists()


@pytest.mark.slow
def test_signal_during_compilation_ends_all_processes(
    environment: dict[str, str], tmp_path: Path, started: list[Training]
) -> None:
    folder = tmp_path / "run"
    started += pair(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=100000")
    while not (folder / "checkpoints" / "000000").exists():
        assert [training.process.poll() for training in started] == [None, None]
        time.sleep(0.01)
    started[1].process.send_signal(signal.SIGTERM)
    outcomes = [training.end() for training in started]
    assert [code for code, _ in outcomes] == [130, 130]
    assert [said(err) for _, err in outcomes] == [["tilewe-jax: interrupted"]] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", *SETTINGS, "seed=1"], "seed is 0 in process 0 and 1 in process 1"),
        (["--set", *SETTINGS, "--minutes", "9", "--devices", "1"], "--devices is 2 in process 0 and 1 in process 1"),
        (["--set", *SETTINGS, "seed=x"], "seed must be an integer, not 'x'"),
    ],
    ids=["seed", "devices", "argument"],
)
def test_different_processes_are_rejected(
    environment: dict[str, str], tmp_path: Path, started: list[Training], options: list[str], message: str
) -> None:
    folder, port = tmp_path / "run", free_port()
    started.append(Training(environment, *one_of_two(0, port), "--out", str(folder), "--set", *SETTINGS))
    started.append(Training(environment, *one_of_two(1, port), "--out", str(folder), *options))
    outcomes = [training.end() for training in started]
    assert [code for code, _ in outcomes] == [2, 2]
    for _, err in outcomes:
        assert len(said(err)) == 1
        assert message in said(err)[0]
    assert not folder.exists()


@pytest.mark.slow
def test_different_weights_are_rejected(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    """The same name means another file on each host."""
    folder, port, game = tmp_path / "run", free_port(), tilewe_jax.make("santorini", size=3)
    description = weights.Description("santorini", game.options, registry.resolve(game, "default"), "tiny", 0.0)
    for number in range(2):
        model = registry.make(game, "default", "tiny", jax.random.key(number))
        (tmp_path / str(number)).mkdir()
        weights.save(tmp_path / str(number) / "w.npz", model, description, game.version, {})
        options = [*one_of_two(number, port), "--out", str(folder), "--set", *SETTINGS, "network.init=w.npz"]
        started.append(Training(environment, *options, within=("env", "-C", str(tmp_path / str(number)))))
    outcomes = [training.end() for training in started]
    assert [code for code, _ in outcomes] == [2, 2]
    for _, err in outcomes:
        assert re.search(r"the hash of the weights w.npz is .* in process 0 and .* in process 1", *said(err))
    assert not folder.exists()


@pytest.mark.slow
def test_late_process(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    """The delay exceeds the timeout of collectives on CPUs, 30 seconds."""
    folder, port = tmp_path / "run", free_port()
    arguments = ["--out", str(folder), "--set", *SETTINGS, "iterations=1"]
    started.append(Training(environment, *one_of_two(1, port), *arguments))
    time.sleep(35)
    started.append(Training(environment, *one_of_two(0, port), *arguments))
    outcomes = [training.end() for training in started]
    assert [code for code, _ in outcomes] == [0, 0]
    assert f"process 1 of 2 on host {socket.gethostname()}, follows process 0 at localhost:{port}\n" in outcomes[0][1]
    assert (
        f"process 0 of 2 on host {socket.gethostname()}, waits at port {port} for process 1, at most 300 s\n" in outcomes[1][1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_missing_process_is_named(environment: dict[str, str], tmp_path: Path, started: list[Training], number: int) -> None:
    arguments = ["--out", str(tmp_path / "run"), "--join-timeout", "2", "--set", *SETTINGS]
    started.append(Training(environment, *one_of_two(number, free_port()), *arguments))
    code, err = started[0].end()
    assert code == 1
    assert re.fullmatch(rf"tilewe-jax: process {1 - number} .*within 2 s \(--join-timeout\)(: .*)?", *said(err))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_second_run_in_a_folder_is_rejected(environment: dict[str, str], tmp_path: Path, started: list[Training]) -> None:
    folder = tmp_path / "run"
    started.append(Training(environment, "--out", str(folder), "--set", *SETTINGS, "iterations=100000"))
    wait_for_iterations(folder, 1)
    started.append(Training(environment, "--out", str(folder), "--resume"))
    code, err = started[1].end()
    assert code == 1
    assert len(said(err)) == 1
    assert "another process trains in this folder" in err
    started[0].process.kill()
    started[0].end()
    started.append(Training(environment, "--out", str(folder), "--resume", "--set", "iterations=1"))
    assert started[2].end()[0] == 0


@pytest.mark.slow
def test_hangup_keeps_a_checkpoint(environment: dict[str, str], tmp_path: Path) -> None:
    import pty

    folder = tmp_path / "run"
    command = ["train", "--devices", "2", "--out", str(folder), "--set", *RARELY_SAVED]
    pid, terminal = pty.fork()
    if not pid:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execve(
            sys.executable, [sys.executable, "-m", "tilewe_jax", *command, "checkpoint.checkpoint_every=1000"], environment
        )
    reading = threading.Thread(target=_read_all, args=(terminal,), daemon=True)
    reading.start()
    wait_for_iterations(folder, 2)
    os.kill(pid, signal.SIGHUP)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert checkpoint.numbers(folder / "checkpoints")[-1] == metrics.read(folder / metrics.METRICS)[-1]["iteration"]


def _read_all(terminal: int) -> None:
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass


class Meeting:
    """Threads that connect as processes of a run, with their outcomes."""

    def __init__(self, count: int, timeout: float = 20.0) -> None:
        self.port, self.count, self.timeout = free_port(), count, timeout
        self.outcomes: dict[str, str] = {}
        self.threads: list[threading.Thread] = []

    def start(self, number: int, about: dict[str, Any] | None = None, name: str = "") -> None:
        about = {"jax": "1.0"} if about is None else about

        def run() -> None:
            try:
                if number == 0:
                    processes.gather(self.port, self.count, self.timeout, about)
                else:
                    processes.follow("localhost", self.port, number, self.count, self.timeout, about)
                self.outcomes[name or str(number)] = "met"
            except (processes.MissingProcessError, processes.RefusedError) as error:
                self.outcomes[name or str(number)] = str(error)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def end(self) -> dict[str, str]:
        for thread in self.threads:
            thread.join()
        return self.outcomes


def test_processes_connect_in_any_order_among_other_clients() -> None:
    meeting = Meeting(3)
    meeting.start(2)
    meeting.start(0)
    clients = []
    for hello in (b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"process": true}\n', b""):
        while True:
            try:
                clients.append(socket.create_connection(("localhost", meeting.port)))
                break
            except OSError:
                continue  # process 0 is not there yet
        clients[-1].sendall(hello)
    meeting.start(1)
    assert meeting.end() == {"0": "met", "1": "met", "2": "met"}
    for client in clients:
        client.close()


def test_different_versions_are_rejected() -> None:
    meeting = Meeting(2)
    meeting.start(0)
    meeting.start(1, {"jax": "2.0"})
    message = 'the processes differ: jax is "1.0" in process 0 and "2.0" in process 1'
    assert meeting.end() == {"0": message, "1": message}


def test_missing_processes_are_named() -> None:
    meeting = Meeting(5, timeout=0.5)
    meeting.start(0)
    meeting.start(2)
    outcomes = meeting.end()
    assert outcomes["0"] == "processes 1, 3, 4 of 5 did not connect within 0.5 s (--join-timeout)"
    assert "within 0.5 s" in outcomes["2"]
    meeting = Meeting(2, timeout=0.1)
    meeting.start(1)
    assert f"process 0 at localhost:{meeting.port}" in meeting.end()["1"]
    assert "within 0.1 s (--join-timeout): Connection refused" in meeting.outcomes["1"]


def test_port_in_use_is_named() -> None:
    with socket.create_server(("", 0)) as other:
        meeting = Meeting(2, timeout=5)
        meeting.port = other.getsockname()[1]
        meeting.start(0)
        meeting.start(1)
        connection, _ = other.accept()
        connection.sendall(b"220 mail\n")
        outcomes = meeting.end()
        connection.close()
    assert re.match(rf"process 0 cannot listen at port {meeting.port}: ", outcomes["0"])
    assert f"localhost:{meeting.port} is not process 0" in outcomes["1"]


class Store:
    """The key-value store of a coordinator."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def key_value_set(self, key: str, text: str) -> None:
        self.texts[key] = text

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        if key not in self.texts:
            raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED: waited")
        return self.texts[key]

    def key_value_dir_get(self, prefix: str) -> list[tuple[str, str]]:
        return [(key, text) for key, text in self.texts.items() if key.startswith(prefix)]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr(processes, "_store", lambda: store)
    return store


def be(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process one of two."""
    monkeypatch.setattr(processes, "_joined", processes._Joined(number, 2, 0.1))


def test_values_are_compared_before_the_first_collective(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.key_value_set("tilewe_jax/1/1", '{"seed": 1}')
    message = "the processes differ: seed is 0 in process 0 and 1 in process 1"
    for number in (0, 1):
        be(number, monkeypatch)
        with pytest.raises(processes.RefusedError, match=message):
            processes.check_equal({"seed": number})


def test_process_that_is_late_for_a_comparison_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    be(0, monkeypatch)
    message = "process 1 did not answer within 0.1 s (--join-timeout)"
    with pytest.raises(processes.MissingProcessError, match=re.escape(message)):
        processes.wait_for_all()
    be(1, monkeypatch)
    with pytest.raises(processes.EndedProcessError, match=re.escape(f"process 0: {message}")):
        processes.wait_for_all()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_process_0_may_have_more_connections_than_the_usual_limit_of_files() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(400, before[0]), before[1]))
    try:
        processes._allow_files(450)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (450, before[1])
        processes._allow_files(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (450, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_differences_name_the_processes() -> None:
    rows = {number: {"seed": number // 4, "jax": "1"} for number in range(6)}
    assert differences(rows, "processes") == "seed is 0 in process 0 and 1 in processes 4, 5"
    assert differences({0: {"a": 1}, 1: {}}, "processes") == "a is 1 in process 0 and null in process 1"
    assert not differences({0: {"a": [1]}, 1: {"a": [1]}}, "processes")
