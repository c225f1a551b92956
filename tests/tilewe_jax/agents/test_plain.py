"""Players in plain Python: legal, reproducible, and stronger with more search."""

from random import Random
from typing import Any

import pytest

from tilewe_jax.agents.plain import simulations_of, think
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import OFFERS, make_host_game


def decide(game: HostGame, position: HostPosition, agent: str, seed: int, **more: Any) -> dict[str, Any]:
    steps = list(think(game, position, agent, Random(seed), **more))
    answer = steps.pop()
    assert answer is not None
    assert steps == [None] * answer["num_simulations"]
    return answer


def points(name: str, agents: list[str], games: int, **options: Any) -> list[float]:
    """Play games in turns of the seats; return the sum of the outcomes of each agent."""
    game = make_host_game(name, **options)
    totals = [0.0] * len(agents)
    for number in range(games):
        chance = Random(number)
        position = game.init_from_deal(game.new_deal(chance))
        seats = [(seat + number) % len(agents) for seat in range(game.num_players)]
        while not position.is_terminal:
            agent = agents[seats[position.current_player]]
            position = position.after(decide(game, position, agent, chance.getrandbits(30))["action"])
        for seat, outcome in zip(seats, game.returns(position), strict=True):
            totals[seat] += outcome
    return totals


@pytest.mark.parametrize("name", OFFERS)
def test_answers_describe_legal_actions(name: str) -> None:
    game, chance = make_host_game(name), Random(1)
    position = game.init_from_deal(game.new_deal(chance))
    for _ in range(4):
        legal = position.legal_actions()
        for agent in ("random", "heuristic", "search:simulations=12"):
            answer = decide(game, position, agent, 5)
            assert answer == decide(game, position, agent, 5)
            assert answer["action"] in legal
            assert sum(answer["value"]) == pytest.approx(1)
            visits = [candidate["visits"] for candidate in answer["candidates"]]
            assert visits == sorted(visits, reverse=True)
            for candidate in answer["candidates"]:
                assert candidate["action"] in legal
                assert candidate["principal_variation"][0] == position.action_name(candidate["action"])
                assert candidate["value"] is None or sum(candidate["value"]) == pytest.approx(1)
            if agent.startswith("search"):
                assert 0 < sum(visits) <= 12
                assert answer["candidates"][0]["action"] == answer["action"]
        position = position.after(chance.choice(legal))


def test_a_search_takes_a_win() -> None:
    game = make_host_game("santorini")
    totals = points("santorini", ["search:simulations=30", "random"], 4)
    assert totals == [4, 0]
    position = game.init_from_deal(None)
    chance = Random(2)
    found = 0
    for _ in range(400):
        if position.is_terminal:
            position = game.init_from_deal(None)
        wins = [action for action in position.legal_actions() if position.after(action).is_terminal]
        if wins:
            answer = decide(game, position, "search:simulations=60", 1)
            mover = position.current_player
            assert answer["action"] in wins or answer["value"][mover] > 0.95  # a forced win may be as good
            found += 1
        position = position.after(chance.choice(position.legal_actions()))
    assert found > 3


@pytest.mark.parametrize("name", ["duo_official", "triominos", "classic"])
def test_the_heuristic_beats_random_moves(name: str) -> None:
    strong, weak = points(name, ["heuristic", "random"], 6)
    assert strong > 2 * weak


def test_a_search_knows_only_what_its_seat_sees() -> None:
    game, chance = make_host_game("triominos"), Random(4)
    position = game.init_from_deal(game.new_deal(chance))
    for _ in range(6):
        world = OFFERS["triominos"].heuristics.determinize(position, Random(9))  # type: ignore[union-attr, misc]
        assert world != position
        assert decide(game, world, "search:simulations=16", 3) == decide(game, position, "search:simulations=16", 3)
        position = position.after(chance.choice(position.legal_actions()))


def test_wrong_texts_are_refused() -> None:
    assert [simulations_of(text) for text in ("random", "heuristic", "search:simulations=7")] == [0, 0, 7]
    for text in ("", "best", "search", "search:simulations=0", "search:simulations=-1", "search:seconds=1", "random:x=1"):
        with pytest.raises(ValueError, match="agent must be random, heuristic or search:simulations=N"):
            simulations_of(text)
