"""Clients that occupy connections: the server closes them and keeps answering other clients."""

import contextlib
import dataclasses
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from tests.tilewe_jax.web.support import GENEROUS
from tilewe_jax.web.app import create_app
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.sockets import RepeatFilter, Sockets, fitted, server_config
from tilewe_jax.web.store import Store

REQUEST = b"GET /api/games HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@contextlib.contextmanager
def running(app: Any, limits: Limits, *more: Any) -> Iterator[tuple[str, int]]:
    """Run a server in a thread; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    server = uvicorn.Server(server_config(app, limits, *more))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join()


def limited(**changes: Any) -> Limits:
    return dataclasses.replace(GENEROUS, **changes)


def connect(address: tuple[str, int], source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(address, timeout=20, source_address=(source, 0))


def answer(client: socket.socket) -> bytes:
    """Return the data received until the server closes the connection."""
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            content += part
    return content


def asked(address: tuple[str, int], source: str = "127.0.0.1") -> bytes:
    """Request the lobby; return the first line of the answer."""
    with connect(address, source) as client:
        try:
            client.sendall(REQUEST)
            return client.recv(1 << 12).split(b"\r\n")[0]
        except ConnectionError:
            return b""


HALVES = {
    "nothing": b"",
    "half a request line": b"GET / HT",
    "half of the headers": REQUEST[:-2],
    "half of a WebSocket": b"GET /api/live HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n",
    "a request and a half": REQUEST + REQUEST[:-2],
    "a request without its body": REQUEST[:-2] + b"content-length: 9\r\n\r\n",
}


@pytest.mark.parametrize("half", HALVES)
def test_half_open_connections_are_ended(tmp_path: Path, half: str) -> None:
    limits = limited(header_seconds=0.3, idle_seconds=1, http_connections_per_address=10)
    with running(create_app(Store(tmp_path / "games"), limits=limits), limits) as address:
        clients = [connect(address) for _ in range(3)]
        for client in clients:
            client.sendall(HALVES[half])
        for client in clients:
            answer(client)  # the socket would time out
            client.close()
        assert asked(address).endswith(b"200 OK")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second address of this machine")
def test_connections_of_one_address_leave_room_for_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limits = limited(http_connections_per_address=5)
    with running(create_app(Store(tmp_path / "games"), limits=limits), limits) as address, contextlib.ExitStack() as held:
        for _ in range(5):
            held.enter_context(connect(address)).sendall(b"GET /")
        refused = [asked(address) for _ in range(10)]
        assert all(not line or b" 503" in line for line in refused)
        assert asked(address, "127.0.0.2").endswith(b"200 OK")
        held.close()
        while not asked(address).endswith(b"200 OK"):  # until the server has noticed the closed connections
            pass
    lines = [record for record in caplog.records if "from one address" in record.getMessage()]
    assert 1 <= len(lines) <= 3


def test_a_new_server_counts_its_messages_from_0(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    for _ in range(2):
        caplog.clear()
        server_config(app, limited())
        for _ in range(9):
            logging.getLogger("tilewe_jax.web").warning("too many")
        assert len(caplog.records) == 3


def test_a_body_that_does_not_arrive(tmp_path: Path) -> None:
    limits = limited(body_seconds=0.2)
    with running(create_app(Store(tmp_path / "games"), limits=limits), limits) as address:
        with connect(address) as client:
            client.sendall(b"POST /api/games HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
            assert answer(client).startswith(b"HTTP/1.1 408")
        assert asked(address).endswith(b"200 OK")


def test_an_unread_response() -> None:
    sent = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x" * (1 << 24), "more_body": True})
            await send({"type": "http.response.body", "body": b""})  # waits until the client reads or is gone
            sent.set()

    with running(app, limited(response_seconds=0.2)) as address, connect(address) as client:
        client.sendall(REQUEST)
        assert sent.wait(20)


FLOODS = {
    "fragments": [Frame(Opcode.TEXT, b"", fin=False), *[Frame(Opcode.CONT, b"", fin=False)] * 2000],
    "pings": [Frame(Opcode.PING, b"x" * 100)] * 2000,
    "pongs": [Frame(Opcode.PONG, b"")] * 2000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_of_control_frames(flood: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while (await receive())["type"] != "websocket.disconnect":
                pass

    with running(app, GENEROUS) as address, connect(address) as client:
        protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{address[1]}/"))
        protocol.send_request(protocol.connect())
        client.sendall(b"".join(protocol.data_to_send()))
        while protocol.state is not OPEN:
            protocol.receive_data(client.recv(1 << 12))
        for frame in FLOODS[flood]:
            protocol.send_frame(frame)
        with contextlib.suppress(ConnectionError):
            client.sendall(b"".join(protocol.data_to_send()))
        answer(client)  # the socket would time out


def test_counts_of_sockets() -> None:
    counted = Sockets(limited(http_connections=4, http_connections_per_address=3, connections_per_address=1))
    assert [counted.enter("a") is None for _ in range(4)] == [True, True, True, False]
    assert [counted.enter("b") is None for _ in range(2)] == [True, False]
    assert counted.upgrade("a", "a") is None
    assert counted.enter("b") is None
    for address in ("a", "a", "b", "b"):
        counted.leave(address)
    counted.leave_upgraded("a")
    assert [counted.enter("a") is None for _ in range(4)] == [True, True, True, False]
    assert [counted.upgrade("a", "a") is None] == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize("hard", [256, 1024, 1 << 20])
def test_connections_fit_the_files_of_the_process(hard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, hard))
    monkeypatch.setattr("resource.setrlimit", lambda _, values: raised.append(values))
    limits = fitted(Limits())
    files = raised[0][0] if raised else 256
    assert limits.connections + limits.http_connections < files <= hard
    assert limits.http_connections_per_address < limits.http_connections
    assert limits.connections_per_address < limits.connections


def test_repeated_messages_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    repeats = RepeatFilter(count=2, seconds=60)

    def logged(name: str, level: int) -> str | None:
        record = logging.LogRecord(name, level, "", 0, "limit %d", (3,), None)
        return record.getMessage() if repeats.filter(record) else None

    assert [logged("tilewe_jax.web", logging.WARNING) for _ in range(5)] == ["limit 3"] * 2 + [None] * 3
    assert logged("tilewe_jax.web", logging.ERROR) == "limit 3"
    now = 61.0
    assert logged("tilewe_jax.web", logging.WARNING) == "limit 3 (3 more like this before)"
