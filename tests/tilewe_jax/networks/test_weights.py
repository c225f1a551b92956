"""Files of weights: those that are shipped, and for what they load."""

import json
from pathlib import Path

import jax
import pytest

import tilewe_jax
from tests.support import assert_same
from tests.tilewe_jax.cli.test_cli import run
from tests.toy import GAME, TOY
from tilewe_jax import settings
from tilewe_jax.networks import registry, weights
from tilewe_jax.training.config import TrainConfig


def test_games_have_weights_and_they_are_small() -> None:
    without = {"classic_2"}  # nobody has trained it yet
    assert weights.names() == sorted({*tilewe_jax.available_games()} - without)
    for name in weights.names():
        path = weights.FOLDER / f"{name}.npz"
        assert path.stat().st_size <= 4_000_000
        shipped = weights.read(tilewe_jax.make(name), path)
        assert shipped.description.game == name
        assert shipped.note is None


def test_weights_load_wherever_they_fit(toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where options differ it is said in one line; where rules or arrays differ they are refused, and the difference named."""
    near = tilewe_jax.make("santorini", placement="random")
    shipped = weights.read(near, weights.FOLDER / "santorini.npz")
    games = "santorini.npz was trained for santorini, not for santorini (placement=random)"
    assert shipped.note == f"{games}: placement was default and is random"
    original = weights.read(tilewe_jax.make("santorini"), weights.FOLDER / "santorini.npz")
    assert_same(jax.tree.leaves(shipped.model), jax.tree.leaves(original.model))
    agents = ["random", "gumbel:num_simulations=2,network=santorini"]
    few = ["--games", "2", "--batch", "2", "--json"]
    code, out, err = run(capsys, "match", *agents, "--game", "santorini", "--set", "placement=random", *few)
    assert code == 0
    assert json.loads(out)["games"] == 2
    assert err == f"{shipped.note}\n"

    default, chosen = tilewe_jax.make("santorini"), tilewe_jax.make("santorini", placement="chosen")
    tower = weights.Description("santorini", {}, "resnet", "tiny", 0.0)
    model = registry.make(default, tower.architecture, tower.size, jax.random.key(0))
    weights.save(tmp_path / "tower.npz", model, tower, default.version, {})
    for game, path, message in (
        (chosen, weights.FOLDER / "santorini.npz", "reach_resnet has no logits .*placement was default and is chosen"),
        (chosen, tmp_path / "tower.npz", r"it holds \d+ arrays, and .* has \d+ .*placement was default and is chosen"),
        (tilewe_jax.make("duo"), weights.FOLDER / "santorini.npz", "is for santorini, not for duo: the rules differ"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.read(game, path)
    with pytest.raises(ValueError, match=r"boards.weight"):
        weights.read(tilewe_jax.make("tilewe", players=2), weights.FOLDER / "tilewe.npz")
    assert weights.read(tilewe_jax.make("classic"), weights.FOLDER / "tilewe.npz", any_game=True).note

    mine = toy_run / "weights" / f"{TOY.iterations:06d}.npz"
    assert weights.find(str(toy_run)) == mine, "the newest of a run"
    assert weights.find(str(tmp_path)) is None
    about = weights.read(GAME, mine)
    assert about.description == weights.Description("tilewe", GAME.options, "resnet", "tiny", 0.0)
    assert settings.from_json(TrainConfig, about.about["config"]) == TOY
    whole = mine.read_bytes()
    flipped = whole[:150] + bytes([whole[150] ^ 255]) + whole[151:]  # in the first array
    for damaged in (b"", b"no archive", whole[:-100], flipped):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged\.npz"):
            weights.read(GAME, tmp_path / "damaged.npz")
