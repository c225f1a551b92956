"""Agents from text: pure functions for all games, whole games with a kept tree, and settings."""

import random
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import slow
from tilewe_jax import agents, arena
from tilewe_jax.agents import AgentSpec
from tilewe_jax.agents.agent_engine import AgentEngine
from tilewe_jax.agents.spec import search_agents
from tilewe_jax.agents.timed_search import MAX_PARTS
from tilewe_jax.search import GumbelRule, PuctRule, SubtreeReuse
from tilewe_jax.tilewe import Board
from tilewe_jax.tilewe.engine import RandomEngine


@pytest.mark.parametrize("name", ["santorini", *(slow(name) for name in tilewe_jax.available_games() if name != "santorini")])
def test_the_best_agent_plays_every_game_under_vmap(name: str) -> None:
    game = tilewe_jax.make(name)
    agent = tilewe_jax.agent("best:num_simulations=2", game)
    states, keys = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2)), jax.random.split(jax.random.key(1), 2)
    output = jax.jit(jax.vmap(agent.search))(states, keys)
    assert jax.vmap(game.is_legal)(states, output.action).all()
    assert (output.candidates == output.action[:, None]).any(axis=1).all()


def test_an_agent_is_a_pytree_of_its_weights() -> None:
    game = tilewe_jax.make("santorini", size=3)
    agent = agents.agent("mine=puct:num_simulations=2,network=santorini", game)
    assert (agent.name, agent.is_search, agent.keeps_tree) == ("mine", True, True)
    states, keys = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2)), jax.random.split(jax.random.key(1), 2)
    act = jax.jit(jax.vmap(agents.Agent.act, in_axes=(None, 0, 0)))
    np.testing.assert_array_equal(act(agent, states, keys), jax.jit(jax.vmap(agent.search))(states, keys).action)
    assert len(jax.tree.leaves(agent)) > 2
    policy = agents.agent(game.sample_action, game, name="chance")
    assert (policy.name, policy.is_search) == ("chance", False)
    assert jax.vmap(game.is_legal)(states, act(policy, states, keys)).all()
    with pytest.raises(ValueError, match="chance"):
        jax.vmap(policy.search)(states, keys)


def test_host_agents_play_like_subtree_reuse() -> None:
    game = tilewe_jax.make("santorini", size=3)
    text = "puct:num_simulations=16,num_candidates=8,num_playouts=0"
    player, position, actions = tilewe_jax.agent(text, game).host(seed=3), game.host(game.init(jax.random.key(0))), list[int]()
    reuse = SubtreeReuse(tilewe_jax.agent(text, game).built())  # type: ignore[arg-type]
    play, advance, step = jax.jit(reuse.act), jax.jit(reuse.advance), jax.jit(game.step)
    state, key, kept = game.init(jax.random.key(0)), jax.random.key(3), 0
    memory = reuse.init(state)
    while not position.is_terminal:
        key, move_key = jax.random.split(key)
        output, memory = play(memory, state, move_key)
        actions.append(player.choose(actions))
        assert actions[-1] == int(output.action)
        kept += int(memory.visits[0]) > 17
        state, memory = step(state, output.action), advance(memory, output.action)
        position = position.after(actions[-1])
    assert bool(game.is_terminal(state))
    assert kept > 2


class Patient:
    """A player on the host that remembers its games."""

    name = "patient"

    def __init__(self) -> None:
        self.games: list[Any] = []

    def choose(self, game: agents.OngoingGame, seconds: float, seed: str) -> int:
        self.games += [] if any(known is game for known in self.games) else [game]
        return game.position.legal_actions()[0]


def test_players_on_the_host_as_agents() -> None:
    game, patient = tilewe_jax.make("santorini", size=3), Patient()
    agent = agents.agent(patient, game)
    player, actions = agent.host(), list[int]()
    for _ in range(4):
        actions.append(player.choose(actions))
    player.choose(actions[:1])
    assert len(patient.games) == 2, "a game that goes on is the same one"
    with pytest.raises(ValueError, match="patient"):
        agent.act(game.init(jax.random.key(0)), jax.random.key(0))


def test_agents_as_engines_of_host_boards() -> None:
    engine = AgentEngine("random", "bot")
    board, opponent = Board(2), RandomEngine()
    random.seed(0)
    while not board.finished:
        player = engine if board.current_player == 0 else opponent
        board.push(player.search(board, 10.0))
    assert engine.name == "bot"
    assert len(board.moves) > 20
    with pytest.raises(ValueError, match="'nobody'"):
        AgentEngine("nobody")


@pytest.mark.parametrize(
    ("settings", "leaves"),
    [
        ("num_simulations=999", 1),
        ("num_simulations=1000", 2),
        ("num_simulations=9000", 8),
        ("num_simulations=9000,leaves=3", 3),
    ],
)
def test_long_searches_evaluate_several_leaves_together(settings: str, leaves: int) -> None:
    assert agents.agent(f"puct:{settings}", tilewe_jax.make("duo")).built().num_leaves == leaves
    hidden = "num_simulations=9000,num_determinizations=0"
    assert not agents.agent(f"puct:{hidden}", tilewe_jax.make("triominos")).built().settings.leaves


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "'nobody'.*puct, gumbel"),
        ("puct:num_simulations", "num_simulations=64"),
        ("puct:sims=3", "'sims=3'"),
        ("puct:gumbel_scale=1", "'gumbel_scale=1' \\(gumbel has\\)"),
        ("puct:num_simulations=many", "num_simulations .*'many'"),
        ("puct:c_init=nan", "c_init .*'nan'"),
        ("gumbel:gumbel_scale=inf", "gumbel_scale .*'inf'"),
        ("puct:priors=maybe", "priors .*'maybe'"),
        ("puct:max_depth=3,max_depth=4", "max_depth"),
        ("puct:num_simulations=0", "num_simulations .*1"),
        ("gumbel:max_num_considered_actions=0", "max_num_considered_actions .*1"),
        ("puct:num_determinizations=-1", "num_determinizations .*-1"),
        ("puct:score_weight=2", "score_weight .*2.0"),
        ("puct:playout_policy=nobody", "'nobody'.*random"),
        ("puct:network=nowhere", "'nowhere'"),
        ("puct:symmetries=1", "symmetries"),
    ],
)
def test_invalid_agents(text: str, message: str) -> None:
    duo = tilewe_jax.make("duo")
    with pytest.raises(ValueError, match=message):
        agents.agent(text, duo)


def test_simulations_of_a_decision() -> None:
    duo, triominos = tilewe_jax.make("duo"), tilewe_jax.make("triominos")

    def simulations(game: Any, text: str) -> int:
        return AgentSpec.parse(text).num_simulations(game)

    assert simulations(duo, "random") == 0
    assert simulations(duo, "puct:num_simulations=12") == 12
    assert simulations(triominos, "gumbel:num_simulations=12,num_determinizations=3") == 36
    assert simulations(triominos, "puct:num_simulations=12,num_determinizations=0") == 12
    AgentSpec.parse("puct").check_memory(duo, 100)
    with pytest.raises(MemoryError, match="40,000,000,000"):
        AgentSpec.parse("puct").check_memory(triominos, 10**10)


@pytest.mark.parametrize(
    "text",
    [
        "random",
        "gumbel:network=module.sub:factory,symmetries=true",
        "puct:num_simulations=7,score_weight=0.25,stop_early=false,c_init=1.5,num_playouts=0,num_determinizations=0",
        "gumbel:candidate_pool=9,gumbel_scale=1.0,network=/some/folder/file.npz,reuse_subtree=false",
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
    with pytest.raises(ValueError, match="GumbelRule"):
        AgentSpec("puct", rule=GumbelRule())
    with pytest.raises(ValueError, match="'random'"):
        AgentSpec.parse("random:num_simulations=3")
    with pytest.raises(ValueError, match="'random'"):
        AgentSpec("random", num_determinizations=3)


def test_agents_with_a_limit_of_time() -> None:
    game = TicTacToe()
    agent = agents.agent("puct:num_simulations=16,num_playouts=0,num_candidates=9,seconds=0", game)
    host = agent.host()
    host.choose(())
    assert int(host.memory.visits[0]) == 1 + 16 // MAX_PARTS
    results = arena.play_match(game, [agent, agents.agent("random", game)], 2, 2, 0)
    assert not results.all("forfeits").any()
    with pytest.raises(ValueError, match="seconds=0"):
        agent.act(game.init(jax.random.key(0)), jax.random.key(0))
