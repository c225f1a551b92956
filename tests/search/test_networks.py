"""Networks as evaluators: files, factories, shapes and symmetries."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import positions, rows
from tilewe_jax.agents import agent
from tilewe_jax.game import observation_shape
from tilewe_jax.search import PuctRule, Search, SearchSettings, network_evaluator, playout_evaluator
from tilewe_jax.search import exported as networks
from tilewe_jax.search.evaluators import EvaluatorSettings

GAME = tilewe_jax.make("santorini", size=3)
SMALL = TicTacToe()


def factory(game: Any) -> networks.Network:
    """Return a linear network with random weights for any game."""
    key_logits, key_values = jax.random.split(jax.random.key(0))
    size = int(np.prod(observation_shape(game)))
    first = 0.3 * jax.random.normal(key_logits, (size, game.num_actions))
    second = 0.3 * jax.random.normal(key_values, (size, game.num_players))
    return lambda observation: (observation.ravel() @ first, jax.nn.softmax(observation.ravel() @ second))


def midgame(count: int) -> Any:
    return next(states for ply, (states, _) in enumerate(positions(GAME, count)) if ply == 6)


def test_saved_networks_equal_the_original(tmp_path: Path) -> None:
    path = tmp_path / "network"
    networks.save(SMALL, factory(SMALL), path)
    saved, built = networks.load(SMALL, str(path)), networks.load(SMALL, "tests.search.test_networks:factory")
    observations = jax.random.normal(jax.random.key(1), (3, 2, *observation_shape(SMALL)))
    for mapped in (lambda apply: apply(observations[0, 0]), lambda apply: jax.vmap(jax.vmap(apply))(observations)):
        for expected, result in zip(jax.jit(lambda: mapped(saved))(), jax.jit(lambda: mapped(built))(), strict=True):  # noqa: B023
            np.testing.assert_allclose(expected, result, rtol=1e-5, atol=1e-6)
    states, keys = jax.vmap(SMALL.init)(jax.random.split(jax.random.key(2), 4)), jax.random.split(jax.random.key(3), 4)
    player = agent(f"gumbel:num_simulations=2,num_candidates=9,network={path}", SMALL)
    assert jax.vmap(SMALL.is_legal)(states, jax.jit(jax.vmap(player.act))(states, keys)).all()


@pytest.mark.parametrize("name", ["nowhere", "pyproject.toml", "no.module:make", "tests.search.test_networks:none"])
def test_invalid_networks(name: str) -> None:
    with pytest.raises(ValueError, match=f"network '{name}'"):
        networks.load(GAME, name)


def test_expired_files_report_the_reason(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Unsupported calling convention versions, and a program that the compiler cannot parse."""
    path = tmp_path / "network"
    networks.save(SMALL, factory(SMALL), path)
    exported = export.deserialize(bytearray(path.read_bytes()))
    oldest = export.minimum_supported_calling_convention_version
    newest = export.maximum_supported_calling_convention_version
    program = exported.mlir_module_serialized
    for changes, reason in (
        ({"calling_convention_version": oldest - 1}, f"{oldest} to {newest}, got {oldest - 1}"),
        ({"calling_convention_version": newest + 1}, f"{oldest} to {newest}, got {newest + 1}"),
        ({"mlir_module_serialized": program[:100] + bytes(len(program) - 100)}, "StableHLO"),
    ):
        path.write_bytes(replace(exported, **changes).serialize())
        with pytest.raises(ValueError, match="save_network") as error:
            networks.load(SMALL, str(path))
        assert reason in str(error.value)
        assert "\n" not in str(error.value)
    capfd.readouterr()  # discards the output of the compiler


def test_networks_of_another_game_are_rejected(tmp_path: Path) -> None:
    larger = tilewe_jax.make("santorini", size=5)
    networks.save(larger, factory(larger), tmp_path / "network")
    with pytest.raises(ValueError, match=r"\(\d+, 5, 5\)"):
        networks.load(GAME, str(tmp_path / "network"))
    with pytest.raises(ValueError, match=rf"logits float32\[{GAME.num_actions}\], got float32\[162\]"):
        network_evaluator(GAME, lambda observation: (jnp.zeros(162), jnp.zeros(2)))
    with pytest.raises(ValueError, match="symmetries"):
        network_evaluator(tilewe_jax.make("triominos"), factory(GAME), symmetries=True)


def test_averaging_over_symmetries_is_equivariant() -> None:
    evaluate = network_evaluator(GAME, factory(GAME), symmetries=True)
    actions = jnp.arange(GAME.num_actions, dtype=jnp.int32)

    @jax.jit
    @jax.vmap
    def ask(state):
        logits, values = evaluate(None, state, jax.random.key(0))
        return logits(actions), values

    state = rows(midgame(4), 2)
    every = jnp.arange(GAME.num_symmetries, dtype=jnp.int32)
    logits, values = ask(jax.jit(jax.vmap(GAME.transform, in_axes=(None, 0)))(state, every))
    for index, becomes in enumerate(GAME.action_symmetries):
        np.testing.assert_allclose(logits[index][becomes], logits[0], atol=1e-4)
        np.testing.assert_allclose(values[index], values[0], atol=1e-5)
    assert np.ptp(np.asarray(logits[0])) > 0.01


def test_network_values_are_rotated_to_absolute_seats() -> None:
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=3)
    evaluate = network_evaluator(game, lambda observation: (jnp.zeros(game.num_logits), jnp.array([0.7, 0.2, 0.1])))
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 12))
    values = jax.jit(jax.vmap(lambda state: evaluate(None, state, jax.random.key(0))[1]))(states)
    for player, shares in zip(np.asarray(states.current_player), np.asarray(values), strict=True):
        np.testing.assert_allclose(np.roll(shares, -player), [0.7, 0.2, 0.1])
    assert len(set(np.asarray(states.current_player).tolist())) > 1


def test_searches_on_several_devices() -> None:
    from tilewe_jax.batching import split_over_devices

    search = jax.vmap(Search(SMALL, playout_evaluator(SMALL), PuctRule(), SearchSettings(8, 9)))
    states, keys = jax.vmap(SMALL.init)(jax.random.split(jax.random.key(4), 8)), jax.random.split(jax.random.key(5), 8)
    spread = jax.jit(split_over_devices(search, 4))(states, keys)
    assert len(spread.action.sharding.device_set) == 4
    alone = jax.jit(search)(states, keys)
    np.testing.assert_array_equal(spread.action, alone.action)
    np.testing.assert_array_equal(spread.visits, alone.visits)
    with pytest.raises(ValueError, match="multiple of 3"):
        split_over_devices(search, 3)(states, keys)


def test_playouts_are_mixed_in_if_few_actions_are_legal() -> None:
    """The constant value of the network is not a possible playout result."""
    network = lambda observation: (jnp.zeros(9), jnp.array([0.625, 0.375]))  # noqa: E731
    game = TicTacToe()
    settings = EvaluatorSettings(network="given", playout_weight=0.5, playout_max_legal=4, num_samples=1)
    evaluate = jax.jit(lambda state, key: settings.build(game, 0.0)(network, state, key).value)
    state, values = game.init(jax.random.key(0)), []
    for action in (0, 3, 1, 4, 8):
        values.append(evaluate(state, jax.random.key(1))[int(state.current_player)])
        state = game.apply(state, jnp.int32(action))
    values.append(evaluate(state, jax.random.key(1))[int(state.current_player)])
    np.testing.assert_allclose(values[:5], 0.625)  # 9 to 5 legal actions
    assert values[5] in (0.3125, 0.5625, 0.8125)
    with pytest.raises(ValueError, match="playout_max_legal"):
        EvaluatorSettings(network="given", playout_max_legal=4)
