"""Searches that solve the root first: ``solve_nodes``."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.exhaustive import Solver
from tests.support import positions, rows
from tilewe_jax.search import GumbelRule, PuctRule, Search, SearchSettings, uniform_evaluator

GAME: Any = tilewe_jax.make("tilewe", players=2, size=5, pieces=["O1", "I2", "I3", "L3"])
MOST = 1_500


@pytest.mark.parametrize("rule", [PuctRule(), pytest.param(GumbelRule(), marks=pytest.mark.slow)], ids=["puct", "gumbel"])
def test_solved_roots_are_played_without_simulations(rule: Any) -> None:
    settings = SearchSettings(4, 16, exact_endings=True, solve_nodes=2_000)
    search = jax.jit(jax.vmap(Search(GAME, uniform_evaluator(GAME), rule, settings)))
    states = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *[states for states, _ in positions(GAME, 12, seed=2)][3::2])
    count = len(states.current_color)
    output = jax.device_get(search(states, jax.random.split(jax.random.key(1), count)))
    states, solver, solved = jax.device_get(states), Solver(GAME, MOST), 0
    players = jax.device_get(jax.vmap(GAME.current_player)(states))
    over = jax.device_get(jax.vmap(GAME.is_terminal)(states))
    for row in np.flatnonzero(~over):
        values = solver.action_values(rows(states, row))
        if values is None:
            continue
        player, action = players[row], int(output.action[row])
        best = max(value[player] for value in values.values())
        assert output.tree.proven[row, 0]
        assert output.num_simulations[row] == 0
        assert values[action][player] == best == output.value[row, player]
        solved += 1
    assert solved > 10
    assert np.all(output.action[over] == -1)


def test_it_needs_two_players_and_open_information() -> None:
    game: Any = tilewe_jax.make("tilewe", players=3, size=5)
    with pytest.raises(ValueError, match="two players"):
        Search(game, uniform_evaluator(game), PuctRule(), SearchSettings(solve_nodes=100))
