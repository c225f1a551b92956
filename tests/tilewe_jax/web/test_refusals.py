"""Refused requests: they change no game, and their answers name the reason."""

import asyncio
import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.tilewe_jax.web.support import GENEROUS, joined, legal, new_game, play_out, serving
from tilewe_jax.web.guard import SECURITY_HEADERS, allows_host, allows_origin
from tilewe_jax.web.limits import Limits, TokenBucket
from tilewe_jax.web.messages import Client, converse
from tilewe_jax.web.room import Connection


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("web") / "games") as client:
        yield client


def stored(client: TestClient, game: str) -> Any:
    """A game in the database."""
    return client.app.state.server.store.game(game)  # type: ignore[attr-defined]


TYPES = ["join", "move", "explain", "undo", "answer_undo", "redo", "resign", "hint", "analyze", "ping", "state"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from([0, 1, -1, 2**31, 2**70])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | SCALARS},
        optional=dict.fromkeys(("action", "move", "ref", "accept", "token", "after", "agent", "simulations", "name"), VALUES),
    ).map(json.dumps),
    VALUES.map(json.dumps),
    st.text(max_size=200),
    st.binary(max_size=50),
    st.integers(1, 100_000).map("[".__mul__),
)


def is_plain(text: str | bytes) -> bool:
    """Whether a message is certainly illegal for a seat that is not to move."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return True
    kind = message.get("type") if isinstance(message, dict) else None
    return kind not in ("resign", "undo") and len(text) <= GENEROUS.message


def harass(client: TestClient, messages: list[str | bytes]) -> None:
    """Send messages of the seat that is not to move and of a spectator: all are answered, and nothing changes."""
    created = new_game(client, "duo", {"size": 8})
    with joined(client, created, 0, 1, None) as players:
        play_out(players[:2], random.Random(0), 4)
        before = stored(client, created["id"])
        for player in (players[1], players[2]):
            player.wait_for_move(4)
            for text in messages:
                if not is_plain(text):
                    continue
                if isinstance(text, bytes):
                    player.socket.send_bytes(text)
                else:
                    player.socket.send_text(text)
                answer = player.until(lambda message: message["type"] != "state")
                assert answer["type"] in ("error", "explained", "pong"), (text, answer)
                if answer["type"] == "error":
                    assert re.fullmatch(r"[ -~]{5,500}", answer["error"]), (text, answer)
        assert stored(client, created["id"]) == before
        play_out(players[:2], random.Random(1), 2)


QUIET: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@given(st.lists(MESSAGES, min_size=15, max_size=15))
@settings(max_examples=6, **QUIET)
def test_malformed_messages(client: TestClient, messages: list[str | bytes]) -> None:
    harass(client, messages)


@pytest.mark.slow
@given(st.lists(MESSAGES, min_size=50, max_size=50))
@settings(max_examples=100, **QUIET)
def test_ten_thousand_malformed_messages(client: TestClient, messages: list[str | bytes]) -> None:
    harass(client, messages)


def test_wrong_moves(client: TestClient) -> None:
    created = new_game(client, "duo_official")
    with joined(client, created, 0, 1, None) as (first, second, spectator):
        before = stored(client, created["id"])
        action = legal(first.state)[0]
        assert second.move(action)["type"] == spectator.move(action)["type"] == "error"
        assert first.ask({"type": "move", "action": action, "move": 7})["field"] == "move"
        illegal = next(number for number in range(1000) if number not in legal(first.state))
        refused = first.move(illegal)
        assert refused["field"] == "action"
        assert refused["error"] == first.ask({"type": "explain", "action": illegal})["rule"]
        assert first.ask({"type": "explain", "action": action})["rule"] is None
        for wrong in (-1, 10**9, 1.5, "3", None, True, [1]):
            assert first.ask({"type": "move", "action": wrong})["field"] == "action"
        for kind, field in (("cheat", "type"), ("analyze", None), ("hint", None), ("redo", None)):
            answer = first.ask({"type": kind})
            assert (answer["type"], answer["field"]) == ("error", field)
        assert first.ask({"type": "answer_undo", "accept": "yes"})["field"] == "accept"
        assert first.ask({"type": "analyze", "move": 5})["field"] == "move"
        assert stored(client, created["id"]) == before


def test_tokens(client: TestClient) -> None:
    created, other = new_game(client, "duo"), new_game(client, "duo")
    path = f"ws://localhost/api/games/{created['id']}/socket"
    for token in (other["tokens"][0], created["tokens"][0][:-1], "", "\ud800", "x" * 201, 5):
        with client.websocket_connect(path) as socket:
            socket.send_text(json.dumps({"type": "join", "token": token}))
            assert socket.receive_json()["field"] == "token"
            with pytest.raises(WebSocketDisconnect):
                socket.receive_json()
    for first in ({"type": "move", "action": 1}, {"type": "join", "after": -1}, [], "join"):
        with client.websocket_connect(path) as socket:
            socket.send_text(json.dumps(first))
            assert socket.receive_json()["type"] == "error"
    file = client.app.state.server.store.path  # type: ignore[attr-defined]
    content = b"".join(path.read_bytes() for path in file.parent.iterdir())
    for token in (*created["tokens"].values(), *other["tokens"].values()):
        assert token.encode() not in content  # the database has only hashes
    assert len({*created["tokens"].values(), *other["tokens"].values()}) == 4
    assert all(len(token) >= 32 for token in created["tokens"].values())


def test_wrong_requests(client: TestClient) -> None:
    good = {"game": "duo", "seats": [{"kind": "human"}] * 2}
    cases: list[tuple[Any, str | None]] = [
        ([], None),
        ({}, "game"),
        ({**good, "game": "chess"}, "game"),
        ({**good, "game": "os:system"}, "game"),
        ({**good, "game": ["duo"]}, "game"),
        ({**good, "options": []}, "options"),
        ({**good, "options": {"size": 99}}, "options"),
        ({**good, "options": {"size": "8"}}, "options"),
        ({**good, "options": {"start_cells": [[[0, 0]]] * 2}}, "options"),
        ({**good, "seats": []}, "seats"),
        ({**good, "seats": [{"kind": "human"}, {"kind": "king"}]}, "seats"),
        ({**good, "seats": [{"kind": "human"}, 3]}, "seats"),
        ({**good, "seats": [{"kind": "human"}, {"kind": "engine", "agent": "level:1"}]}, "seats"),
        ({**good, "seats": [{"kind": "human", "name": 3}, {"kind": "human"}]}, "name"),
        ({**good, "clock": 5}, "clock"),
        ({**good, "clock": {"seconds": 0}}, "clock"),
        ({**good, "clock": {"seconds": 60, "increment": -1}}, "clock"),
        ({**good, "clock": {"seconds": 31 * 86_400}}, "clock"),
        ({**good, "clock": {"seconds": True, "increment": []}}, "clock"),
        ({**good, "casual": 1}, "casual"),
    ]
    for body, field in cases:
        response = client.post("/api/games", json=body)
        assert response.status_code in (400, 409), body
        assert response.json()["field"] == field, (body, response.text)
    for content in (b"", b"{", b"\xff\xfe", b'{"seats":' + b"[" * 50_000, b'{"clock": NaN}'):
        assert client.post("/api/games", content=content).status_code == 400
    nan = json.dumps({**good, "clock": {"seconds": float("nan"), "increment": 0}})
    assert client.post("/api/games", content=nan).status_code == 400
    for path in (
        "/api/games/nothing",
        "/api/games/nothing/record",
        "/api/studies/nothing",
        "/api/runs/nothing/metrics",
        "/nothing",
    ):
        response = client.get(path)
        assert response.status_code == 404, path
        assert response.json()["error"]
    assert client.delete("/api/games").status_code == 405
    created = new_game(client, "duo")
    for query in ("format=exe", "move=x"):
        name = "record" if "format" in query else "picture"
        assert client.get(f"/api/games/{created['id']}/{name}?{query}").status_code == 400
    created = new_game(client, "santorini")
    assert client.get(f"/api/games/{created['id']}/record?format=blksgf").json()["field"] == "format"


def test_other_origins_and_host_names(client: TestClient) -> None:
    body = {"game": "duo", "seats": [{"kind": "human"}] * 2}
    for origin in ("http://evil.example", "null", "http://localhost:99", "https://localhost.evil.example", "http://["):
        assert client.post("/api/games", json=body, headers={"origin": origin}).status_code == 403
        created = new_game(client, "duo")
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect(f"ws://localhost/api/games/{created['id']}/socket", headers={"origin": origin}),
        ):
            pass
    assert client.post("/api/games", json=body, headers={"origin": "http://localhost"}).status_code == 201
    for host in ("evil.example", "evil.example:8080", "", "localhost.evil.example", "["):
        assert client.get("/api/catalog", headers={"host": host}).status_code == 403, host
    assert client.get("/api/catalog", headers={"host": "127.0.0.1:8080"}).status_code == 200
    assert allows_host("[::1]:80", ())
    assert not allows_host("localhost", ())
    assert allows_origin("http://a:1", "a:1")
    assert not allows_origin("http://a:2", "a:1")


def test_paths_and_sizes(client: TestClient) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/game/../../etc"):
        response = client.get(path)
        assert "import" not in response.text
        assert "root:" not in response.text
    assert client.post("/api/games", content=b"x" * (GENEROUS.body + 1)).status_code == 413
    parts = (b"x" * 100_000 for _ in range(20))  # without content-length
    assert client.post("/api/studies", content=parts).status_code == 413
    created = new_game(client, "duo")
    with joined(client, created, 0) as (player,):
        player.socket.send_text("x" * (GENEROUS.message + 1))
        assert f"{GENEROUS.message:,}" in player.until(lambda message: message["type"] == "error")["error"]
    for path in ("/", "/game/x", "/api/catalog", "/nothing", "/static/index.html"):
        headers = client.get(path).headers
        assert all(headers[name] == value for name, value in SECURITY_HEADERS.items()), path
    assert "unsafe" not in SECURITY_HEADERS["content-security-policy"]


def test_limits(tmp_path: Path) -> None:
    tight = Limits(
        message_rate=0.001,
        message_burst=5,
        creation_rate=0.001,
        creation_burst=3,
        connections_per_address=2,
        connections_per_game=1,
        games=2,
    )
    with serving(tmp_path / "games", limits=tight) as client:
        created = [new_game(client, "duo") for _ in range(2)]
        body = {"game": "duo", "seats": [{"kind": "human"}] * 2}
        answers = [client.post("/api/games", json=body) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [429, 429]
        with joined(client, created[0], 0) as (player,):
            with client.websocket_connect(f"ws://localhost/api/games/{created[0]['id']}/socket") as socket:
                socket.send_json({"type": "join", "token": None})
                assert socket.receive_json()["type"] == "error"
            path = f"ws://localhost/api/games/{created[1]['id']}/socket"
            with joined(client, created[1], 0), client.websocket_connect(path) as socket:
                assert socket.receive_json()["type"] == "error"
            answers = [player.ask({"type": "ping"})["type"] for _ in range(5)]
            assert answers == ["pong"] * 5
            player.send({"type": "ping"})
            player.until(lambda message: message["type"] == "error")
            for _ in range(50):
                player.send({"type": "ping"})
            with pytest.raises(WebSocketDisconnect):
                player.until(lambda message: False)
    bucket = TokenBucket(1000.0, 2)
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_requests_from_one_address(tmp_path: Path) -> None:
    with serving(tmp_path / "games", limits=Limits(request_rate=0.001, request_burst=3)) as client:
        codes = [client.get("/api/catalog").status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]


def test_bad_files_for_studies(client: TestClient) -> None:
    header = {"format": "tilewe-jax-games/1", "game": "duo", "options": {}, "version": 1, "seed": None}
    game = {"deal": None, "actions": [1, 2], "scores": [0, 0], "returns": [0, 0]}
    bad = [
        b"",
        b"\xff\xff",
        b"hello",
        b"(;GM[Chess])",
        b"(;GM[Blokus Duo];B[a1])",
        b"(" * 1000,
        b"(;GM[Blokus Duo]" + b";B[e10]" * 20_001 + b")",
        json.dumps(header).encode(),
        json.dumps({**header, "game": "os:system"}).encode(),
        json.dumps({**header, "version": 99}).encode(),
        json.dumps({**header, "options": {"size": 10**9}}).encode(),
        (json.dumps(header) + "\n{}").encode(),
        (json.dumps(header) + '\n{"deal": null').encode(),
    ]
    for content in bad:
        response = client.post("/api/studies", content=content)
        assert response.status_code == 400, content[:80]
        assert "tmp" not in response.json()["error"]
    text = f"{json.dumps(header)}\n{json.dumps(game)}\n"  # with illegal moves, which opening the study detects
    created = client.post("/api/studies", content=text.encode()).json()
    assert created["games"] == 1
    for query in ("", "?number=2"):
        assert client.get(f"/api/studies/{created['id']}{query}").status_code == 400
    body = {"number": 1, "move": 2}
    assert client.post(f"/api/studies/{created['id']}/analysis", json=body).status_code == 400


def test_a_closed_room_changes_nothing(client: TestClient) -> None:
    """Its game may continue in another room."""
    created = new_game(client, "duo_official")
    with joined(client, created, 0) as (player,):
        client.app.state.server.rooms._rooms[created["id"]].close()  # type: ignore[attr-defined]
        assert player.move(legal(player.state)[0])["type"] == "error"
        assert not stored(client, created["id"]).moves


def test_games_without_clients_leave_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While memory is available, games with a running clock stay, so that the clock runs out."""
    monkeypatch.setattr("tilewe_jax.web.room.SECONDS_UNTIL_VANISHED", 0.0)
    with serving(tmp_path / "games", limits=dataclasses.replace(GENEROUS, rooms=2)) as client:
        rooms = client.app.state.server.rooms  # type: ignore[attr-defined]
        created = [new_game(client, "duo", clock={"seconds": 86_400}) for _ in range(2)]
        for game in created:
            with joined(client, game, 0, 1) as players:
                play_out(players, random.Random(0), 1)
        rooms.limits = GENEROUS
        rooms._sweep()
        assert set(rooms._rooms) == {game["id"] for game in created}
        rooms.limits = dataclasses.replace(GENEROUS, rooms=2)
        other = new_game(client, "duo")
        assert client.get(f"/api/games/{other['id']}").status_code == 200
        assert set(rooms._rooms) == {other["id"]}
        with joined(client, created[0], 1) as (player,):
            assert player.state["move"] == 1
            assert player.state["clock"]["running"] == 1


def test_a_burst_of_messages(client: TestClient) -> None:
    """All are answered, even if more arrive than the queue of answers holds: reading is as fast as the client reads."""
    created = new_game(client, "duo_official")
    server = client.app.state.server  # type: ignore[attr-defined]
    count = 3 * GENEROUS.replies
    messages = [{"type": "join"}, *({"type": "ping", "ref": number} for number in range(count))]
    answers: list[Any] = []

    async def receive() -> str:
        if not messages:
            await asyncio.sleep(60)
        return json.dumps(messages.pop(0))

    async def send(text: str) -> None:
        answers.append(json.loads(text))

    async def talk() -> None:
        room = await server.rooms.get(created["id"])
        connection = Connection(send, "", GENEROUS)
        reading = converse(receive, Client(server.rooms, room, connection, server.analyses))
        tasks = [asyncio.create_task(each) for each in (reading, connection.run(room))]
        async with asyncio.timeout(30):
            while not answers or answers[-1].get("ref") != count - 1:
                await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        room.leave(connection)

    client.portal.call(talk)  # type: ignore[union-attr]
    assert [answer["ref"] for answer in answers if "ref" in answer] == list(range(count))


def test_a_client_that_does_not_read_is_disconnected(client: TestClient) -> None:
    created = new_game(client, "duo_official")
    with joined(client, created, 0) as (player,):
        server = client.app.state.server  # type: ignore[attr-defined]
        room = server.rooms._rooms[created["id"]]
        (connection,) = room.connections

        def tell() -> None:
            for _ in range(GENEROUS.replies + 1):  # nothing is sent in between
                connection.reply({"type": "pong"})

        client.portal.call(tell)  # type: ignore[union-attr]
        with pytest.raises(WebSocketDisconnect) as cut:
            player.until(lambda message: False)
        assert cut.value.code == 1013
        assert not room.connections


def test_refused_creations_count_as_attempts(tmp_path: Path) -> None:
    limits = Limits(creation_rate=1e-9, creation_burst=3, attempt_rate=1e-9, attempt_burst=50, request_burst=1e6)
    good = {"game": "duo", "seats": [{"kind": "human"}] * 2}
    bad: list[Any] = [{}, {**good, "game": "chess"}, {**good, "seats": []}]
    with serving(tmp_path / "games", limits=limits) as client:
        for number in range(3):
            for _ in range(5):
                assert all(client.post("/api/games", json=body).status_code == 400 for body in bad[:2])
                assert client.post("/api/studies", content=b"nothing").status_code == 400
            assert client.post("/api/games", json=good).status_code == 201, number
        assert client.post("/api/games", json=good).status_code == 429
    with serving(tmp_path / "others", limits=limits) as client:
        codes = [client.post("/api/games", json=bad[number % 3]).status_code for number in range(60)]
        assert codes == [400] * 50 + [429] * 10


def test_studies_of_all_formats_have_equal_limits(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewe_jax.web.exports.MAX_STUDY_GAMES", 3)
    monkeypatch.setattr("tilewe_jax.web.exports.MAX_STUDY_MOVES", 4)
    header = {"format": "tilewe-jax-games/1", "game": "duo_official", "options": {}, "version": 1, "seed": None}

    def records(games: int, moves: int) -> str:
        game = {"deal": None, "actions": [1] * moves, "scores": [0, 0], "returns": [0, 0]}
        return "\n".join(json.dumps(row) for row in [header, *[game] * games])

    def blksgf(games: int, moves: int) -> str:
        return f"(;GM[Blokus Duo]{';B[e10];W[j5]' * (moves // 2)})" * games

    for text in (records, blksgf):
        for games, moves, code in ((3, 0, 201), (2, 2, 201), (4, 0, 400), (3, 2, 400), (1, 1000, 400)):
            assert client.post("/api/studies", content=text(games, moves)).status_code == code, (text, games, moves)
