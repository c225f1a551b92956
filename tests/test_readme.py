"""The README says what is true: its code runs, its commands parse, its map names what there is."""

import re
import shlex
from pathlib import Path

import pytest

from experiments import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = (
    "tilewe_jax/tilewe",
    "tilewe_jax/games/santorini",
    "tilewe_jax/games/triominos",
    "search",
    "experiments",
    "experiments/weights",
    "tilewe_jax/web",
)
OTHERS = [(ROOT / page / "README.md").read_text() for page in PAGES]
TEXT = "".join([README, *OTHERS])
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
CODE = [text for language, text in BLOCKS if language == "python"]
COMMANDS = re.findall(r"^tilewe-jax (.*?)(?: *#.*)?$", TEXT.replace("\\\n", ""), re.MULTILINE)


@pytest.mark.parametrize("code", CODE, ids=range(len(CODE)))
def test_code_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_parse(command: str) -> None:
    assert cli._parse(shlex.split(command))


def test_samples_were_found() -> None:
    assert len(CODE) == 14
    assert len(COMMANDS) == 61


def test_the_map_names_what_there_is() -> None:
    tree = next(text for language, text in BLOCKS if not language)
    for path in re.findall(r"^  ([\w/ .]+?(?:\.py|/))(?: |$)", tree, re.MULTILINE):
        for name in path.split():
            assert any((ROOT / folder / name).exists() for folder in ("tilewe_jax", "search", "experiments")), name
    for package in ("tilewe_jax", "search", "experiments", "tests"):
        assert f"{package}/" in tree
