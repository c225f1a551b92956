"""Games of installed packages with real metadata: faulty games are reported and do not hide others."""

import json
import sys
from pathlib import Path

import pytest

import tilewe_jax
from tests.tilewe_jax.cli.test_cli import run

FAULTY = {
    "leaves": ("faulty_exit:make", "SystemExit: 3"),
    "grammar": ("faulty_syntax:make", "faulty_syntax.py, line 1"),
    "absent": ("no_such_module:make", "No module named 'no_such_module'"),
    "missing": ("faulty:nothing", "has no attribute 'nothing'"),
    "raises": ("faulty:raises", "RuntimeError: two lines"),
    "none": ("faulty:none", "tilewe_jax.Game, got None"),
    "needs": ("faulty:needs", "option 'size'"),
    "number": ("faulty:number", "got 3"),
    "malformed": ("not a reference::", "cannot be loaded"),
    "bad name": ("faulty:none", "a name consists of"),
    "stateless": ("faulty:Stateless", "KeyError: 'no state'"),
    "twice": ("faulty:none", "declared by package another and package faulty"),
    "fore": ("plugin:Fore", "must be 'fore', got 'four'"),
}
"""Entry point and a part of the message, by name."""


def install(folder: Path, package: str, content: str) -> None:
    """Write the metadata of an installed package."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[tilewe_jax.games]\n{content}")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: one without faults, one with all faults, and one with a duplicate name."""
    (tmp_path / "faulty_exit.py").write_text("raise SystemExit(3)")
    (tmp_path / "faulty_syntax.py").write_text("def (")
    (tmp_path / "faulty.py").write_text(
        "from experiments.examples.custom_game import ConnectFour\n"
        "def raises(): raise RuntimeError('two\\nlines')\n"
        "def none(): return None\n"
        "def needs(size): return None\n"
        "number = 3\n"
        "class Stateless(ConnectFour):\n"
        "    id = 'stateless'\n"
        "    def init(self, key): raise KeyError('no state')\n"
    )
    (tmp_path / "plugin.py").write_text(
        "from experiments.examples.custom_game import ConnectFour\n"
        "class Four(ConnectFour):\n"
        "    '''Four in a row.'''\n"
        "    id = 'four'\n"
        "class Fore(Four): pass\n"
    )
    install(tmp_path, "faulty", "".join(f"{name} = {value}\n" for name, (value, _) in FAULTY.items()) + "duo = faulty:none\n")
    install(tmp_path, "plugin", "four = plugin:Four\n")
    install(tmp_path, "another", "twice = plugin:Four\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("faulty", "plugin"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("packages")
def test_faulty_games_are_reported_and_others_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "games", "--json")
    assert code == 0
    names = [row["game"] for row in json.loads(out)["games"]]
    assert "four" in names
    assert {"tilewe", "duo", "santorini", "triominos"} <= set(names)
    lines = err.splitlines()
    for name, (_, reason) in FAULTY.items():
        (line,) = (line for line in lines if f"game {name!r}" in line)
        assert reason in line
        assert name not in names
    assert len(lines) == len(FAULTY) + 1
    assert any("'duo' of package faulty" in line for line in lines)
    assert tilewe_jax.make("duo").id == "duo"
    code, out, err = run(capsys, "games")
    assert code == 0
    assert "Four in a row." in out
    assert sorted(err.splitlines()) == sorted(lines)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", [name for name in FAULTY if name not in ("stateless", "fore")])
def test_errors_of_faulty_games_name_the_reason(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"(?s).*") as refused:
        tilewe_jax.make(name)
    assert name in str(refused.value)
    assert " ".join(FAULTY[name][1].split()) in " ".join(str(refused.value).split())
    code, _, err = run(capsys, "rollout", "--game", name, "--games", "1")
    assert code == 2
    assert err.count("\n") == 1


def test_damaged_metadata_are_reported(packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(packages, "damaged", "a line without a value\n")
    code, out, err = run(capsys, "games", "--json")
    assert code == 0
    assert "four" in [row["game"] for row in json.loads(out)["games"]]
    assert "package damaged" in err
