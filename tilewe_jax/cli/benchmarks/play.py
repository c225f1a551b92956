"""How fast games are played: moves per second, and per CPU second of one pinned core.

The measurement runs in processes of its own, because a process must be pinned before JAX starts its threads. On a CPU each of
``cores`` processes is pinned to one core and plays alone (two pinned processes beat two threads of one); with an accelerator
there is one process, unpinned. Compilation is measured apart, and the games are mixed, some in the opening and some in the
endgame, before the clock starts.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewe_jax.utils.factories import import_module

STEPS = 64
"""Number of moves in one call of a compiled function."""
IMPORTS = "TILEWE_JAX_BENCH_IMPORTS"
"""Environment variable with the modules of ``bench play --import``, a JSON list, for the processes that measure."""
REFUSED = "refused: "
"""Begins the line with which a measuring process says why it will not measure."""
POLICIES = {"triominos": "random_stuck"}
"""Policy that plays a game, where it is not "random": that with which other programs were measured, so that figures compare."""


class RefusedError(RuntimeError):
    """A process did not measure, because what it was asked for does not fit into memory."""


def measure(
    name: str, options: dict[str, Any], form: str, policy: str | None, batch: int, seconds: float, cores: int, seed: int
) -> dict[str, Any]:
    """Figures of play, as JSON.

    Args:
        name: id of the game.
        options: its options.
        form: "stream" (games that restart at once), "games" (played to the end together) or "step" (the public functions).
        policy: one of ``game.policies()``; by default "random", or that of ``POLICIES``.
        batch: number of games played at once.
        seconds: how long to measure.
        cores: number of processes, each pinned to a core.
        seed: seed of the moves.

    Raises ``RuntimeError`` where a measuring process fails.
    """
    policy = policy or POLICIES.get(name, "random")
    pins = [None] if has_accelerator() else pinned_cores(cores)
    settings = json.dumps([name, options, form, policy, batch, seconds, seed])
    command = [sys.executable, "-m", "tilewe_jax.cli.benchmarks.play", "--settings", settings]
    workers: list[subprocess.Popen[str]] = []
    try:
        for pin in pins:
            pinned = command + ([] if pin is None else ["--pin", str(pin)])
            workers.append(subprocess.Popen(pinned, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for worker in workers:  # all compiled and warm, then all at once
            assert worker.stdout
            if (line := worker.stdout.readline()) != "ready\n":
                raise failure(line)
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        figures = [json.loads(worker.communicate()[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    total = {field: sum(figure[field] for figure in figures) for field in ("moves", "games", "cpu_seconds")}
    wall = max(figure["seconds"] for figure in figures)
    return {
        **figures[0],
        **total,
        "cores": None if pins == [None] else len(pins),
        "seconds": wall,
        "cpu_seconds": round(total["cpu_seconds"], 3),
        "moves_per_second": round(total["moves"] / wall),
        "moves_per_cpu_second": round(total["moves"] / total["cpu_seconds"]),
        "games_per_cpu_second": round(total["games"] / total["cpu_seconds"], 1),
    }


def in_process(module: str, *settings: Any) -> dict[str, Any]:
    """The figures that ``python -m module`` prints as JSON, given its settings as JSON.

    Raises ``RefusedError`` where ``run_measurement`` refused there, ``RuntimeError`` where the process failed.
    """
    command = [sys.executable, "-m", module, json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise failure(done.stdout)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def failure(line: str) -> RuntimeError:
    """Why a measuring process failed: the reason that it has printed after ``REFUSED``, else one written to standard error."""
    if line.startswith(REFUSED):
        return RefusedError(line.removeprefix(REFUSED).strip())
    return RuntimeError("a measuring process failed; see above")


def has_accelerator() -> bool:
    """Whether JAX will find an accelerator; asked without starting JAX."""
    if os.environ.get("JAX_PLATFORMS", "") == "cpu":
        return False
    plugins = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm7_plugin", "libtpu")
    device = any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/accel0", "/dev/vfio/0"))
    return device and any(importlib.util.find_spec(plugin) for plugin in plugins)


def pin_to(core: int | None) -> None:
    """Have this process run on one core only, as ``pinned_cores`` gives it, before JAX makes its threads; ``None`` for any."""
    if core is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {core})


def pinned_cores(count: int) -> list[int | None]:
    """Cores to pin so many processes to; ``None`` where that cannot be done. Raises ``ValueError`` where there are fewer."""
    if sys.platform != "linux":  # others cannot pin
        return [None] * count
    available = sorted(os.sched_getaffinity(0))
    if not 1 <= count <= len(available):
        raise ValueError(f"--cores must be 1 to {len(available)}, the number there are, not {count}")
    return list(available[:count])


def run_measurement(measurement: Callable[[], Any]) -> Any:
    """Run a measurement in this process, and end it with a reason for ``failure`` where memory does not suffice.

    The modules of ``bench play --import`` are imported first.

    Ends in silence where nobody reads any more what it prints, as after Ctrl-C.
    """
    for name in json.loads(os.environ.get(IMPORTS, "[]")):
        import_module(name)
    try:
        return measurement()
    except BrokenPipeError:
        os._exit(1)  # the interpreter would try to print again when it ends
    except MemoryError as error:
        print(f"{REFUSED}{error}", flush=True)
        sys.exit(1)


def _work(name: str, options: dict[str, Any], form: str, policy_name: str, batch: int, seconds: float, seed: int) -> None:
    """Measure in this process: print "ready", wait for a line, play for ``seconds``, print the figures."""
    import jax
    import jax.numpy as jnp

    from tilewe_jax import batching
    from tilewe_jax.game import state_bytes
    from tilewe_jax.registry import make_game
    from tilewe_jax.search import memory

    game = make_game(name, options)
    memory.check_batch(game, batch)
    # The environment plays at random in a way of its own, faster than a policy that does.
    policy = None if policy_name == "random" else game.policies()[policy_name]
    choose = policy or game.sample_action

    def stream(state: batching.Stream[Any]) -> tuple[Any, jax.Array, jax.Array]:
        state, played = batching.run_stream(game, state, STEPS, policy)
        return state, jnp.sum(played.actions >= 0), jnp.sum(played.ended)

    def games(key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        key, rollout_key = jax.random.split(key)
        rollout = batching.rollout(game, rollout_key, batch, policy)
        return key, jnp.sum(rollout.lengths), jnp.asarray(batch)

    def step(carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
        def move(carry: tuple[Any, jax.Array], _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            state, key = carry
            key, action_key, init_key = jax.random.split(key, 3)
            action = jax.vmap(choose)(state, jax.random.split(action_key, batch))
            state = jax.vmap(game.step)(state, action)
            over = jax.vmap(game.is_terminal)(state)
            state = batching.auto_reset(game, jax.random.split(init_key, batch), over, state)
            return (state, key), (jnp.sum(action >= 0), jnp.sum(over))

        carry, (moves, ended) = jax.lax.scan(move, carry, length=STEPS)
        return carry, jnp.sum(moves), jnp.sum(ended)

    key = jax.random.key(seed)
    carry: Any
    run: Callable[[Any], tuple[Any, jax.Array, jax.Array]]
    if form == "stream":
        carry, run = batching.init_stream(game, key, batch, 1 << 30, policy), stream
    elif form == "games":
        carry, run = key, games
    else:
        carry, run = (jax.vmap(game.init)(jax.random.split(key, batch)), key), step

    started = time.perf_counter()
    compiled = jax.jit(run).lower(carry).compile()
    compile_seconds = time.perf_counter() - started
    memory.check_compiled(batch, compiled)
    for _ in range(1 if form == "games" else min(4 * game.max_steps // STEPS + 1, 32)):
        carry, *_ = jax.block_until_ready(compiled(carry))

    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    moves = ended = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - wall) < seconds:
        carry, more_moves, more_ended = compiled(carry)
        moves, ended = moves + int(more_moves), ended + int(more_ended)
    cpu_seconds = time.process_time() - cpu
    figures = {
        "game": game.id,
        "options": game.options,
        "players": game.num_players,
        "form": form,
        "policy": policy_name,
        "batch": batch,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "moves": moves,
        "games": ended,
        "seconds": round(elapsed, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "compile_seconds": round(compile_seconds, 2),
        "state_bytes": state_bytes(game),
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", required=True)
    parser.add_argument("--pin", type=int)
    arguments = parser.parse_args()
    pin_to(arguments.pin)
    run_measurement(lambda: _work(*json.loads(arguments.settings)))
