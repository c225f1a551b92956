"""Games for PyTorch: tensors against the arrays of ``Environment``."""

import sys
from dataclasses import fields

import jax
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.batching import TimeStep
from tilewe_jax.interop.torch import TorchEnvironment
from tilewe_jax.utils.extras import MissingExtraError

SANTORINI = tilewe_jax.make("santorini", size=3)
BATCH = 6


def test_a_missing_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"'tilewe-jax\[torch\]'"):
        TorchEnvironment(SANTORINI, BATCH)


def test_tensors_equal_the_arrays_of_jax() -> None:
    """The same games as ``Environment``, step by step."""
    torch = pytest.importorskip("torch")
    environment = TorchEnvironment(SANTORINI, BATCH)
    reference = tilewe_jax.Environment(SANTORINI)
    games, expected = reference.reset(jax.random.key(7), BATCH)
    timestep = environment.reset(seed=7)
    step, ended = jax.jit(reference.step), 0
    for _ in range(40):
        for field in fields(TimeStep):
            tensor = getattr(timestep, field.name)
            assert isinstance(tensor, torch.Tensor)
            np.testing.assert_array_equal(tensor.numpy(), getattr(expected, field.name), err_msg=field.name)
        assert timestep.observation.shape == (BATCH, *environment.observation_shape)
        action = torch.argmax(timestep.legal_action_mask.int(), dim=1)  # int64, as from the samplers of PyTorch
        games, expected = step(games, jax.numpy.asarray(action.numpy(), "int32"))
        timestep = environment.step(action)
        ended += int(timestep.terminated.sum())
    assert ended > BATCH


def test_invalid_arguments() -> None:
    torch = pytest.importorskip("torch")
    environment = TorchEnvironment(SANTORINI, BATCH)
    with pytest.raises(RuntimeError, match="reset"):
        environment.step(torch.zeros(BATCH, dtype=torch.int32))
    environment.reset()
    with pytest.raises(TypeError, match=r"torch.float32"):
        environment.step(torch.zeros(BATCH))
    with pytest.raises(ValueError, match=r"\(6,\)"):
        environment.step(torch.zeros(2, dtype=torch.int64))
