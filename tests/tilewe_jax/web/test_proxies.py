"""Clients behind a reverse proxy, and a base path."""

import contextlib
import ipaddress
import json
import logging
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as open_socket

from tests.tilewe_jax.web.support import GENEROUS, new_game, serving
from tests.tilewe_jax.web.test_sockets import connect, limited, running
from tilewe_jax.web.app import create_app
from tilewe_jax.web.guard import allows_origin
from tilewe_jax.web.sockets import Sockets
from tilewe_jax.web.store import Store

PROXY = [ipaddress.ip_network("127.0.0.0/8")]
Address = tuple[str, int]


def asked(address: Address, client: str, path: str = "/api/games") -> int:
    """Request a path as a proxy for a client; return the status."""
    return status_of(urllib.request.Request(f"http://{address[0]}:{address[1]}{path}", headers={"x-forwarded-for": client}))


def status_of(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def socket_of(address: Address, game: str, client: str) -> Any:
    """Open the WebSocket of a game as a proxy for a client."""
    url = f"ws://{address[0]}:{address[1]}/api/games/{game}/socket"
    return open_socket(url, additional_headers={"x-forwarded-for": client}, proxy=None)


def create(address: Address) -> str:
    body = json.dumps({"game": "duo", "seats": [{"kind": "human"}] * 2}).encode()
    with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/api/games", body, timeout=20) as response:
        return str(json.load(response)["id"])


def first_message(socket: Any) -> Any:
    with contextlib.suppress(ConnectionClosed):  # a refused client has its message already
        socket.send('{"type": "join"}')
    return json.loads(socket.recv(timeout=20))


def test_limits_count_the_clients_behind_a_trusted_proxy(tmp_path: Path) -> None:
    limits = limited(request_rate=1e-9, request_burst=5, connections_per_address=2)
    app = create_app(Store(tmp_path / "games"), limits=limits)
    with running(app, limits, None, PROXY) as address, contextlib.ExitStack() as stack:
        game = create(address)
        # A client may send the header itself: the address that the proxy appended counts.
        assert [asked(address, f"198.51.100.{number}, 192.0.2.1") for number in range(7)] == [200] * 5 + [429] * 2
        assert asked(address, "192.0.2.2") == 200
        sockets = [stack.enter_context(socket_of(address, game, "2001:db8::1")) for _ in range(3)]
        assert [first_message(socket)["type"] for socket in sockets] == ["state", "state", "error"]
        assert first_message(stack.enter_context(socket_of(address, game, "2001:db8::2")))["type"] == "state"
        assert app.state.server.connections == {"2001:db8::1": 2, "2001:db8::2": 1}


def test_other_clients_cannot_choose_their_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    limits = limited(request_rate=1e-9, request_burst=5)
    proxies = [ipaddress.ip_network("203.0.113.0/24")]
    app = create_app(Store(tmp_path / "games"), limits=limits)
    with running(app, limits, None, proxies) as address:
        assert [asked(address, f"198.51.100.{number}") for number in range(7)] == [200] * 5 + [429] * 2
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["--trusted-proxy" in line and "127.0.0.1" in line for line in lines] == [True]


def test_the_connections_of_a_proxy_are_shared_by_its_clients(tmp_path: Path) -> None:
    """More than ``http_connections_per_address`` come from the proxy; a client has at most so many concurrent requests."""
    limits = limited(http_connections_per_address=3)
    app = create_app(Store(tmp_path / "games"), limits=limits)
    with running(app, limits, None, PROXY) as address, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(address)) for _ in range(6)]
        head = "POST /api/games HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\nx-forwarded-for: 192.0.2.{}\r\n\r\n"
        for number, client in enumerate(held):
            client.sendall(head.format(number % 2).encode())  # the body never comes
        while asked(address, "192.0.2.0") != 503 or asked(address, "192.0.2.1") != 503:  # until all have arrived
            pass
        assert asked(address, "192.0.2.2") == 200
        held.pop(0).close()
        while asked(address, "192.0.2.0") != 200:
            pass
        assert asked(address, "192.0.2.1") == 503


def test_counts_of_connections_through_a_proxy() -> None:
    limits = limited(http_connections_per_address=2, http_connections=5, connections_per_address=0, connections=1)
    sockets = Sockets(limits, None, PROXY)
    assert [sockets.enter("127.0.0.1") is None for _ in range(6)] == [True] * 5 + [False]
    assert sockets.client_of("127.0.0.1", [(b"x-forwarded-for", b"192.0.2.1, 127.0.0.9")]) == "192.0.2.1"
    assert sockets.client_of("::ffff:127.0.0.1", [(b"x-forwarded-for", b"192.0.2.1")]) == "192.0.2.1"
    assert sockets.client_of("127.0.0.1", [(b"x-forwarded-for", b""), (b"host", b"x")]) == "127.0.0.1"
    assert sockets.client_of("192.0.2.7", [(b"x-forwarded-for", b"192.0.2.1")]) == "192.0.2.7"
    assert [sockets.request("192.0.2.1") is None for _ in range(3)] == [True, True, False]
    sockets.leave_request("192.0.2.1")
    assert sockets.request("192.0.2.1") is None
    # ``_CLOSING`` in sockets.py, 100, adds to the limits of WebSockets.
    upgraded = [sockets.upgrade("127.0.0.1", f"192.0.2.{number // 101}") is None for number in range(103)]
    assert upgraded == [True] * 100 + [False, True, False]
    assert sockets.enter("127.0.0.1") is None  # an upgraded connection has left its place
    for number in range(103):
        sockets.leave_upgraded(f"192.0.2.{number // 101}")
    assert not sockets._upgraded


def test_a_secure_page_refuses_pages_without_tls() -> None:
    for origin, is_secure, expected in (
        ("https://games.example.org", True, True),
        ("http://games.example.org", True, False),
        ("http://games.example.org", False, True),
        (None, True, True),
    ):
        assert allows_origin(origin, "games.example.org", is_secure) is expected


def test_the_scheme_of_a_trusted_proxy(tmp_path: Path) -> None:
    app = create_app(Store(tmp_path / "games"), limits=GENEROUS)
    with running(app, GENEROUS, None, PROXY) as address:
        host = f"127.0.0.1:{address[1]}"
        body = json.dumps({"game": "duo", "seats": [{"kind": "human"}] * 2}).encode()
        for origin, status in ((f"http://{host}", 403), (f"https://{host}", 201)):
            headers = {"x-forwarded-proto": "https", "origin": origin}
            request = urllib.request.Request(f"http://{host}/api/games", body, headers)
            assert status_of(request) == status


def test_paths_below_a_base_path(tmp_path: Path) -> None:
    with serving(tmp_path / "games", base_path="/our/club") as client:
        assert client.get("/our/club", follow_redirects=False).headers["location"] == "/our/club/"
        page = client.get("/our/club/").text
        assert 'src="/our/club/static/main.js"' in page
        assert '="/static' not in page
        assert client.get("/our/club/static/render/tilewe-game.js").status_code == 200
        assert client.get("/our/club/static/games.js").status_code == 200
        client.base_url = client.base_url.join("/our/club")
        created = new_game(client, "duo")
        with client.websocket_connect(f"ws://localhost/our/club/api/games/{created['id']}/socket") as socket:
            socket.send_text('{"type": "join"}')
            assert socket.receive_json()["type"] == "state"
        for path in ("/", "/api/games", "/static/main.js", "/metrics"):
            assert client.get(f"http://localhost{path}").status_code == 404
        lost = client.get("http://localhost/elsewhere", headers={"accept": "text/html"})
        assert (lost.status_code, lost.text) == (404, page)
