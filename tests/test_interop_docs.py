"""The examples of docs/interop.md run unchanged."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "interop.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = {
    f"{name} {number}": code
    for name, text in SECTIONS.items()
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL), start=1)
}
OPTIONAL = ("torch", "sb3_contrib", "pufferlib", "onnx", "onnxruntime")
"""Packages whose examples are skipped if they are missing; all others are test dependencies."""


@pytest.mark.slow  # the tests of each adapter cover its example
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in re.findall(r"^(?:import|from) (\w+)", EXAMPLES[name], re.MULTILINE):
        if package in OPTIONAL:
            pytest.importorskip(package)
    monkeypatch.setattr("sys.argv", ["example"])  # PufferLib reads settings from it
    import jax

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # the defaults of JAX
        exec(compile(EXAMPLES[name], "docs/interop.md", "exec"), {})


def test_every_adapter_has_an_example() -> None:
    adapters = re.findall(r"^\| \[(.*?)\]", PAGE, re.MULTILINE)
    assert adapters == [name for name in SECTIONS if name != "Processes"]
    assert set(adapters) <= {name.rpartition(" ")[0] for name in EXAMPLES}
