"""Players by name, searches of hidden information, and self-play from the command line."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import tilewe_jax
from experiments import arena
from search import evaluators
from search.agents import agent, simulations
from search.determinize import Worlds, is_hidden
from search.mcts import Search
from search.select import Puct
from tests.support import assert_same, batched
from tests.test_cli import run


def test_what_is_sampled_and_not_what_is_there_decides() -> None:
    """A search of worlds gives the same whatever is hidden, and a policy over the legal actions."""
    game = tilewe_jax.make("triominos", players=3, tiles=20, tray=4)
    assert is_hidden(game)
    assert not is_hidden(tilewe_jax.make("duo"))
    functions, key = batched(game), jax.random.key(0)
    state = functions.init(jax.random.split(key, 8))
    for step in range(6):
        state = functions.step(state, functions.sample_action(state, jax.random.split(jax.random.key(step), 8)))
    other = functions.determinize(state, state.current_player, jax.random.split(jax.random.key(9), 8))
    assert (np.asarray(other.trays) != np.asarray(state.trays)).any()
    worlds = Worlds(Search(game, evaluators.uniform(game), Puct(), 12, candidates=16), 3)
    decide, keys = jax.jit(jax.vmap(worlds)), jax.random.split(jax.random.key(1), 8)
    action, actions, policy = decide(state, keys)
    assert_same(decide(other, keys), (action, actions, policy))
    legal = np.asarray(functions.is_legal(state, action))
    over = np.asarray(functions.is_terminal(state))
    assert (legal | over).all()
    np.testing.assert_allclose(np.asarray(policy).sum(axis=1)[~over], 1, rtol=1e-5)
    for row, chosen, shares in zip(np.asarray(actions), np.asarray(action), np.asarray(policy), strict=True):
        assert len(set(row[shares > 0].tolist())) == (shares > 0).sum()
        if chosen >= 0:
            assert shares[row == chosen].sum() == pytest.approx(shares.max())


def test_a_search_beats_chance() -> None:
    game = tilewe_jax.make("santorini", size=4)
    players = [arena.player(game, "search=gumbel:sims=24,considered=8,candidates=32"), arena.player(game, "random")]
    results = arena.compete(game, players, 64, 64, 0, lambda _: None)
    share = {row["name"]: row["win_share"] for row in results.summary()["players"]}
    assert share["search"] > 0.8
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
    for arguments, message in ((["--agent", "best"], "has no player 'best'"), (["--games", "0"], "--games must be positive")):
        code, out, err = run(capsys, "selfplay", *options, *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
