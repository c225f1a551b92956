"""Counts of programs compiled for a GPU without a GPU."""

import importlib.util
import json
from pathlib import Path

import jax
import pytest

from experiments.gpu import __main__ as gpu
from experiments.gpu.__main__ import Settings
from experiments.gpu.targets import TARGETS

TEXT = (Path(__file__).parents[1] / "data" / "gpu_program.txt").read_text()
"""A scan of three steps, each with a convolution, a loop of table lookups, and a sum, compiled for an H100."""
VERBOSE = """
ptxas info    : Compiling entry function 'loop_or_fusion' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 29 registers, used 0 barriers
ptxas info    : Compiling entry function 'loop_select_fusion' for 'sm_90a'
    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 48 registers, used 0 barriers
"""


def test_kernels_are_counted_by_loop() -> None:
    """The inner loop has an unknown length, so its condition is a kernel."""
    assert list(gpu.kernels(TEXT).values()) == [5, 6, 2]
    assert list(gpu.registers(VERBOSE)) == [("loop_or_fusion", 29, 0), ("loop_select_fusion", 48, 12)]


def test_rates_of_targets() -> None:
    assert TARGETS["h100"].architecture == "sm_90a"
    assert [round(target.fp32_ops / 1e12, 1) for target in TARGETS.values()] == [66.9, 66.9, 19.5, 82.6]


def test_programs_can_be_traced() -> None:
    given = Settings(set=("size=6", "pieces=O1,I2,L3", "players=2"), network="tiny", num_simulations=4, num_candidates=8)
    for name in ("step", "search"):
        function, args, _ = gpu.program(given, name, 4)
        assert jax.tree.leaves(jax.eval_shape(function, *args))


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("jax_cuda13_plugin"), reason="needs JAX's compiler for CUDA")
def test_a_program_is_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--device", "a100", "--set", "size=6", "players=2", "--programs", "mask", "--batch", "256"])
    assert json.loads(capfd.readouterr().out)["kernels"]["entry"] > 0
