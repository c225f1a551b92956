"""Solved endings against exhaustive search in plain Python."""

from functools import partial
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments.endings.reference import best_of, random_endings
from tests.support import slow
from tilewe_jax.endings import GameEndings, as_words, from_words
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.host_games import make_host_game
from tilewe_jax.search import Solution, solve

SMALL_HAND = ["O1", "I2", "I3", "L3"]
GAMES = {
    "duo_official": ("duo_official", {"size": 8}),
    "bonuses": ("duo_official", {"size": 7, "pieces": SMALL_HAND}),
    "duo": ("duo", {"size": 7, "voluntary_pass": True}),
    "tilewe": ("tilewe", {"players": 2, "size": 7}),
    "classic_2": ("classic_2", {"size": 8}),
    "start_piece": ("classic_2", {"size": 5, "pieces": ["I2", "L3", "I3"], "start_piece": "L3"}),
    "santorini": ("santorini", {"size": 3}),
}


class Compiled:
    """A game on both sides, and its solver."""

    def __init__(self, name: str, options: dict[str, Any], max_nodes: int = 5_000, max_moves: int = 512) -> None:
        self.game: Any = tilewe_jax.make(name, **options)
        self.host = make_host_game(name, **options)
        self.play = jax.jit(self._play)
        self.solve = jax.jit(partial(solve, self.game, max_nodes=max_nodes, max_moves=max_moves))

    def _play(self, actions: Any) -> Any:
        def step(ply: Any, state: Any) -> Any:
            return self.game.apply(state, actions[ply])

        return jax.lax.fori_loop(0, self.game.max_steps, step, self.game.init(jax.random.key(0)))

    def state(self, actions: list[int]) -> Any:
        """Return the state after actions."""
        return self.play(np.array(actions + [-1] * (self.game.max_steps - len(actions)), np.int32))

    def endings(self, count: int, most: int = 400, seed: int = 0) -> list[tuple[Any, Any, dict[int, int]]]:
        """Return states of random endings with their host positions and exact margins."""
        every = islice(random_endings(self.host, most, seed), count)
        return [(self.state(actions), position, margins) for actions, position, margins in every]


def check(solution: Solution, position: Any, margins: dict[int, int]) -> None:
    """Check a complete solution against exhaustive search."""
    margin = best_of(list(margins.values()), position)
    assert solution.is_exact
    assert solution.has_outcome
    assert (int(solution.low), int(solution.high)) == (margin, margin)
    assert margins[int(solution.action)] == margin
    assert solution.returns.tolist() == [(1 + np.sign(margin)) / 2, (1 - np.sign(margin)) / 2]


@pytest.mark.parametrize(
    "case", ["duo_official", "classic_2", "santorini", *map(slow, ("bonuses", "duo", "tilewe", "start_piece"))]
)
def test_solutions_agree_with_exhaustive_search(case: str) -> None:
    compiled = Compiled(*GAMES[case])
    outcomes = set()
    for state, position, margins in compiled.endings(40):
        solution = jax.device_get(compiled.solve(state))
        check(solution, position, margins)
        outcomes.add(float(solution.returns[0]))
    assert len(outcomes) > 1


@pytest.mark.parametrize("case", ["duo_official", "santorini", *map(slow, ("classic_2", "bonuses"))])
def test_solutions_without_an_action(case: str) -> None:
    """``without`` gives the best result of the other actions, also if the bounds or the lookahead decide the position."""
    compiled = Compiled(*GAMES[case])
    solve_without = jax.jit(
        lambda state, action: solve(compiled.game, state, max_nodes=5_000, max_moves=512, margin=False, without=action)
    )
    compared, changed = 0, 0
    for state, position, margins in compiled.endings(40):
        if len(margins) < 2:
            continue
        best = best_of(list(margins.values()), position)
        action = next(action for action, margin in margins.items() if margin == best)
        others = best_of([margin for other, margin in margins.items() if other != action], position)
        solution = jax.device_get(solve_without(state, np.int32(action)))
        assert solution.has_outcome
        assert solution.returns.tolist() == [(1 + np.sign(others)) / 2, (1 - np.sign(others)) / 2]
        assert int(solution.action) != action
        compared, changed = compared + 1, changed + (np.sign(others) != np.sign(best))
    assert compared >= 10
    assert changed >= 1


@pytest.mark.parametrize("max_nodes", [slow(1), 12])
def test_interrupted_searches_keep_to_the_limit_and_say_so(max_nodes: int) -> None:
    compiled = Compiled(*GAMES["bonuses"], max_nodes=max_nodes, max_moves=128)
    complete = 0
    for state, position, margins in compiled.endings(40, 2_000):
        solution = jax.device_get(compiled.solve(state))
        margin = best_of(list(margins.values()), position)
        assert solution.num_nodes <= max_nodes
        assert solution.low <= margin <= solution.high
        assert solution.is_exact == (solution.low == solution.high)
        assert int(solution.action) in margins
        if solution.has_outcome:
            sign = 1 - 2 * position.current_player
            assert solution.returns[0] - solution.returns[1] == np.sign(margin)
            assert np.sign(margins[int(solution.action)]) * sign >= np.sign(margin) * sign
        complete += bool(solution.is_exact)
    assert complete < 40


def test_games_by_the_contract_and_in_batches() -> None:
    """The form of any game, in a batch, on a whole small game."""

    class Plain(PolyominoGame):
        def endings(self, max_moves: int) -> Any:
            return GameEndings(self)

    compiled = Compiled("tilewe", {"players": 2, "size": 4, "pieces": ["O1", "I2", "L3"]})
    plain: Any = Plain(compiled.game.config)
    cases = compiled.endings(12, 600)
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(state for state, _, _ in cases))
    for solver in (partial(solve, plain), partial(solve, compiled.game, max_moves=128)):
        solutions = jax.device_get(jax.jit(jax.vmap(partial(solver, max_nodes=4_000)))(states))
        for index, (_, position, margins) in enumerate(cases):
            check(jax.tree.map(lambda leaf, index=index: leaf[index], solutions), position, margins)


def test_positions_without_a_search() -> None:
    compiled = Compiled(*GAMES["bonuses"], max_moves=64)
    start = jax.device_get(compiled.solve(compiled.state([])))
    assert not start.is_supported
    assert not start.is_exact
    assert not start.has_outcome
    assert start.num_nodes == 1
    position, actions = compiled.host.init_from_deal(None), []
    while not position.is_terminal:
        actions.append(position.legal_actions()[-1])
        position = position.after(actions[-1])
    end = jax.device_get(compiled.solve(compiled.state(actions)))
    scores = position.scores()
    assert end.is_exact
    assert int(end.low) == scores[0] - scores[1]
    assert end.action == -1


def test_games_that_cannot_be_solved() -> None:
    for name, options in (("triominos", {"players": 2}), ("tilewe", {"players": 3})):
        game: Any = tilewe_jax.make(name, **options)
        with pytest.raises(ValueError, match=name):
            solve(game, None)
    game = tilewe_jax.make("duo")
    for wrong in ({"max_nodes": 0}, {"max_moves": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            solve(game, game.init(jax.random.key(0)), **wrong)


@pytest.mark.parametrize("case", ["bonuses", slow("santorini")])
def test_agents_solve_positions(case: str) -> None:
    compiled = Compiled(*GAMES[case])
    agent = tilewe_jax.agent("random", compiled.game)
    cases = compiled.endings(5)
    states = [state for state, _, _ in cases]
    by_agent = [agent.solve(state, max_nodes=5_000) for state in states]
    batch = jax.jit(jax.vmap(partial(agent.solve, max_nodes=5_000)))(jax.tree.map(lambda *rows: jnp.stack(rows), *states))
    for index, (_, position, margins) in enumerate(cases):
        check(by_agent[index], position, margins)
        check(jax.tree.map(lambda leaf, index=index: leaf[index], jax.device_get(batch)), position, margins)
        outcome = agent.solve(states[index], max_nodes=5_000, margin=False)
        assert outcome.has_outcome
        np.testing.assert_array_equal(outcome.returns, by_agent[index].returns)
    assert not agent.solve(compiled.state([]), max_nodes=2).is_exact
    with pytest.raises(ValueError, match="max_nodes"):
        agent.solve(states[0], max_nodes=0)
    with pytest.raises(TypeError, match=compiled.game.id):
        agent.solve(states[0]._asdict() if hasattr(states[0], "_asdict") else (states[0],))


def test_words_of_a_position() -> None:
    tree = (jnp.int32(-5), jnp.array([True, False]), jnp.array([[7]], jnp.uint16), jnp.float32(1.5), jnp.uint32(1 << 31))
    words = as_words(tree)
    assert words.dtype == jnp.uint32
    restored = from_words(words, tree)
    for old, new in zip(tree, restored, strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old, new)
