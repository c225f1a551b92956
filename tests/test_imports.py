"""Cost of imports: backends, arrays and heavy modules."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_importing_starts_no_backend_and_makes_no_array() -> None:
    out = run(
        "import jax, tilewe_jax; from jax._src import xla_bridge;"
        "game = tilewe_jax.make('tilewe'); print(xla_bridge.backends_are_initialized()); print(len(jax.live_arrays()))"
    )
    assert out.split() == ["False", "0"]


def test_games_and_search_import_no_package_of_training_or_the_command_line() -> None:
    code = (
        "import sys, tilewe_jax, tilewe_jax.batching, tilewe_jax.search;"
        "[tilewe_jax.make(name) for name in tilewe_jax.available_games()];"
        "print(*{'optax', 'orbax', 'rich', 'equinox', 'matplotlib'} & {*sys.modules})"
    )
    assert not run(code).strip()
