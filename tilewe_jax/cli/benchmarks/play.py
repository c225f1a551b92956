"""Speed of play: moves per second, and per CPU second of a pinned core.

On a CPU each of ``cores`` processes is pinned to a core and plays alone: two pinned processes are faster than one process with
two threads. With an accelerator there is one process, which is not pinned. Compilation is measured apart. Before the clock
starts, the games are mixed, some in the opening and some in the endgame.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from tilewe_jax.cli.benchmarks.process import failure, free_cores, result, start

STEPS = 64
"""Number of moves per call of a compiled function."""
POLICIES = {"triominos": "random_stuck"}
"""Policies other than "random" with which other programs were measured, for comparable figures."""


def measure(
    name: str, options: dict[str, Any], form: str, policy: str | None, batch: int, seconds: float, cores: int, seed: int
) -> dict[str, Any]:
    """Measure play, and return the figures as JSON.

    Args:
        name: id of the game.
        options: options of the game.
        form: "stream" (games that restart when they end), "games" (whole games) or "step" (the public functions).
        policy: one of ``game.policies()``; by default "random" or the policy in ``POLICIES``.
        batch: number of games in parallel.
        seconds: duration of the measurement.
        cores: number of processes, each pinned to a core.
        seed: seed of the moves.

    Raises ``RuntimeError`` if a measuring process fails.
    """
    pins = free_cores(cores)
    settings = name, options, form, policy or POLICIES.get(name, "random"), batch, seconds, seed
    workers = [start(work, *settings, core=pin) for pin in pins]
    try:
        for worker in workers:  # all have compiled before the first one starts
            assert worker.stdout
            if (line := worker.stdout.readline()) != "ready\n":
                raise failure(line)
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        figures = [result(worker) for worker in workers]
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


def work(
    name: str, options: dict[str, Any], form: str, policy_name: str, batch: int, seconds: float, seed: int
) -> dict[str, Any]:
    """Measure in this process: print "ready", wait for a line, and play for ``seconds``."""
    import jax
    import jax.numpy as jnp

    from tilewe_jax import batching
    from tilewe_jax.game import state_bytes
    from tilewe_jax.registry import make_game
    from tilewe_jax.search import memory

    game = make_game(name, options)
    memory.check_batch(game, batch)
    # Without a policy, random play is faster than with a random policy.
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
        raise BrokenPipeError
    moves = ended = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - wall) < seconds:
        carry, more_moves, more_ended = compiled(carry)
        moves, ended = moves + int(more_moves), ended + int(more_ended)
    cpu_seconds = time.process_time() - cpu
    return {
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
