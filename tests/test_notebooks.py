"""The notebooks of the documentation run from top to bottom with reduced parameters."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = {
    "GAMES": 64,
    "BATCH": 32,
    "MINUTES": 0.5,
    "SIZE": 3,
    "NUM_GAMES": 16,
    "SIMULATIONS": 8,
}


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("agg")
    shown: list[Any] = []
    monkeypatch.setitem(__import__("sys").modules, "IPython.display", SimpleNamespace(display=shown.append))
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), names)
        if "parameters" in cell["metadata"].get("tags", ()):
            given = [name for name in names if name.isupper()]
            names |= {name: SMALL[name] for name in given}
    plt.close("all")


def test_notebooks_have_no_output() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells)
        assert next(cell for cell in cells if cell["cell_type"] == "code")["metadata"]["tags"] == ["parameters"]
