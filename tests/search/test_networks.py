"""Networks as evaluators: from files and factories, of the right shape, averaged over symmetries."""

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
from tests.support import assert_same, positions, rows
from tilewe_jax.agents import agent
from tilewe_jax.game import observation_shape
from tilewe_jax.search import PuctRule, Search, SearchSettings, heuristic_evaluator, network_evaluator
from tilewe_jax.search import exported as networks
from tilewe_jax.search.evaluators import EvaluatorSettings

GAME = tilewe_jax.make("santorini", size=4)
SHAPE = observation_shape(GAME)


def factory(game: Any) -> networks.Network:
    """Random weights for any game."""
    key_logits, key_values = jax.random.split(jax.random.key(0))
    size = int(np.prod(observation_shape(game)))
    first = 0.3 * jax.random.normal(key_logits, (size, game.num_actions))
    second = 0.3 * jax.random.normal(key_values, (size, game.num_players))
    return lambda observation: (observation.ravel() @ first, jax.nn.softmax(observation.ravel() @ second))


def midgame(count: int) -> Any:
    return next(states for ply, (states, _) in enumerate(positions(GAME, count)) if ply == 6)


def test_a_file_holds_the_network(tmp_path: Path) -> None:
    path = tmp_path / "network"
    networks.save(GAME, factory(GAME), path)
    saved, built = networks.load(GAME, str(path)), networks.load(GAME, "tests.search.test_networks:factory")
    observations = jax.random.normal(jax.random.key(1), (3, 2, *SHAPE))
    for mapped in (lambda apply: apply(observations[0, 0]), lambda apply: jax.vmap(jax.vmap(apply))(observations)):
        for expected, result in zip(jax.jit(lambda: mapped(saved))(), jax.jit(lambda: mapped(built))(), strict=True):  # noqa: B023
            np.testing.assert_allclose(expected, result, rtol=1e-5, atol=1e-6)
    states, keys = midgame(4), jax.random.split(jax.random.key(3), 4)
    play = [
        jax.jit(jax.vmap(agent(f"gumbel:num_simulations=6,network={name}", GAME).act))
        for name in (path, "tests.search.test_networks:factory")
    ]
    assert_same(*(choose(states, keys) for choose in play))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "network 'nowhere': No such file or directory; give a file, or module:factory"),
        ("pyproject.toml", "network 'pyproject.toml' is not a file of a network"),
        ("no.module:make", "network 'no.module:make': No module named 'no'"),
        (
            "tests.search.test_networks:none",
            "network 'tests.search.test_networks:none': module 'tests.search.test_networks' has no attribute 'none'",
        ),
    ],
)
def test_what_is_no_network(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        networks.load(GAME, name)


def test_a_file_that_has_expired_gives_the_reason_of_jax(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A version of the calling convention from before or after this JAX, and a program that its compiler does not read."""
    path = tmp_path / "network"
    networks.save(GAME, factory(GAME), path)
    exported = export.deserialize(bytearray(path.read_bytes()))
    oldest = export.minimum_supported_calling_convention_version
    newest = export.maximum_supported_calling_convention_version
    program = exported.mlir_module_serialized
    for changes, reason in (
        ({"calling_convention_version": oldest - 1}, f"version {oldest - 1}, not {oldest} to {newest}"),
        ({"calling_convention_version": newest + 1}, f"version {newest + 1}, not {oldest} to {newest}"),
        ({"mlir_module_serialized": program[:100] + bytes(len(program) - 100)}, "StableHLO"),
    ):
        path.write_bytes(replace(exported, **changes).serialize())
        with pytest.raises(ValueError, match="file of") as error:
            networks.load(GAME, str(path))
        message = str(error.value)
        assert reason in message
        assert "six months" in message
        assert "search.exported.save" in message
        assert "\n" not in message
    capfd.readouterr()  # the compiler prints, too


def test_a_network_of_another_game(tmp_path: Path) -> None:
    larger = tilewe_jax.make("santorini", size=5)
    networks.save(larger, factory(larger), tmp_path / "network")
    with pytest.raises(ValueError, match=r"\(\d+, 5, 5\)"):
        networks.load(GAME, str(tmp_path / "network"))
    with pytest.raises(ValueError, match=r"expected logits float32\[128\], got float32\[162\]"):
        network_evaluator(GAME, lambda observation: (jnp.zeros(162), jnp.zeros(2)))
    with pytest.raises(ValueError, match="average over"):
        network_evaluator(tilewe_jax.make("triominos"), factory(GAME), symmetries=True)


def test_averaged_over_symmetries_it_says_the_same_of_all_of_them() -> None:
    evaluate = network_evaluator(GAME, factory(GAME), symmetries=True)
    actions = jnp.arange(GAME.num_actions, dtype=jnp.int32)

    @jax.jit
    @jax.vmap
    def ask(state):
        logits, values = evaluate(None, state, jax.random.key(0))
        return logits(actions), values

    state = rows(midgame(4), 2)
    every = jnp.arange(GAME.num_symmetries, dtype=jnp.int32)
    logits, values = ask(jax.vmap(GAME.transform, in_axes=(None, 0))(state, every))
    for index, becomes in enumerate(GAME.action_symmetries):
        np.testing.assert_allclose(logits[index][becomes], logits[0], atol=1e-4)
        np.testing.assert_allclose(values[index], values[0], atol=1e-5)
    assert np.ptp(np.asarray(logits[0])) > 0.01


def test_shares_turn_from_the_mover_to_seats() -> None:
    """The mover comes first in what a network says, and a search counts in seats."""
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=3)
    evaluate = network_evaluator(game, lambda observation: (jnp.zeros(game.num_logits), jnp.array([0.7, 0.2, 0.1])))
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 12))
    values = jax.jit(jax.vmap(lambda state: evaluate(None, state, jax.random.key(0))[1]))(states)
    for player, shares in zip(np.asarray(states.current_player), np.asarray(values), strict=True):
        np.testing.assert_allclose(np.roll(shares, -player), [0.7, 0.2, 0.1])
    assert len(set(np.asarray(states.current_player).tolist())) > 1


def test_a_search_is_divided_among_devices() -> None:
    from tilewe_jax.batching import split_over_devices

    search = jax.vmap(Search(GAME, heuristic_evaluator(GAME), PuctRule(), SearchSettings(8, 16)))
    states, keys = midgame(8), jax.random.split(jax.random.key(5), 8)
    spread = jax.jit(split_over_devices(search, 4))(states, keys)
    assert len(spread.action.sharding.device_set) == 4
    alone = jax.jit(search)(states, keys)
    np.testing.assert_array_equal(spread.action, alone.action)
    np.testing.assert_array_equal(spread.visits, alone.visits)
    with pytest.raises(ValueError, match="divided among"):
        split_over_devices(search, 3)(states, keys)


def test_playouts_are_mixed_in_where_few_actions_are_legal() -> None:
    """A playout from an empty tic-tac-toe board is a win for somebody; the network says what no playout can."""
    network = lambda observation: (jnp.zeros(9), jnp.array([0.625, 0.375]))  # noqa: E731
    game = TicTacToe()
    settings = EvaluatorSettings(network="given", playout_weight=0.5, playout_max_legal=4, num_samples=1)
    evaluate = settings.build(game, 0.0, network)
    state, values = game.init(jax.random.key(0)), []
    for action in (0, 3, 1, 4, 8):
        values.append(np.asarray(evaluate(None, state, jax.random.key(1)).value)[int(state.current_player)])
        state = game.apply(state, jnp.int32(action))
    values.append(np.asarray(evaluate(None, state, jax.random.key(1)).value)[int(state.current_player)])
    np.testing.assert_allclose(values[:5], 0.625)  # 9 to 5 legal actions
    assert values[5] in (0.3125, 0.5625, 0.8125)
    with pytest.raises(ValueError, match="playout_max_legal"):
        EvaluatorSettings(network="given", playout_max_legal=4)
