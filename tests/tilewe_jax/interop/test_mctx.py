"""Games in mctx: its nodes against the rules in plain Python, and wins found by its policies."""

from typing import Any

import numpy as np
import pytest

mctx = pytest.importorskip("mctx")

import jax
import jax.numpy as jnp

import tilewe_jax
from tests.support import positions, rows, slow
from tilewe_jax.games.santorini import rules
from tilewe_jax.interop.mctx import CandidateSearch
from tilewe_jax.search.candidates import sample_candidates

DUO = tilewe_jax.make("duo", size=5, pieces=["O1", "I2", "I3", "L3", "V5"])
SANTORINI = tilewe_jax.make("santorini", size=3)
BATCH = 8


@pytest.mark.parametrize("game", [DUO, slow(SANTORINI)], ids=lambda game: game.id)
def test_nodes_follow_the_rules(game: Any) -> None:
    """Rewards, discounts and values along random games; in the polyomino game players move twice in a row."""
    search = CandidateSearch(game, num_candidates=8)
    root_of, recurrent_fn = jax.jit(search.root), jax.jit(search.recurrent_fn)
    value_of = jax.jit(jax.vmap(game.heuristic_value))
    discounts = set()
    for states, _ in positions(game, BATCH):
        root = root_of(None, jax.random.key(0), states)
        invalid = np.asarray(search.invalid_actions(root))
        index = jnp.argmax(~invalid, axis=1).astype(jnp.int32)
        actions = np.asarray(search.actions(root, index))
        output, (after, _) = recurrent_fn(None, jax.random.key(1), index, root.embedding)
        root, output = jax.device_get((root, output))
        values, values_after = np.asarray(value_of(states)), np.asarray(value_of(after))
        for i in range(BATCH):
            position = game.host(rows(states, i))
            candidates = np.asarray(root.embedding.actions[i])[~invalid[i]].tolist()
            assert len(set(candidates)) == len(candidates) == min(8, len(position.legal_actions()))
            assert set(candidates) <= set(position.legal_actions())
            assert (np.asarray(root.prior_logits[i])[invalid[i]] < -1e30).all()
            if position.is_terminal:
                assert (actions[i], output.reward[i], output.discount[i], output.value[i]) == (-1, 0, 0, 0)
                continue
            mover = position.current_player
            assert root.value[i] == pytest.approx(2 * values[i, mover] - 1, abs=1e-6)
            next_position = position.after(int(actions[i]))
            if next_position.is_terminal:
                scores = next_position.scores()
                assert output.reward[i] == np.sign(scores[mover] - scores[1 - mover])
                assert (output.discount[i], output.value[i]) == (0, 0)
            else:
                next_mover = next_position.current_player
                assert (output.reward[i], output.discount[i]) == (0, 1 if next_mover == mover else -1)
                assert output.value[i] == pytest.approx(2 * values_after[i, next_mover] - 1, abs=1e-6)
            discounts.add(float(output.discount[i]))
    assert discounts == ({-1.0, 0.0, 1.0} if game is DUO else {-1.0, 0.0})


@pytest.mark.parametrize("policy", ["gumbel_muzero_policy", slow("muzero_policy")])
def test_wins_are_found(policy: str) -> None:
    """With an uninformed evaluator, the search plays an immediately winning turn if there is one."""

    def uninformed(params: Any, state: Any, key: Any) -> Any:
        return (lambda actions: params * jnp.zeros(actions.shape)), jnp.full(2, 0.5)

    search = CandidateSearch(SANTORINI, 64, uninformed, sample_candidates)
    winning = jax.jit(jax.vmap(lambda state: jnp.stack(rules.winning_turns(SANTORINI.config, state))))
    states = [
        rows(states, i)
        for states, _ in positions(SANTORINI, BATCH, seed=1)
        for i in np.flatnonzero(np.asarray(winning(states)).any(axis=1))
    ][:BATCH]
    assert len(states) == BATCH
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    @jax.jit
    def choose(params: Any, states: Any, key: Any) -> Any:
        root_key, search_key = jax.random.split(key)
        root = search.root(params, root_key, states)
        invalid = search.invalid_actions(root)
        with jax.numpy_dtype_promotion("standard"):  # mctx relies on it
            output = getattr(mctx, policy)(params, search_key, root, search.recurrent_fn, 256, invalid_actions=invalid)
        return search.actions(root, output.action)

    actions = np.array([choose(jnp.float32(1), batch, jax.random.key(seed)) for seed in range(4)])
    words = np.asarray(winning(batch))
    won = words[np.arange(BATCH), actions // 32] >> (actions % 32).astype(np.uint32) & 1
    assert np.mean(won) > 0.8


def test_invalid_games_and_arguments() -> None:
    with pytest.raises(ValueError, match="4 players"):
        CandidateSearch(tilewe_jax.make("tilewe"))
    with pytest.raises(ValueError, match="num_candidates"):
        CandidateSearch(SANTORINI, 0)
