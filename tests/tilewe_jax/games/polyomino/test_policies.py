"""Policies that share a program play as each does alone; the package ``tilewe`` is the reference for each (test_tilewe)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import positions
from tilewe_jax.game import SharingPolicy
from tilewe_jax.games.polyomino.policies import OnePlyPolicy

GAME = tilewe_jax.make("tilewe", size=5, pieces=("O1", "I2", "L3", "O4"), players=2)
BATCH = 37


@pytest.mark.slow  # the arena plays them together in the tests of the arena
def test_policies_that_share_a_program_play_as_each_does_alone() -> None:
    names = ["simple_search", "turtle"]
    policies = [GAME.policies()[name] for name in names]
    assert all(isinstance(policy, SharingPolicy) for policy in policies)
    alone = [jax.jit(jax.vmap(policy)) for policy in policies]
    together = jax.jit(jax.vmap(OnePlyPolicy.together(policies)))
    which = jnp.arange(BATCH, dtype=jnp.int32) % len(names)
    differing = 0
    for ply, (state, _) in enumerate(positions(GAME, BATCH)):
        keys = jax.random.split(jax.random.key(ply), BATCH)
        each = np.stack([np.asarray(policy(state, keys)) for policy in alone])
        np.testing.assert_array_equal(np.asarray(together(which, state, keys)), each[np.asarray(which), np.arange(BATCH)])
        differing += int(np.any(each != each[0], axis=0).sum())
    assert differing > BATCH  # the policies choose differently in one position a game at least
