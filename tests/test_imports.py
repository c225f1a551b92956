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


def test_host_games_records_and_formats_import_neither_jax_nor_numpy() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['jax', 'jaxlib', 'numpy']));"  # ``None`` makes their import fail
        "import tilewe_jax.records, tilewe_jax.formats.names, tilewe_jax.formats.blksgf, tilewe_jax.replay.recorded;"
        "from tilewe_jax.host_games import OFFERS, make_host_game; from random import Random;"
        "games = map(make_host_game, OFFERS);"
        "print(*[game.init_from_deal(game.new_deal(Random(1))).legal_actions()[0] >= 0 for game in games])"
    )
    assert run(code).split() == ["True"] * 7
