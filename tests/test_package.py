"""The package as people install it: everything that it needs is in the wheel, and nothing is looked for beside it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheel, in a folder far from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", str(ROOT), "--no-deps", "-w", str(folder)]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(unpacked: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=unpacked.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_has_weights_presets_openings_pages_and_types(unpacked: Path) -> None:
    for package in ("tilewe_jax",):
        assert (unpacked / package / "py.typed").exists()
    for path in (
        "tilewe_jax/web/static/index.html",
        "tilewe_jax/draw/static/tilewe-game.js",
        "tilewe_jax/openings/classic.json",
    ):
        assert (unpacked / path).exists(), path
    assert not (unpacked / "tests").exists()
    code = "from tilewe_jax import presets; from tilewe_jax.networks import weights"
    counts = "print(len(weights.names()), len(presets.names()))"
    weights, presets = map(int, run(unpacked, "-c", f"{code}; {counts}").split())
    assert weights >= 6
    assert presets >= 11


@pytest.mark.slow
def test_the_wheel_plays(unpacked: Path) -> None:
    assert str(unpacked) in run(unpacked, "-c", "import tilewe_jax; print(tilewe_jax.__file__)")
    assert "santorini" in run(unpacked, "-m", "tilewe_jax", "games")
    assert "games" in run(unpacked, "-m", "tilewe_jax", "rollout", "--game", "santorini", "--set", "size=3", "--games", "8")


@pytest.mark.slow
def test_the_host_package_needs_nothing_heavy(unpacked: Path) -> None:
    code = (
        "import sys; from tilewe_jax import tilewe; print(*{'jax', 'optax', 'orbax', 'matplotlib', 'equinox'} & {*sys.modules})"
    )
    assert not run(unpacked, "-c", code).strip()
