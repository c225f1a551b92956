"""Every test runs with strict dtype promotion and without rank promotion."""

import jax
import pytest

from experiments.commands import common

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)


@pytest.fixture(autouse=True)
def _devices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask for devices before JAX starts; in this process it has started long ago, with four."""
    monkeypatch.setattr(common, "ask_for_devices", lambda count: None)
