"""Modes of JAX, each in a process that runs games, policies and searches."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support import slow

ROOT = Path(__file__).parents[1]
LIMIT = 900


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT, env=environment)


@cache
def digests(*parts: str, **variables: str) -> dict[str, str]:
    """Return the digest of each game and part."""
    done = run("-m", "tests.modes", *parts, **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


STRICT = {"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_NUMPY_DTYPE_PROMOTION": "strict"}


@pytest.mark.parametrize(
    ("part", "variables"),
    [
        slow("searches", {"JAX_ENABLE_X64": "1"}),
        slow("play", {"JAX_ENABLE_X64": "1"}),
        slow("policies", {"JAX_ENABLE_X64": "1"}),
        slow("searches", {"JAX_ENABLE_X64": "1", **STRICT}),
        slow("searches", {"JAX_DEBUG_NANS": "1"}),
        slow("play", {"JAX_DEBUG_NANS": "1"}),
        slow("searches", {"JAX_CHECK_TRACER_LEAKS": "1"}),
        slow("play", STRICT),
        slow("searches", STRICT),
    ],
)
def test_results_are_independent_of_the_mode(part: str, variables: dict[str, str]) -> None:
    assert digests(part, **variables) == digests(part)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"JAX_DEFAULT_PRNG_IMPL": "rbg"},
        {"JAX_DEFAULT_PRNG_IMPL": "unsafe_rbg"},
        {"JAX_THREEFRY_PARTITIONABLE": "0"},
        {"JAX_ENABLE_CUSTOM_PRNG": "1"},
    ],
    ids=lambda variables: "-".join(variables.values()),
)
def test_other_random_number_generators(variables: dict[str, str]) -> None:
    assert len(digests(**variables)) == 9


@pytest.mark.slow
def test_shard_map() -> None:
    assert len(digests("split", JAX_NUM_CPU_DEVICES="2")) == 3


@pytest.mark.slow
def test_games_without_jit() -> None:
    assert digests("moves", JAX_DISABLE_JIT="1") == digests("moves")


@pytest.mark.slow
def test_raw_keys() -> None:
    assert len(digests("legacy")) == 3


@pytest.mark.parametrize(
    "program",
    [
        "import tilewe_jax; tilewe_jax.make('santorini')",
        "import tilewe_jax.interop.gymnasium as g; g.GameEnv('santorini', size=3).reset(seed=0)",
        "from tilewe_jax.host_games import make_host_game; print(make_host_game('duo').init_from_deal(None).scores())",
    ],
    ids=["make", "gymnasium", "host"],
)
def test_missing_platforms_are_named_in_one_line(program: str) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    if "gymnasium" in program:
        pytest.importorskip("gymnasium")
    done = run("-c", program, JAX_PLATFORMS="cuda")
    if "host" in program:  # needs no JAX
        assert done.stdout == "(0, 0)\n"
        return
    last = done.stderr.strip().splitlines()[-1]
    assert "JAX_PLATFORMS=cuda" in last
    assert "cpu" in last
    assert "AssertionError" not in done.stderr


def test_the_command_line_names_a_missing_platform() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    done = run("-m", "tilewe_jax", "rollout", "--game", "santorini", "--batch", "2", JAX_PLATFORMS="cuda")
    assert done.returncode == 1
    assert "JAX_PLATFORMS=cuda" in done.stderr
    assert done.stderr.count("\n") == 1
