"""Health, measurements, the log and the quota of a server."""

import asyncio
import ipaddress
import json
import random
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.support import wait_until
from tests.tilewe_jax.web.support import engine, joined, new_game, play_out, serving
from tests.tilewe_jax.web.test_sockets import answer, asked, connect, limited, running
from tilewe_jax.web.app import create_app
from tilewe_jax.web.guard import includes
from tilewe_jax.web.monitor import Journal, Monitor
from tilewe_jax.web.store import Store
from tilewe_jax.web.stored import StoreError


def measured(client: TestClient) -> dict[str, float]:
    """The measurements of a server by name and labels."""
    local = TestClient(client.app, base_url="http://localhost", client=("127.0.0.1", 50_000))
    response = local.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples(response.text)


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? \S+', line) for line in lines)
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_measurements_of_games_and_engines(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine(processes=2)) as client:
        wait_until(lambda: client.get("/api/catalog").json()["engine"]["state"] == "ready")
        new_game(client, "duo", {"size": 8})
        created = new_game(client, "santorini", {}, [{"kind": "human"}, {"kind": "engine", "agent": "level:1"}])
        with joined(client, created, 0) as (player,):
            player.move_at_random(random.Random(0))
            player.wait_for_move(2)
            assert player.ask({"type": "move", "action": 0, "move": 9})["type"] == "error"
            assert player.ask({"type": "ping"})["type"] == "pong"
            found = measured(client)
            assert found["tilewe_sockets"] == found['tilewe_games{where="connected"}'] == 1
        assert found['tilewe_games{where="database"}'] == found['tilewe_games{where="memory"}'] == 2
        assert found["tilewe_studies"] == 0
        assert found["tilewe_acknowledgement_seconds_count"] == 1
        assert 0 < found["tilewe_acknowledgement_seconds_sum"] < 10
        moves = [found.get(f'tilewe_engine_move_seconds_count{{warm="{warm}"}}', 0) for warm in ("true", "false")]
        assert sum(moves) == 1
        assert found['tilewe_engine_ready{process="moves-0"}'] == 1
        assert found['tilewe_engine_ready{process="analyses"}'] == 0  # it starts with the first analysis
        assert found['tilewe_engine_questions{process="moves-0"}'] == found['tilewe_engine_ends{process="moves-0"}'] == 0
        assert found['tilewe_refusals_total{channel="message",status="409"}'] == 1
        assert found['tilewe_request_seconds_count{method="POST"}'] == 2
        assert 4096 <= found["tilewe_database_bytes"] < 1 << 20
        wait_until(lambda: measured(client)["tilewe_sockets"] == 0)


def test_refusals_are_counted_by_channel(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        assert client.get("/api/games/unknown").status_code == 404
        assert client.post("/api/games", content=b"{").status_code == 400
        assert client.get("/api/catalog", headers={"host": "evil.example"}).status_code == 403
        assert client.get("/nowhere", headers={"accept": "text/html"}).status_code == 404
        with client.websocket_connect("ws://localhost/api/games/unknown/socket") as socket:
            assert socket.receive_json()["type"] == "error"
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/api/live", headers={"origin": "http://evil.example"}),
        ):
            pass
        found = measured(client)
    refusals = {name: value for name, value in found.items() if name.startswith("tilewe_refusals_total")}
    expected = {("http", 404): 2, ("http", 400): 1, ("http", 403): 1, ("socket", 404): 1, ("socket", 403): 1}
    assert refusals == {
        f'tilewe_refusals_total{{channel="{channel}",status="{status}"}}': count
        for (channel, status), count in expected.items()
    }


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.1.2.3", {}, 200),
        ("::ffff:10.1.2.3", {}, 200),
        ("192.0.2.1", {}, 403),
        ("unix", {}, 403),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.1"}, 403),
        ("127.0.0.1", {"via": "1.1 proxy"}, 403),
    ],
)
def test_only_permitted_addresses_read_measurements(tmp_path: Path, address: str, headers: dict[str, str], status: int) -> None:
    networks = [ipaddress.ip_network(text) for text in ("127.0.0.1", "::1", "10.0.0.0/8")]
    with serving(tmp_path / "games", metrics_clients=networks) as client:
        other = TestClient(client.app, base_url="http://localhost", client=(address, 50_000))
        response = other.get("/metrics", headers=headers)
        assert response.status_code == status
        assert ("tilewe_sockets" in response.text) == (status == 200)
    assert includes(networks, address) == (address not in ("192.0.2.1", "unix"))


def test_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "games", engine("broken")) as client:
        response = client.get("/healthz")
        assert (response.status_code, response.json()["status"]) == (200, "ok")
        assert response.json()["engine"]["state"] in ("starting", "failed")  # people can play without engines
        # Another program holds the database locked.
        with sqlite3.connect(tmp_path / "games", isolation_level=None) as file:
            file.execute("BEGIN IMMEDIATE")
            monkeypatch.setattr("tilewe_jax.web.app.HEALTH_SECONDS", 0.05)
            response = client.get("/healthz")
            assert (response.status_code, response.json()["status"]) == (503, "failed")
            file.execute("ROLLBACK")
        monkeypatch.setattr("tilewe_jax.web.app.HEALTH_SECONDS", 30.0)
        assert client.get("/healthz").status_code == 200


def test_refused_connections_are_counted(tmp_path: Path) -> None:
    limits = limited(http_connections_per_address=2)
    monitor = Monitor()
    app = create_app(Store(tmp_path / "games"), limits=limits, monitor=monitor)
    with running(app, limits, monitor) as address:
        held = [connect(address), connect(address)]
        for client in held:
            client.sendall(b"GET /")
        while not asked(address).endswith(b" 503 "):  # until the server has noticed both
            pass
        for client in held:
            client.close()
        while not asked(address).endswith(b"200 OK"):
            pass
        with connect(address) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            body = answer(client).partition(b"\r\n\r\n")[2].decode()
    assert samples(body)['tilewe_refusals_total{channel="connection",status="503"}'] >= 1


# ---- The log


def logged(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_log_has_requests_sockets_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with serving(tmp_path / "games", monitor=Monitor(Journal(str(path)))) as client:
        created = new_game(client, "duo", {"size": 8})
        assert client.get("/api/games/unknown%0A%22").status_code == 404
        with joined(client, created, 0) as (player,):
            player.move_at_random(random.Random(0))
            assert player.ask({"type": "cheat"})["type"] == "error"
        wait_until(lambda: len(logged(path)) == 4)
        path.rename(tmp_path / "old")
        client.get("/")
    assert [line["path"] for line in logged(path)] == ["/"]
    lines = logged(tmp_path / "old")
    assert [line["event"] for line in lines] == ["request", "request", "refusal", "socket"]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ", line.pop("time")) for line in lines)
    assert all(line.pop("address") == "testclient" for line in lines)
    assert all(0 <= line.pop("seconds", 0) < 60 for line in lines)
    socket = f"/api/games/{created['id']}/socket"
    good, wrong, message, left = lines
    assert good.pop("bytes") > 50
    assert good == {"event": "request", "method": "POST", "path": "/api/games", "status": 201}
    assert wrong["path"] == '/api/games/unknown\n"'  # one line all the same
    assert (wrong["status"], wrong["error"]) == (404, "this game does not exist")
    assert message["error"].startswith("type must be one of")
    assert message == {**message, "event": "refusal", "channel": "message", "status": 400, "path": socket}
    assert left == {"event": "socket", "path": socket, "code": 1000, "received": 3, "sent": left["sent"]}
    assert left["sent"] >= 4
    text = (tmp_path / "old").read_text()
    assert not any(token in text for token in created["tokens"].values())


def test_a_log_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server continues, and its warnings name the log."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in [folder / "log", *([Path("/dev/full")] if Path("/dev/full").exists() else [])]:
        with serving(tmp_path / "games", monitor=Monitor(Journal(str(path)))) as client:
            shutil.rmtree(folder, ignore_errors=True)
            assert client.get("/api/games").status_code == 200
        assert any(str(path) in record.getMessage() for record in caplog.records), path


# ---- The quota


def test_a_full_database_refuses_new_games_and_keeps_old_ones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limits = limited(disk_megabytes=1)
    path = tmp_path / "games"
    study = json.dumps({"format": "tilewe-jax-games/1", "game": "duo", "options": {}, "version": 1, "seed": None}) + "\n"
    study += 1_000 * '{"deal": null, "actions": [], "scores": [0, 0], "returns": [0, 0]}\n'
    app = create_app(Store(path, max_bytes=1e6), limits=limits)
    with TestClient(app, base_url="http://localhost") as client:
        created = new_game(client, "duo", {"size": 8})
        statuses = [client.post("/api/studies", content=study).status_code for _ in range(16)]
        assert (statuses[0], statuses[-1]) == (201, 429)
        refused = client.post("/api/games", json={"game": "duo", "seats": [{"kind": "human"}] * 2})
        assert (refused.status_code, refused.json()["error"]) == (429, "the server cannot store more games")
        assert any("games-db" in record.getMessage() for record in caplog.records)
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(0), 6)
    assert path.stat().st_size <= 1_000_000


def test_beyond_its_maximum_size_the_database_refuses_changes(tmp_path: Path) -> None:
    store = Store(tmp_path / "games", max_bytes=200_000)

    async def fill() -> None:
        await store.add("game", "{}", "{}", True)
        while store.num_bytes() < 150_000:
            await store.add_study(str(store.num_bytes()), "x" * 10_000)
        with pytest.raises(StoreError, match="full"):
            await store.change("game", "{}", False, 0, [(1, "x" * 50_000)])
        assert store.num_bytes() <= 200_000
        game = store.game("game")
        assert game
        assert game.moves == ()
        await store.delete_older(0, keep=["game"])
        await store.change("game", "{}", False, 0, [(1, "x" * 50_000)])

    asyncio.run(fill())
    store.close()
