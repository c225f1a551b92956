"""Run the tests with the oldest and the newest dependencies that ``pyproject.toml`` allows: ``python tests/jax_versions.py``.

Each run has a new virtual environment in a temporary folder: ``oldest`` has the lowest version of every dependency, ``newest``
the highest that pip finds for this Python. Arguments after ``--`` go to pytest (default ``-m quick``). Prints a table, and
exits with 1 after a failure.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = ("jax", "jaxlib", "numpy", "equinox")


def lowest(requirements: list[str]) -> list[str]:
    """Pin requirements to their lowest version: ``jaxlib>=0.8.2,!=0.10.2`` becomes ``jaxlib==0.8.2``."""
    pinned = []
    for requirement in requirements:
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)(,.*)?", requirement)
        if not match:
            raise ValueError(f"pyproject.toml: {requirement!r} must start with name>=version")
        pinned.append(f"{match[1]}=={match[2]}")
    return pinned


def run(folder: Path, versions: str, arguments: list[str]) -> tuple[dict[str, str], bool, str, float]:
    """Run the tests in a new environment; return its versions, success, the last line of pytest, and the seconds."""
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    constraints = folder / "constraints.txt"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    constraints.write_text("\n".join(lowest(dependencies) if versions == "oldest" else []))
    subprocess.run([*pip, "install", "--upgrade", "--constraint", constraints, f"{ROOT}[test]"], check=True)
    listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    installed = dict(line.split("==") for line in listed.splitlines() if "==" in line)
    start = time.monotonic()
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    tests = subprocess.Popen(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert tests.stdout is not None
    last = ""
    for line in tests.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    return installed, tests.wait() == 0, last.strip("= "), time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["oldest", "newest"], help="run with only these versions")
    parser.add_argument("arguments", nargs="*", default=["-m", "quick"], help="arguments of pytest, after --")
    given = parser.parse_args()
    table = []
    for versions in [given.only] if given.only else ["oldest", "newest"]:
        with tempfile.TemporaryDirectory(prefix=f"jax_{versions}_") as folder:
            print(f"installing the {versions} versions", flush=True)
            table.append((versions, *run(Path(folder), versions, given.arguments)))
    print()
    print(*(f"{title:10}" for title in ("versions", *SHOWN, "seconds", "result")))
    for versions, installed, _, last, seconds in table:
        print(*(f"{entry:10}" for entry in (versions, *(installed[name] for name in SHOWN), f"{seconds:.0f}", last)))
    sys.exit(not all(passed for _, _, passed, _, _ in table))


if __name__ == "__main__":
    main()
