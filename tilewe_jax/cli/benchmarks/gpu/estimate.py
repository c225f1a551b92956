"""The roofline estimate: how long the kernels of a compiled program take at least, on a device that nobody has asked.

A kernel takes as long as the slowest of what it does: reading and writing memory, instructions, matrix products, each at the
rate of the data sheet. Launches come on top. No estimate has been compared with a device; rates of data sheets are not reached
in practice, and caches make traffic cheaper than it is counted here.
"""

from dataclasses import dataclass
from typing import Any

from tilewe_jax.cli.benchmarks.gpu.compile import CompiledProgram
from tilewe_jax.cli.benchmarks.gpu.hlo import Body, Kernel
from tilewe_jax.cli.benchmarks.gpu.targets import Target

LAUNCH_SECONDS = 2e-6
"""Assumed for one kernel in a command buffer (CUDA graph), on top of its work."""
HOST_SECONDS = 10e-6
"""Assumed for one turn of a loop of unknown length, after which the host reads whether it goes on."""
NETWORK = "network"
"""The ``jax.named_scope`` by which kernels of the network are known."""


@dataclass(frozen=True)
class Work:
    """What a turn of a loop does, loops inside included, or a launch of a kernel."""

    kernels: float = 0.0
    bytes: float = 0.0
    integer_ops: float = 0.0
    float_ops: float = 0.0
    """Floating-point operations, matrix products included."""
    instructions: float = 0.0
    """Machine instructions of all threads; of kernels without machine code or with loops the operations."""
    seconds: float = 0.0
    network_seconds: float = 0.0
    """Seconds of the kernels of the network, which are among ``seconds``."""
    host_turns: float = 0.0
    """Turns of loops after each of which the host is asked."""

    def __add__(self, more: "Work") -> "Work":
        return Work(*(a + b for a, b in zip(vars(self).values(), vars(more).values(), strict=True)))

    def __mul__(self, times: float) -> "Work":
        return Work(*(times * value for value in vars(self).values()))


def of_kernel(kernel: Kernel, program: CompiledProgram, target: Target) -> Work:
    """The work of one launch."""
    operations = kernel.integer_ops + kernel.float_ops
    code = program.code_of(kernel)
    instructions: float = operations
    if code and code.threads:
        instructions = code.machine_code.instructions * code.threads
        instructions = max(instructions, operations) if code.machine_code.has_loop else instructions
    matrix_seconds = sum(count / matrix_rate(target, dtype) for dtype, count in kernel.matrix_ops.items())
    is_library_call = kernel.kind not in ("fusion", "copy") and kernel.matrix_ops
    instruction_seconds = 0.0 if is_library_call else instructions / target.integer_ops
    seconds = LAUNCH_SECONDS + max(kernel.bytes / target.bandwidth, instruction_seconds, matrix_seconds)
    return Work(
        kernels=1,
        bytes=kernel.bytes,
        integer_ops=kernel.integer_ops,
        float_ops=kernel.float_ops + sum(kernel.matrix_ops.values()),
        instructions=instructions,
        seconds=seconds,
        network_seconds=seconds if NETWORK in kernel.source else 0.0,
    )


def of_body(body: Body, program: CompiledProgram, target: Target, turns: tuple[int, int] = (1, 1)) -> Work:
    """The work of one turn of a body.

    Args:
        body: the entry or the body of a loop.
        program: the program that it is of.
        target: the device.
        turns: how often loops of unknown length are assumed to run: those with loops inside, and those without.
    """
    work = sum((of_kernel(kernel, program, target) for kernel in body.kernels), start=Work())
    for loop in body.loops:
        if loop.turns is None:
            ask = Work(seconds=HOST_SECONDS, host_turns=1)
            work += (of_body(loop, program, target, turns) + ask) * (turns[0] if loop.loops else turns[1])
        else:
            work += of_body(loop, program, target, turns) * loop.turns
    return work


def matrix_rate(target: Target, dtype: str) -> float:
    """Multiplications and additions a second of matrix products of a dtype; float32 is computed in TF32."""
    if dtype in ("s8", "u8"):
        return target.int8_ops
    return target.tensor_ops if dtype in ("bf16", "f16") else target.tensor_ops / 2


def figures(work: Work, per_step: int = 1) -> dict[str, Any]:
    """The work of a step as JSON values, where ``per_step`` games make a step each."""
    return {
        "kernels": round(work.kernels, 1),
        "bytes": round(work.bytes),
        "integer_ops": round(work.integer_ops),
        "float_ops": round(work.float_ops),
        "instructions": round(work.instructions),
        "host_turns": round(work.host_turns, 1),
        "estimated_microseconds": round(1e6 * work.seconds, 1),
        "estimated_steps_per_second": round(per_step / work.seconds) if work.seconds else 0,
        "estimated_network_fraction": round(work.network_seconds / work.seconds, 3) if work.seconds else 0.0,
    }
