"""Games for PyTorch: the same as the environment of JAX, in the same memory."""

import sys
from typing import Any

import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.interop.torch import TorchEnvironment
from tilewe_jax.utils.extras import MissingExtraError

SANTORINI = tilewe_jax.make("santorini", size=3)
BATCH = 6


def test_without_torch_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"this needs the package torch: pip install 'tilewe-jax\[torch\]'"):
        TorchEnvironment(SANTORINI, BATCH)


def test_tensors_are_the_arrays_of_jax() -> None:
    """The same games as ``Environment``, played side by side; tensors share the memory of the arrays."""
    torch = pytest.importorskip("torch")
    import jax

    environment = TorchEnvironment(SANTORINI, BATCH)
    shared: list[tuple[Any, Any]] = []
    tensor = environment._tensor
    environment._tensor = lambda array: shared.append((array, result := tensor(array))) or result  # type: ignore[method-assign]
    reference = tilewe_jax.Environment(SANTORINI)
    games = reference.reset(jax.random.key(7), BATCH)
    observation, action_mask = environment.reset(seed=7)
    step, ended = jax.jit(reference.step), 0
    for _ in range(40):
        assert action_mask.dtype == torch.bool
        assert observation.shape == (BATCH, *environment.observation_shape)
        action = torch.argmax(action_mask.int(), dim=1)  # int64, as PyTorch's samplers give it
        games, expected = step(games, jax.numpy.asarray(action.numpy(), "int32"))
        transition = environment.step(action)
        for name in ("player", "illegal", "terminated", "truncated", "scores", "final_observation", "observation"):
            np.testing.assert_array_equal(getattr(transition, name).numpy(), getattr(expected, name), err_msg=name)
        over = transition.terminated.numpy()
        outcome = np.where(over[:, None], 2 * np.asarray(expected.returns) - 1, 0)
        np.testing.assert_array_equal(transition.rewards.numpy(), outcome)
        np.testing.assert_array_equal(transition.next_player.numpy(), environment.current_player.numpy())
        observation, action_mask = transition.observation, transition.action_mask
        ended += int(over.sum())
    assert ended > BATCH
    assert len(shared) > 400
    for array, result in shared[-40:]:
        assert array.unsafe_buffer_pointer() == result.data_ptr()


def test_bad_arguments_are_refused() -> None:
    torch = pytest.importorskip("torch")
    environment = TorchEnvironment(SANTORINI, BATCH)
    with pytest.raises(RuntimeError, match="call reset before step"):
        environment.step(torch.zeros(BATCH, dtype=torch.int32))
    environment.reset()
    with pytest.raises(TypeError, match=r"action must be integers, not torch.float32"):
        environment.step(torch.zeros(BATCH))
    with pytest.raises(ValueError, match=r"action must have shape \(6,\)"):
        environment.step(torch.zeros(2, dtype=torch.int64))
