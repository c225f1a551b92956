"""Files of games of a search, networks that learn from them, and the perceptrons for polyomino games."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments.imitation import imitation, teacher
from tests.search.tictactoe import TicTacToe
from tests.support import positions, slow
from tilewe_jax import networks
from tilewe_jax.agents import agent
from tilewe_jax.networks import weights
from tilewe_jax.search import network_evaluator
from tilewe_jax.search.exported import network_interface

GAME = TicTacToe()
ID = "tests.search.tictactoe:TicTacToe"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of games."""
    out = tmp_path_factory.mktemp("teacher")
    play(out)
    return out


def play(out: Path) -> None:
    given = {
        "game": ID,
        "agent": "puct:num_simulations=12,num_candidates=9",
        "batches": 4,
        "batch": 64,
        "num-nodes": 2,
        "min-visits": 1,
    }
    teacher.main(["--out", str(out), *(text for name, value in given.items() for text in (f"--{name}", str(value)))])


def test_files_of_games(folder: Path) -> None:
    positions = teacher.load(GAME, folder / "000000.npz")
    searched = positions.surprise >= 0
    assert 150 < searched.sum() < len(searched) - 150
    assert positions.game_index.max() == 63
    np.testing.assert_allclose(positions.policy.sum(axis=1), 1, rtol=1e-5)
    assert ((positions.candidates[~searched] >= 0).sum(axis=1) == 1).all()
    np.testing.assert_allclose(positions.root_value.sum(axis=1), 1, atol=1e-4)
    assert not bool(jnp.any(jax.vmap(GAME.is_terminal)(positions.state)))
    # Positions inside of trees, through which the game did not pass, have the value of the search as their target.
    assert (positions.outcome_target == np.where(searched[:, None], positions.returns, positions.root_value)).all()
    assert not positions.score_value[~searched].any()


def test_same_command_continues(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = folder / "000001.npz"
    before = last.read_bytes()
    last.unlink()
    play(folder)
    assert capsys.readouterr().out.startswith("000001.npz")
    assert last.read_bytes() == before


def test_files_of_other_games_are_rejected(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"empty\.npz"):
        teacher.load(GAME, tmp_path / "empty.npz")
    with pytest.raises(ValueError, match=r"duo_official"):
        teacher.load(tilewe_jax.make("duo_official"), folder / "000000.npz")


def test_games_with_options(tmp_path: Path) -> None:
    agent = "puct:num_simulations=2,num_candidates=4,num_playouts=0"
    few = ["--agent", agent, "--batches", "1", "--batch", "2", "--num-nodes", "0", "--out", str(tmp_path)]
    teacher.main(["--game", "santorini", "--set", "size=3", "placement=random", *few])
    games = teacher.load(tilewe_jax.make("santorini", size=3, placement="random"), tmp_path / "000000.npz")
    assert len(games.game_index) > 2
    for program in (["teacher", *few], ["imitation", "--games", str(tmp_path)]):
        main = {"teacher": teacher.main, "imitation": imitation.main}[program[0]]
        with pytest.raises(SystemExit, match=r"option tiles"):
            main(["--game", "santorini", "--set", "tiles=3", *program[1:]])


def test_network_learns_and_is_measured(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "network.npz"
    given = ["--games", str(folder), "--game", ID, "--size", "tiny", "--batch-size", "32", "--epochs", "40"]
    imitation.main([*given, "--out", str(out)])
    printed = capsys.readouterr().out.splitlines()
    names, numbers = printed[2].split(), [float(text) for text in printed[-1].split()]
    assert names == list(imitation.Row._fields)
    assert len(printed) > 3 + 2
    row = dict(zip(names, numbers, strict=True))
    assert 0 < row["excess"] < 0.2
    assert row["value"] < 0.045  # their variance is 0.056
    start = GAME.init(jax.random.key(0))
    choose = agent(f"puct:num_simulations=4,network={out}", GAME).act
    assert bool(GAME.is_legal(start, choose(start, jax.random.key(1))))


@pytest.mark.parametrize("architecture", [slow("linear_policy_mlp"), "placement_policy_mlp"])
def test_untrained_perceptron_has_the_policy_of_the_heuristics(architecture: str) -> None:
    game = tilewe_jax.make("tilewe", players=2, size=5, pieces=("O1", "I2", "L3"))
    model = networks.make(game, architecture, "tiny", jax.random.key(0))
    interface, evaluate = network_interface(game, model), network_evaluator(game, weights.TrainedNetwork(model, 0.0))
    state = next(state for ply, (state, _) in enumerate(positions(game, 4)) if ply == 2)

    @jax.jit
    @jax.vmap
    def compare(state):
        actions = game.sample_actions(state, jax.random.key(0), 9)
        logits = evaluate(None, state, jax.random.key(0)).logits(actions)
        middle = model(game.encode(state)).logits + jax.random.normal(jax.random.key(2), (interface.num_logits,)) / 4

        def log_prob(weights):
            return jax.nn.log_softmax(interface.gather_logits(state, weights, actions))[0]

        step = 2e-3 * jax.random.normal(jax.random.key(1), middle.shape)
        change = log_prob(middle + step) - log_prob(middle - step)
        return actions, logits, game.heuristic_logits(state, actions), change, 2 * step @ jax.grad(log_prob)(middle)

    actions, logits, expected, change, by_gradient = compare(state)
    assert int(jnp.sum(actions >= 0)) > 12
    np.testing.assert_allclose(*(np.where(actions >= 0, array, 0) for array in (logits, expected)), atol=1e-3)
    np.testing.assert_allclose(by_gradient, change, atol=1e-3)
    assert float(jnp.max(jnp.abs(change))) > 0.01


@pytest.mark.parametrize(
    "before", [("linear_policy_mlp", "tiny"), ("linear_policy_mlp", "nano"), ("placement_policy_mlp", "tiny")]
)
def test_grown_network_has_the_outputs_of_the_smaller_network(before: tuple[str, str]) -> None:
    game = tilewe_jax.make("tilewe", players=2, size=5, pieces=("I2", "L3"))
    small = networks.make(game, *before, jax.random.key(1))
    small = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(2), leaf.shape), small)
    fresh = networks.make(game, "placement_policy_mlp", "nano", jax.random.key(3))
    grown = fresh.grown_from(small)
    assert jax.tree.structure(grown) == jax.tree.structure(fresh)
    assert jax.tree.map(jnp.shape, grown) == jax.tree.map(jnp.shape, fresh)
    state = game.init(jax.random.key(0))
    actions = jax.jit(lambda state: game.sample_actions(state, jax.random.key(0), 16))(state)

    @jax.jit
    def evaluate(model):
        outputs = model(game.encode(state))
        return model.interface.gather_logits(state, outputs.logits, actions), outputs.outcome_logits, outputs.score_logits

    jax.tree.map(partial(np.testing.assert_allclose, atol=2e-3), evaluate(grown), evaluate(small))


def test_other_networks_do_not_grow() -> None:
    game = tilewe_jax.make("tilewe", players=2, size=5, pieces=("I2", "L3"))
    other = tilewe_jax.make("tilewe", players=2, size=6, pieces=("I2", "L3"))
    fresh = networks.make(game, "linear_policy_mlp", "tiny", jax.random.key(0))
    for game_of, architecture, size in (
        (game, "linear_policy_mlp", "nano"),
        (game, "placement_policy_mlp", "tiny"),
        (other, "linear_policy_mlp", "tiny"),
        (game, "resnet", "tiny"),
    ):
        assert fresh.grown_from(networks.make(game_of, architecture, size, jax.random.key(1))) is None


def test_maps_are_added_at_cells_and_corners() -> None:
    game = tilewe_jax.make("tilewe", players=2, size=7)
    interface = network_interface(game, networks.make(game, "placement_policy_mlp", "tiny", jax.random.key(0)))
    cells = game.config.cells
    maps = np.random.default_rng(0).normal(size=(2, cells)).astype(np.float32)
    outputs = np.concatenate([np.zeros(interface.num_logits - 2 * cells, np.float32), maps.ravel()])
    state = game.init(jax.random.key(0))
    actions = jax.jit(lambda state: game.sample_actions(state, jax.random.key(0), 64))(state)
    logits = jax.jit(interface.gather_logits)(state, outputs, actions)
    assert int(jnp.sum(actions >= 0)) > 50
    for action, logit in zip(actions.tolist(), logits.tolist(), strict=True):
        if action >= 0:
            covered = set(game.cells_of(action))
            beside = {(x + dx, y + dy) for x, y in covered for dx, dy in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))}
            diagonal = {(x + dx, y + dy) for x, y in covered for dx in (-1, 1) for dy in (-1, 1)}
            corners = [cell for cell in diagonal - beside if min(cell) >= 0 and max(cell) < 7]
            total = sum(maps[0, game.config.bit(cell)] for cell in covered)
            assert logit == pytest.approx(total + sum(maps[1, game.config.bit(cell)] for cell in corners), abs=1e-4)
