"""The installed package: the wheel contains everything, and works outside of the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import TINY_TRAINING

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package installed by pip from a source distribution, outside of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "install", "--target", str(folder / "hatch"), "hatchling"], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(folder / "hatch")})
    (sdist,) = folder.glob("*.tar.gz")
    for source in (sdist, ROOT):
        command = [*pip, "wheel", str(source), "--no-deps", "-w", str(folder / ("from_sdist" if source == sdist else "direct"))]
        subprocess.run(command, check=True, cwd=folder)
    (wheel,) = (folder / "from_sdist").glob("*.whl")
    (direct,) = (folder / "direct").glob("*.whl")
    assert set(zipfile.ZipFile(wheel).namelist()) == set(zipfile.ZipFile(direct).namelist())
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True, cwd=folder)
    return folder / "site"


def run(unpacked: Path, *arguments: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd or unpacked.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_has_weights_presets_openings_pages_and_types(unpacked: Path) -> None:
    names = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"tilewe_jax", "bin"}
    assert (unpacked / "tilewe_jax" / "py.typed").exists()
    for path in (
        "tilewe_jax/web/static/index.html",
        "tilewe_jax/web/static_site/worker.js",
        "tilewe_jax/draw/static/tilewe-game.js",
        "tilewe_jax/books/duo_official.jsonl",
        "tilewe_jax/openings/classic.json",
    ):
        assert (unpacked / path).exists(), path
    code = "from tilewe_jax import presets; from tilewe_jax.networks import weights"
    names = run(unpacked, "-c", f"{code}; print(*weights.names(), *presets.names())").split()
    assert {"santorini", "duo_official_cpu"} <= set(names)


@pytest.mark.slow
def test_the_wheel_plays(unpacked: Path) -> None:
    assert str(unpacked) in run(unpacked, "-c", "import tilewe_jax; print(tilewe_jax.__file__)")
    assert "santorini" in run(unpacked, "-m", "tilewe_jax", "games")
    assert "games" in run(unpacked, "-m", "tilewe_jax", "rollout", "--game", "santorini", "--set", "size=3", "--games", "8")


@pytest.mark.slow
def test_files_of_the_user_are_not_imported(unpacked: Path, tmp_path: Path) -> None:
    """In a folder with modules named like parts of this project."""
    for name in ("search.py", "tests.py", "networks.py", "experiments/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise RuntimeError('imported a file of the user')\n")
    (tmp_path / "script.py").write_text(
        "import tilewe_jax\n"
        "from tilewe_jax import batching, networks, search, training\n"
        "from tilewe_jax.search import gumbel_policy\n"
        "from tilewe_jax.search import *\n"
        "print(*[getattr(tilewe_jax, name) is not None for name in tilewe_jax.__all__], tilewe_jax.__file__)\n"
    )
    assert "santorini" in run(unpacked, "-m", "tilewe_jax", "games", cwd=tmp_path)
    assert str(unpacked) in run(unpacked, "script.py", cwd=tmp_path)
    command = [str(unpacked / "bin" / "tilewe-jax"), "train", "--out", "run", "--set", *TINY_TRAINING, "iterations=1"]
    run(unpacked, *command, cwd=tmp_path)
    assert (tmp_path / "run").is_dir()


def test_a_clone_without_links_names_the_fix(tmp_path: Path) -> None:
    (tmp_path / "tilewe_jax").mkdir()
    shutil.copy(ROOT / "tilewe_jax" / "__init__.py", tmp_path / "tilewe_jax")
    (tmp_path / "tilewe_jax" / "search").write_text("../search")
    code = "import tilewe_jax"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "git config core.symlinks true" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_host_package_needs_nothing_heavy(unpacked: Path) -> None:
    code = (
        "import sys; from tilewe_jax import tilewe; print(*{'jax', 'optax', 'orbax', 'matplotlib', 'equinox'} & {*sys.modules})"
    )
    assert not run(unpacked, "-c", code).strip()
