"""Configure JAX for the tests: strict promotion, checked annotations, fast compilation, a persistent cache."""

import gc
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

# Before the import of JAX. Nearly all of the time goes into compiling functions that run for milliseconds, so the tests and
# their child processes compile with few optimizations, in a third of the time. Tests marked `optimized`, or all with
# `--optimized`, compile with the defaults.
QUICK_FLAGS = "--xla_cpu_parallel_codegen_split_count=1"
QUICK_FLAGS += " --xla_disable_hlo_passes=post_scatter_expansion_simplification"  # up to 20 rounds of it in large programs
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):  # later versions abort at this flag
    QUICK_FLAGS += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK_FLAGS}"
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ["TILEWE_JAX_PROGRAMS"] = ""  # the key of a kept program does not know the functions that a test replaces
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # source lines of instructions are unused

# Before the import of the packages: check all annotations of the modules that annotate shapes, in every call.
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

# Share compiled functions among workers, child processes and later runs.
for setting, value in (
    ("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache" / "jax")),
    ("jax_persistent_cache_min_compile_time_secs", 0.2),
):
    jax.config.update(setting, value)
    os.environ.setdefault(setting.upper(), str(value))


gc.set_threshold(100_000, 50, 100)  # tracing creates many objects, few of them garbage

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
"""Modules of `pytest -m quick`: some of every layer, with little compilation."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--optimized", action="store_true", help="compile with default optimizations, three times as slowly")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("optimized"):
        os.environ["XLA_FLAGS"] = os.environ["XLA_FLAGS"].replace(QUICK_FLAGS, "").strip()  # a blank value is a file name
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
def _restore_registry() -> Iterator[None]:
    """Undo the registrations of a module."""
    factories, offers = dict(registry._FACTORIES), dict(host_games._OFFERS)
    yield
    registry._FACTORIES.clear()
    registry._FACTORIES.update(factories)
    host_games._OFFERS.clear()
    host_games._OFFERS.update(offers)


@pytest.fixture(autouse=True)
def _keep_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the setting of the number of devices: JAX has already started with four."""
    monkeypatch.setattr(common, "set_cpu_devices", lambda count: None)
