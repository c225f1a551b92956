"""The protocol of analyses in JSON lines, without a search."""

import io
import json
import random
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.analysis import (
    LINE_LIMIT,
    Analysis,
    AnalysisSession,
    Candidate,
    Defaults,
    GameSpec,
    Played,
    action_of_move,
    serve,
)


class Lowest:
    """Finds the action of the lowest id best, and says nothing of the others."""

    batch = 4
    models = ({"name": "lowest", "network": None, "max_batch_size": 4},)

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def prepare(self, game: GameSpec, settings: Mapping[str, Any]) -> Hashable:
        if "nosuch" in settings:
            raise ValueError("puct has no setting 'nosuch'")
        return game.host.id, json.dumps([dict(game.options), dict(settings)])

    def analyze(self, search: Any, positions: Sequence[Played]) -> list[Analysis]:
        name, options = search[0], json.loads(search[1])[0]
        self.calls.append([len(played.actions) for played in positions])
        analyses = []
        for played in positions:
            position = make_host_game(name, **options).init_from_deal(played.deal)
            for action in played.actions:
                position = position.after(action)
            legal = position.legal_actions()[:2]
            found = [
                Candidate(action, 2 - i, 0.5, (1.0, 0.0), (action, *position.after(action).legal_actions()[: 1 - i]))
                for i, action in enumerate(legal)
            ]
            found += [Candidate(-7, 0, 0.1, None, ())]
            best = legal[0] if legal else -1
            analyses.append(Analysis(best, tuple(found), (float("nan"), 0.25), None, 0.0, 3, 0.1, len(positions)))
        return analyses


def session() -> AnalysisSession:
    return AnalysisSession(Defaults("duo", {"size": 5}), Lowest(), "1.2")


def answers(*requests: Any) -> list[dict[str, Any]]:
    """All answers to requests, which come from a pipe."""
    lines = [request if isinstance(request, bytes) else json.dumps(request).encode() for request in requests]
    written = io.BytesIO()
    serve(session(), io.BytesIO(b"\n".join(lines)), written)
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_an_answer() -> None:
    (answer,) = answers({"id": "a", "moves": ["O1n-a1a5"]})
    assert answer == {
        "id": "a",
        "turn": 1,
        "current_player": 1,
        "is_terminal": False,
        "scores": [1, 0],
        "value": [None, 0.25],
        "score_lead": None,
        "move": "O1n-a1a1",
        "action": 0,
        "candidates": [
            {
                "move": "O1n-a1a1",
                "action": 0,
                "visits": 2,
                "prior": 0.5,
                "value": [1.0, 0.0],
                "principal_variation": ["O1n-a1a1", "I2n-a1b3"],
            },
            {
                "move": "O1n-a1e1",
                "action": 4,
                "visits": 1,
                "prior": 0.5,
                "value": [1.0, 0.0],
                "principal_variation": ["O1n-a1e1"],
            },
        ],
        "num_simulations": 3,
        "score_weight": 0.0,
        "seconds": 0.1,
        "batch": 1,
    }


@pytest.mark.parametrize(
    ("request_", "field", "message"),
    [
        (b"hello", None, "not a JSON object"),
        (b"[1]", None, "not a JSON object"),
        (b"[" * 1000, None, "not a JSON object"),
        ({}, "id", "id must be"),
        ({"id": 1.5}, "id", "id must be"),
        ({"id": "x" * 1001}, "id", "id must be"),
        ({"id": 1, "game": "chess"}, "game", "there is no game 'chess'"),
        ({"id": 1, "game": 7}, "game", "game must be the id of a game"),
        ({"id": 1, "game": "os:getcwd"}, "game", "there is no game 'os:getcwd'"),
        ({"id": 1, "options": {"size": 99}}, "game", "size must be 3 to 32"),
        ({"id": 1, "options": {"name": 99}}, "game", "name"),
        ({"id": 1, "options": [5]}, "options", "options must be an object"),
        ({"id": 1, "deal": 7}, "deal", "starts without a deal"),
        ({"id": 1, "moves": "a1"}, "moves", "moves must be a list"),
        ({"id": 1, "moves": [0] * 900}, "moves", "a game has at most"),
        ({"id": 1, "moves": [None]}, "moves", "move 1: a move is a name"),
        ({"id": 1, "moves": ["a9"]}, "moves", "move 1: invalid move 'a9'"),
        ({"id": 1, "moves": ["Q9n-a1a1"]}, "moves", "move 1: 'Q9n-a1a1' is no move"),
        ({"id": 1, "moves": ["a5", "a5"]}, "moves", "move 2: action 20, O1n at a5, is illegal for yellow"),
        ({"id": 1, "moves": [10**30]}, "moves", "move 1"),
        ({"id": 1, "moves": [True]}, "moves", "move 1: a move is a name"),
        ({"id": 1, "analyze_turns": [1]}, "analyze_turns", "numbers from 0 to 0"),
        ({"id": 1, "analyze_turns": 0}, "analyze_turns", "numbers from 0 to 0"),
        ({"id": 1, "agent": ["puct"]}, "agent", 'agent must be a text, like "level:2", or an object'),
        ({"id": 1, "seed": -1}, "seed", "seed must be an integer from 0"),
        ({"id": 1, "agent": {"nosuch": 1}}, "agent", "no setting 'nosuch'"),
        ({"id": 1, "max_candidates": 0}, "max_candidates", "must be a positive integer"),
        ({"id": 1, "action": "dance"}, "action", "action must be query_version, query_models, clear_cache, terminate"),
        ({"id": 1, "action": ["terminate"]}, "action", "action must be query_version"),
        ({"id": 1, "action": "terminate", "terminateId": [1]}, "terminate_id", "terminate_id must be"),
        ({"id": 1, "action": "terminate_all", "terminate_id": 2}, "terminate_id", "unknown field 'terminate_id'"),
        ({"id": 1, "action": "terminate_all", "turnNumbers": 2}, "turns", "turns must be a list"),
        ({"id": 1, "action": "query_version", "moves": []}, "moves", "unknown field 'moves'"),
        ({"id": 1, "analyseTurns": [0]}, "analyseTurns", "unknown field 'analyseTurns'; did you mean 'analyzeTurns'?"),
        ({"id": 1, "Moves": [0]}, "Moves", "did you mean 'moves'?"),
        ({"id": 1, "maxvisits": 5}, "maxvisits", "did you mean 'maxVisits'?"),
        ({"id": 1, "xyzzy": 5}, "xyzzy", "the fields are id, game, options"),
        ({"id": 1, "analyzeTurns": [0], "analyze_turns": [0]}, "analyze_turns", "analyze_turns is given twice"),
        ({"id": 1, "maxVisits": 0}, "max_visits", "max_visits must be a positive integer"),
        ({"id": 1, "maxVisits": "9"}, "max_visits", "max_visits must be a positive integer"),
        ({"id": 1, "maxVisits": 9, "agent": {"num_simulations": 9}}, "max_visits", "are the same"),
        ({"id": 1, "initialStones": [["b", "a5"]]}, "initialStones", "a game starts from its initial position"),
        ({"id": 1, "initialPlayer": "W"}, "initialPlayer", "a game starts from its initial position"),
        ({"id": 1, "allowMoves": [{"player": "b", "moves": ["a5"], "untilDepth": 1}]}, "allowMoves", "not supported"),
        ({"id": 1, "avoidMoves": [{}]}, "avoidMoves", "not supported"),
        ({"id": 1, "komi": 7.5}, "komi", "the game and its options say the rules"),
        ({"id": 1, "boardXSize": 5}, "boardXSize", "the size is an option"),
        ({"id": 1, "includePolicy": True}, "includePolicy", "priors of candidates"),
        ({"id": 1, "priority": False}, "priority", "in the order in which they arrive"),
        ({"id": 1, "moves": [["w", "a5"]]}, "moves", "move 1: it is the turn of b, not of w"),
        ({"id": 1, "moves": [["b", "a5"], ["BLUE", "a1"]]}, "moves", "move 2: it is the turn of w, not of blue"),
        ({"id": 1, "moves": [["green", "a5"], ["b", "a1"]]}, "moves", "move 1: it is the turn of b, not of green"),
        ({"id": 1, "moves": [["3", "a5"]]}, "moves", "move 1: invalid color '3'; colors are b w"),
        ({"id": 1, "moves": [["b"]]}, "moves", "move 1: a move is a name"),
        ({"id": 1, "moves": [["b", ["b", "a5"]]]}, "moves", "move 1: a move is a name"),
        ({"id": 1, "moves": [[True, "a5"]]}, "moves", "move 1: a move is a name"),
        ({"id": 1, "action": "terminate"}, "terminate_id", "terminate_id must be"),
        (b'{"id": 1}' + b" " * LINE_LIMIT + b"\n", None, "at most 1,048,576 bytes"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_named(request_: Any, field: str | None, message: str) -> None:
    error, fine = answers(request_, {"id": "next"})
    assert list(error) == ["id", "error", "field"]
    assert (error["field"], message in error["error"]) == (field, True), error
    assert error["id"] == (1 if isinstance(request_, dict) and request_.get("id") == 1 else None)
    assert fine["id"] == "next", "an error ends nothing"


def test_a_move_is_a_name_an_action_or_cells() -> None:
    host = make_host_game("duo", size=5)
    start = host.init_from_deal(None)
    for move in ("I2e-b1b5", "I2w-b1b5", "a5,b5", "B5 , a5", host.init_from_deal(None).action_of_name("I2e-a1a5")):
        assert action_of_move(host, start, move) == action_of_move(host, start, "I2e-a1a5")
    santorini = make_host_game("santorini")
    position = santorini.init_from_deal(None)
    action = position.legal_actions()[3]
    assert action_of_move(santorini, position, position.action_name(action)) == action


def test_turns_and_requests_about_the_engine() -> None:
    rows = answers(
        {"id": "a", "moves": ["a5", "a1"], "analyze_turns": [0, 2, 0, 1], "max_candidates": 1},
        {"id": "v", "action": "query_version"},
        {"id": "m", "action": "query_models"},
        {"id": "c", "action": "clear_cache"},
        {"id": "b"},
        {"id": "t", "action": "terminate", "terminateId": "b"},
        {"id": "t2", "action": "terminate", "terminate_id": "a", "turnNumbers": [1, 7]},
    )
    assert rows[:3] == [
        {"id": "v", "action": "query_version", "version": "1.2"},
        {"id": "m", "action": "query_models", "models": [{"name": "lowest", "network": None, "max_batch_size": 4}]},
        {"id": "c", "action": "clear_cache"},
    ]
    assert rows[3:7] == [
        {"id": "t", "action": "terminate", "terminate_id": "b", "terminated": 1},
        {"id": "b", "turn": 0, "no_results": True},
        {"id": "t2", "action": "terminate", "terminate_id": "a", "turns": [1, 7], "terminated": 1},
        {"id": "a", "turn": 1, "no_results": True},
    ]
    assert [(row["id"], row["turn"], len(row["candidates"])) for row in rows[7:]] == [("a", 0, 1), ("a", 2, 1)]
    rows = answers(
        {"id": 1}, {"id": 2, "moves": ["a5"], "analyzeTurns": [0, 1]}, {"id": 3, "action": "terminate_all", "turns": [0]}
    )
    assert [row["id"] for row in rows] == [3, 1, 2, 2]
    assert [row.get("no_results", False) for row in rows] == [False, True, True, False]


@pytest.mark.parametrize(
    ("game", "options", "moves"),
    [
        ("duo", {"size": 5}, [["B", "a5"], ["w", "a1"]]),
        ("classic_2", {}, [["1", "a20"], ["yellow", "t20"], ["b", "t1"], ["W", "a1"]]),
        ("classic", {}, [[1, "a20"], [2, "t20"]]),
        ("santorini", {}, [["b", "c4-d4*e3"]]),
    ],
)
def test_pairs_of_color_and_move(game: str, options: dict[str, Any], moves: list[list[Any]]) -> None:
    """The answer is that to the moves alone; KataGo's names, and values of its fields that ask for nothing, change nothing."""
    plain = {"id": 1, "game": game, "options": options}
    (expected,) = answers({**plain, "moves": [move for _, move in moves]})
    assert "error" not in expected
    nothing = {"initialStones": [], "allowMoves": [], "includeOwnership": False, "priority": 0, "overrideSettings": {}}
    assert answers({**plain, "moves": moves, "analyzeTurns": [len(moves)], **nothing}) == [expected]


def test_max_visits_is_a_setting_of_the_search() -> None:
    engine, seen = session(), []
    prepare = engine._analyzer.prepare
    engine._analyzer.prepare = lambda game, settings: (seen.append(settings), prepare(game, {}))[1]  # type: ignore[method-assign]
    assert engine.receive('{"id": 1, "maxVisits": 8, "agent": {"c_init": 2}}') == []
    assert seen == [{"c_init": 2, "max_visits": 8}]


def test_positions_that_wait_are_searched_together() -> None:
    engine, analyzer = session(), Lowest()
    engine._analyzer = analyzer
    for number in range(6):
        game = {"game": "santorini", "options": {"size": 4}} if number == 2 else {}
        assert engine.receive(json.dumps({"id": number, **game})) == []
    rows = []
    while engine.is_waiting:
        rows.append([row["id"] for row in engine.work()])
    assert rows == [[0, 1, 3, 4], [2], [5]]
    assert engine.work() == []


def test_the_end_of_a_game_and_a_failing_search(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_host_game("duo", size=3)
    position, moves = game.init_from_deal(None), []
    while not position.is_terminal:
        moves.append(position.legal_actions()[0])
        position = position.after(moves[-1])
    request = {"id": 1, "options": {"size": 3}, "moves": moves}
    (answer,) = answers(request)
    assert (answer["is_terminal"], answer["move"], answer["action"]) == (True, None, None)
    assert (answer["candidates"], answer["scores"]) == ([], list(position.scores()))
    (error,) = answers({**request, "moves": [*moves, "a1"]})
    assert "comes after the end of the game" in error["error"]

    def fail(*_: Any) -> None:
        raise RuntimeError("no\nmemory")

    monkeypatch.setattr(Lowest, "analyze", fail)
    assert answers(request) == [{"id": 1, "error": "RuntimeError: no memory", "field": None, "turn": len(moves)}]


def test_random_lines_never_raise_an_exception() -> None:
    rng = random.Random(0)
    engine = session()
    valid = json.dumps({"id": 1, "moves": ["a5", "a1"], "analyze_turns": [0], "agent": {}, "options": {"size": 5}})
    for _ in range(2000):
        letters = list(valid)
        for _ in range(rng.randrange(1, 4)):
            letters[rng.randrange(len(letters))] = rng.choice('"[]{},:9a\x00é\\-')
        rows = engine.receive("".join(letters)) + engine.work()
        assert all(not row.get("error", "").startswith(("KeyError", "TypeError", "IndexError")) for row in rows), rows
        json.dumps(rows, allow_nan=False)
