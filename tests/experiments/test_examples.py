"""The examples run, and what they show is true; a game of somebody else's works everywhere, with no file of ours touched."""

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
from tilewe_jax import networks, registry
from tilewe_jax.cli import main as cli


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples register is forgotten after each test."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    architectures = {name: dict(factories) for name, factories in networks.registry._ARCHITECTURES.items()}
    monkeypatch.setattr(networks.registry, "_ARCHITECTURES", architectures)


FACTORY = "experiments.examples.custom_game:ConnectFour"


def drop(columns: str, game: ConnectFour) -> custom_game.State:
    state = game.init(jax.random.key(0))
    for column in columns:
        state = game.step(state, jax.numpy.int32(int(column)))
    return state


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
    game = ConnectFour()
    state = drop(columns, game)
    won = sum(returns) > 0
    assert bool(game.is_terminal(state)) == won
    assert np.asarray(game.returns(state)).tolist() == list(returns)


def test_the_game_of_the_example_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    custom_game.main()
    out = capsys.readouterr().out
    assert "connect_four keeps the contract" in out
    assert "takes 100% of the wins" in out or "takes 9" in out


def test_the_command_line_takes_a_factory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A game of one's own in a record, an arena with a search, and a short training."""
    games = tmp_path / "games.jsonl"
    cli.main(["rollout", "--game", FACTORY, "--games", "8", "--out", str(games), "--json"])
    assert json.loads(capsys.readouterr().out)["game"] == "connect_four"
    cli.main(["replay", str(games)])
    agents = "puct:num_simulations=4", "random"
    cli.main(["match", *agents, "--game", FACTORY, "--set", "rows=4", "--games", "8", "--json"])
    capsys.readouterr()
    settings = "network.size=tiny selfplay.num_games=16 selfplay.unroll_length=4 selfplay.search.num_simulations=4"
    more = "replay.replay_size=8 replay.min_replay_size=4 optimizer.batch_size=16"
    changes = [*settings.split(), *more.split(), f"game.id={FACTORY}"]
    cli.main(["train", "--out", str(tmp_path / "run"), "--set", *changes, "iterations=2", "--json"])
    assert json.loads(capsys.readouterr().out)["iterations"] == 2


def test_a_package_of_somebody_elses_adds_a_game_by_entry_point(tmp_path: Path) -> None:
    """As pip would install it: a module, and metadata that names the game."""
    (tmp_path / "somebody.py").write_text(
        "from experiments.examples import custom_game\n"
        "class Four(custom_game.ConnectFour):\n"
        '    """Four of somebody else\'s."""\n'
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
    assert "'broken' of package somebody cannot be loaded from somebody:Missing" in third


def test_names_are_not_taken_twice() -> None:
    with pytest.raises(ValueError, match="'tilewe'"):
        tilewe_jax.register("tilewe", ConnectFour)
    with pytest.raises(TypeError, match="'size'"):
        tilewe_jax.register("sized", lambda size: ConnectFour(rows=size))
    tilewe_jax.register("connect_four", ConnectFour)  # once more is fine
    assert registry.describe("connect_four").startswith("Four discs in a row")


@pytest.mark.slow
def test_alphazero_in_one_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"NUM_GAMES": 16, "UNROLL_LENGTH": 8, "NUM_SIMULATIONS": 4, "NUM_CANDIDATES": 8, "UPDATES": 2}.items():
        monkeypatch.setattr(alphazero, name, value)
    alphazero.train(tilewe_jax.make("santorini", size=3), iterations=2, evaluate_every=2)
    assert "iteration 2: loss" in capsys.readouterr().out


@pytest.mark.slow
def test_a_network_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    custom_network.main(iterations=2)
    assert "'iterations': 2" in capsys.readouterr().out
