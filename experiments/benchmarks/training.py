"""How fast self-play and learning are, and what share of self-play is the network's, for the settings of a run.

On a CPU in a process pinned to one core, by CPU seconds; compilation excluded.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from experiments.benchmarks.play import has_accelerator, pinned_cores


def measure(preset: str, settings: dict[str, str], seconds: float) -> dict[str, Any]:
    """Figures, as JSON. Raises ``ValueError`` for settings that make no run, ``RuntimeError`` where measuring fails."""
    pin = None if has_accelerator() else pinned_cores(1)[0]
    arguments = json.dumps([preset, settings, seconds, pin])
    done = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.training", arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError("the measuring process failed; its message stands above")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _work(preset_name: str, settings: dict[str, str], seconds: float) -> dict[str, Any]:
    import jax

    from experiments import networks
    from experiments.config import changed, preset
    from experiments.training.loop import Program, memory_needed

    config = changed(preset(preset_name), settings)
    program = Program(config)
    game = program.game
    state = program.begin(config.seed)

    begun = time.perf_counter()
    play = program.play.lower(state).compile()  # type: ignore[attr-defined]
    learn = program.learn.lower(state).compile()  # type: ignore[attr-defined]
    compiled = time.perf_counter() - begun
    for _ in range(max(1, config.fill // config.steps)):
        state, _ = play(state)

    def rounds() -> None:
        nonlocal state
        state, tally = play(state)
        jax.block_until_ready(tally)

    def steps() -> None:
        nonlocal state
        state, losses = learn(state)
        jax.block_until_ready(losses)

    play_time, learn_time = _per_call(rounds, seconds), _per_call(steps, seconds)
    lanes = config.lanes // program.mesh.devices.size
    model = state.learner.average
    ask = jax.jit(lambda model, seen: jax.vmap(lambda one: networks.predict(model, one))(seen))
    seen = jax.vmap(game.observe)(state.games.state, jax.vmap(game.current_player)(state.games.state))

    network_time = _per_call(lambda: jax.block_until_ready(ask(model, seen)), seconds / 2)
    moves = config.lanes * config.steps
    share = config.full_share if config.fast_simulations else 1.0
    simulations = moves * (share * config.simulations + (1 - share) * config.fast_simulations)
    # Every position searched is evaluated once more than there are simulations, for its root.
    evaluations = simulations + moves
    return {
        "preset": preset_name,
        "game": game.id,
        "network": config.network,
        "parameters": networks.parameters(model),
        "lanes": config.lanes,
        "simulations": config.simulations,
        "compile_seconds": round(compiled, 1),
        "moves_per_second": round(moves / play_time, 1),
        "simulations_per_second": round(simulations / play_time),
        "network_share": round(min(1.0, network_time / lanes * evaluations / program.mesh.devices.size / play_time), 3),
        "positions_learned_per_second": round(config.batch / learn_time),
        "bytes": sum(memory_needed(config, game, program.mesh.devices.size).values()),
        "seconds_are": "wall" if has_accelerator() else "CPU",
    }


def _per_call(function: Callable[[], None], seconds: float) -> float:
    """The median of the seconds of a call: wall time on accelerators, CPU time elsewhere."""
    clock = time.perf_counter if has_accelerator() else time.process_time
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begun = clock()
        function()
        times.append(clock() - begun)
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    *given, core = json.loads(sys.argv[1])
    if core is not None:
        os.sched_setaffinity(0, {core})  # before JAX makes its threads
    print(json.dumps(_work(*given)))
