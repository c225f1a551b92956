"""Files of weights: shipped weights, other games, and damaged files."""

import json
from pathlib import Path

import jax
import pytest

import tilewe_jax
from tests.support import assert_same
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.networks import registry, weights


def test_shipped_weights_are_small() -> None:
    without = {"classic_2"}
    assert weights.names() == sorted({*tilewe_jax.available_games()} - without)
    for name in weights.names():
        path = weights.FOLDER / f"{name}.npz"
        assert path.stat().st_size <= 4_000_000
        shipped = weights.read(tilewe_jax.make(name), path)
        assert shipped.description.game == name
        assert shipped.note is None


def test_weights_load_if_they_fit(tmp_path: Path) -> None:
    """Different options give a note; different rules or arrays give an error, which names the difference."""
    near = tilewe_jax.make("santorini", placement="random")
    shipped = weights.read(near, weights.FOLDER / "santorini.npz")
    assert shipped.note
    assert "placement was default, now random" in shipped.note
    original = weights.read(tilewe_jax.make("santorini"), weights.FOLDER / "santorini.npz")
    assert_same(jax.tree.leaves(shipped.model), jax.tree.leaves(original.model))
    assert weights.load(near, "santorini").note == shipped.note  # type: ignore[attr-defined]

    default, chosen = tilewe_jax.make("santorini"), tilewe_jax.make("santorini", placement="chosen")
    tower = weights.Description("santorini", {}, "resnet", "tiny", 0.0)
    model = registry.make(default, tower.architecture, tower.size, jax.random.key(0))
    weights.save(tmp_path / "tower.npz", model, tower, default.version, {})
    for game, path, message in (
        (chosen, weights.FOLDER / "santorini.npz", "reach_resnet .*placement was default, now chosen"),
        (chosen, tmp_path / "tower.npz", r"\d+ arrays, .* \d+ .*placement was default, now chosen"),
        (tilewe_jax.make("duo"), weights.FOLDER / "santorini.npz", "is for santorini, not for duo"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.read(game, path)
    with pytest.raises(ValueError, match=r"boards.weight"):
        weights.read(tilewe_jax.make("tilewe", players=2), weights.FOLDER / "tilewe.npz")
    assert weights.read(tilewe_jax.make("classic"), weights.FOLDER / "tilewe.npz", any_game=True).note


@pytest.mark.slow
def test_command_prints_the_note_of_weights(capsys: pytest.CaptureFixture[str]) -> None:
    agents = ["random", "gumbel:num_simulations=2,network=santorini"]
    few = ["--games", "2", "--batch", "2", "--json"]
    code, out, err = run(capsys, "match", *agents, "--game", "santorini", "--set", "placement=random", *few)
    assert code == 0
    assert json.loads(out)["games"] == 2
    assert "placement was default, now random" in err


def test_files_of_weights(tmp_path: Path) -> None:
    game = tilewe_jax.make("santorini", size=3)
    description = weights.Description(game.id, game.options, "mlp", "tiny", 0.25)
    (tmp_path / "weights").mkdir()
    for iteration in (9, 10):
        path = tmp_path / "weights" / f"{iteration:06d}.npz"
        model = registry.make(game, "mlp", "tiny", jax.random.key(iteration))
        weights.save(path, model, description, game.version, {"games": iteration})
    assert weights.find(str(tmp_path)) == path, "not the newest weights of the run"
    assert weights.find(str(tmp_path / "weights")) is None
    assert weights.read(game, path).description == description
    assert weights.read(game, path).about["games"] == 10
    whole = path.read_bytes()
    flipped = whole[:150] + bytes([whole[150] ^ 255]) + whole[151:]  # in the first array
    for damaged in (b"", b"no archive", whole[:-100], flipped):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged\.npz"):
            weights.read(game, tmp_path / "damaged.npz")
