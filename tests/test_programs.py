"""Short forms of the long checks: random inputs, interrupts, killed servers, oldest versions of the dependencies."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [
        "tests/fuzz.py --count 300",
        "-m tests.interrupt --interrupts 2 --kills 1 --commands rollout train",
        "-m tests.tilewe_jax.web.killing 1",
        "tests/jax_versions.py --only oldest -- tests/tilewe_jax/test_bits.py",
    ],
)
def test_short_forms_of_long_checks(command: str) -> None:
    done = subprocess.run([sys.executable, *command.split()], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
