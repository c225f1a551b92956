"""Programs compiled for a GPU that is not there: what is read from their text, and the command."""

import json
from pathlib import Path

import pytest

from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.cli.benchmarks.gpu import compile, estimate, hlo, machine_code
from tilewe_jax.cli.benchmarks.gpu.compile import CompiledProgram, LaunchedCode
from tilewe_jax.cli.benchmarks.gpu.machine_code import MachineCode
from tilewe_jax.cli.benchmarks.gpu.targets import TARGETS

TEXT = (Path(__file__).parents[2] / "data" / "gpu_program.txt").read_text()
"""Three steps of a scan, each a convolution, a loop that looks words up in a table, and a sum, compiled for an H100."""
VERBOSE = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'loop_or_fusion' for 'sm_90a'
ptxas info    : Function properties for loop_or_fusion
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 29 registers, used 0 barriers
ptxas info    : Compiling entry function 'loop_select_fusion' for 'sm_90a'
ptxas info    : Function properties for loop_select_fusion
    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 48 registers, used 0 barriers
"""
COMMANDS = """
000: kCommandBuffer [source       | next=003 (1)]
    001: kCopy         [source | sink] MemcpyDeviceToDeviceCmd
    002: kCustomKernel [source | sink] loop_or_fusion grid: [1664, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
003: kKernel       [prev=000 (1) | sink] kernel=input_reduce_fusion_3, profile_annotation=input_reduce_fusion.3, launch \
dimensions=blocks: {2, 1, 1}, threads/block: {64, 1, 1}, cluster_dim=nullopt
"""


def kernel(name: str) -> hlo.Kernel:
    return next(kernel for body in hlo.read(TEXT).walk() for kernel in body.kernels if kernel.name == name)


def test_bodies_and_their_kernels() -> None:
    entry, scan, inner = hlo.read(TEXT).walk()
    assert [body.turns for body in (entry, scan, inner)] == [1, 3, None]
    assert [len(body.kernels) for body in (entry, scan)] == [5, 6]
    # The device decides how often the inner loop runs, by a kernel of its condition.
    assert [kernel.name for kernel in inner.kernels] == ["loop_xor_fusion", "input_reduce_fusion"]


def test_traffic() -> None:
    conv = kernel("cudnn-conv-bias-activation.1")
    assert conv.bytes_written == 2 * 8 * 6 * 6 * 32  # without the scratch memory
    assert conv.bytes_read == 2 * (8 * 6 * 6 * 32 + 3 * 3 * 32 * 32 + 32)
    looked_up = kernel("loop_xor_fusion")  # 64 of the 1,000 words of the table, and two arrays of 64 words
    assert (looked_up.bytes_read, looked_up.bytes_written) == (3 * 4 * 64, 4 * 64)
    in_place = kernel("loop_dynamic_update_slice_fusion")  # one word of three, at an index
    assert (in_place.bytes_read, in_place.bytes_written) == (8, 4)


def test_operations() -> None:
    conv = kernel("cudnn-conv-bias-activation.1")
    assert conv.matrix_ops == {"bf16": 2 * 8 * 6 * 6 * 32 * 3 * 3 * 32}
    assert kernel("input_reduce_fusion.1").integer_ops == 64
    assert kernel("loop_xor_fusion").integer_ops == 3 * 64  # a shift, a conversion, an exclusive or
    assert kernel("loop_xor_fusion").float_ops == 0


def test_text_without_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no entry"):
        hlo.read("HloModule nothing")


@pytest.mark.parametrize(("shape", "size"), [("bf16[2,3]{1,0}", 12), ("(u8[4]{0}, pred[], f64[2])", 21), ("s32[]", 4)])
def test_sizes_of_shapes(shape: str, size: int) -> None:
    assert hlo.size_in_bytes(shape) == size


def test_machine_code() -> None:
    assert list(machine_code.parse_verbose(VERBOSE)) == [("loop_or_fusion", 29, 0), ("loop_select_fusion", 48, 12)]
    assert machine_code.parse_threads(COMMANDS) == {"loop_or_fusion": 1664 * 128, "input_reduce_fusion_3": 128}
    assert machine_code._has_loop("$L__BB0_1:\n add.s32 %r1;\n @%p1 bra $L__BB0_1;\n ret;")
    assert not machine_code._has_loop("@%p1 bra $L__BB0_1;\n add.s32 %r1;\n$L__BB0_1:\n ret;")


def test_estimates() -> None:
    target, entry = TARGETS["h100"], hlo.read(TEXT)
    code = {"loop_xor_fusion": LaunchedCode(MachineCode(14, 0, 1000, False), 10**9)}
    program = CompiledProgram(entry, code, graphs=1, peak_bytes=0)
    work = estimate.of_body(entry, program, target, turns=(1, 5))
    assert work.kernels == 5 + 3 * (6 + 5 * 2)
    assert work.host_turns == 3 * 5
    slowest = 3 * 5 * 1e12 / target.integer_ops  # the instructions of one kernel take longer than all else
    launches = work.kernels * estimate.LAUNCH_SECONDS + work.host_turns * estimate.HOST_SECONDS
    assert work.seconds == pytest.approx(slowest + launches, rel=1e-3)
    figures = estimate.figures(work, per_step=65_536)
    assert figures["estimated_steps_per_second"] == pytest.approx(65_536 / work.seconds, rel=1e-3)


def test_targets() -> None:
    assert TARGETS["h100"].architecture == "sm_90a"
    assert TARGETS["rtx4090"].architecture == "sm_89"
    assert TARGETS["h100"].fp32_ops == pytest.approx(67e12, rel=0.01)  # as the data sheets say
    assert TARGETS["a100"].fp32_ops == pytest.approx(19.5e12, rel=0.01)
    assert TARGETS["rtx4090"].fp32_ops == pytest.approx(82.6e12, rel=0.01)


@pytest.mark.skipif(compile.is_available(), reason="JAX's compiler for CUDA is installed")
def test_a_missing_compiler_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "bench", "--compile-for", "h100")
    assert code == 1
    assert "pip install 'tilewe-jax[cuda]'" in err


@pytest.mark.skipif(not compile.is_available(), reason="needs JAX's compiler for CUDA, of the extra cuda")
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    game = ["--game", "tilewe", "--set", "size=6", "pieces=O1,I2,L3", "players=2"]
    code, out, _ = run(capsys, "bench", "--compile-for", "a100", *game, "--programs", "stream,mask", "--batch", "256", "--json")
    assert code == 0
    figures = json.loads(out)
    assert [row["program"] for row in figures["programs"]] == ["stream", "mask"]
    for row in figures["programs"]:
        assert row["step"]["kernels"] > 0
        assert row["step"]["estimated_steps_per_second"] > 0
        assert any(kernel["registers"] for kernel in row["heavy_kernels"])
