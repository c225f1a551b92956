"""The protocol of analyses in JSON lines, without a search."""

import io
import json
import random
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.analysis import LINE_LIMIT, Analysis, AnalysisSession, Candidate, serve
from tilewe_jax.interop.analysis_requests import Defaults, GameSpec, Played, action_of_move


class Lowest:
    """An analyzer that chooses the lowest legal action."""

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
            candidates = [
                Candidate(action, 2 - i, 0.5, (1.0, 0.0), (action, *position.after(action).legal_actions()[: 1 - i]))
                for i, action in enumerate(legal)
            ]
            candidates += [Candidate(-7, 0, 0.1, None, ())]
            best = legal[0] if legal else -1
            analyses.append(Analysis(best, tuple(candidates), (float("nan"), 0.25), None, 0.0, 3, 0.1, len(positions)))
        return analyses


def session() -> AnalysisSession:
    return AnalysisSession(Defaults("duo", {"size": 5}), Lowest(), "1.2")


def answers(*requests: Any) -> list[dict[str, Any]]:
    """All answers to a pipe of requests."""
    lines = [request if isinstance(request, bytes) else json.dumps(request).encode() for request in requests]
    written = io.BytesIO()
    serve(session(), io.BytesIO(b"\n".join(lines)), written)
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_fields_of_an_answer() -> None:
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
                "value_error": None,
            },
            {
                "move": "O1n-a1e1",
                "action": 4,
                "visits": 1,
                "prior": 0.5,
                "value": [1.0, 0.0],
                "principal_variation": ["O1n-a1e1"],
                "value_error": None,
            },
        ],
        "num_simulations": 3,
        "score_weight": 0.0,
        "seconds": 0.1,
        "batch": 1,
        "is_book": False,
    }


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        (b"hello", None, "JSON object"),
        (b"[1]", None, "JSON object"),
        (b"[" * 1000, None, "JSON object"),
        (b'{"id": 1}' + b" " * LINE_LIMIT + b"\n", None, "1,048,576"),
        ({}, "id", "id"),
        ({"id": 1.5}, "id", "id"),
        ({"id": "x" * 1001}, "id", "1000"),
        ({"id": 1, "game": "chess"}, "game", "'chess'"),
        ({"id": 1, "game": 7}, "game", "game"),
        ({"id": 1, "game": "os:getcwd"}, "game", "'os:getcwd'"),
        ({"id": 1, "options": {"size": 99}}, "game", "size"),
        ({"id": 1, "options": [5]}, "options", "options"),
        ({"id": 1, "deal": 7}, "deal", "deal"),
        ({"id": 1, "moves": "a1"}, "moves", "list"),
        ({"id": 1, "moves": [0] * 900}, "moves", "900"),
        ({"id": 1, "moves": [None]}, "moves", "move 1: "),
        ({"id": 1, "moves": ["a9"]}, "moves", "'a9'"),
        ({"id": 1, "moves": ["Q9n-a1a1"]}, "moves", "'Q9n-a1a1'"),
        ({"id": 1, "moves": ["a5", "a5"]}, "moves", "move 2: action 20, O1n at a5, is illegal for yellow"),
        ({"id": 1, "moves": [10**30]}, "moves", "move 1"),
        ({"id": 1, "moves": [True]}, "moves", "true"),
        ({"id": 1, "moves": [["w", "a5"]]}, "moves", "turn of b, not of w"),
        ({"id": 1, "moves": [["b", "a5"], ["BLUE", "a1"]]}, "moves", "turn of w, not of blue"),
        ({"id": 1, "moves": [["3", "a5"]]}, "moves", "'3'"),
        ({"id": 1, "moves": [["b"]]}, "moves", "pair"),
        ({"id": 1, "moves": [["b", ["b", "a5"]]]}, "moves", "move 1: "),
        ({"id": 1, "moves": [[True, "a5"]]}, "moves", "pair"),
        ({"id": 1, "analyze_turns": [1]}, "analyze_turns", "from 0 to 0"),
        ({"id": 1, "analyze_turns": 0}, "analyze_turns", "from 0 to 0"),
        ({"id": 1, "agent": ["puct"]}, "agent", "level:2"),
        ({"id": 1, "agent": {"nosuch": 1}}, "agent", "'nosuch'"),
        ({"id": 1, "seed": -1}, "seed", "seed"),
        ({"id": 1, "max_candidates": 0}, "max_candidates", "positive"),
        ({"id": 1, "maxVisits": "9"}, "max_visits", "positive"),
        ({"id": 1, "maxVisits": 9, "agent": {"num_simulations": 9}}, "max_visits", "num_simulations"),
        ({"id": 1, "action": "dance"}, "action", "query_version, query_models, clear_cache, terminate"),
        ({"id": 1, "action": ["terminate"]}, "action", "query_version"),
        ({"id": 1, "action": "terminate"}, "terminate_id", "terminate_id"),
        ({"id": 1, "action": "terminate", "terminateId": [1]}, "terminate_id", "terminate_id"),
        ({"id": 1, "action": "terminate_all", "terminate_id": 2}, "terminate_id", "'terminate_id'"),
        ({"id": 1, "action": "terminate_all", "turnNumbers": 2}, "turns", "list"),
        ({"id": 1, "action": "query_version", "moves": []}, "moves", "'moves'"),
        ({"id": 1, "analyseTurns": [0]}, "analyseTurns", "'analyzeTurns'?"),
        ({"id": 1, "Moves": [0]}, "Moves", "'moves'?"),
        ({"id": 1, "maxvisits": 5}, "maxvisits", "'maxVisits'?"),
        ({"id": 1, "xyzzy": 5}, "xyzzy", "id, game, options"),
        ({"id": 1, "analyzeTurns": [0], "analyze_turns": [0]}, "analyze_turns", "twice"),
        ({"id": 1, "initialStones": [["b", "a5"]]}, "initialStones", "not supported"),
        ({"id": 1, "initialPlayer": "W"}, "initialPlayer", "not supported"),
        ({"id": 1, "initialPosition": 7}, "initial_position", "a position must be an object"),
        ({"id": 1, "initialPosition": {}, "deal": {}}, "initial_position", "initial_position replaces deal"),
        ({"id": 1, "priority": False}, "priority", "not supported"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_name_the_field_and_end_nothing(request_: Any, field: str | None, part: str) -> None:
    error, following = answers(request_, {"id": "next"})
    assert list(error) == ["id", "error", "field"]
    assert (error["field"], part in error["error"]) == (field, True), error
    assert error["id"] == (1 if isinstance(request_, dict) and request_.get("id") == 1 else None)
    assert following["id"] == "next"


def test_an_initial_position_equals_the_moves_that_lead_there() -> None:
    position = {"placed": {"blue": ["a5"], "yellow": ["e1"]}, "current_color": "blue"}
    moves = [["b", "a5"], ["w", "e1"]]
    played, placed, later = answers(
        {"id": "played", "moves": moves},
        {"id": "placed", "initialPosition": position},
        {"id": "later", "initial_position": position, "moves": ["b4,b3"]},
    )
    assert placed["scores"] == played["scores"] == [1, 1]
    assert placed["current_player"] == 0
    assert {each["move"] for each in placed["candidates"]} == {each["move"] for each in played["candidates"]}
    assert later["scores"] == [3, 1]
    (refused,) = answers({"id": "wrong", "initialPosition": {"placed": {"blue": ["b4"]}, "current_color": "blue"}})
    assert refused["error"] == "a piece of blue must cover a5 or e5: the first piece starts there"


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
    """Colors, KataGo's names and ineffective values of its fields leave the answer unchanged."""
    plain = {"id": 1, "game": game, "options": options}
    (expected,) = answers({**plain, "moves": [move for _, move in moves]})
    assert "error" not in expected
    ineffective = {"initialStones": [], "allowMoves": [], "includeOwnership": False, "priority": 0, "overrideSettings": {}}
    assert answers({**plain, "moves": moves, "analyzeTurns": [len(moves)], **ineffective}) == [expected]


def test_restricted_moves_hold_for_their_player() -> None:
    read = Defaults("duo", {"size": 5}).read
    moves = ["a5", "a1"]
    black, white = {"player": "B", "moves": ["a5", "a4,a5"]}, {"player": "w", "moves": ["a1"], "untilDepth": 1}
    base = {"id": 1, "moves": moves, "analyzeTurns": [0, 1]}
    positions = read(base).positions
    allowed = read({**base, "allowMoves": [black]}).allowed
    assert allowed.keys() == {0}
    assert {positions[0].action_view(action)["name"] for action in allowed[0]} == {"O1n-a1a5", "I2n-a1a4"}
    avoided = read({**base, "avoidMoves": [{"player": "b", "moves": ["a5"]}, white]}).allowed
    assert [len(positions[turn].legal_actions()) - len(avoided[turn]) for turn in (0, 1)] == [1, 1]
    both = read({**base, "allowMoves": [black], "avoidMoves": [{"player": "b", "moves": ["a5"]}]})
    assert [positions[0].action_name(action) for action in both.allowed[0]] == ["I2n-a1a4"]
    assert both.played(0).allowed == both.allowed[0]
    assert both.played(1).allowed is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"allowMoves": {}}, "allow_moves must be a list of objects"),
        ({"allowMoves": [{"player": "b", "moves": ["a5"]}] * 2}, "allow_moves must have at most one entry, got 2"),
        ({"avoidMoves": [{"player": "b"}]}, "must have player, moves and untilDepth"),
        ({"avoidMoves": [{"player": "b", "moves": []}]}, "must have player, moves and untilDepth"),
        ({"avoidMoves": [{"player": "b", "moves": ["a5"], "depth": 1}]}, "must have player, moves and untilDepth"),
        ({"avoidMoves": [{"player": "b", "moves": ["a5"], "untilDepth": 2}]}, "untilDepth must be 1, got 2"),
        ({"avoidMoves": [{"player": "x", "moves": ["a5"]}]}, "invalid color 'x'; colors are b w"),
        ({"allowMoves": [{"player": "b", "moves": ["a5"]}], "moves": ["a5", "a1"], "analyzeTurns": [0, 2]}, "after 2 moves"),
        ({"avoidMoves": [{"player": "b", "moves": ["c3"]}]}, "avoid_moves, move 1: .* must cover"),
        ({"avoidMoves": [{"player": "b", "moves": ["a5", "zz"]}]}, "avoid_moves, move 2: invalid move 'zz'"),
        (
            {"allowMoves": [{"player": "b", "moves": ["a5"]}], "avoidMoves": [{"player": "b", "moves": ["a5"]}]},
            "leaves no legal",
        ),
    ],
)
def test_wrong_restricted_moves(fields: dict[str, Any], error: str) -> None:
    (answer,) = answers({"id": 1, **fields})
    assert re.search(error, answer["error"]), answer
    assert answer["field"] in ("allow_moves", "avoid_moves")


def test_moves_are_not_restricted_with_hidden_information() -> None:
    (answer,) = answers({"id": 1, "game": "triominos", "avoidMoves": [{"player": "b", "moves": ["draw"]}]})
    assert answer["field"] in ("avoid_moves", "deal")


def test_max_visits_is_a_setting_of_the_search() -> None:
    request = Defaults("duo", {"size": 5}).read({"id": 1, "maxVisits": 8, "agent": {"c_init": 2}})
    assert request.settings == {"c_init": 2, "max_visits": 8}


def test_waiting_positions_are_searched_together() -> None:
    engine = session()
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
    assert '"a1"' in error["error"]

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
