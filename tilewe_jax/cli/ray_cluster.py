"""Shards of a command as tasks of a cluster of Ray, each in a process that runs the command with ``--shard``."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewe_jax.cli.common import FailedError
from tilewe_jax.utils.extras import optional_import

_SECONDS_TO_CONNECT = 5.0


def play_shards(
    arguments: list[str], address: str, folder: Path, follow: Callable[[int, int], None] = lambda done, count: None
) -> None:
    """Run a command on a cluster, one shard per GPU, or per node of a cluster without GPUs.

    Args:
        arguments: the command with its options, without ``--shard`` and ``--out``. Relative paths start at the working folder,
            which all nodes must have.
        address: address of the cluster as ``ray.init`` takes it; ``local`` starts one on this host.
        folder: receives the files of the shards.
        follow: called with the number of finished shards and the number of shards.

    Raises ``MissingExtraError`` without Ray, and ``FailedError`` if the cluster cannot be reached or a shard fails.
    """
    ray = optional_import("ray", "ray")
    try:
        _check_reachable(address)
        ray.init(address=None if address == "local" else address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise FailedError(f"cannot join the cluster of Ray at {address}: {str(error).splitlines()[0]}") from None
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        count = int(sum(node.get("GPU", 0) for node in nodes))
        # A task that takes all processors of a node leaves the other tasks to the other nodes.
        needs: dict[str, Any] = {"num_gpus": 1} if count else {"num_cpus": min(node.get("CPU", 1) for node in nodes)}
        count = count or len(nodes)
        task = ray.remote(play_shard).options(scheduling_strategy="SPREAD", max_retries=1, **needs)
        waiting = {task.remote(arguments, f"{number}/{count}", os.getcwd()): number for number in range(1, count + 1)}
        follow(0, count)
        while waiting:
            (done,), _ = ray.wait(list(waiting))
            number = waiting.pop(done)
            try:
                host, content, message = ray.get(done)
            except ray.exceptions.RayError as error:
                raise FailedError(f"shard {number}/{count}: {str(error).splitlines()[0]}") from None
            if message:
                raise FailedError(f"shard {number}/{count} on host {host}: {message}")
            (folder / f"{number}-of-{count}.json").write_bytes(content)
            follow(count - len(waiting), count)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise ``OSError`` if no program listens at ``host:port``, because Ray tries for minutes to connect."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()


def play_shard(arguments: list[str], shard: str, working_folder: str) -> tuple[str, bytes, str]:
    """Play a shard on a node, and return the name of the host, the file of the shard, and an error message if it fails."""
    host = socket.gethostname()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tilewe_jax", *arguments, "--shard", shard, "--out", folder]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "cwd": working_folder}
        try:
            done = subprocess.run(command, check=False, **options)
        except OSError as error:  # the folder is missing on the node
            return host, b"", str(error)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return host, b"", lines[-1].removeprefix("tilewe-jax: ")
        (path,) = Path(folder).iterdir()
        return host, path.read_bytes(), ""
