"""Proven endings against exhaustive search, for several games and numbers of players."""

from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.search.exhaustive import Solver, with_distinct_payoffs
from tests.support import positions, rows
from tilewe_jax.search import PuctRule, Search, SearchSettings, playout_evaluator

MOST = 4_000
"""Maximum number of positions of a game tree for exhaustive search."""
SIMULATIONS = 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "batch", "wanted"),
    [("duo_official", {}, 120, 400), ("santorini", {"size": 3}, 300, 400), ("tilewe", {"players": 3, "size": 8}, 60, 120)],
    ids=["duo_official", "santorini", "three_players"],
)
@pytest.mark.parametrize(("leaves", "lookahead"), [(1, False), (8, False), (1, True)])
def test_proven_endings(name: str, options: dict[str, Any], batch: int, wanted: int, leaves: int, lookahead: bool) -> None:
    game: Any = tilewe_jax.make(name, **options)
    if lookahead and not game.has_lookahead:
        pytest.skip("the game has no lookahead")
    atol = 0.0
    if game.num_players > 2:
        atol = 2e-3  # two compiled programs round the payoffs, sines of large numbers, differently
        game = with_distinct_payoffs(game)  # with tied replies, the values of the other players would be ambiguous
    settings = SearchSettings(SIMULATIONS, 64, candidate_pool=128, leaves=leaves, exact_endings=True, lookahead=lookahead)
    search = jax.jit(jax.vmap(Search(game, playout_evaluator(game), PuctRule(), settings)))
    solver, agreed, played = Solver(game, MOST), 0, 0
    steps = [states for states, _ in positions(game, batch, seed=3)]
    for batch_states in reversed(steps):  # from the end of the games
        if agreed >= wanted:
            break
        output = jax.device_get(search(batch_states, jax.random.split(jax.random.key(5), batch)))
        states = jax.device_get(batch_states)
        _, movers, terminal, _ = solver.in_chunks(solver.look, states)
        after = solver.in_chunks(solver.apply, states, output.action)
        for lane in np.flatnonzero(output.tree.proven[:, 0] & ~terminal):
            exact = solver.value(rows(states, lane))
            if exact is None:
                continue
            mover, proven = movers[lane], output.tree.raw_value[lane, 0]
            np.testing.assert_allclose(proven, exact, rtol=0, atol=atol)
            reached = solver.value(rows(after, lane))
            assert reached is not None
            played += abs(reached[mover] - exact[mover]) <= atol
            agreed += 1
    print(f"{game.id}, {leaves} leaves: {agreed} proven endings agree with exhaustive search")
    assert agreed >= wanted
    assert played == agreed
