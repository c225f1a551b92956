"""Connection limits below HTTP that Uvicorn lacks: numbers of connections, and time limits for clients."""

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tilewe_jax.web.events import Observer
from tilewe_jax.web.guard import FORWARDING_HEADERS, Network, with_mapped
from tilewe_jax.web.limits import Limits, TokenBucket

if sys.platform != "win32":
    import resource

log = logging.getLogger("tilewe_jax.web")

_CONTROL_RATE, _CONTROL_BURST = 20.0, 500.0
"""Rate per second and burst of pings, pongs and fragments of a WebSocket, which the limit of messages does not count."""
_CLOSING = 100
"""Number of WebSockets above the limits of the application, which are being refused or closed."""
_OTHER_FILES = 128
"""Number of file descriptors for everything except connections: the database, engines, static files."""


class RepeatFilter(logging.Filter):
    """Logging filter: pass at most ``count`` messages with the same template in ``seconds``.

    Clients can trigger a message arbitrarily often and must not fill the log. The next message after that time states the
    number of omitted messages.
    """

    def __init__(self, count: int = 3, seconds: float = 60.0) -> None:
        super().__init__()
        self._count, self._seconds = count, seconds
        self._periods: dict[str, tuple[float, int]] = {}
        """Start of the current period and number of its messages, by template."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        if record.levelno >= logging.ERROR and record.name != "uvicorn.error":
            return True  # errors differ in their values, such as the id of a damaged game
        now = time.monotonic()
        started, number = self._periods.get(str(record.msg), (now, 0))
        if now - started > self._seconds:
            if number > self._count:
                record.msg, record.args = f"{record.getMessage()} ({number - self._count:,} more like this before)", ()
            started, number = now, 0
        self._periods[str(record.msg)] = started, number + 1
        return number < self._count


async def _no_app(*event: Any) -> None:
    """Stand for an application where only the trusted addresses of ``ProxyHeadersMiddleware`` are used."""


class Sockets:
    """Counts of the open connections by address of the client, and their limits.

    A proxy uses one connection for the requests of several clients. So the connections of trusted proxies are not limited by
    address; the concurrent requests of each client behind them are, see ``Proxied``.

    Args:
      limits: the limits.
      observer: receives refusals.
      proxies: the trusted proxies, which report the addresses of their clients.
    """

    def __init__(self, limits: Limits, observer: Observer | None = None, proxies: Sequence[Network] = ()) -> None:
        self.limits = limits
        self.proxies = [str(network) for network in with_mapped(proxies)]
        self._observer = observer or Observer()
        self._http: Counter[str] = Counter()
        self._upgraded: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        """Concurrent requests through proxies."""
        self._trusted = ProxyHeadersMiddleware(_no_app, self.proxies).trusted_hosts
        self._has_warned = False

    def is_proxy(self, address: str) -> bool:
        """Return whether a connection comes from a trusted proxy."""
        return address in self._trusted

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of the client of a request.

        Args:
          peer: the other end of the connection.
          headers: headers of the request.
        """
        forwarded = [value for name, value in headers if name == b"x-forwarded-for"]
        if not forwarded or not self.is_proxy(peer):
            return peer
        return self._trusted.get_trusted_client_address(b", ".join(forwarded).decode("latin-1"))[0] or peer

    def enter(self, peer: str) -> str | None:
        """Count an HTTP connection, or return the reason to refuse it."""
        limits = self.limits
        per_address = limits.http_connections if self.is_proxy(peer) else limits.http_connections_per_address
        return self._enter(self._http, peer, "HTTP connections", per_address, limits.http_connections)

    def upgrade(self, peer: str, client: str) -> str | None:
        """Count an HTTP connection as a WebSocket of a client from now on, or return the reason to refuse it."""
        limits = self.limits
        # The application has lower limits and refuses a WebSocket with a message that the page shows.
        refusal = self._enter(
            self._upgraded, client, "WebSockets", limits.connections_per_address + _CLOSING, limits.connections + _CLOSING
        )
        if refusal is None:
            self.leave(peer)
        return refusal

    def request(self, client: str) -> str | None:
        """Count a request through a proxy, or return the reason to refuse it."""
        limits = self.limits
        per_address = limits.http_connections_per_address
        return self._enter(self._requests, client, "HTTP requests", per_address, limits.http_connections)

    def leave_request(self, client: str) -> None:
        """Count the end of a request through a proxy."""
        _leave(self._requests, client)

    def warn_of_proxy(self, peer: str) -> None:
        """Warn once that a proxy which is not trusted forwards requests."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "requests are forwarded from %s, which --trusted-proxy does not name: all clients there share the limits of one"
                " address",
                peer,
            )

    def leave(self, address: str) -> None:
        """Count the end of an HTTP connection."""
        _leave(self._http, address)

    def leave_upgraded(self, address: str) -> None:
        """Count the end of a WebSocket."""
        _leave(self._upgraded, address)

    def _enter(self, counter: "Counter[str]", address: str, kind: str, limit_per_address: int, limit: int) -> str | None:
        if counter[address] >= limit_per_address:
            log.warning("more than %d " + kind + " from one address are refused", limit_per_address)
            refusal = "too many connections from this address"
        elif counter.total() >= limit:
            log.warning("more than %d " + kind + " are refused", limit)
            refusal = "the server has too many connections; try again later"
        else:
            counter[address] += 1
            return None
        self._observer.refused("connection", 503, refusal, address, "")
        return refusal


def _leave(counter: "Counter[str]", address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]


class _Deadline:
    """A timer that ends a connection whose client is too slow."""

    def __init__(self, protocol: H11Protocol, seconds: float) -> None:
        self._protocol, self._seconds = protocol, seconds
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer unless it runs."""
        self._handle = self._handle or self._protocol.loop.call_later(self._seconds, self._protocol.transport.abort)

    def stop(self) -> None:
        if self._handle:
            self._handle.cancel()
            self._handle = None


class _Http(H11Protocol):
    """An HTTP connection with time limits for sending the headers of a request and for reading a response."""

    sockets: Sockets

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_counted = False
        self._headers = _Deadline(self, self.sockets.limits.header_seconds)
        """Runs from the connection or the first byte of a request until its headers are complete."""
        self._response = _Deadline(self, self.sockets.limits.response_seconds)
        """Runs while the client does not read."""

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def _is_busy(self) -> bool:
        """Whether the server is answering a request."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        refusal = self.sockets.enter(self._address)
        if refusal is None:
            self._is_counted = True
            self._headers.start()
        else:
            self._refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        if self._is_counted:
            self._is_counted = False
            self.sockets.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_counted:  # it was refused
            return
        if not self._is_busy:
            self._headers.start()
        super().data_received(data)
        if self._is_busy:
            self._headers.stop()

    def handle_websocket_upgrade(self, event: Any) -> None:
        client = self.sockets.client_of(self._address, self.headers)
        refusal = self.sockets.upgrade(self._address, client)
        if refusal is not None:
            self._refuse(refusal)
            return
        self._is_counted = False
        self._stop()
        super().handle_websocket_upgrade(event)
        protocol = self.transport.get_protocol()
        assert isinstance(protocol, _WebSocket)
        protocol.client_address = client

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._response.stop()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # Closing waits until the client has read everything, which may never happen.
        self.loop.call_later(self.sockets.limits.send_seconds, self.transport.abort)

    def _stop(self) -> None:
        self._headers.stop()
        self._response.stop()

    def _refuse(self, reason: str) -> None:
        """Send an error before any request, and end the connection."""
        body = json.dumps({"error": reason, "field": None})
        head = f"HTTP/1.1 503 \r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write((head + body).encode())
        self.transport.close()


class _WebSocket(WebSocketsSansIOProtocol):
    """A WebSocket with a limit of control frames and fragments, which would fill the memory of the server."""

    sockets: Sockets

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._control = TokenBucket(_CONTROL_RATE, _CONTROL_BURST)
        self.client_address = ""
        """Address of the client, which may be behind a proxy."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.sockets.leave_upgraded(self.client_address)
        super().connection_lost(exc)

    def handle_ping(self, *args: Any) -> None:
        if not self._take():
            return
        if self.writable.is_set():
            super().handle_ping(*args)
        else:  # the client does not read, so a pong would only wait
            self.conn.data_to_send()

    def handle_pong(self, *args: Any) -> None:
        if self._take():
            super().handle_pong(*args)

    def handle_cont(self, event: Any) -> None:
        if self._take():
            super().handle_cont(event)

    def _take(self) -> bool:
        if self._control.take():
            return True
        log.warning("a WebSocket sent too many control frames or fragments and was cut off")
        self.transport.abort()
        return False


class Proxied:
    """Middleware below the application: the addresses and schemes of clients behind trusted proxies, and their limits.

    Args:
      sockets: the counts.
      app: the application.
    """

    def __init__(self, sockets: Sockets, app: ASGIApp) -> None:
        self._sockets, self._app = sockets, app
        self._forwarded = ProxyHeadersMiddleware(self._limited, sockets.proxies)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI event."""
        peer = scope["client"][0] if scope.get("client") else ""
        if self._sockets.is_proxy(peer):
            await self._forwarded(scope, receive, send)  # type: ignore[arg-type]
            return
        if scope["type"] != "lifespan" and any(name.decode("latin-1") in FORWARDING_HEADERS for name, _ in scope["headers"]):
            self._sockets.warn_of_proxy(peer)
        await self._app(scope, receive, send)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an event of a client behind a proxy."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope["client"][0]
        refusal = self._sockets.request(client)
        if refusal is not None:
            await JSONResponse({"error": refusal, "field": None}, 503)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._sockets.leave_request(client)


def _file_limit(wanted: int) -> int:
    """Raise the limit of open files to ``wanted`` if the system permits it; return the resulting limit."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):  # some systems have a further limit
        return soft
    return raised


def fitted(limits: Limits) -> Limits:
    """Raise the limit of open files if possible, and return limits whose connections fit it."""
    wanted = limits.connections + limits.http_connections + _CLOSING + _OTHER_FILES
    soft = _file_limit(wanted)
    if soft >= wanted:
        return limits
    http = max(8, (soft - _CLOSING - _OTHER_FILES) // 3)
    log.warning("at most %d files may be open, so the server accepts only %d connections; see ulimit -n", soft, 3 * http)
    return replace(
        limits,
        http_connections=http,
        http_connections_per_address=min(limits.http_connections_per_address, max(4, http // 2)),
        connections=2 * http,
        connections_per_address=min(limits.connections_per_address, http),
    )


def server_config(
    app: ASGIApp, limits: Limits, observer: Observer | None = None, proxies: Sequence[Network] = ()
) -> uvicorn.Config:
    """Return the configuration of a Uvicorn server.

    Args:
      app: the application.
      limits: the limits of connections.
      observer: receives the refusals of connections.
      proxies: the trusted proxies. Other clients cannot choose their address.
    """
    counts = Sockets(limits, observer, proxies)
    sockets = {"sockets": counts}
    for name in ("tilewe_jax.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        others = [each for each in logger.filters if not isinstance(each, RepeatFilter)]
        logger.filters = [*others, RepeatFilter()]  # a new server counts its messages from 0
    return uvicorn.Config(
        Proxied(counts, app),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # ``Proxied`` reads them
        http=type("Http", (_Http,), sockets),
        ws=type("WebSocket", (_WebSocket,), sockets),
        ws_max_size=limits.message,
        ws_per_message_deflate=False,  # a small message must not expand to a large one
        ws_ping_interval=20,
        ws_ping_timeout=20,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=3,
    )
