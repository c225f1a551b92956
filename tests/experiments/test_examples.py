"""The examples run, and a third-party game works everywhere without changes in this repository."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import tilewe_jax
from experiments.examples import alphazero, custom_game, custom_network
from experiments.examples.custom_game import ConnectFour
from tests.support import TINY_TRAINING
from tilewe_jax import networks, registry
from tilewe_jax.cli import main as cli


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the registrations of the examples after each test."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    architectures = {name: dict(factories) for name, factories in networks.registry._ARCHITECTURES.items()}
    monkeypatch.setattr(networks.registry, "_ARCHITECTURES", architectures)


FACTORY = "experiments.examples.custom_game:ConnectFour"
GAME = ConnectFour()
STEP = jax.jit(GAME.step)
SMALL = "--game", FACTORY, "--set", "rows=4", "columns=4"


@pytest.mark.parametrize(
    ("columns", "returns"),
    [
        ("0101010", (1, 0)),  # upwards
        ("0011223", (1, 0)),  # to the right
        ("01122323363", (1, 0)),  # up and to the right
        ("65544343303", (1, 0)),  # up and to the left
        ("001122", (0, 0)),  # three are not enough
        ("60515253", (0, 1)),  # the second player, to the right
    ],
)
def test_connect_four(columns: str, returns: tuple[int, int]) -> None:
    state = GAME.init(jax.random.key(0))
    for column in columns:
        state = STEP(state, jax.numpy.int32(int(column)))
    assert bool(GAME.is_terminal(state)) == (sum(returns) > 0)
    assert np.asarray(GAME.returns(state)).tolist() == list(returns)


@pytest.mark.slow
def test_custom_game_runs(capsys: pytest.CaptureFixture[str]) -> None:
    custom_game.main()
    out = capsys.readouterr().out
    assert "connect_four conforms" in out
    assert "takes 100% of the wins" in out or "takes 9" in out


def test_the_command_line_accepts_a_factory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games = tmp_path / "games.jsonl"
    cli.main(["rollout", *SMALL, "--games", "4", "--out", str(games), "--json"])
    assert json.loads(capsys.readouterr().out)["game"] == "connect_four"
    cli.main(["replay", str(games)])


@pytest.mark.slow
def test_a_custom_game_is_searched_and_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agents = "puct:num_simulations=2,num_samples=1", "random"
    cli.main(["match", *agents, *SMALL, "--games", "2", "--json"])
    capsys.readouterr()
    settings = [setting for setting in TINY_TRAINING if not setting.startswith("game.")]
    settings += [f"game.id={FACTORY}", "game.options.rows=4", "game.options.columns=4", "iterations=1"]
    cli.main(["train", "--out", str(tmp_path / "run"), "--set", *settings, "--json"])
    assert json.loads(capsys.readouterr().out)["iterations"] == 1


def test_an_entry_point_adds_a_game(tmp_path: Path) -> None:
    """A module and metadata that names the game, as installed by pip."""
    (tmp_path / "somebody.py").write_text(
        "from experiments.examples import custom_game\n"
        "class Four(custom_game.ConnectFour):\n"
        '    """Four of a third party."""\n'
        '    id = "four"\n'
    )
    metadata = tmp_path / "somebody-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tilewe_jax.games]\nfour = somebody:Four\nbroken = somebody:Missing\ntilewe = somebody:Four\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import tilewe_jax\n"
        "print('somebody' in sys.modules, *tilewe_jax.available_games())\n"
        "print(tilewe_jax.make('four', rows=5).max_steps, tilewe_jax.make('tilewe').num_players)\n"
        "try: tilewe_jax.make('broken')\n"
        "except ValueError as error: print(error)\n"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=root)
    first, second, third = run.stdout.splitlines()
    assert first.startswith("False tilewe ")
    assert first.endswith(" four broken")
    assert second == "35 4"
    for part in ("'broken'", "package somebody", "somebody:Missing"):
        assert part in third


def test_registered_names_are_unique() -> None:
    with pytest.raises(ValueError, match="'tilewe'"):
        tilewe_jax.register("tilewe", ConnectFour)
    with pytest.raises(TypeError, match="'size'"):
        tilewe_jax.register("sized", lambda size: ConnectFour(rows=size))
    tilewe_jax.register("connect_four", ConnectFour)  # registering the same class again is allowed
    assert registry.describe("connect_four").startswith("Four discs in a row")


@pytest.mark.slow
def test_alphazero_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"NUM_GAMES": 16, "UNROLL_LENGTH": 8, "NUM_SIMULATIONS": 4, "NUM_CANDIDATES": 8, "UPDATES": 2}.items():
        monkeypatch.setattr(alphazero, name, value)
    alphazero.train(tilewe_jax.make("santorini", size=3), iterations=2, evaluate_every=2)
    assert "iteration 2: loss" in capsys.readouterr().out


@pytest.mark.slow
def test_custom_network_runs(capsys: pytest.CaptureFixture[str]) -> None:
    custom_network.main(iterations=2)
    assert "'iterations': 2" in capsys.readouterr().out
