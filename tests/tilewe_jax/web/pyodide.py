"""Pyodide for tests: the npm package, fetched by npm."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tilewe_jax.web.site import PYODIDE_VERSION


def unpacked_pyodide(folder: Path) -> Path:
    """Unpack the npm package ``pyodide`` in a folder; return its path. Skips the test without npm or a registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, which fetches Pyodide")
    command = [npm, "pack", f"pyodide@{PYODIDE_VERSION}", "--silent"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if process.returncode:
        pytest.skip(f"npm cannot fetch Pyodide: {process.stderr.strip()[-200:]}")
    (packed,) = folder.glob("pyodide-*.tgz")
    with tarfile.open(packed) as file:
        # Python 3.11.3 and earlier have no filters.
        file.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        file.extractall(folder)
    return folder / "package"
