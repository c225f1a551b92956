"""The documentation is correct: code runs, commands parse, named files and options exist, links work, the site builds."""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from tests import test_interop_docs as interop_docs
from tilewe_jax.arguments import option_name
from tilewe_jax.cli import main as cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = (
    "tilewe_jax/tilewe",
    "tilewe_jax/games/santorini",
    "tilewe_jax/games/triominos",
    "search",
    "experiments",
    "tilewe_jax/weights",
    "tilewe_jax/web",
)
OTHERS = [(ROOT / page / "README.md").read_text() for page in PAGES]
EXPERIMENTS = [path.read_text() for path in sorted(ROOT.glob("experiments/*/README.md"))]
SITE = {path.relative_to(ROOT): path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))}
TEXT = "".join([README, *OTHERS, *EXPERIMENTS, *SITE.values()])
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
PEER_PAGES = {path.relative_to(ROOT) for path in interop_docs.PAGES}
QUICK = ("README.md", "tilewe_jax/tilewe", "tilewe_jax/games/santorini", "tilewe_jax/games/triominos")
"""Pages whose code runs in every run of the tests; the code of other pages is slow."""
CODE = [
    pytest.param(code, id=f"{page}-{i}", marks=[] if page in QUICK else [pytest.mark.slow])
    for page, text in {"README.md": README, **dict(zip(PAGES, OTHERS, strict=True)), **SITE}.items()
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    if page not in PEER_PAGES  # `test_interop_docs.py` runs their examples
]
COMMANDS = re.findall(r"^tilewe-jax (.*?)(?: *#.*)?$", TEXT.replace("\\\n", ""), re.MULTILINE)


@pytest.mark.parametrize("code", CODE)
def test_code_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_parse(command: str) -> None:
    assert cli._parse(shlex.split(re.sub(r" \$\w+", "", command)))


def test_samples_were_found() -> None:
    assert CODE
    assert COMMANDS


def test_the_source_tree_names_existing_files() -> None:
    (tree,) = re.findall(r"```\n(.*?)```", SITE[Path("docs/architecture.md")], re.DOTALL)
    for path in re.findall(r"^  ([\w/ .]+?(?:\.py|/))(?: |$)", tree, re.MULTILINE):
        for name in path.split():
            assert any((ROOT / folder / name).exists() for folder in ("tilewe_jax", "search", "experiments")), name
    for package in ("tilewe_jax", "search", "experiments", "tests"):
        assert f"{package}/" in tree


FILES = {
    path: path.read_text()
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") or part in ("build", "node_modules", "site") for part in path.relative_to(ROOT).parts)
}
"""All pages of the repository."""


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings in lower case, with hyphens for blanks."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def wrong_links(page: Path, text: str) -> list[str]:
    """Return the links of a page to missing files or headings."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", prose):
        target = "".join(link)
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if re.match(r"[a-z]+:", target):
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())):
            wrong.append(f"{page.name}: {target}")
    return wrong


def test_links_between_files() -> None:
    assert len(FILES) > 20
    assert [link for page, text in FILES.items() for link in wrong_links(page, text)] == []


def test_wrong_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `code` heading, with more\n")
    text = "[a](other.md#a-code-heading-with-more) [b](other.md#none) ![c](none.svg) [d](https://x.org/y.md) `[e](f.md)`"
    assert wrong_links(tmp_path / "page.md", text) == ["page.md: other.md#none", "page.md: none.svg"]


def test_named_options_exist() -> None:
    """``test_commands_parse`` reads only code blocks; this test reads inline code."""
    options = {
        name: {option_name(field.name).removeprefix("--") for field in fields(cli._command(name))} for name in cli.COMMANDS
    }
    programs = "".join(path.read_text() for folder in ("experiments", "tests") for path in (ROOT / folder).rglob("*.py"))
    others = ("XLA_FLAGS", "#SBATCH", "mypy", "ruff", "pip ", "pytest", "tensorboard")
    for page, text in FILES.items():
        if page.name == "CHANGELOG.md":  # names removed options too
            continue
        for code in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            command = re.match(r"tilewe-jax (?:--no-cache )?((?:bench|games-db) [a-z]+|[a-z]\w*)", code)
            assert not command or command[1] in (*cli.COMMANDS, "bench"), f"{page}: {code}"
            for option in [] if code.startswith(others) else re.findall(r"(?<![\w-])--([a-z][\w-]*)", code):
                known = (
                    options["bench play" if command[1] == "bench" else command[1]]
                    if command
                    else set().union(*options.values())
                )
                is_program = not command and re.search(
                    rf'"--{option}"|^    {option.replace("-", "_")}: ', programs, re.MULTILINE
                )
                assert option in {*known, "help", "version", "no-cache"} or is_program, f"{page}: --{option} in {code}"


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
def test_spelling() -> None:
    pytest.importorskip("codespell_lib", reason="needs the extra docs")
    folders = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "tilewe_jax", "search", "experiments"]
    command = [sys.executable, "-m", "codespell_lib", "--skip", "*.svg,*.npz,*.js,*.json,*.css,*.html,*.png", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
