"""The server as a process, started by the command line."""

import asyncio
import contextlib
import dataclasses
import json
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as websocket_server
from websockets.client import ClientProtocol
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from experiments.examples import web_bot
from tests.support import wait_until
from tests.tilewe_jax.cli.test_cli import run
from tests.tilewe_jax.web.killing import Process, kill_often
from tests.tilewe_jax.web.support import GENEROUS
from tilewe_jax import settings
from tilewe_jax.cli.serve import AGENT, Serve, analysis_agent, engine_command, offered_agents
from tilewe_jax.web.app import create_app
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.sockets import server_config
from tilewe_jax.web.store import Store

HUMANS = [{"kind": "human"}] * 2


def test_a_bot_plays_by_an_invite_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Process(tmp_path / "games", "--engines", "0")
    try:
        created = server.post("/api/games", {"game": "duo_official", "seats": HUMANS})
        links = [f"http://127.0.0.1:{server.port}/game/{created['id']}#{seat['token']}" for seat in created["seats"]]

        async def play() -> list[dict[str, object]]:
            return await asyncio.gather(*map(web_bot.play, links))

        first, second = asyncio.run(asyncio.wait_for(play(), 60))
        assert first == second
        assert first["reason"] == "finished"
        unknown = f"http://127.0.0.1:{server.port}/game/nosuch#x"
        for link, part in ((f"{links[0]}x", "token"), (unknown, "exist"), ("x", "link")):
            with pytest.raises(web_bot.BotError, match=part):
                asyncio.run(asyncio.wait_for(web_bot.play(link), 60))
        code, _, err = run(capsys, "serve", "--port", str(server.port), "--data", str(tmp_path / "other"))
        assert code == 2
        assert f"port {server.port}" in err
        assert err.count("\n") == 1
        code, _, err = run(capsys, "serve", "--port", "0", "--data", str(tmp_path / "games"))
        assert (code, "another server" in err) == (2, True)
        code, err = server.end()
        assert (code, err) == (0, "")
    finally:
        server.kill()
    log = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(seat["token"].encode() in log for seat in created["seats"])


def test_a_bot_reconnects_with_growing_delays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The server closes each connection, before or after a state; a proxy of the environment must not be used."""
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    async def serve(states: int) -> None:
        shown = iter(range(states))

        async def talk(connection: ServerConnection) -> None:
            await connection.recv()
            if next(shown, None) is not None:
                await connection.send(json.dumps({"type": "state", "over": None, "legal": [], "move": 0}))

        async with websocket_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await web_bot.play(f"http://127.0.0.1:{port}/game/a#b")

    monkeypatch.setattr(web_bot, "sleep", sleep)
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(web_bot.BotError, match="closed"):
        asyncio.run(serve(0))
    assert delays == []
    with pytest.raises(web_bot.BotError, match="closed"):
        asyncio.run(serve(2))
    assert delays == [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 6]
    assert len(capsys.readouterr().err.splitlines()) == len(delays)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(web_bot.BotError, match="Connect"):
        asyncio.run(web_bot.play(f"http://127.0.0.1:{port}/game/a#b"))
    done = subprocess.run([sys.executable, "-m", web_bot.__name__], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("usage: ")
    assert done.stderr == ""


def test_wrong_options_give_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise" * 1000)
    cases = [
        (["--data", str(noise)], "noise"),
        (["--data", str(tmp_path / "no" / "games")], "No such file or directory"),
        (["--port", "70000"], "--port"),
        *((["--host", host], "--host") for host in ("not.an.address.invalid", "a" * 64, "a..b", "")),
        (["--host", "203.0.113.7"], "203.0.113.7"),
        (["--names", "a" * 64], "--names"),
        (["--names", "http://games.example.org"], "--names"),
        (["--live", "chess"], "--live"),
        (["--metrics", "everyone"], "--metrics"),
        (["--limit", "gmaes=3"], "did you mean games?"),
        (["--limit", "games=many"], "games must be an integer"),
        (["--limit", "games"], "--limit takes NAME=VALUE"),
        (["--limit", "days=0"], "days must be positive"),
        (["--limit", "rooms=-1"], "rooms must be at least 0"),
        (["--log", str(tmp_path / "no" / "log")], "--log"),
        *((["--trusted-proxy", proxy], "--trusted-proxy") for proxy in ("*", "nginx", "")),
        *((["--base-path", path], "--base-path") for path in ("games", "/games/", "/", "/a//b", "/../x", "/a?b")),
        (["--metrics", "10.0.0.1/8"], "bits outside"),
        (["--engines", "0", "--agents", "puct"], "--agents"),
        (["--agents", "duo=bset"], "bset"),
        (["--agents", "bset"], "bset"),
        (["--agents", "duo=level:99"], "99"),
        (["--agents", "duo=puct:simulations=3"], "simulations"),
        (["--agents", "duo=puct:network=nowhere"], "nowhere"),
        (["--agents", "santorini=random"], "random"),
        (["--agents", "triominos="], "''"),
        (["--runs", str(tmp_path / "missing")], "missing"),
        (["--agents", "chess=puct"], "chess"),
    ]
    for arguments, expected in cases:
        code, _, err = run(capsys, "serve", "--port", "0", *arguments)
        assert code == 2
        assert expected in err
        assert err.count("\n") == 1, err


def test_limits_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "serve", "--list-limits", "--limit", "games=7")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("compilation_burst", "days", "Stored games"))
    assert re.search(r"games +│ 7 +│", out)
    unexplained = [row["name"] for row in settings.listing(Limits()) if not row["description"]]
    assert unexplained == []


def test_a_server_with_a_log_and_a_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = Process(tmp_path / "games", "--engines", "0", "--log", str(log), "--limit", "games=1")
    try:
        seats = {"game": "duo_official", "seats": HUMANS}
        server.post("/api/games", seats)
        with pytest.raises(urllib.error.HTTPError, match="429"):
            server.post("/api/games", seats)
        server.end()
    finally:
        server.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["status"] for line in lines if line["method"] == "POST"] == [201, 429]


def test_an_agent_is_offered_for_its_games(capsys: pytest.CaptureFixture[str]) -> None:
    offered = offered_agents(["puct:network=duo", "duo=best"])
    named = {game: [agent.agent for agent in agents if not agent.agent.startswith("level")] for game, agents in offered.items()}
    assert named["duo"] == ["puct:network=duo", "best"]
    assert named["santorini"] == []
    assert "duo" in capsys.readouterr().err


def test_analyses_show_the_book_of_an_offered_agent() -> None:
    offered = offered_agents(["duo_official=puct:num_simulations=4,book=true", "duo=puct:num_simulations=4,book=false"])
    assert analysis_agent(offered["duo_official"]) == f"{AGENT},book=true"
    assert {analysis_agent(agents) for game, agents in offered.items() if game != "duo_official"} == {AGENT}
    command = engine_command(offered)
    assert f"{AGENT},book=true" in command[command.index("--others") :]


@pytest.mark.parametrize("host", ["0", "::"])
def test_the_printed_address_can_be_opened(tmp_path: Path, host: str) -> None:
    if host == "::" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    command = [sys.executable, "-m", "tilewe_jax", "serve", "--engines", "0", "--port", "0", "--host", host]
    with subprocess.Popen([*command, "--data", str(tmp_path / "games")], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            assert address.startswith(("http://127.0.0.1:", "http://[::1]:"))
            with urllib.request.urlopen(f"{address}api/games", timeout=30) as response:
                assert response.status == 200
        finally:
            process.terminate()


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def test_the_server_imports_no_jax() -> None:
    code = (
        "import sys; from tilewe_jax.cli import main as cli; from tilewe_jax.cli.serve import Serve, offered_agents;"
        "import tilewe_jax.web.app, tilewe_jax.web.exports; offered_agents(()); print('jax' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


def test_a_killed_server_loses_no_acknowledged_move(tmp_path: Path) -> None:
    result = kill_often(tmp_path / "games", 1, games=4)
    assert result["acknowledged"] > 50


@pytest.mark.skipif(sys.platform != "linux", reason="needs TCP_USER_TIMEOUT")
def test_a_client_that_never_reads_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends until the connection is full, and neither reads nor leaves."""
    monkeypatch.setattr("tilewe_jax.cli.serve.SECONDS_WITHOUT_READING", 1)
    listener = Serve(port=0)._listen()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    limits = dataclasses.replace(GENEROUS, send_seconds=0.2)
    app = create_app(Store(tmp_path / "games"), limits=limits)
    server = uvicorn.Server(server_config(app, limits))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            client.connect(listener.getsockname())
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            body = json.dumps({"game": "duo", "seats": HUMANS}).encode()
            request = urllib.request.Request(f"http://{address}/api/games", body)
            with urllib.request.urlopen(request) as response:
                game = json.load(response)["id"]
            protocol = ClientProtocol(parse_uri(f"ws://{address}/api/games/{game}/socket"))
            protocol.send_request(protocol.connect())
            client.sendall(b"".join(protocol.data_to_send()))
            protocol.receive_data(client.recv(1 << 12))
            assert protocol.state is OPEN
            protocol.send_text(b'{"type": "join"}')
            client.settimeout(1)
            with contextlib.suppress(OSError):  # it times out or is disconnected
                while True:
                    client.sendall(b"".join(protocol.data_to_send()))
                    for _ in range(100):
                        protocol.send_text(b'{"type": "ping", "ref": "%s"}' % (b"x" * 90))
            wait_until(lambda: not (app.state.server.connections or server.server_state.connections), seconds=20)
    finally:
        server.should_exit = True
        thread.join()
