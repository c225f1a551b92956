"""ONNX files of networks, run by onnxruntime, against JAX."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.networks import registry, weights
from tilewe_jax.search.exported import network_interface, observation_spec
from tilewe_jax.utils.extras import MissingExtraError

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import jax
import jax.numpy as jnp

from tilewe_jax.cli import main as cli
from tilewe_jax.networks.onnx_file import save
from tilewe_jax.networks.onnx_graph import to_onnx

GAMES = {
    "duo_official": {"size": 5, "pieces": ["O1", "I2", "L3"]},
    "santorini": {"size": 3, "placement": "random"},
    "triominos": {"tiles": 10, "tray": 2},
}


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("duo_official", "default"), ("triominos", "default"), ("santorini", "mlp"), ("santorini", "reach_resnet")],
)
def test_exported_networks_agree_with_jax(name: str, architecture: str, tmp_path: Path) -> None:
    """Two batch sizes, observations of positions, and random numbers."""
    game = tilewe_jax.make(name, **GAMES[name])
    network = weights.TrainedNetwork(registry.make(game, architecture, "tiny", jax.random.key(0)), 0.25)
    summary = save(tmp_path / "network.onnx", game, network, "random")
    interface = network_interface(game, network)
    assert summary["observation"] == list(observation_spec(interface, game).shape)
    session = runtime.InferenceSession(tmp_path / "network.onnx")
    about = session.get_modelmeta().custom_metadata_map
    assert about == {"game": name, "options": json.dumps(game.options), "game_version": "1", "network": "random"}
    expected = jax.jit(jax.vmap(network))
    play = jax.jit(jax.vmap(lambda state, key: game.step(state, game.sample_action(state, key))))
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(1), 6))
    for step in range(4):
        states = play(states, jax.random.split(jax.random.key(step), 6))
    observe = jax.jit(jax.vmap(lambda state: interface.observe(state, game.current_player(state))))
    positions = np.asarray(observe(states))
    numbers = np.random.default_rng(0).normal(size=positions.shape).astype(np.float32)
    for observations in (positions, numbers, positions[:1]):
        logits, values = session.run(["logits", "values"], {"observation": observations})
        wanted_logits, wanted_values = expected(observations)
        np.testing.assert_allclose(logits, wanted_logits, atol=1e-5)
        np.testing.assert_allclose(values, wanted_values, atol=1e-6)
        np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-6)


def test_primitives_agree_with_jax() -> None:
    """Primitives that only user-supplied networks use."""

    def function(x: Any) -> tuple[Any, ...]:
        rows = jnp.stack([x, 2 * x])
        order = (x > 0).astype(jnp.int32)
        return (
            jnp.clip(jnp.tanh(x), -0.5, 0.5) ** 3,
            jax.nn.sigmoid(x) + jax.nn.gelu(x, approximate=False),
            jnp.einsum("ab,cb->ac", rows, rows - 1),
            rows[order],
            jnp.zeros(3).at[order].add(x),
            jnp.all(x > -9) & ~jnp.any(x > 9) ^ (jnp.min(x) < 0),
            (order % 2) * jnp.sign(order - 1),
        )

    names = [f"result_{i}" for i in range(7)]
    session = runtime.InferenceSession(to_onnx(function, (4,), names).SerializeToString())
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    for result, expected in zip(session.run(names, {"observation": x}), jax.vmap(function)(x), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, atol=1e-5)


def test_errors_of_export(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="ONNX"):
        to_onnx(lambda x: (jnp.sort(x),), (3,), ["sorted"])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"'tilewe-jax\[onnx\]'"):
        to_onnx(lambda x: (x,), (3,), ["same"])


def test_command_exports_shipped_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "santorini.onnx"
    cli.main(["export", "--game", "santorini", "--out", str(path), "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert (summary["game"], summary["network"], summary["bytes"]) == ("santorini", "santorini", path.stat().st_size)
    logits, values = runtime.InferenceSession(path).run(
        None, {"observation": np.zeros((2, *summary["observation"]), np.float32)}
    )
    assert (logits.shape, values.shape) == ((2, 128), (2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--game", "santorini"], "--out"),
        (["--game", "santorini", "--network", "nothing", "--out", "x.onnx"], "network 'nothing'"),
        (["--game", "tilewe", "--network", "santorini", "--out", "x.onnx"], "santorini, not for tilewe"),
    ],
)
def test_wrong_arguments_are_rejected(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["export", *arguments])
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
