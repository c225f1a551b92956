"""Reviews of games against an independent exhaustive search, and their formula of accuracy."""

import json
from functools import cache
from random import Random
from typing import Any

import pytest

from tilewe_jax.agents.analysis import AgentAnalyzer
from tilewe_jax.agents.review import MIN_POINTS, RecordedGame, accuracy_of, review_of
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.analysis import AnalysisSession
from tilewe_jax.interop.analysis_requests import Defaults, GameSpec

OPTIONS = {"size": 5, "pieces": ["O1", "I2", "I3", "L3"]}
AGENT = "puct:num_simulations=12,num_candidates=8,num_playouts=0"


def best_margin(position: Any, known: dict[Any, int]) -> int:
    """Return the margin of seat 0 under best play, by trying all games."""
    state = position.position
    key = *state.occupied, *state.hands, state.out, state.color
    if key not in known:
        scores = position.scores()
        if position.is_terminal:
            known[key] = scores[0] - scores[1]
        else:
            pick = min if position.current_player else max
            known[key] = pick(best_margin(position.after(action), known) for action in position.legal_actions())
    return known[key]


@pytest.fixture(scope="module")
def session() -> AnalysisSession:
    return AnalysisSession(Defaults("duo", OPTIONS), AgentAnalyzer(AGENT, 4, score_playouts=2))


@pytest.mark.parametrize("seed", range(3))
def test_a_proven_review_equals_trying_all_games(session: AnalysisSession, seed: int) -> None:
    host = make_host_game("duo", **OPTIONS)
    chance, position, known = Random(seed), host.init_from_deal(None), {}  # type: ignore[var-annotated]
    positions, actions = [position], []
    while not position.is_terminal:
        actions.append(chance.choice(position.legal_actions()))
        position = position.after(actions[-1])
        positions.append(position)
    first = max(1, len(actions) - 5)
    turns = [turn for turn in range(len(positions)) if not positions[turn].is_terminal]
    request = {"id": 1, "moves": actions, "analyzeTurns": turns, "facts": True, "solve_nodes": 5_000}
    assert session.receive(json.dumps(request)) == []
    answers: list[Any] = []
    while session.is_waiting:
        rows = session.work()
        assert {row["batch"] for row in rows} == {4}  # the last block is filled, so that it compiles nothing
        answers += rows
    assert [row["turn"] for row in answers] == turns
    review = review_of(RecordedGame(1, GameSpec(host, OPTIONS), None, tuple(actions), ()).request(), answers)

    margins = {turn: best_margin(positions[turn], known) for turn in range(first, len(positions))}
    assert review["proven"]["move"] <= first
    for turn, answer in enumerate(answers):
        if turn >= first:
            outcome = 0.5 + 0.5 * ((margins[turn] > 0) - (margins[turn] < 0))
            assert answer["solution"]["margin"] == margins[turn]
            assert review["values"][turn] == answer["solution"]["returns"] == [outcome, 1 - outcome]
            assert best_margin(positions[turn].after(answer["solution"]["action"]), known) == margins[turn]
    assert review["values"][-1] == list(host.returns(position))
    mistakes = {mistake["move"]: mistake for mistake in review["mistakes"]}
    for turn in range(first, len(actions)):
        lost = abs(margins[turn] - margins[turn + 1])
        if lost >= MIN_POINTS:
            mistake = mistakes[turn]
            assert (mistake["is_proven"], mistake["points"]) == (True, lost)
            assert (mistake["played"]["id"], mistake["player"]) == (actions[turn], positions[turn].current_player)
            assert best_margin(positions[turn].after(mistake["better"]["id"]), known) == margins[turn]
            after = positions[turn].after(mistake["better"]["id"])
            for move in mistake["line"]:
                assert (move["player"], after.explain(move["id"])) == (after.current_player, None)
                after = after.after(move["id"])
        else:
            assert turn not in mistakes
    losses = [(mistake["loss"], mistake["points"]) for mistake in review["mistakes"]]
    assert losses == sorted(losses, reverse=True)
    for answer, action in zip(answers, actions, strict=False):
        assert answer["played"]["action"] == action
        facts = {candidate["action"]: candidate["facts"] for candidate in answer["candidates"]}
        assert answer["played"]["facts"] == facts.get(action, answer["played"]["facts"])


def test_accuracy_falls_from_100_to_0() -> None:
    values = [accuracy_of(loss / 100) for loss in range(101)]
    assert values[0] == pytest.approx(100, abs=1e-3)
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0
    # The constants of lichess: 10 points of win probability lost.
    assert accuracy_of(0.1) == pytest.approx(103.1668 * 2.718281828459045 ** (-0.04354 * 10) - 3.1669)


def test_a_review_of_a_game_with_hidden_information() -> None:
    host = make_host_game("triominos", tiles=20)
    chance = Random(0)
    deal = host.new_deal(chance)
    position, actions = host.init_from_deal(deal), []
    while not position.is_terminal:
        actions.append(chance.choice(position.legal_actions()))
        position = position.after(actions[-1])
    request = RecordedGame(1, GameSpec(host, host.options), deal, tuple(actions), ()).request()

    def described(position: Any, action: int, visits: int, value: list[float]) -> dict[str, Any]:
        variation = [position.action_name(action)]
        return {"action": action, "visits": visits, "prior": 0.5, "value": value, "principal_variation": variation}

    @cache
    def answer(turn: int) -> dict[str, Any]:
        """The played move has a value of 0.2, the best one 0.8."""
        position, action = request.positions[turn], actions[turn]
        legal = position.legal_actions()
        better = next((each for each in legal if each != action), action)
        share = [0.8 if seat == position.current_player else 0.2 for seat in range(2)]
        candidates = [(better, 9, share), *([(action, 4, share[::-1])] if better != action else [])]
        return {
            "action": better,
            "value": [0.5, 0.5],
            "score_lead": [3.0, -3.0],
            "num_simulations": 13,
            "candidates": [described(position, *each) for each in candidates],
        }

    review = review_of(request, [answer(turn) for turn in range(len(actions))])
    assert review["mistakes"]
    assert {(round(each["loss"], 6), each["points"]) for each in review["mistakes"]} == {(0.6, None)}
    assert review["proven"] is None
    forced = [len(position.legal_actions()) == 1 for position in request.positions]
    rated = {position.current_player for position, only in zip(request.positions[:-1], forced, strict=False) if not only}
    assert [round(value) if value is not None else None for value in review["accuracy"]] == [
        round(accuracy_of(0.6)) if seat in rated else None for seat in range(2)
    ]
