"""Players by name, searches of hidden information, and self-play from the command line."""

import json
import random
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments import arena
from experiments.arena.agent_engine import AgentEngine
from search import evaluators
from search.agents import agent, simulations
from search.determinization import Worlds, is_hidden
from search.ismcts import OneTree
from search.mcts import Search
from search.puct import Puct
from tests.experiments.test_cli import run
from tests.search.tictactoe import TicTacToe
from tests.support import assert_same, batched
from tilewe_jax.tilewe import Board
from tilewe_jax.tilewe.engine import RandomEngine


@pytest.mark.parametrize("worlds", [3, 0])
def test_what_is_sampled_and_not_what_is_there_decides(worlds: int) -> None:
    """A search of worlds, or of one tree for all, gives the same whatever is hidden, and a policy over the legal actions."""
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=4)
    assert is_hidden(game)
    assert not is_hidden(tilewe_jax.make("duo"))
    functions, key = batched(game), jax.random.key(0)
    state = functions.init(jax.random.split(key, 8))
    for step in range(6):
        state = functions.step(state, functions.sample_action(state, jax.random.split(jax.random.key(step), 8)))
    other = functions.determinize(state, state.current_player, jax.random.split(jax.random.key(9), 8))
    assert (np.asarray(other.trays) != np.asarray(state.trays)).any()
    if worlds:
        search = Worlds(Search(game, evaluators.uniform(game), Puct(), 12, candidates=16), worlds)
    else:
        search = OneTree(game, evaluators.uniform(game), Puct(), 30, candidates=16, depth=6)
    decide, keys = jax.jit(jax.vmap(search)), jax.random.split(jax.random.key(1), 8)
    found = decide(state, keys)
    assert_same(decide(other, keys), found)
    action, actions, policy = found.action, found.actions, found.policy
    legal = np.asarray(functions.is_legal(state, action))
    over = np.asarray(functions.is_terminal(state))
    assert (legal | over).all()
    np.testing.assert_allclose(np.asarray(policy).sum(axis=1)[~over], 1, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found.values).sum(axis=1)[~over], 1, rtol=1e-5)
    assert ((np.asarray(found.prior) > 0) >= (np.asarray(policy) > 0)).all()
    for row, chosen, shares in zip(np.asarray(actions), np.asarray(action), np.asarray(policy), strict=True):
        assert len(set(row[shares > 0].tolist())) == (shares > 0).sum()
        if chosen >= 0:
            assert shares[row == chosen].sum() == pytest.approx(shares.max())


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

    def legal_actions(self, state):
        return jnp.broadcast_to(~self.is_terminal(state), (4,))

    def returns(self, state):
        won = jnp.where(state.cells[0] == 3, 0.6, (state.cells[0] == state.cells[8]).astype(jnp.float32))
        return jnp.where(self.is_terminal(state), jnp.stack([won, 1 - won]), 0.0)


def test_one_tree_does_not_plan_with_what_it_cannot_know() -> None:
    """Trees that know their world find the hidden cell in each; one tree finds that the sure thing is better."""
    game = Guess()
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.vmap(game.init)(keys)
    worlds = Worlds(Search(game, evaluators.uniform(game), Puct(), 60, candidates=4, depth=2), 4)
    tree = OneTree(game, evaluators.uniform(game), Puct(), 240, candidates=4, depth=2)
    fused = np.asarray(jax.jit(jax.vmap(worlds))(states, keys).action)
    sound = np.asarray(jax.jit(jax.vmap(tree))(states, keys).action)
    assert (fused != 3).all()
    assert (sound == 3).all()


def test_engine_on_the_host_board() -> None:
    """A search plays whole games on a board of the package's kind, against an engine of it."""
    engine = AgentEngine("mcts:sims=4,playouts=0,candidates=8,pool=16", "searcher")
    board, other = Board(2), RandomEngine()
    random.seed(0)
    while not board.finished:
        player = engine if board.current_player == 0 else other
        board.push(player.search(board, 10.0))
    assert engine.name == "searcher"
    assert len(board.moves) > 20
    assert board.scores[0] > board.scores[1]
    with pytest.raises(ValueError, match="tilewe has no player 'nobody'"):
        AgentEngine("nobody")


def test_a_search_beats_chance() -> None:
    game = tilewe_jax.make("santorini", size=4)
    players = [arena.player(game, "search=gumbel:sims=24,considered=8,candidates=32"), arena.player(game, "random")]
    results = arena.play_match(game, players, 64, 64, 0)
    win_rate = {row["agent"]: row["win_rate"] for row in results.summary()["agents"]}
    assert win_rate["search"] > 0.8
    assert not results.all("forfeits").any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "duo has no player 'nobody'; it has .*mcts:sims=64,playouts=1"),
        ("mcts:sims", "mcts has no setting 'sims'; it has sims=64"),
        ("mcts:simulations=3", "mcts has no setting 'simulations=3'; it has sims=64"),
        ("mcts:sims=many", "mcts: sims must be a number, not 'many'"),
        ("mcts:sims=0", "simulations must be at least 1, not 0"),
        ("gumbel:considered=0", "considered must be at least 1, not 0"),
        ("mcts:candidates=0", "candidates must be at least 1, not 0"),
        ("mcts:samples=0", "samples must be at least 1, not 0"),
        ("mcts:margin=2", "margin must be between 0 and 1, not 2.0"),
        ("mcts:policy=nobody", "duo has no player 'nobody'"),
        ("mcts:network=nowhere", "network 'nowhere': No such file"),
        ("mcts:symmetries=1", "mcts: symmetries are asked of a network; name one"),
    ],
)
def test_agents_that_are_none(text: str, message: str) -> None:
    duo = tilewe_jax.make("duo")
    with pytest.raises(ValueError, match=message):
        agent(duo, text)
    with pytest.raises(ValueError, match=message):
        arena.player(duo, text)


def test_simulations_of_a_decision() -> None:
    duo, triominos = tilewe_jax.make("duo"), tilewe_jax.make("triominos")
    assert simulations(duo, "random") == 0
    assert simulations(duo, "mcts:sims=12") == 12
    assert simulations(triominos, "gumbel:sims=12,worlds=3") == 36
    assert simulations(triominos, "mcts:sims=12,worlds=0") == 12
    with pytest.raises(ValueError, match="worlds must be at least 1; one tree for all worlds is searched by mcts alone"):
        agent(triominos, "gumbel:worlds=0")


def test_selfplay_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    options = ["--game", "santorini", "--set", "size=3", "--agent", "mcts:sims=8,candidates=8", "--games", "6", "--batch", "4"]
    code, out, err = run(capsys, "selfplay", *options, "--out", str(path), "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["games"] == 6
    assert summary["simulations_per_second"] > 0
    assert len(path.read_text().splitlines()) == 7
    code, out, _ = run(capsys, "replay", str(path), "--json")
    assert (code, json.loads(out)["wrong"]) == (0, 0)
    for arguments, message in (
        (["--agent", "best"], "has no player 'best'"),
        (["--games", "0"], "--games must be positive"),
        (["--devices", "3"], "a batch of 4 cannot be divided among 3 devices"),
        (["--agent", "mcts:sims=1000000000"], "need about"),
    ):
        code, out, err = run(capsys, "selfplay", *options, *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
