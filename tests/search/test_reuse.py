"""Subtree reuse in whole games."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.test_search import ZeroSum, check_invariants, oracle
from tests.support import assert_same, batched, rows
from tilewe_jax.search import (
    GumbelRule,
    PuctRule,
    Search,
    SearchSettings,
    SelectionRule,
    SubtreeReuse,
    uniform_evaluator,
)

SIMULATIONS = 30
SETTINGS = SearchSettings(SIMULATIONS, 9, max_depth=9)


def compiled(rule: SelectionRule, settings: SearchSettings = SETTINGS) -> tuple[Any, Any, Any]:
    """Return a player and its compiled, batched methods."""
    player = SubtreeReuse(Search(ZeroSum(), oracle, rule, settings))
    return player, jax.jit(jax.vmap(player.act)), jax.jit(jax.vmap(player.advance))


@pytest.mark.parametrize(
    ("rule", "pool"), [(PuctRule(), None), (GumbelRule(4), None), (PuctRule(), 4)], ids=["puct", "gumbel", "puct, small pool"]
)
def test_whole_games_in_kept_trees(rule: SelectionRule, pool: int | None) -> None:
    """Every search adds its simulations to the subtree of the actions of both players, or to an empty tree.

    A root whose candidates come from the small pool is evaluated once more.
    """
    batch, game = 4, batched(ZeroSum())
    small = replace(SETTINGS, num_candidates=4, candidate_pool=pool, root_candidate_pool=9, widen_visits=0)
    player, act, advance = compiled(rule, small if pool else SETTINGS)
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), ZeroSum().init(None))
    memory = jax.vmap(player.init)(state)
    reused = fresh = 0
    for ply in range(9):
        over = np.asarray(game.is_terminal(state))
        kept, again = np.asarray(memory.visits[:, 0]), np.asarray(memory.is_narrow[:, 0])
        keys = jax.random.split(jax.random.key(ply), batch)
        output, memory = act(memory, state, keys)
        for lane in np.flatnonzero(~over):
            tree = rows(memory, lane)
            check_invariants(tree, add_up=int(tree.num_nodes) < tree.capacity, evaluations=2 if pool else 1)
            assert not tree.is_narrow[0]
            assert_same(rows(tree.state, 0), rows(state, lane))
            assert int(tree.visits[0]) == max(1, kept[lane] + again[lane]) + SIMULATIONS
            assert int(output.num_simulations[lane]) == SIMULATIONS
            reused, fresh = reused + (kept[lane] > 0), fresh + (kept[lane] == 0)
        # Every second move is random, so the search may not have visited it.
        action = output.action if ply % 2 == 0 else game.sample_action(state, keys)
        visits = np.where(memory.candidates[:, 0] == action[:, None], output.visits, 0).sum(axis=1)
        memory, state = advance(memory, action), game.step(state, action)
        np.testing.assert_array_equal(np.asarray(memory.visits[:, 0])[~over], visits[~over])
        is_kept = np.asarray(memory.visits[:, 0]) > 0
        assert_same(rows(memory.state, (is_kept, 0)), rows(state, is_kept))
    assert reused > 10
    assert fresh >= batch


def test_the_first_search_equals_a_stateless_search() -> None:
    game = ZeroSum()
    player, act, _ = compiled(PuctRule())
    state, keys = jax.vmap(lambda _: game.init(None))(jnp.arange(2)), jax.random.split(jax.random.key(3), 2)
    alone = jax.jit(jax.vmap(Search(game, oracle, PuctRule(), SearchSettings(SIMULATIONS, 9, max_depth=9))))(state, keys)
    output, memory = act(jax.vmap(player.init)(state), state, keys)
    assert_same(output.policy_output, alone.policy_output)
    # The memory of another position is ignored.
    elsewhere = batched(game).step(state, output.action)
    fresh, _ = act(jax.vmap(player.init)(elsewhere), elsewhere, keys)
    assert_same(act(memory, elsewhere, keys)[0].policy_output, fresh.policy_output)


def test_kept_trees_of_a_batch_are_independent() -> None:
    player, act, advance = compiled(GumbelRule(4, gumbel_scale=1.0))
    game = batched(ZeroSum())
    state = jax.vmap(lambda _: ZeroSum().init(None))(jnp.arange(2))
    keys = jax.random.split(jax.random.key(5), 2)
    output, memory = act(jax.vmap(player.init)(state), state, keys)
    state, kept = game.step(state, output.action), advance(memory, output.action)
    mixed = jax.tree.map(lambda old, new: jnp.stack([old[0], new[1]]), kept, jax.vmap(player.init)(state))
    together, _ = act(mixed, state, keys)
    assert_same(rows(together.policy_output, 0), rows(act(kept, state, keys)[0].policy_output, 0))
    assert_same(rows(together.policy_output, 1), rows(act(jax.vmap(player.init)(state), state, keys)[0].policy_output, 1))


def test_hidden_information_is_rejected() -> None:
    triominos = tilewe_jax.make("triominos")
    with pytest.raises(ValueError, match="hidden information"):
        SubtreeReuse(Search(triominos, uniform_evaluator(triominos), PuctRule()))
