"""Compile programs for a GPU on a machine without a GPU, and count kernels, memory traffic and operations.

    pip install '.[cuda]' && python -m experiments.gpu --device h100 --game tilewe --programs stream step mask

Nothing runs on a device. Kernels are counted in the compiled text, loop by loop; bytes and operations come from XLA's cost
analysis, which counts each loop once; registers and spills come from ``ptxas``. The estimated time is a roofline of the data
sheet: the slower of memory traffic and arithmetic, plus 2 us per launch.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.gpu.targets import TARGETS, Target
from tilewe_jax.arguments import from_arguments

LAUNCH_SECONDS = 2e-6
"""Assumed time of a launch, in addition to the work of the kernel."""
STEPS = 8
"""Number of steps of a stream."""
NOTHING = re.compile(
    r"parameter|constant|tuple|get-tuple-element|bitcast|after-all|opt.*-barrier|partition-id|replica-id|add-dependency|domain|.*-done"
)
"""Instructions without a launch."""

Program = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]
"""A function, the shapes of its arguments, and the indices of donated arguments."""


@dataclass(frozen=True)
class Settings:
    """Compile programs of a game for a GPU, and print their kernels, memory traffic and operations."""

    device: Literal["h100", "h200", "a100", "rtx4090"] = "h100"
    """Device to compile for."""
    game: str = "tilewe"
    """Id of the game."""
    set: tuple[str, ...] = ()
    """Options of the game, such as ``size=10 players=2``."""
    programs: tuple[Literal["stream", "step", "mask", "search"], ...] = ("stream", "step", "mask", "search")
    """Programs to compile: random games that restart when they end, ``Game.step`` and ``Game.legal_action_mask`` of a batch,
    and a search."""
    batch: int = 0
    """Number of games in parallel: by default 65,536 for the stream and the step, 8,192 for the mask, 1,024 for the search."""
    network: str = "medium"
    """Size of the network of the search."""
    num_simulations: int = 64
    """Number of simulations of the search."""
    num_candidates: int = 64
    """Number of candidate actions of a node."""


def program(given: Settings, name: str, batch: int) -> Program:
    """Return a program by its name."""
    import jax
    import jax.numpy as jnp

    from tilewe_jax import batching, networks
    from tilewe_jax.batching.reset import init_batch
    from tilewe_jax.registry import game_options, make_game
    from tilewe_jax.search import gumbel_policy, network_evaluator

    game = make_game(given.game, game_options(given.game, dict(text.split("=", 1) for text in given.set)))
    key = jax.eval_shape(lambda: jax.random.key(0))
    states = jax.eval_shape(lambda key: init_batch(game, key, batch), key)
    if name == "stream":

        def run(stream: Any) -> Any:
            stream, played = batching.run_stream(game, stream, STEPS)
            return stream, jnp.sum(played.actions >= 0), jnp.sum(played.ended)

        return run, (jax.eval_shape(lambda key: batching.init_stream(game, key, batch, 1 << 30), key),), (0,)
    if name == "step":
        return jax.vmap(game.step), (states, jax.ShapeDtypeStruct((batch,), jnp.int32)), (0,)
    if name == "mask":
        return jax.vmap(game.legal_action_mask), (states,), ()
    model = jax.eval_shape(lambda key: networks.make(game, "default", given.network, key), key)

    def search(model: Any, states: Any, key: Any) -> Any:
        network = jax.tree_util.Partial(networks.predict, model, dtype=jnp.bfloat16)
        evaluator = network_evaluator(game, network)

        def one(state: Any, key: Any) -> Any:
            sizes: dict[str, Any] = {"num_simulations": given.num_simulations, "num_candidates": given.num_candidates}
            return gumbel_policy(game, evaluator, state, key, **sizes).policy_output

        return jax.vmap(one)(states, jax.random.split(key, batch))

    return search, (model, states, key), ()


def prepare(dump: Path) -> None:
    """Set the environment of JAX: skip the check for a device, disable autotuning, and dump kernels into a folder."""
    os.environ |= {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    # Without autotuning, which needs a device, Triton lacks tile sizes for some small matrix products.
    flags = f"--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false --xla_dump_to={dump}"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"


def compile_for(target: Target, function: Callable[..., Any], args: tuple[Any, ...], donate: tuple[int, ...]) -> Any:
    """Return a function compiled for a device (``jax.stages.Compiled``), after ``prepare``."""
    import jax
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(
        platform="cuda", topology_name="1x1x1", topology="1x1x1", target_config=target.config()
    )
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(topology.devices, ("x",)), jax.sharding.PartitionSpec())
    shaped = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), args)
    return jax.jit(function, donate_argnums=donate).trace(*shaped).lower(lowering_platforms=("cuda",)).compile()


def kernels(text: str) -> dict[str, int]:
    """Return the number of launches in the entry and in one iteration of each loop of a compiled program, from its HLO text."""
    computations: dict[str, list[tuple[str, str]]] = {}
    entry = ""
    for line in text.splitlines():
        if heading := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            current = computations[heading[2]] = []
            entry = heading[2] if heading[1] else entry
        elif match := re.match(r"\s+(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) ([\w\-]+)\((.*)", re.sub(r"/\*.*?\*/", "", line)):
            current.append((match[1], match[2]))
    counts: dict[str, int] = {}

    def called(name: str, attribute: str) -> list[str]:
        return re.findall(rf"\b{name}=%?([\w.\-]+)", attribute)

    def count(name: str) -> int:
        total = 0
        for opcode, rest in computations.get(name, []):
            if opcode == "while":
                body, condition = called("body", rest)[0], called("condition", rest)[0]
                counts[body] = 0
                # The host evaluates the condition of a loop of unknown length after each iteration.
                counts[body] = count(body) + (0 if "known_trip_count" in rest else count(condition))
            elif opcode in ("call", "async-start", "conditional"):
                branches = re.search(r"branch_computations=\{([^}]*)\}", rest)
                names = [part.strip().lstrip("%") for part in branches[1].split(",")] if branches else []
                for attribute in ("to_apply", "calls", "true_computation", "false_computation"):
                    names += called(attribute, rest)
                total += sum(map(count, names))
            elif not NOTHING.fullmatch(opcode):
                total += 1
        return total

    return {"entry": count(entry), **counts}


def registers(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the registers and the spilled bytes of each kernel, from the output of ``ptxas -v``."""
    for part in text.split("Compiling entry function '")[1:]:
        used, spilled = re.search(r"Used (\d+) registers", part), re.search(r"(\d+) bytes spill stores, (\d+) bytes", part)
        yield part.partition("'")[0], int(used[1]) if used else 0, sum(map(int, spilled.groups())) if spilled else 0


def assemble(files: list[Path], target: Target) -> list[tuple[str, int, int]]:
    """Return name, registers and spilled bytes of the kernels in PTX files; an empty list without ``ptxas``."""
    wheels = (path for folder in map(Path, sys.path) for path in (folder / "nvidia").glob("*/bin/ptxas"))
    ptxas = next(wheels, None) or shutil.which("ptxas")
    results: list[tuple[str, int, int]] = []
    for path in files if ptxas else ():
        command = [str(ptxas), "-v", f"-arch={target.architecture}", str(path), "-o", os.devnull]
        results += registers(subprocess.run(command, capture_output=True, text=True, check=False).stderr)
    return results


def figures(given: Settings, name: str, dump: Path) -> dict[str, Any]:
    """Compile a program, and return its figures as JSON."""
    target = TARGETS[given.device]
    batch = given.batch or {"mask": 8_192, "search": 1_024}.get(name, 65_536)
    before = set(dump.glob("*.ptx"))
    compiled = compile_for(target, *program(given, name, batch))
    cost, memory, launches = compiled.cost_analysis(), compiled.memory_analysis(), kernels(compiled.as_text())
    code = assemble(sorted(set(dump.glob("*.ptx")) - before), target)
    moved, operations = cost.get("bytes accessed", 0.0), cost.get("flops", 0.0)
    work = max(moved / target.bandwidth, operations / target.fp32_ops)
    return {
        "program": name,
        "batch": batch,
        "kernels": launches,
        "megabytes": round(moved / 1e6, 1),
        "operations": operations,
        "peak_megabytes": round(
            (memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes) / 1e6, 1
        ),
        "most_registers": max((used for _, used, _ in code), default=None),
        "spilled_bytes": sum(spilled for *_, spilled in code) if code else None,
        "estimated_microseconds": round(1e6 * (work + LAUNCH_SECONDS * sum(launches.values())), 1),
    }


def main(arguments: list[str] | None = None) -> None:
    """Compile the programs of the command line, and print one JSON object per program."""
    try:
        given = from_arguments(Settings, arguments, "python -m experiments.gpu")
    except ValueError as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        try:
            for name in given.programs:
                print(json.dumps(figures(given, name, Path(folder))), flush=True)
        except (ValueError, RuntimeError) as error:
            sys.exit(f"{error}\nCompiling needs the extra cuda: pip install '.[cuda]'.")


if __name__ == "__main__":
    main()
