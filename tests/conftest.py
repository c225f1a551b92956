"""Every test runs with strict dtype promotion, without rank promotion, and with annotations checked."""

import gc
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

# Before JAX is imported. Nearly all of the time of the tests goes into compiling what then runs for milliseconds, so they and
# the processes that they start compile with few optimizations, in a third of the time. Tests marked `optimized` compile as
# users do, and so do all with `--optimized`.
QUICK_FLAGS = "--xla_cpu_parallel_codegen_split_count=1"
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 12):  # which ends at flags that it does not know
    QUICK_FLAGS += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK_FLAGS}"
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # nobody reads which line an instruction came from

# Before the packages are imported: in the modules that name shapes, all annotations are checked at every call.
from jaxtyping import config as jaxtyping_config  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

import tests.typecheck  # noqa: E402

install_import_hook(tests.typecheck.modules(), "tests.typecheck.typechecked")

import jax  # noqa: E402
import pytest  # noqa: E402

from tilewe_jax import host_games, registry  # noqa: E402
from tilewe_jax.cli import common  # noqa: E402

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


gc.set_threshold(100_000, 50, 100)  # tracing makes many objects, of which few are garbage

QUICK = {
    "test_bits",
    "test_blksgf",
    "test_figure",
    "test_gtp",
    "test_host_games",
    "test_imports",
    "test_pieces",
    "test_position",
    "test_records",
    "test_settings",
    "test_terminal",
    "test_tilewe",
    "test_views",
}
"""The modules that `pytest -m quick` runs: of every layer something, hardly anything that compiles for long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--optimized", action="store_true", help="compile everything as users do, which takes three times as long")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("optimized"):
        os.environ["XLA_FLAGS"] = os.environ["XLA_FLAGS"].replace(QUICK_FLAGS, "").strip()  # blank text would be a file
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in QUICK and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)


def pytest_runtest_setup(item: pytest.Item) -> None:
    optimized = item.config.getoption("optimized") or item.get_closest_marker("optimized")
    jax.config.update("jax_disable_most_optimizations", not optimized)
    jaxtyping_config.update("jaxtyping_disable", item.get_closest_marker("untyped") is not None)


@pytest.fixture(autouse=True, scope="module")
def _registry_stays() -> Iterator[None]:
    """Games that a module registers are no concern of the others."""
    known, offered = dict(registry._FACTORIES), dict(host_games._OFFERS)
    yield
    registry._FACTORIES.clear()
    registry._FACTORIES.update(known)
    host_games._OFFERS.clear()
    host_games._OFFERS.update(offered)


@pytest.fixture(autouse=True)
def _devices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask for devices before JAX starts; in this process it has started long ago, with four."""
    monkeypatch.setattr(common, "set_cpu_devices", lambda count: None)
