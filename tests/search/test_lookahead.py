"""Searches with the exact lookahead of a game: candidates, proven nodes and actions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import positions, slow
from tilewe_jax.search import (
    GumbelRule,
    PuctRule,
    Search,
    SearchSettings,
    SubtreeReuse,
    sample_candidates,
    uniform_evaluator,
    uniform_logits,
)

GAME: Any = tilewe_jax.make("santorini", size=4, placement="random")
SIZE, BATCH = 128, 32


@pytest.fixture(scope="module")
def middle() -> Any:
    """Positions from the middle and the end of random games."""
    history = [states for states, _ in positions(GAME, BATCH, seed=7)]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *history[6:30:8])


def test_candidates_are_the_actions_of_the_best_proven_outcome(middle: Any) -> None:
    every = jnp.arange(SIZE, dtype=jnp.int32)

    def sample(state: Any, key: Any) -> Any:
        candidates = sample_candidates(GAME, state, uniform_logits, key, SIZE, SIZE, lookahead=True)
        return candidates, GAME.legal_action_mask(state), GAME.outcomes_of_actions(state, every)

    count = len(middle.current_player)
    candidates, legal, outcomes = jax.device_get(jax.jit(jax.vmap(sample))(middle, jax.random.split(jax.random.key(0), count)))
    outcomes_found = set()
    for row in np.flatnonzero(legal.any(axis=1)):
        best = outcomes[row][legal[row]].max()
        kept = candidates.actions[row][candidates.actions[row] >= 0]
        assert sorted(kept.tolist()) == np.flatnonzero(legal[row] & (outcomes[row] == best)).tolist()
        assert candidates.outcome[row] == best
        assert candidates.num_truncated[row] == 0
        assert candidates.truncated_prior[row] == pytest.approx(0, abs=1e-6)
        outcomes_found.add(int(best))
    assert outcomes_found == {-1, 0, 1}
    over = ~legal.any(axis=1)
    assert np.all(candidates.actions[over] == -1)
    assert np.all(candidates.outcome[over] == 0)


@pytest.mark.parametrize("rule", [PuctRule(), slow(GumbelRule())], ids=["puct", "gumbel"])
def test_proven_roots_are_played_without_search(rule: Any, middle: Any) -> None:
    settings = SearchSettings(8, SIZE, exact_endings=True, lookahead=True)
    reuse = SubtreeReuse(Search(GAME, uniform_evaluator(GAME), rule, settings))

    def run(state: Any, key: Any) -> Any:
        output, memory = reuse.act(reuse.init(state), state, key)
        again, _ = reuse.act(memory, state, key)
        outcomes = GAME.outcomes_of_actions(state, jnp.stack([output.action, again.action]))
        best = jnp.max(jnp.where(output.candidates >= 0, GAME.outcomes_of_actions(state, output.candidates), -1))
        return output, best, outcomes, GAME.is_legal(state, again.action)

    count = len(middle.current_player)
    result = jax.device_get(jax.jit(jax.vmap(run))(middle, jax.random.split(jax.random.key(0), count)))
    output, best, chosen, legal_again = result
    going = np.asarray(jax.vmap(GAME.num_legal)(middle)) > 0
    np.testing.assert_array_equal(chosen[going], np.stack([best, best], axis=1)[going])
    assert np.all(legal_again[going])  # also from the kept tree, whose root is proven without children
    np.testing.assert_allclose(output.policy[going].sum(axis=1), 1, rtol=1e-5)
    proven = going & (best != 0)
    assert proven.sum() > 5
    assert np.all(output.num_simulations[proven] == 0)
    assert np.all(output.num_simulations[going & ~proven] > 0)
    mover = np.asarray(middle.current_player)
    np.testing.assert_array_equal(output.value[proven, mover[proven]], (best[proven] + 1) / 2)
