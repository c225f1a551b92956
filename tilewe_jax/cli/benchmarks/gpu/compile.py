"""Compiling a function for a GPU that is not there."""

import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewe_jax.cli.benchmarks.gpu import hlo, machine_code
from tilewe_jax.cli.benchmarks.gpu.machine_code import MachineCode
from tilewe_jax.cli.benchmarks.gpu.targets import Target

PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
"""Modules with the CUDA compiler of JAX."""


@dataclass(frozen=True)
class LaunchedCode:
    """The machine code of a kernel and the threads that run it."""

    machine_code: MachineCode
    threads: int


@dataclass(frozen=True)
class CompiledProgram:
    """A function compiled for a device."""

    entry: hlo.Body
    """Its kernels and loops."""
    code: dict[str, LaunchedCode]
    """The machine code of its kernels by name; empty where there is no ``ptxas``."""
    graphs: int
    """Command buffers (CUDA graphs) that the program is sent in."""
    peak_bytes: int
    """Bytes of arguments, results and what lies between."""

    def code_of(self, kernel: hlo.Kernel) -> LaunchedCode | None:
        """The machine code of a kernel; ``None`` where there is none, as of copies and calls of libraries."""
        return self.code.get(machine_code_name(kernel.name))


def is_available() -> bool:
    """Whether the CUDA compiler of JAX is installed; a device need not be."""
    return any(importlib.util.find_spec(plugin) for plugin in PLUGINS)


def prepare(dump: Path) -> None:
    """Set what must be set before JAX starts: no device is needed, autotuning is off, kernels are dumped into a folder."""
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # what comes out of a cache is not dumped
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA warns of what it cannot choose without a device
    # Without autotuning, which needs a device, Triton has no tile sizes for some small matrix products.
    flags = f"--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false --xla_dump_to={dump} --xla_dump_hlo_as_text"
    os.environ["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}"


def compile_for(
    target: Target, dump: Path, function: Callable[..., Any], *args: Any, donate: tuple[int, ...] = ()
) -> CompiledProgram:
    """A function compiled for one device, after ``prepare``.

    Args:
        target: the device.
        dump: the folder that ``prepare`` has named.
        function: what to compile.
        args: arrays or their shapes.
        donate: the arguments whose memory the results may use.
    """
    import jax
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(
        platform="cuda", topology_name="1x1x1", topology="1x1x1", target_config=target.config()
    )
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(topology.devices, ("x",)), jax.sharding.PartitionSpec())
    shaped = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), args)
    before = set(dump.glob("*")) if dump.exists() else set()
    compiled = jax.jit(function, donate_argnums=donate).trace(*shaped).lower(lowering_platforms=("cuda",)).compile()
    memory: Any = compiled.memory_analysis()
    text = compiled.as_text()
    assert text
    dumped = sorted(set(dump.glob("*")) - before)
    commands = "\n".join(path.read_text() for path in dumped if "thunk_sequence" in path.name and path.suffix == ".txt")
    entry = hlo.read(text)
    ptxas = machine_code.find_ptxas()
    code = (
        machine_code.assemble([path for path in dumped if path.suffix == ".ptx"], target.architecture, ptxas) if ptxas else {}
    )
    threads = machine_code.parse_threads(commands)
    launched = {name: LaunchedCode(code[name], threads.get(name, 0)) for name in code}
    return CompiledProgram(
        entry=entry,
        code=launched | _shared_code(entry, launched),
        graphs=len(re.findall(r"^.*kCommandBuffer", commands, re.MULTILINE)),
        peak_bytes=memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes,
    )


def machine_code_name(name: str) -> str:
    """The name of the machine code of a kernel."""
    return re.sub(r"[^\w]", "_", name)


def _shared_code(entry: hlo.Body, code: dict[str, LaunchedCode]) -> dict[str, LaunchedCode]:
    """The code of fusions that have none of their own, since an equal one was compiled before."""
    fusions = [kernel for body in entry.walk() for kernel in body.kernels if kernel.kind == "fusion"]

    def work(kernel: hlo.Kernel) -> tuple[int, ...]:
        return kernel.bytes_read, kernel.bytes_written, kernel.integer_ops, kernel.float_ops

    by_work = {work(kernel): code[name] for kernel in fusions if (name := machine_code_name(kernel.name)) in code}
    names = {machine_code_name(kernel.name): work(kernel) for kernel in fusions}
    return {name: by_work[key] for name, key in names.items() if name not in code and key in by_work}
