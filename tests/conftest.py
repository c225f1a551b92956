"""Every test runs with strict dtype promotion and without rank promotion."""

import os
from pathlib import Path

import jax
import pytest

from experiments.commands import common

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)

# What one worker has compiled, the other one, the processes that tests start, and the next run need not compile again.
for setting, value in (
    ("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache" / "jax")),
    ("jax_persistent_cache_min_compile_time_secs", 0.2),
):
    jax.config.update(setting, value)
    os.environ.setdefault(setting.upper(), str(value))


QUICK = {
    "test_bits",
    "test_figure",
    "test_host_games",
    "test_imports",
    "test_pieces",
    "test_position",
    "test_records",
    "test_settings",
    "test_terminal",
    "test_tilewe",
}
"""The modules that `pytest -m quick` runs: of every layer something, hardly anything that compiles for long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in QUICK and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)


@pytest.fixture(autouse=True)
def _devices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask for devices before JAX starts; in this process it has started long ago, with four."""
    monkeypatch.setattr(common, "ask_for_devices", lambda count: None)
