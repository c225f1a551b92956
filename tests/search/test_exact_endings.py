"""Endings that the search has proven, against exhaustive search: games, numbers of players, and the values of all seats."""

from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from search import PuctRule, Search, SearchSettings, playout_evaluator
from tests.search.test_search import with_distinct_payoffs
from tests.support import positions, rows

CHUNK = 256
MOST = 4_000
"""Positions of a game tree that exhaustive search looks at."""
SIMULATIONS = 400


class Solver:
    """Exhaustive search of small game trees, level by level, in chunks of positions."""

    def __init__(self, game: Any) -> None:
        self.look = jax.jit(
            jax.vmap(
                lambda state: (
                    game.legal_actions(state),
                    game.current_player(state),
                    game.is_terminal(state),
                    game.returns(state),
                )
            )
        )
        self.apply = jax.jit(jax.vmap(game.apply))

    def in_chunks(self, function: Any, *args: Any) -> Any:
        count = jax.tree.leaves(args)[0].shape[0]
        results = []
        for start in range(0, count, CHUNK):
            index = np.minimum(np.arange(start, start + CHUNK), count - 1)
            results.append(jax.device_get(function(*jax.tree.map(lambda leaf, index=index: leaf[index], args))))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *results)

    def values(self, state: Any) -> np.ndarray | None:
        """The value of a position by seat under best play, the first of equals; ``None`` where its tree is too large."""
        level = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        levels, size = [], 0
        while True:
            legal, player, terminal, returns = self.in_chunks(self.look, level)
            parent, action = np.nonzero(legal)
            levels.append((parent, player, terminal, returns))
            size += len(parent)
            if size > MOST:
                return None
            if not len(parent):
                break
            level = self.in_chunks(self.apply, rows(level, parent), action.astype(np.int32))
        below = np.zeros((0, levels[0][3].shape[1]))
        for parent, player, terminal, returns in reversed(levels):
            value = np.where(terminal[:, None], returns, -np.inf)
            for index, node in enumerate(parent):
                if below[index, player[node]] > value[node, player[node]]:
                    value[node] = below[index]
            below = value
        return below[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "batch", "wanted"),
    [("duo_official", {}, 120, 400), ("santorini", {"size": 3}, 300, 400), ("tilewe", {"players": 3, "size": 8}, 60, 120)],
    ids=["duo_official", "santorini", "three_players"],
)
@pytest.mark.parametrize("leaves", [1, 8])
def test_proven_endings(name: str, options: dict[str, Any], batch: int, wanted: int, leaves: int) -> None:
    game: Any = tilewe_jax.make(name, **options)
    atol = 0.0
    if game.num_players > 2:
        atol = 2e-3  # the made-up payoffs are sines of large numbers, which two compiled programs round differently
        game = with_distinct_payoffs(game)  # or replies that are equal for who makes them would leave others' values open
    settings = SearchSettings(SIMULATIONS, 64, candidate_pool=128, leaves=leaves, exact_endings=True)
    search = jax.jit(jax.vmap(Search(game, playout_evaluator(game), PuctRule(), settings)))
    solver, agreed, played = Solver(game), 0, 0
    steps = [states for states, _ in positions(game, batch, seed=3)]
    for batch_states in reversed(steps):  # from the endings on
        if agreed >= wanted:
            break
        output = jax.device_get(search(batch_states, jax.random.split(jax.random.key(5), batch)))
        states = jax.device_get(batch_states)
        _, movers, terminal, _ = solver.in_chunks(solver.look, states)
        after = solver.in_chunks(solver.apply, states, output.action)
        for lane in np.flatnonzero(output.tree.proven[:, 0] & ~terminal):
            exact = solver.values(rows(states, lane))
            if exact is None:
                continue
            mover, proven = movers[lane], output.tree.raw_value[lane, 0]
            np.testing.assert_allclose(proven, exact, rtol=0, atol=atol)
            reached = solver.values(rows(after, lane))
            assert reached is not None
            played += abs(reached[mover] - exact[mover]) <= atol
            agreed += 1
    print(f"{game.id}, {leaves} leaves: {agreed} proven endings agree with exhaustive search")
    assert agreed >= wanted
    assert played == agreed
