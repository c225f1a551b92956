"""Untrusted files run no code, and the command line imports the modules that it names."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.bad_inputs import Outcome, run, stopped_before_work
from tilewe_jax import make as make_game
from tilewe_jax import settings
from tilewe_jax.agents.analysis import AgentAnalyzer
from tilewe_jax.agents.base import names_code
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.common import GameOptions, Imports, Trust
from tilewe_jax.interop.analysis import AnalysisSession
from tilewe_jax.interop.analysis_requests import Defaults
from tilewe_jax.networks import make, register_architecture, weights
from tilewe_jax.networks.registry import registered_by, resolve
from tilewe_jax.presets import configured
from tilewe_jax.training import checkpoint
from tilewe_jax.training.config import TrainConfig, changed, code_in_settings
from tilewe_jax.training.run import read_config
from tilewe_jax.utils import factories
from tilewe_jax.utils.trust import UntrustedError, trusting

BASE = changed(
    TrainConfig(),
    {"game.options.size": "3", "network.size": "tiny", "network.architecture": "mlp", "loss.td_lambda": "0.5"},
)
"""Settings that make the game while they are read, because of td_lambda."""
COMMAND = 'gtp:command="touch canary"'
HOSTILE: tuple[tuple[str, Any], ...] = (
    ("game.id", "hostile:make"),
    ("game.id", "puct:make"),  # also the name of a kind of agents
    ("game.id", "best:make"),
    ("network.architecture", "hostile:make"),
    ("network.architecture", "level:make"),
    ("network.size", "hostile:make"),
    ("selfplay.opponent", "hostile:make"),
    ("selfplay.opponent", COMMAND),
    ("evaluation.opponents", ["random", COMMAND]),
    ("evaluation.opponents", ["name=hostile:make"]),
    ("evaluation.opponents", ["a=b=puct:network=hostile:make"]),
    ("evaluation.opponents", ["best:network=hostile:make"]),
    ("evaluation.opponents", ["x=gumbel:num_simulations=2,network=hostile:make"]),
    ("evaluation.opponents", ["puct:network=own.net"]),
    ("evaluation.opponents", ["puct:network=folder"]),
    ("evaluation.opponents", [[COMMAND]]),
    ("nosuch", {"deep": ["hostile:make"]}),
)
PRESET = """
from tilewe_jax.training.config import GameConfig, TrainConfig
from tilewe_jax.networks import register_architecture
from tilewe_jax.networks.mlp import ResidualMLP
from tilewe_jax.games.santorini.game import SantoriniGame

register_architecture("{name}", lambda *arguments: ResidualMLP(*arguments), SantoriniGame)
CONFIG = TrainConfig(game=GameConfig("santorini"))
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with modules that create the file ``canary`` when they are imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("hostile", "puct", "best", "level"):
        Path(f"{name}.py").write_text("open('canary', 'w').close()\ndef make(*arguments): 1/0\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("own.net").write_bytes(b"a program")
    Path("folder").mkdir()
    importlib.invalidate_caches()
    with stopped_before_work():
        yield
    for name in ("hostile", "puct", "best", "level"):
        sys.modules.pop(name, None)


def rejects(outcome: Outcome, message: str) -> None:
    assert outcome.is_one_line, outcome
    assert message in outcome.err


def _write(name: str | None = None, value: Any = None) -> None:
    """Write the settings of a run, with one setting replaced."""
    content = settings.to_json(BASE)
    if name:
        *parents, last = name.split(".")
        inner: Any = content
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
    content["selfplay"]["opponent_fraction"] = 0.5 if content["selfplay"]["opponent"] else 0.0
    Path("run").mkdir(exist_ok=True)
    Path("run/config.json").write_text(json.dumps(content))


@pytest.mark.parametrize(("name", "value"), HOSTILE, ids=range(len(HOSTILE)))
def test_settings_in_a_file_run_nothing(name: str, value: Any) -> None:
    _write(name, value)
    text = "hostile" if name == "nosuch" else value[-1] if isinstance(value, list) else value
    with pytest.raises(UntrustedError) as caught:
        read_config(Path("run"))
    assert str(caught.value).startswith(f"run/config.json: {name}")
    assert str(text[0] if isinstance(text, list) else text) in str(caught.value)
    for command in ("train --out run --resume", "match --run run random random"):
        outcome = run(*command.split())
        rejects(outcome, "--trust")
        assert outcome.code == 1
    assert not Path("canary").exists()


def test_a_trusted_file_names_code() -> None:
    _write("game.id", "hostile:make")
    rejects(run("train", "--out", "run", "--resume", "--trust"), "division by zero")
    assert Path("canary").exists()
    _write("evaluation.opponents", [COMMAND])
    assert read_config(Path("run"), trust=True).evaluation.opponents == (COMMAND,)
    with trusting(), trusting(False):
        assert read_config(Path("run")).evaluation.opponents == (COMMAND,), "an outer trust holds inside"
    with pytest.raises(UntrustedError):
        read_config(Path("run"))


def test_settings_of_the_command_line_are_trusted() -> None:
    _write("evaluation.opponents", ["random", COMMAND])
    assert run("train", "--out", "run", "--resume", "--set", "evaluation.opponents=random").code is None
    assert not Path("canary").exists(), "a given setting replaces the setting of the file"
    _write("game.id", "hostile:make")
    for given in ({"seed": "3"}, {"network.architecture": "hostile:make"}):
        with pytest.raises(UntrustedError):
            configured(None, given, Path("run"), resume=True)
    assert not Path("canary").exists()
    rejects(run("train", "--out", "run", "--resume", "--set", "game.id=hostile:make"), "division by zero")
    assert Path("canary").exists(), "the same text on the command line is trusted"


def test_harmless_settings_need_no_trust() -> None:
    Path("weights/weights").mkdir(parents=True)
    Path("weights/weights/000001.npz").touch()
    harmless = ("random", "last", "best", "best:num_simulations=2", "level:2", "x=level:2", "puct", "a=b")
    harmless += ("puct:num_simulations=2,network=santorini", "gumbel:network=weights", "puct:network=a/b.npz")
    _write("evaluation.opponents", list(harmless))
    assert read_config(Path("run")).evaluation.opponents == harmless
    assert not any(map(names_code, harmless))
    for name in ("network.init", "replay.records"):
        _write(name, r"C:\runs\1")
        assert not list(code_in_settings(json.loads(Path("run/config.json").read_text())))


def test_names_of_files_name_no_agents() -> None:
    _write()
    Path("run/weights").mkdir()
    for name in (f"{COMMAND},y", "hostile:make", "x=hostile:make", "000001"):
        Path(f"run/weights/{name}.npz").write_bytes(b"no weights")
        rejects(run("match", "--run", "run"), "run/weights" if "," not in name else "comma")
        Path(f"run/weights/{name}.npz").unlink()
    assert not Path("canary").exists()


def test_checkpoints_and_records_make_no_game_of_a_module() -> None:
    about = {"format": checkpoint.FORMAT, "config": settings.to_json(BASE), "game_version": 1, "number": 3}
    about["config"]["game"]["id"] = "hostile:make"
    folder = Path("checkpoints/000003/about")
    folder.mkdir(parents=True)
    Path(folder, "metadata").write_text(json.dumps(about))
    with pytest.raises(checkpoint.CheckpointError, match="hostile:make"):
        checkpoint.restore(Path("checkpoints"), 3, {}, BASE, 1)
    header = {"format": "tilewe-jax-games/1", "game": "hostile:make", "options": {}, "version": 1, "seed": 0}
    Path("f").write_text(json.dumps(header) + "\n")
    for command in ("replay", "show", "rate"):
        rejects(run(command, "f"), "hostile:make")
    assert not Path("canary").exists()


def test_requests_name_no_code() -> None:
    session = AnalysisSession(Defaults("santorini", {"size": 3}), AgentAnalyzer("puct:num_simulations=2"), "1")
    for agent in (COMMAND, "hostile:make", "best:network=hostile:make", "level:1,network=hostile:make"):
        (row,) = session.receive(json.dumps({"id": 1, "moves": [], "agent": {"agent": agent}}).encode())
        assert "error" in row
    (row,) = session.receive(json.dumps({"id": 1, "moves": [], "agent": {"network": "hostile:make"}}).encode())
    assert "network cannot be changed" in row["error"]
    assert not Path("canary").exists()


def test_weights_name_an_architecture_of_a_module() -> None:
    Path("mine.py").write_text(
        "from tilewe_jax.networks.mlp import ResidualMLP\nopen('canary', 'w').close()\n"
        "def small(*arguments): return ResidualMLP(*arguments)\ndef wrong(*arguments): return None\n"
    )
    game = make_game("santorini", size=3)
    model = make(game, "mlp", "tiny", jax.random.key(0))
    description = weights.Description("santorini", {"size": 3}, "mine:small", "tiny", 0.0)
    weights.save(Path("own.npz"), model, description, game.version, {"config": {}})
    with pytest.raises(UntrustedError, match=r"own.npz: architecture names code, 'mine:small'.*--trust"):
        weights.load(game, "own.npz")
    agents = ("random", "puct:network=own.npz", "--set", "size=3")
    rejects(run("match", "--game", "santorini", *agents), "--trust")
    rejects(run("export", "--game", "santorini", "--set", "size=3", "--network", "own.npz", "--out", "x.onnx"), "--trust")
    assert not Path("canary").exists()
    for trust, known in ((True, ""), (False, "mine:small")):
        assert weights.read(game, Path("own.npz"), trust=trust, known=known).description == description
    assert run("match", "--game", "santorini", *agents, "--trust").code is None
    with pytest.raises(ValueError, match=r"architecture 'mine:wrong': "):
        make(game, "mine:wrong", "tiny", jax.random.key(0))
    sys.modules.pop("mine")


def test_architectures_that_are_not_registered_here() -> None:
    game = make_game("santorini", size=3)
    Path("my_preset.py").write_text(PRESET.format(name="mine"))
    with pytest.raises(ValueError, match=r"'mine' is not registered .*default, resnet.*--import MODULE.*module:fac"):
        resolve(game, "mine")
    _write("network", {**settings.to_json(BASE.network), "architecture": "mine", "registered_by": "my_preset.py"})
    rejects(run("train", "--out", "run", "--resume"), "--import my_preset.py (train takes --preset my_preset.py as well)")
    rejects(run("train", "--out", "run", "--resume", "--preset", "santorini_cpu"), "Python file")
    outcome = run("train", "--out", "run", "--resume", "--preset", "my_preset.py")
    assert outcome.code is None
    assert "keeps its settings" in outcome.err
    assert registered_by("mine") == "my_preset.py"
    config = configured(None, {}, Path("run"), resume=True)
    assert config.network.registered_by == "my_preset.py"
    assert replace(config.network, architecture="mlp").registered_by == ""
    assert run("train", "--out", "run", "--resume", "--set", "network.architecture=mine").code is None


def test_modules_are_imported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(Path.cwd()))])
    before = list(sys.path)
    Path("registers.py").write_text(PRESET.format(name="imported"))
    Path("sub").mkdir()
    Path("sub/beside.py").write_text(PRESET.format(name="imported_by_path"))
    Path("sub/uses.py").write_text("import beside\n")
    assert run("train", "--out", "run", "--import", "registers", "--set", "network.architecture=imported").code is None
    assert registered_by("imported") == "registers"
    assert registered_by("mlp") == ""
    assert registered_by("nosuch") is None
    given = ("--import", "registers", "--import", "sub/uses.py", "--set", "network.architecture=imported_by_path")
    assert run("train", "--out", "run", *given).code is None
    assert registered_by("imported_by_path") == "sub/uses.py"
    assert sys.path == before, "sys.path is restored"
    rejects(run("games", "--import", "nosuch"), "--import: module 'nosuch': No module named 'nosuch'")
    rejects(run("games", "--import", "nosuch.py"), "nosuch.py")
    rejects(run("replay", "--import", "registers", "games.jsonl"), "games.jsonl: No such file")
    rejects(run("games", "--import", "hostile", "--import", "own.net"), "own.net")
    with pytest.raises(ValueError, match="division by zero"):
        factories.call("x", sys.modules["hostile"].make)
    for name in ("registers", "beside", "uses"):
        sys.modules.pop(name)


def test_every_command_imports_and_those_with_agents_trust() -> None:
    kinds = {name: cli._command(name) for name in cli.COMMANDS}
    assert all(issubclass(kind, Imports) for kind in kinds.values())
    for kind in kinds.values():
        has_agents = {"agent", "agents", "network", "out_of_run", "run_", "resume"} & set(kind.__dataclass_fields__)
        assert issubclass(kind, Trust) == bool(has_agents)
    assert GameOptions("duo", 2).game == "duo", "shared options are not positional"


def test_names_of_architectures() -> None:
    with pytest.raises(ValueError, match="colon"):
        register_architecture("a:b", lambda *arguments: None)  # type: ignore[arg-type,return-value]
