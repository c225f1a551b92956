"""Players by name, searches of hidden information, and self-play from the command line."""

import json
import random
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
from tilewe_jax import agents, arena
from tilewe_jax.agents.agent_engine import AgentEngine
from tilewe_jax.search import (
    AgentSpec,
    Determinized,
    GumbelRule,
    InformationSetSearch,
    PuctRule,
    Search,
    SearchSettings,
    SelectionRule,
    build,
    check_memory,
    search_agents,
    uniform_evaluator,
)
from tilewe_jax.tilewe import Board
from tilewe_jax.tilewe.engine import RandomEngine


@pytest.mark.parametrize(
    ("rule", "num_determinizations"),
    [(PuctRule(), 3), (GumbelRule(8, gumbel_scale=1.0), 0), slow(PuctRule(), 0), slow(GumbelRule(8, gumbel_scale=1.0), 3)],
    ids=["puct-3", "gumbel-0", "puct-0", "gumbel-3"],
)
def test_what_is_sampled_and_not_what_is_hidden_decides(rule: SelectionRule, num_determinizations: int) -> None:
    """A search of determinizations, or of information sets, gives the same whatever is hidden, over legal actions."""
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=4)
    assert game.has_hidden_information
    assert not tilewe_jax.make("duo").has_hidden_information
    functions, key = batched(game), jax.random.key(0)
    state = functions.init(jax.random.split(key, 8))
    for step in range(6):
        state = functions.step(state, functions.sample_action(state, jax.random.split(jax.random.key(step), 8)))
    other = functions.determinize(state, state.current_player, jax.random.split(jax.random.key(9), 8))
    assert (np.asarray(other.trays) != np.asarray(state.trays)).any()
    search: Any
    if num_determinizations:
        search = Determinized(Search(game, uniform_evaluator(game), rule, SearchSettings(12, 16)), num_determinizations)
    else:
        search = InformationSetSearch(game, uniform_evaluator(game), rule, SearchSettings(30, 16, max_depth=6))
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
            # Gumbel noise decides among the most visited actions of one tree, the policy otherwise.
            noisy = isinstance(rule, GumbelRule) and not num_determinizations
            assert shares[row == chosen].sum() >= (1e-6 if noisy else shares.max() - 1e-6)


class Guess(TicTacToe):
    """Player 0 names one of the cells 0 to 2, or takes a sure 0.6 by naming 3; to name the hidden cell wins, else it loses."""

    num_actions = 4

    def init(self, key):
        state = super().init(key)
        return replace(state, cells=state.cells.at[8].set(jax.random.randint(key, (), 0, 3).astype(jnp.int8)))

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


@pytest.mark.parametrize("rule", [PuctRule(), GumbelRule()], ids=["puct", "gumbel"])
def test_one_tree_does_not_plan_with_what_it_cannot_know(rule: SelectionRule) -> None:
    """Trees that know their world find the hidden cell in each; one tree finds that the sure thing is better."""
    game = Guess()
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.vmap(game.init)(keys)
    settings = SearchSettings(240, 4, max_depth=2)
    worlds = Determinized(Search(game, uniform_evaluator(game), rule, replace(settings, num_simulations=60)), 4)
    tree = InformationSetSearch(game, uniform_evaluator(game), rule, settings)
    fused = np.asarray(jax.jit(jax.vmap(worlds))(states, keys).action)
    sound = np.asarray(jax.jit(jax.vmap(tree))(states, keys).action)
    assert (fused != 3).all()
    assert (sound == 3).all()


def test_engine_on_the_host_board() -> None:
    """A search plays whole games on a board of the package's kind, against an engine of it."""
    engine = AgentEngine(
        "puct:num_simulations=8,num_playouts=0,num_candidates=8,candidate_pool=8,root_candidate_pool=8", "searcher"
    )
    board, other = Board(2), RandomEngine()
    random.seed(0)
    while not board.finished:
        player = engine if board.current_player == 0 else other
        board.push(player.search(board, 10.0))
    assert engine.name == "searcher"
    assert len(board.moves) > 20
    assert board.scores[0] >= max(80, board.scores[1])  # of 89 cells; on a board for four there is room for two
    with pytest.raises(ValueError, match="tilewe has no agent 'nobody'"):
        AgentEngine("nobody")


@pytest.mark.slow
def test_a_search_beats_chance() -> None:
    game = tilewe_jax.make("santorini", size=4)
    players = [
        agents.player(game, "search=gumbel:num_simulations=24,max_num_considered_actions=8,num_candidates=32"),
        agents.player(game, "random"),
    ]
    results = arena.play_match(game, players, 64, 64, 0)
    win_rate = {row["agent"]: row["win_rate"] for row in results.summary()["agents"]}
    assert win_rate["search"] > 0.8
    assert not results.all("forfeits").any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "duo has no agent 'nobody'; it has .*puct, gumbel"),
        ("puct:num_simulations", "puct: num_simulations needs a value, such as num_simulations=64"),
        ("puct:sims=3", "puct has no setting 'sims=3'; it has num_simulations=64"),
        ("puct:gumbel_scale=1", "puct has no setting 'gumbel_scale=1' \\(gumbel has\\); it has num_simulations=64"),
        ("puct:num_simulations=many", "puct: num_simulations must be an integer, not 'many'"),
        ("puct:c_init=much", "puct: c_init must be a number, not 'much'"),
        ("puct:c_init=nan", "puct: c_init must be a number, not nan"),
        ("gumbel:gumbel_scale=inf", "gumbel: gumbel_scale must be a number, not inf"),
        ("puct:priors=maybe", "puct: priors must be true or false, not 'maybe'"),
        ("puct:max_depth=3,max_depth=4", "puct: max_depth is given twice"),
        ("puct:num_simulations=0", "puct: num_simulations must be at least 1, not 0"),
        ("gumbel:max_num_considered_actions=0", "gumbel: max_num_considered_actions must be at least 1, not 0"),
        ("puct:num_candidates=0", "num_candidates must be at least 1, not 0"),
        ("puct:num_samples=0", "num_samples must be at least 1, not 0"),
        ("puct:num_determinizations=-1", "num_determinizations must be at least 0, not -1"),
        ("puct:score_weight=2", "score_weight must be between 0 and 1, not 2.0"),
        ("puct:playout_policy=nobody", "duo has no policy 'nobody'; it has .*random"),
        ("puct:network=nowhere", "network 'nowhere': (No such file|not found)"),
        ("puct:symmetries=1", "puct: symmetries are asked of a network; name one"),
    ],
)
def test_agents_that_are_none(text: str, message: str) -> None:
    duo = tilewe_jax.make("duo")
    with pytest.raises(ValueError, match=message):
        build(AgentSpec.parse(text), duo)
    with pytest.raises(ValueError, match=message):
        agents.player(duo, text)


def test_simulations_of_a_decision() -> None:
    duo, triominos = tilewe_jax.make("duo"), tilewe_jax.make("triominos")

    def simulations(game: Any, text: str) -> int:
        return AgentSpec.parse(text).num_simulations(game)

    assert simulations(duo, "random") == 0
    assert simulations(duo, "puct:num_simulations=12") == 12
    assert simulations(triominos, "gumbel:num_simulations=12,num_determinizations=3") == 36
    assert simulations(triominos, "puct:num_simulations=12,num_determinizations=0") == 12
    check_memory(AgentSpec.parse("puct"), duo, 100)
    with pytest.raises(MemoryError, match="40,000,000,000 trees of 65 nodes"):
        check_memory(AgentSpec.parse("puct"), triominos, 10**10)


@pytest.mark.parametrize(
    "text",
    [
        "random",
        "puct",
        "gumbel:network=module.sub:factory,symmetries=true",
        "puct:num_simulations=7,score_weight=0.25,stop_early=false,c_init=1.5,num_playouts=0,num_determinizations=0",
        "gumbel:candidate_pool=9,gumbel_scale=1.0,network=/some/folder/file.npz,reuse_subtree=false",
        "puct:fpu_value=0.5,playout_policy=block_hoard",
    ],
)
def test_specs_as_text(text: str) -> None:
    assert str(AgentSpec.parse(text)) == text
    assert AgentSpec.parse(str(AgentSpec.parse(text))) == AgentSpec.parse(text)


def test_all_settings_have_defaults_that_parse() -> None:
    for text in search_agents():
        kind = text.partition(":")[0]
        assert AgentSpec.parse(text) == AgentSpec(kind) == AgentSpec.parse(kind)
        assert AgentSpec.parse(f"{kind}:priors=0,max_depth=32").evaluator.priors is False
    assert AgentSpec("gumbel").rule == GumbelRule(gumbel_scale=0.0)
    assert str(AgentSpec("puct", rule=PuctRule(temperature=1.0))) == "puct:temperature=1.0"
    with pytest.raises(ValueError, match="the rule of puct is a PuctRule, not GumbelRule"):
        AgentSpec("puct", rule=GumbelRule())
    with pytest.raises(ValueError, match="'random' has no settings"):
        AgentSpec.parse("random:num_simulations=3")
    with pytest.raises(ValueError, match="random has no settings"):
        AgentSpec("random", num_determinizations=3)


def test_selfplay_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    options = [
        "--game",
        "santorini",
        "--set",
        "size=3",
        "puct:num_simulations=8,num_candidates=8",
        "--games",
        "6",
        "--batch",
        "4",
    ]
    code, out, err = run(capsys, "match", *options, "--out", str(path), "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["games"] == 6
    assert summary["simulations_per_second"] > 0
    assert len(path.read_text().splitlines()) == 7
    code, out, _ = run(capsys, "replay", str(path), "--json")
    assert (code, json.loads(out)["wrong"]) == (0, 0)
    for arguments, message in (
        (["strong"], "has no agent 'strong'"),
        (["--games", "0"], "--games must be positive"),
        (["--devices", "3"], "a batch of 4 cannot be divided among 3 devices"),
        (["puct:num_simulations=1000000000"], "need about"),
    ):
        code, out, err = run(capsys, "match", *arguments, *options)
        assert (code, out) == (2, "")
        assert message in err
        assert len([line for line in err.splitlines() if not line.startswith("compiling")]) == 1  # on a slow machine
