"""Searches of games with hidden information, and self-play from the command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import assert_same, batched, slow
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.search import (
    Determinized,
    GumbelRule,
    InformationSetSearch,
    PuctRule,
    Search,
    SearchSettings,
    SelectionRule,
    uniform_evaluator,
)


@pytest.mark.parametrize(
    ("rule", "num_determinizations"),
    [(PuctRule(), 2), (GumbelRule(8, gumbel_scale=1.0), 0), slow(PuctRule(), 0), slow(GumbelRule(8, gumbel_scale=1.0), 2)],
    ids=["puct-2", "gumbel-0", "puct-0", "gumbel-2"],
)
def test_hidden_information_does_not_affect_the_search(rule: SelectionRule, num_determinizations: int) -> None:
    game = tilewe_jax.make("triominos", players=3, tiles=10, tray=2)
    assert game.has_hidden_information
    assert not tilewe_jax.make("duo").has_hidden_information
    functions, key = batched(game), jax.random.key(0)
    state = functions.init(jax.random.split(key, 8))
    for step in range(3):
        state = functions.step(state, functions.sample_action(state, jax.random.split(jax.random.key(step), 8)))
    other = functions.determinize(state, state.current_player, jax.random.split(jax.random.key(9), 8))
    assert (np.asarray(other.trays) != np.asarray(state.trays)).any()
    search: Any
    if num_determinizations:
        search = Determinized(Search(game, uniform_evaluator(game), rule, SearchSettings(8, 8)), num_determinizations)
    else:
        search = InformationSetSearch(game, uniform_evaluator(game), rule, SearchSettings(12, 8, max_depth=4))
    decide, keys = jax.jit(jax.vmap(search)), jax.random.split(jax.random.key(1), 8)
    output = decide(state, keys)
    assert_same(decide(other, keys), output)
    action, actions, policy = output.action, output.candidates, output.policy
    legal = np.asarray(functions.is_legal(state, action))
    over = np.asarray(functions.is_terminal(state))
    assert (legal | over).all()
    np.testing.assert_allclose(np.asarray(policy).sum(axis=1)[~over], 1, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(output.value).sum(axis=1)[~over], 1, rtol=1e-5)
    assert ((np.asarray(output.prior_probs) > 0) >= (np.asarray(policy) > 0)).all()
    for row, chosen, shares in zip(np.asarray(actions), np.asarray(action), np.asarray(policy), strict=True):
        assert len(set(row[shares > 0].tolist())) == (shares > 0).sum()
        if chosen >= 0:
            # In an information-set search, Gumbel noise decides among the most visited actions.
            noisy = isinstance(rule, GumbelRule) and not num_determinizations
            assert shares[row == chosen].sum() >= (1e-6 if noisy else shares.max() - 1e-6)


class Guess(TicTacToe):
    """Player 0 guesses the hidden cell among 0 to 2, which wins or loses, or takes a safe value of 0.6 with action 3."""

    num_actions = 4

    def init(self, key):
        state = super().init(key)
        return replace(state, cells=state.cells.at[8].set(jax.random.randint(key, (), 0, 3).astype(jnp.int8)))

    has_hidden_information = True

    def determinize(self, state, player, key):
        del player
        return replace(state, cells=state.cells.at[8].set(jax.random.randint(key, (), 0, 3).astype(jnp.int8)))

    def apply(self, state, action):
        return replace(state, cells=state.cells.at[0].set(jnp.where(action >= 0, action.astype(jnp.int8), state.cells[0])))

    def is_terminal(self, state):
        return state.cells[0] >= 0

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~self.is_terminal(state), (4,))

    def returns(self, state):
        won = jnp.where(state.cells[0] == 3, 0.6, (state.cells[0] == state.cells[8]).astype(jnp.float32))
        return jnp.where(self.is_terminal(state), jnp.stack([won, 1 - won]), 0.0)


@pytest.mark.parametrize("rule", [PuctRule(), slow(GumbelRule())], ids=["puct", "gumbel"])
def test_information_set_search_avoids_strategy_fusion(rule: SelectionRule) -> None:
    """Determinized trees know the hidden cell and guess it; the information-set tree takes the safe action."""
    game = Guess()
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.vmap(game.init)(keys)
    settings = SearchSettings(240, 4, max_depth=2)
    determinized = Determinized(Search(game, uniform_evaluator(game), rule, replace(settings, num_simulations=60)), 4)
    tree = InformationSetSearch(game, uniform_evaluator(game), rule, settings)
    guesses = np.asarray(jax.jit(jax.vmap(determinized))(states, keys).action)
    safe = np.asarray(jax.jit(jax.vmap(tree))(states, keys).action)
    assert (guesses != 3).all()
    assert (safe == 3).all()


def test_selfplay_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    agent = "puct:num_simulations=8,num_candidates=8,num_playouts=0,priors=false,reuse_subtree=false"
    options = ["--game", "santorini", "--set", "size=3"]
    options += ["--games", "6", "--batch", "4"]
    code, out, err = run(capsys, "match", agent, *options, "--out", str(path), "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["games"] == 6
    assert summary["simulations_per_second"] > 0
    assert len(path.read_text().splitlines()) == 7
