"""Figures of programs compiled for a GPU, as JSON. They are compiled in a process of their own, which sets JAX up for it."""

import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewe_jax.cli.benchmarks.gpu import compile, estimate, hlo, programs
from tilewe_jax.cli.benchmarks.gpu.targets import TARGETS, Target
from tilewe_jax.cli.benchmarks.play import in_process, run_measurement
from tilewe_jax.cli.tables import Rows

BATCH = {"stream": 65_536, "step": 65_536, "mask": 8_192, "search": 1_024, "selfplay": 1_024}
"""Games at once, unless given."""
HEAVY = 6
"""Number of kernels that are listed for each program; equal ones count as one."""
NOTE = "counted in the compiled program, and estimated from the data sheet; nothing is measured"


def measure(
    device: str,
    name: str,
    options: dict[str, Any],
    chosen: tuple[str, ...],
    batch: int | None,
    network: str,
    num_simulations: int,
    num_candidates: int,
) -> dict[str, Any]:
    """Figures of programs, compiled for a device.

    Args:
        device: one of ``TARGETS``.
        name: id of the game.
        options: its options.
        chosen: which of ``programs.PROGRAMS``.
        batch: games at once, by default ``BATCH``.
        network: size of the network of searches.
        num_simulations: simulations a search.
        num_candidates: candidate actions a node.

    Raises ``RuntimeError`` where the CUDA compiler is missing or compiling fails.
    """
    if not compile.is_available():
        raise RuntimeError(
            "--compile-for needs JAX's compiler for CUDA, of the extra cuda: pip install 'tilewe-jax[cuda]'; it needs no GPU"
        )
    settings = device, name, options, chosen, batch, network, num_simulations, num_candidates
    return in_process("tilewe_jax.cli.benchmarks.gpu.measure", *settings)


def tables(figures: dict[str, Any]) -> list[Rows]:
    """What ``measure`` gave, as tables: the programs, and the kernels that take longest."""
    title = f"{figures['game']}, compiled for {figures['device']}: a step of all games, estimated"
    steps = Rows(
        "program", "games", "kernels", "MB", "integer ops", "float ops", "peak MB", "us", "steps/s", "network", title=title
    )
    kernels = Rows(
        "program",
        "kernel",
        "times",
        "MB",
        "instructions",
        "registers",
        "spilled",
        "us",
        title="The longest kernels",
        wrap=("kernel",),
    )
    for row in figures["programs"]:
        step = row["step"]
        seconds = f"{step['estimated_microseconds']:,.0f}", f"{step['estimated_steps_per_second']:.2g}"
        steps.add(
            row["program"],
            f"{row['batch']:,}",
            f"{step['kernels']:,.0f}",
            f"{step['bytes'] / 1e6:,.1f}",
            f"{step['integer_ops']:.2g}",
            f"{step['float_ops']:.2g}",
            f"{row['peak_bytes'] / 1e6:,.1f}",
            *seconds,
            f"{step['estimated_network_fraction']:.0%}",
        )
        for kernel in row["heavy_kernels"]:
            kernels.add(
                row["program"],
                f"{kernel['kernel']} ({kernel['kind']})",
                str(kernel["launches"]),
                f"{kernel['bytes'] / 1e6:,.1f}",
                f"{kernel['instructions']:.2g}",
                *("" if kernel[name] is None else str(kernel[name]) for name in ("registers", "spill_bytes")),
                f"{kernel['estimated_microseconds']:,.1f}",
            )
    return [steps, kernels]


def _work(
    device: str,
    name: str,
    options: dict[str, Any],
    chosen: list[str],
    batch: int | None,
    network: str,
    num_simulations: int,
    num_candidates: int,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        compile.prepare(Path(folder))
        import jax

        from tilewe_jax.registry import make_game

        game, target = make_game(name, options), TARGETS[device]
        rows = []
        for program_name in chosen:
            program = programs.make(program_name, game, batch or BATCH[program_name], network, num_simulations, num_candidates)
            rows.append(_figures(program, target, Path(folder)))
    return {
        "device": target.name,
        "game": game.id,
        "options": game.options,
        "jax": jax.__version__,
        "network": network,
        "num_simulations": num_simulations,
        "num_candidates": num_candidates,
        "note": NOTE,
        "programs": rows,
    }


def _figures(program: programs.Program, target: Target, dump: Path) -> dict[str, Any]:
    started = time.perf_counter()
    compiled = compile.compile_for(target, dump, program.function, *program.args, donate=program.donated)
    seconds = time.perf_counter() - started
    body, turns = _step(compiled, program, target), program.turns
    return {
        "program": program.name,
        "batch": program.batch,
        "compile_seconds": round(seconds, 1),
        "peak_bytes": compiled.peak_bytes,
        "command_buffers": compiled.graphs,
        "step": estimate.figures(estimate.of_body(body, compiled, target, turns), program.batch),
        "loops": [
            {"name": inner.name, "turns": inner.turns, **estimate.figures(estimate.of_body(inner, compiled, target, turns))}
            for inner in body.walk()
            if inner is not body
        ],
        "heavy_kernels": _heavy_kernels(body, compiled, target),
    }


def _step(compiled: compile.CompiledProgram, program: programs.Program, target: Target) -> hlo.Body:
    """The body that is one step of a program: that of the longest loop, as far inside as its steps are."""
    body = compiled.entry
    for _ in range(program.loops_to_step):
        body = max(body.loops, key=lambda loop: estimate.of_body(loop, compiled, target, program.turns).seconds)
    return body


def _heavy_kernels(body: hlo.Body, compiled: compile.CompiledProgram, target: Target) -> list[dict[str, Any]]:
    kernels = [kernel for inner in body.walk() for kernel in inner.kernels]
    works = [(estimate.of_kernel(kernel, compiled, target), kernel) for kernel in kernels]
    works.sort(key=lambda pair: -pair[0].seconds)
    rows: dict[Any, dict[str, Any]] = {}
    for work, kernel in works:
        alike = rows.get((work, kernel.kind))  # the layers of a network
        if alike:
            alike["launches"] += 1
        elif len(rows) < HEAVY:
            launched = compiled.code_of(kernel)
            code = asdict(launched.machine_code) if launched else {}
            rows[work, kernel.kind] = {
                "kernel": kernel.name,
                "kind": kernel.kind,
                "source": kernel.source[-80:],
                "launches": 1,
                "bytes": kernel.bytes,
                "instructions": round(work.instructions),
                "matrix_ops": kernel.matrix_ops,
                "registers": code.get("registers"),
                "spill_bytes": code.get("spill_bytes"),
                "estimated_microseconds": round(1e6 * work.seconds, 1),
            }
    return list(rows.values())


if __name__ == "__main__":
    print(json.dumps(run_measurement(lambda: _work(*json.loads(sys.argv[1])))))
