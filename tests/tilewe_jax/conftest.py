"""The run of the toy game, shared by the tests of training and checkpoints."""

from pathlib import Path

import pytest

from tests.toy import TOY, trained_in
from tilewe_jax.training import Program, report


@pytest.fixture(scope="session")
def program() -> Program:
    """The compiled functions of the run."""
    return Program(TOY, 1)


@pytest.fixture(scope="session")
def toy_run(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished run, which tests do not change."""
    path: Path = tmp_path_factory.mktemp("runs") / "toy"
    trained_in(path, program, TOY)
    report.write(path)
    return path
