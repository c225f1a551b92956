"""Agents by name: levels for people, and the strongest search."""

from types import MappingProxyType

import pytest

import tilewe_jax
from tilewe_jax import agents
from tilewe_jax.agents import AgentSpec
from tilewe_jax.agents.levels import BEST, LEVELS, agent_of
from tilewe_jax.networks import weights


@pytest.mark.parametrize("name", list(LEVELS))
def test_levels_are_agents_with_increasing_ratings(name: str) -> None:
    game = tilewe_jax.make(name)
    assert game.id == name
    ratings = [level.elo for level in LEVELS[name]]
    assert ratings == sorted(set(ratings))
    for number, level in enumerate(LEVELS[name], 1):
        assert agent_of(game, f"level:{number}") == level.agent
        assert agents.agent(f"level:{number}", game).spec == AgentSpec.parse(level.agent)


def test_levels_without_a_fitting_network() -> None:
    strongest = LEVELS["duo_official"][-1].agent
    assert "network=" in strongest
    assert agent_of(tilewe_jax.make("duo_official"), f"level:{len(LEVELS['duo_official'])}") == strongest
    smaller = tilewe_jax.make("duo_official", size=8)
    assert agent_of(smaller, f"level:{len(LEVELS['duo_official'])}") == LEVELS["duo_official"][-2].agent
    assert agent_of(smaller, "level:2") == LEVELS["duo_official"][1].agent
    for options, below in (({"placement": "random"}, -1), ({"size": 4}, -1), ({"placement": "chosen"}, -2)):
        game = tilewe_jax.make("santorini", **options)
        assert agent_of(game, f"level:{len(LEVELS['santorini'])}") == LEVELS["santorini"][below].agent
        assert agents.agent(f"level:{len(LEVELS['santorini'])}", game).spec is not None


def test_players_by_level() -> None:
    game = tilewe_jax.make("duo_official")
    player = agents.agent("easy=level:1", game)
    assert (player.name, str(player.spec)) == ("easy", str(AgentSpec.parse(LEVELS["duo_official"][0].agent)))
    assert agents.agent("level:2", game).name == "level:2"
    for text in ("level:0", "level:99", "level:", "level:two", "level:-1"):
        with pytest.raises(ValueError, match="level:1 to level:"):
            agents.agent(text, game)
    assert agent_of(game, "random") == "random"
    with pytest.raises(ValueError, match="nameless"):
        agent_of(Nameless(), "level:1")


def test_best_is_the_search_with_the_shipped_network() -> None:
    assert sorted(BEST) == sorted([*weights.names(), "classic_2"])  # which has no network
    for name, agent in BEST.items():
        game = tilewe_jax.make(name)
        spec = agents.agent("best", game).spec
        assert spec
        assert spec == AgentSpec.parse(agent)
        assert spec.evaluator.network == ("" if name in ("triominos", "classic", "classic_2") else name)
    game = tilewe_jax.make("duo_official")
    spec = AgentSpec.parse("best:num_simulations=4,candidate_pool=64", game)
    plain = AgentSpec.parse(BEST["duo_official"])
    assert spec == plain.with_settings({"num_simulations": "4", "candidate_pool": "64"})
    with pytest.raises(ValueError, match="c_init"):
        agents.agent("best:c_init=1,c_init=2", game)
    with pytest.raises(ValueError, match="'nosuch=1'"):
        agents.agent("best:nosuch=1", game)


def test_best_without_a_fitting_network() -> None:
    for game in (tilewe_jax.make("classic_2", size=10), tilewe_jax.make("duo_official", size=8), Nameless()):
        assert agent_of(game, "best") == "puct"
        assert agent_of(game, "best:num_simulations=4") == "puct:num_simulations=4"


class Nameless:
    """A game without levels and networks."""

    id = "nameless"
    options = MappingProxyType({})
