"""What is written is true: code runs, commands parse, the map names what there is, the site builds without a broken link."""

import re
import shlex
import subprocess
import sys
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
SITE = {path.relative_to(ROOT): path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))}
TEXT = "".join([README, *OTHERS, *SITE.values()])
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
QUICK = ("README.md", "tilewe_jax/tilewe", "tilewe_jax/games/santorini", "tilewe_jax/games/triominos")
"""Pages whose code is tried at every run; that of the others is with the slow tests."""
CODE = [
    pytest.param(code, id=f"{page}-{i}", marks=[] if page in QUICK else [pytest.mark.slow])
    for page, text in {"README.md": README, **dict(zip(PAGES, OTHERS, strict=True)), **SITE}.items()
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    if page != Path("docs/interop.md")  # whose examples `test_interop_docs.py` runs
]
COMMANDS = re.findall(r"^tilewe-jax (.*?)(?: *#.*)?$", TEXT.replace("\\\n", ""), re.MULTILINE)


@pytest.mark.parametrize("code", CODE)
def test_code_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_parse(command: str) -> None:
    assert cli._parse(shlex.split(command))


def test_samples_were_found() -> None:
    assert len(CODE) == 20
    assert len(COMMANDS) == 98


def test_the_map_names_what_there_is() -> None:
    (tree,) = re.findall(r"```\n(.*?)```", SITE[Path("docs/architecture.md")], re.DOTALL)
    for path in re.findall(r"^  ([\w/ .]+?(?:\.py|/))(?: |$)", tree, re.MULTILINE):
        for name in path.split():
            assert any((ROOT / folder / name).exists() for folder in ("tilewe_jax", "search", "experiments")), name
    for package in ("tilewe_jax", "search", "experiments", "tests"):
        assert f"{package}/" in tree


def test_links_between_files_lead_somewhere() -> None:
    """On GitHub, where pages are read too; the build of the site looks at the links of its own pages."""
    for page in ("README.md", "CONTRIBUTING.md", *(f"{page}/README.md" for page in PAGES)):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)\s#]+)|src=\"([^\"]+)\"", text):
            path = "".join(target)
            assert "://" in path or (ROOT / page).parent.joinpath(path).exists(), f"{page}: {path}"


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING -" not in done.stderr
    pages = [path.read_text() for path in tmp_path.rglob("*.html")]
    assert len(pages) > 25
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="?(https?://[^"> ]+)', "".join(pages))
    assert not [url for url in loaded if "tilewe" not in url], "nothing is loaded from elsewhere"


@pytest.mark.slow
def test_words_are_spelled_as_they_should_be() -> None:
    pytest.importorskip("codespell_lib", reason="needs the extra docs")
    folders = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "tilewe_jax", "search", "experiments"]
    command = [sys.executable, "-m", "codespell_lib", "--skip", "*.svg,*.npz,*.js,*.json,*.css,*.html,*.png", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
