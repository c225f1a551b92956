"""Exact outcomes as targets of self-play."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.search.exhaustive import Solver
from tests.support import rows
from tests.toy import SHORT, trained_in
from tilewe_jax.search import SearchSettings
from tilewe_jax.training import Program, agents, endings, metrics, replay, selfplay
from tilewe_jax.training.config import GameConfig, SelfplayConfig

GAME: Any = GameConfig("tilewe", {"players": 2, "size": 5, "pieces": ("O1", "I2", "I3", "L3")}).make()
CONFIG = SelfplayConfig(num_games=4, unroll_length=12, search=SearchSettings(num_simulations=2, num_candidates=8))
MOST = 1_500


def random_games(unrolls: int) -> list[Any]:
    """Return the positions of games between random players, an unroll after the other."""
    players = agents.warmup_agents(replace(CONFIG, warmup_policy="random"), GAME)
    play = jax.jit(lambda games, key: selfplay.play(CONFIG, GAME, players, games, key)[:2])
    games, positions = selfplay.start(CONFIG, GAME, jax.random.key(0), CONFIG.num_games), []
    for key in jax.random.split(jax.random.key(1), unrolls):
        games, played = play(games, key)
        positions.append(played)
    return positions


@pytest.mark.parametrize("max_nodes", [5, 2_000])
def test_targets_equal_exhaustive_search(max_nodes: int) -> None:
    """The target of a solved position is its value; that of another position is the value of the next solved one in its game.

    Games between random players have mistakes, so that the values of the positions of a game differ.
    """
    played = random_games(3)
    solve = jax.jit(lambda positions: endings.with_exact_outcomes(GAME, positions, max_nodes))
    solved = [solve(positions) for positions in played]
    ring = replay.empty(GAME, 3 * CONFIG.unroll_length, CONFIG.num_games, CONFIG.search.num_candidates)
    for positions in solved:
        ring = jax.jit(replay.add)(ring, positions)
    join: Any = lambda parts: jax.device_get(jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts))  # noqa: E731
    before, after, stored = join(played), join(solved), jax.device_get(ring.positions)
    is_solved = after.outcome_target.sum(axis=-1) > 0
    solver, counts = Solver(GAME, MOST), np.zeros(3, int)
    for column in range(CONFIG.num_games):
        expected, result = None, None
        for row in reversed(range(len(is_solved))):
            if before.finished[row, column]:
                result = expected = before.returns[row, column]
            if is_solved[row, column]:
                value = solver.value(rows(rows(before.state, row), column))
                if value is not None:
                    np.testing.assert_array_equal(after.outcome_target[row, column], value)
                    counts += [1, result is not None and (value != result).any(), 0]
                expected = after.outcome_target[row, column]
            else:
                counts[2] += 1
            if result is not None:
                np.testing.assert_allclose(stored.outcome_target[row, column], expected, atol=1e-6)
                np.testing.assert_array_equal(stored.returns[row, column], result)
    assert counts.min() > 0  # solved, in which a mistake was made later, and unsolved


def test_positions_are_solved_backwards_until_one_is_not_proven() -> None:
    (played,) = random_games(1)
    solve = jax.jit(lambda positions: endings.with_exact_outcomes(GAME, positions, 5))
    positions = jax.device_get(solve(played))
    is_solved = positions.outcome_target.sum(axis=-1) > 0
    is_last = positions.finished
    is_last[-1] = True
    assert not (is_solved[:-1] & ~is_solved[1:] & ~is_last[:-1]).any()
    assert is_solved[is_last].any()


def test_runs_solve_positions(tmp_path: Path) -> None:
    config = replace(SHORT, replay=replace(SHORT.replay, solve_nodes=4), tensorboard=False)
    trained_in(tmp_path, Program(config, 1), config)
    rows = metrics.read(tmp_path / metrics.METRICS)
    assert all(0 < row["solved_positions"] < row["moves"] for row in rows)


def test_other_games_are_rejected() -> None:
    assert replace(SHORT.replay, solve_nodes=100).solve_nodes == 100
    for name, options in (("tilewe", {"players": 3}), ("triominos", {"players": 2})):
        with pytest.raises(ValueError, match=f"replay.solve_nodes.*{name}"):
            replace(SHORT, game=GameConfig(name, options), replay=replace(SHORT.replay, solve_nodes=100))
