"""Interrupt long commands at random moments, and kill training: ``python -m tests.interrupt``.

Ctrl-C must end every command quickly with exit code 130 and without a traceback; its output file must be unchanged or contain
games that replay. A killed run of ``train`` must resume or restart in its folder. Prints one line per command, and exits with 1
after a failure.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support import TINY_TRAINING
from tilewe_jax import records

TINY = ["--game", "santorini", "--set", "size=3"]
TRAIN = [
    *TINY_TRAINING,
    "checkpoint.checkpoint_every=20",
    "evaluation.eval_every=50",
    "evaluation.eval_games=8",
    "evaluation.eval_simulations=2",
]
MANY = "100000000"
COMMANDS = {
    "rollout": ["rollout", *TINY, "--games", MANY, "--batch", "256", "--out", "OUT"],
    "arena": ["match", "random", "greedy", *TINY, "--games", "1000000", "--batch", "64", "--out", "OUT"],
    "eval": ["match", "random", "gumbel:num_simulations=4", *TINY, "--games", "1000000", "--batch", "32"],
    "selfplay": ["match", "puct:num_simulations=4", *TINY, "--games", "1000000", "--batch", "32", "--out", "OUT"],
    "ladder": ["ladder", *TINY, "--agent", "random", "--opponent", "greedy", "--games", "1000000", "--batch", "32"],
    "perft": ["perft", "--game", "duo", "--depth", "9"],
    "bench": ["bench", *TINY, "--batch", "64", "--seconds", "1000"],
    "signature": ["bench", "signature"],
    "train": ["train", "--out", "OUT", "--devices", "1", "--set", *TRAIN, "iterations=1000000"],
}
"""Long commands; OUT is replaced by the output path."""
FIRST_MOMENT = 0.3
"""Seconds for the start of Python."""
SECONDS_TO_END = 60.0
"""Maximum time for the end of an interrupted command, in seconds, on a busy machine."""


def start(command: list[str], out: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a command of the command line."""
    arguments = [str(out) if argument == "OUT" else argument for argument in command]
    return subprocess.Popen(
        [sys.executable, "-m", "tilewe_jax", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[1],
        start_new_session=True,  # so that the whole group can be killed
    )


def interrupted(name: str, moment: float, folder: Path, environment: dict[str, str]) -> tuple[list[str], float]:
    """Interrupt a command at a moment; return its faults and the seconds until its end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    out, before = folder / "out", b"previous content\n"
    if "OUT" in COMMANDS[name] and name != "train":
        out.write_bytes(before)
    process = start(COMMANDS[name], out, environment)
    time.sleep(moment)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    faults = []
    try:
        stdout, stderr = process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        if name == "train":
            process.send_signal(signal.SIGINT)  # the second interrupt ends it immediately
        try:
            stdout, stderr = process.communicate(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            faults.append(f"still runs after {SECONDS_TO_END:.0f} s")
    seconds = time.monotonic() - sent
    if process.returncode != 130:
        faults.append(f"exit code {process.returncode}")
    if "Traceback" in stderr or "Fatal" in stderr or not stderr.endswith("tilewe-jax: interrupted\n"):
        faults.append(f"printed {stderr[-300:]!r}")
    if name == "train":
        faults += unusable(out, environment)
    elif out.exists() and out.read_bytes() != before:
        game, games = records.read(out)
        if not games or any(records.replay(game, games[:4])):
            faults.append(f"{len(games)} games that do not replay")
        if not stdout.strip():
            faults.append("wrote games without printing")
    left = [path.name for path in folder.iterdir() if path.name != "out"]
    return faults + ([f"left {', '.join(left)}"] if left else []), seconds


def unusable(folder: Path, environment: dict[str, str]) -> list[str]:
    """Resume or restart a run of ``train`` for two iterations, and return the faults."""
    if (folder / "config.json").exists():
        command = ["train", "--out", "OUT", "--resume", "--devices", "1"]
    else:
        command = ["train", "--out", "OUT", "--devices", "1", "--set", *TRAIN]
    metrics = folder / "metrics.jsonl"
    numbers = [int(path.name) for path in (folder / "checkpoints").glob("*") if path.name.isdecimal()]
    end = max(numbers, default=0) + 2
    settings = ["--set", f"iterations={end}"] if "--resume" in command else [f"iterations={end}"]
    process = start([*command, *settings], folder, environment)
    _, stderr = process.communicate(timeout=600)
    if process.returncode:
        return [f"cannot resume, exit code {process.returncode}: {stderr[-300:]!r}"]
    iterations = [json.loads(line)["iteration"] for line in metrics.read_text().splitlines()]
    return (
        [] if iterations == list(range(1, end + 1)) else [f"iterations {iterations[:3]} to {iterations[-3:]}, not 1 to {end}"]
    )


def killed(moment: float, folder: Path, environment: dict[str, str], again: bool) -> list[str]:
    """Kill a run in a new or, with ``again``, a previously killed folder; return the faults."""
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    command = COMMANDS["train"]
    if (folder / "config.json").exists():
        command = ["train", "--out", "OUT", "--resume", "--devices", "1", "--set", "iterations=1000000"]
    process = start(command, folder, environment)
    time.sleep(moment)
    ended = process.poll()
    os.killpg(process.pid, signal.SIGKILL)
    _, stderr = process.communicate()
    faults = [f"ended by itself, exit code {ended}: {stderr[-300:]!r}"] if ended is not None else []
    return faults + unusable(folder, environment)


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=30, help="number of interrupts per command")
    parser.add_argument("--kills", type=int, default=20, help="number of kills of train")
    parser.add_argument("--seconds", type=float, default=30.0, help="maximum time before an interrupt")
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        cached = {"JAX_COMPILATION_CACHE_DIR": str(work / "cache"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        cold = {"JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}

        def report(name: str, number: int, faults: list[str], note: str) -> None:
            nonlocal failed
            failed = failed or bool(faults)
            print(f"{name:10s} {number:3d} times: {len(faults)} faults; {note}", flush=True)
            for fault in faults:
                print(f"    {fault}", flush=True)

        for name in options.commands:
            chance, faults, seconds = random.Random(f"{options.seed}/{name}"), [], []
            for index in range(options.interrupts):
                moment = chance.uniform(FIRST_MOMENT, options.seconds)
                # Half of the runs have no compilation cache, so that more interrupts hit compilation.
                environment = {**os.environ, **(cold if index % 2 else cached)}
                more, spent = interrupted(name, moment, work / "run", environment)
                seconds.append(spent)
                faults += [f"after {moment:.2f} s: {fault}" for fault in more]
            if seconds:
                report(
                    name,
                    options.interrupts,
                    faults,
                    f"ended within {max(seconds):.1f} s, the mean {sum(seconds) / len(seconds):.1f} s",
                )
        chance, faults = random.Random(f"{options.seed}/kill"), []
        for index in range(options.kills):
            moment = chance.uniform(0.1, options.seconds)
            more = killed(moment, work / "killed", {**os.environ, **cached}, again=index % 2 == 1)
            faults += [f"killed after {moment:.2f} s: {fault}" for fault in more]
        if options.kills:
            report("kill -9", options.kills, faults, "in new folders and in folders of killed runs")
    sys.exit(failed)


if __name__ == "__main__":
    main()
