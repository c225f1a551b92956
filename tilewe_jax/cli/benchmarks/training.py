"""Speed of self-play and learning, and the fraction of self-play that the network takes, for the settings of a run.

On a CPU the process is pinned to a core, and CPU seconds count. Compilation is excluded.
"""

import time
from collections.abc import Callable
from typing import Any

from tilewe_jax.cli.benchmarks.process import free_cores, has_accelerator, in_process


def measure(preset: str, given: dict[str, str], seconds: float) -> dict[str, Any]:
    """Measure a preset, and return the figures as JSON.

    Args:
        preset: name of the preset.
        given: settings that differ, as text.
        seconds: duration of the measurement.

    Raises ``RuntimeError`` if the measuring process fails.
    """
    return in_process(work, preset, given, seconds, core=free_cores(1)[0])


def work(preset: str, given: dict[str, str], seconds: float) -> dict[str, Any]:
    """Measure in this process."""
    import jax

    from tilewe_jax import networks, presets
    from tilewe_jax.search.exported import network_interface
    from tilewe_jax.training.config import changed
    from tilewe_jax.training.program import Program, check_memory, memory_needed

    config = changed(presets.load(preset), given)
    program = Program(config)
    check_memory(config, program.game, program.mesh.devices.size)
    game, selfplay, search = program.game, config.selfplay, config.selfplay.search
    state = program.init(config.seed)

    started = time.perf_counter()
    play = program.play.lower(state).compile()  # type: ignore[attr-defined]
    learn = program.learn.lower(state).compile()  # type: ignore[attr-defined]
    compile_seconds = time.perf_counter() - started
    for _ in range(max(1, config.replay.min_replay_size // selfplay.unroll_length)):
        state, _ = play(state)

    def iteration() -> None:
        nonlocal state
        state, stats = play(state)
        jax.block_until_ready(stats)

    def update() -> None:
        nonlocal state
        state, losses = learn(state)
        jax.block_until_ready(losses)

    play_time, learn_time = _per_call(iteration, seconds), _per_call(update, seconds)
    devices = program.mesh.devices.size
    model = state.learner.average
    predict = jax.jit(lambda model, observations: jax.vmap(lambda row: networks.predict(model, row))(observations))
    interface = network_interface(game, model)
    observations = jax.vmap(interface.observe)(state.games.state, jax.vmap(game.current_player)(state.games.state))

    network_time = _per_call(lambda: jax.block_until_ready(predict(model, observations)), seconds / 2)
    moves = selfplay.num_games * selfplay.unroll_length
    full = selfplay.full_search_prob if selfplay.fast_simulations else 1.0
    simulations = moves * (full * search.num_simulations + (1 - full) * selfplay.fast_simulations)
    # Every search evaluates its root besides the simulations.
    evaluations = simulations + moves
    network_fraction = network_time / (selfplay.num_games // devices) * evaluations / devices / play_time
    return {
        "preset": preset,
        "game": game.id,
        "network": config.network.size,
        "parameters": networks.num_parameters(model),
        "num_games": selfplay.num_games,
        "num_simulations": search.num_simulations,
        "compile_seconds": round(compile_seconds, 1),
        "moves_per_second": round(moves / play_time, 1),
        "simulations_per_second": round(simulations / play_time),
        "network_fraction": round(min(1.0, network_fraction), 3),
        "positions_learned_per_second": round(config.optimizer.batch_size / learn_time),
        "bytes": sum(memory_needed(config, game, devices).values()),
        "seconds_are": "wall" if has_accelerator() else "CPU",
    }


def _per_call(function: Callable[[], None], seconds: float) -> float:
    """Return the median time of a call in seconds: wall time on accelerators, CPU time otherwise."""
    clock = time.perf_counter if has_accelerator() else time.process_time
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        started = clock()
        function()
        times.append(clock() - started)
    return sorted(times)[len(times) // 2]
