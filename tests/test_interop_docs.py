"""The examples of adapters in the documentation run as printed, with the packages that they are for."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("coming_from/*.md"), DOCS / "guides" / "rl_libraries.md", DOCS / "guides" / "pytorch_onnx.md"])
EXAMPLES = {
    f"{page.stem} {number}": code
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL), start=1)
}
OPTIONAL = ("torch", "sb3_contrib", "pufferlib", "onnx", "onnxruntime", "ray")
"""Packages without which an example is skipped; the others belong to the tests."""


@pytest.mark.slow  # the tests of each adapter cover the same calls
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in re.findall(r"^(?:import|from) (\w+)", EXAMPLES[name], re.MULTILINE):
        if package in OPTIONAL:
            pytest.importorskip(package)
    monkeypatch.setattr("sys.argv", ["example"])  # PufferLib reads its settings from the command line
    import jax

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # the defaults of users
        exec(compile(EXAMPLES[name], name, "exec"), {})


def test_every_adapter_has_an_example() -> None:
    modules = set(re.findall(r"`interop\.(\w+)`", (DOCS / "interop.md").read_text()))
    assert len(modules) >= 9
    code = "".join(EXAMPLES.values())
    assert [module for module in modules if not re.search(rf"tilewe_jax\.interop(\.| import ){module}\b", code)] == []


def test_pages_for_users_of_other_packages_are_short() -> None:
    lengths = {page.stem: len(page.read_text().splitlines()) for page in DOCS.glob("coming_from/*.md")}
    assert {name: lines for name, lines in lengths.items() if lines > 80} == {}


def test_the_tutorial_quotes_the_program() -> None:
    program = (DOCS.parent / "experiments" / "examples" / "alphazero.py").read_text()
    quotes = re.findall(r"```py\n(.*?)```", (DOCS / "tutorials" / "train.md").read_text(), re.DOTALL)
    assert len(quotes) >= 5
    assert [quote for quote in quotes if quote not in program] == []
