"""The server as a process, as people start it."""

import asyncio
import contextlib
import dataclasses
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
import uvicorn
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as websocket_server
from websockets.client import ClientProtocol
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from experiments.examples import web_bot
from tests.tilewe_jax.cli.test_cli import run
from tests.tilewe_jax.web.killing import Process, kill_often
from tests.tilewe_jax.web.support import GENEROUS
from tilewe_jax.cli.serve import Serve, offered_agents
from tilewe_jax.web.app import create_app
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
        void = f"{links[0]}x", f"http://127.0.0.1:{server.port}/game/nosuch#x", f"http://127.0.0.1:{server.port}/elsewhere#x"
        for link, said in zip(
            void, ("that token opens no seat", "there is no such game", "the link must be like"), strict=True
        ):
            with pytest.raises(web_bot.BotError, match=said):
                asyncio.run(asyncio.wait_for(web_bot.play(link), 60))
        code, _, err = run(capsys, "serve", "--port", str(server.port), "--data", str(tmp_path / "other"))
        assert code == 2
        assert err == (
            f"tilewe-jax: cannot listen on port {server.port} of 127.0.0.1: Address already in use; another program uses it,"
            " so choose another one\n"
        )
        code, _, err = run(capsys, "serve", "--port", "0", "--data", str(tmp_path / "games"))
        assert (code, "is used by another server" in err) == (2, True)
        code, err = server.end()
        assert (code, err) == (0, "")
    finally:
        server.kill()
    log = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(seat["token"].encode() in log for seat in created["seats"])


def test_a_bot_backs_off_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Against a server that closes each connection, after a state or before, and with a proxy that would answer for it."""
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
    with pytest.raises(web_bot.BotError, match="server closed"):
        asyncio.run(serve(0))
    assert delays == []
    with pytest.raises(web_bot.BotError, match="server closed"):
        asyncio.run(serve(2))
    assert delays == [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 6]
    assert len(capsys.readouterr().err.splitlines()) == len(delays)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(web_bot.BotError, match="Connect call failed"):
        asyncio.run(web_bot.play(f"http://127.0.0.1:{port}/game/a#b"))
    done = subprocess.run([sys.executable, "-m", web_bot.__name__], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("usage: ")
    assert done.stderr == ""


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise" * 1000)
    cases = [
        (["--data", str(noise)], "noise cannot be used (file is not a database)"),
        (["--data", str(tmp_path / "no" / "games")], "cannot be written: No such file or directory"),
        (["--port", "70000"], "--port must be 0 to 65535"),
        (["--host", "not.an.address.invalid"], "--host must be a name or address of this machine"),
        (["--host", "a" * 64], "--host must be a name or address of this machine"),
        (["--host", "a..b"], "--host must be a name or address of this machine"),
        (["--host", ""], "--host must be a name or address of this machine"),
        (["--host", "203.0.113.7"], "cannot listen on port 0 of 203.0.113.7"),
        (["--names", "a" * 64], "--names must be host names"),
        (["--names", "http://games.example.org"], "--names must be host names"),
        (["--live", "chess"], "--live must be one of"),
        (["--engines", "0", "--agents", "puct"], "--agents needs an engine process"),
        (["--agents", "duo=bset"], "duo has no agent 'bset'"),
        (["--agents", "bset"], "has no agent 'bset'"),
        (["--agents", "duo=level:99"], "duo has no level '99'"),
        (["--agents", "duo=puct:simulations=3"], "has no setting"),
        (["--agents", "duo=puct:network=nowhere"], "network 'nowhere'"),
        (["--agents", "santorini=random"], "does not search"),
        (["--agents", "triominos="], "has no agent ''"),
        (["--runs", str(tmp_path / "missing")], "there is no folder"),
        (["--agents", "chess=puct"], "there is no game 'chess'"),
    ]
    for arguments, expected in cases:
        code, _, err = run(capsys, "serve", "--port", "0", *arguments)
        assert code == 2
        assert expected in err
        assert err.count("\n") == 1, err


def test_an_agent_is_offered_for_the_games_that_it_plays(capsys: pytest.CaptureFixture[str]) -> None:
    offered = offered_agents(["puct:network=duo", "duo=best"])
    named = {game: [agent.agent for agent in agents if not agent.agent.startswith("level")] for game, agents in offered.items()}
    assert named["duo"] == ["puct:network=duo", "best"]
    assert named["santorini"] == []
    assert "is offered for duo" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "::"])
def test_the_address_that_is_printed_can_be_opened(tmp_path: Path, host: str) -> None:
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


def test_a_server_that_is_killed_loses_no_acknowledged_move(tmp_path: Path) -> None:
    result = kill_often(tmp_path / "games", 2, games=4)
    assert result["acknowledged"] > 50


@pytest.mark.slow
def test_a_server_that_is_killed_twenty_times(tmp_path: Path) -> None:
    result = kill_often(tmp_path / "games", 20)
    assert result["acknowledged"] > 500


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system decides how long it holds such a connection")
def test_a_client_that_never_reads_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks until nothing more goes through, and neither reads nor leaves: the server forgets it all the same."""
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
            with contextlib.suppress(OSError):  # it times out, or is cut off
                while True:
                    client.sendall(b"".join(protocol.data_to_send()))
                    for _ in range(100):
                        protocol.send_text(b'{"type": "ping", "ref": "%s"}' % (b"x" * 90))
            end = time.monotonic() + 20
            while app.state.server.connections or server.server_state.connections:
                assert time.monotonic() < end
                time.sleep(0.05)
    finally:
        server.should_exit = True
        thread.join()


def test_the_first_page_comes_soon(tmp_path: Path) -> None:
    """It takes half a second of the processor; how long that takes depends on what else the machine does."""
    server = Process(tmp_path / "games")
    try:
        times = psutil.Process(server.process.pid).cpu_times()
        assert times.user + times.system < 1.2
    finally:
        server.kill()
