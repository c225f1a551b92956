"""Limits of what others may ask of the server, and the checks of requests that a browser may have been tricked into."""

import asyncio
import ipaddress
import json
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Limits:
    """What a server bears. Rates are a second, and bursts what may come at once."""

    body: int = 1 << 20
    """Bytes of the body of a request."""
    body_seconds: float = 30.0
    """Seconds within which it must come."""
    message: int = 1 << 14
    """Bytes of a message of a WebSocket."""
    games: int = 100_000
    """Games that are kept."""
    studies: int = 10_000
    """Studies that are kept."""
    rooms: int = 2_000
    """Games in memory."""
    connections: int = 2_000
    """WebSockets."""
    connections_per_address: int = 600
    """WebSockets of one address; browsers behind one router share it."""
    http_connections: int = 1_000
    """Connections that are not WebSockets."""
    http_connections_per_address: int = 300
    """Connections of one address that are not WebSockets; a browser has up to six."""
    header_seconds: float = 15.0
    """Seconds within which the headers of a request must come."""
    idle_seconds: float = 15.0
    """Seconds that a connection may be idle between requests."""
    response_seconds: float = 120.0
    """Seconds within which a client must read a response, or a part of it."""
    connections_per_game: int = 200
    """WebSockets of one game, spectators included."""
    replies: int = 64
    """Answers that wait for a client that does not read; one more and it is cut off."""
    send_seconds: float = 30.0
    """Seconds that a client may take to accept a message."""
    message_rate: float = 50.0
    message_burst: float = 200.0
    """Messages of a WebSocket."""
    request_rate: float = 30.0
    request_burst: float = 120.0
    """Requests of an address under /api, WebSockets that are opened included."""
    creation_rate: float = 0.5
    creation_burst: float = 20.0
    """Games and studies that an address makes."""
    attempt_rate: float = 2.0
    attempt_burst: float = 100.0
    """Requests of an address for a new game or study, those that are refused included."""
    tasks_per_address: int = 32
    """Replays, pictures, studies and metrics that an address has in progress or waiting."""
    analysis_rate: float = 4.0
    analysis_burst: float = 300.0
    """Analyses and hints that an address asks for: a whole game may be asked for at once."""
    questions_per_address: int = 64
    """Positions that engines search at a time for the games of an address; further ones wait."""
    compilation_rate: float = 1 / 60
    compilation_burst: float = 12.0
    """Searches that engines compile for the games of an address, for other options or agents than before. One more waits."""
    engine_seconds: float = 0.6
    """Seconds from a move to the move of an engine, at least, so that people can follow a game of fast engines."""


class TokenBucket:
    """Permits ``rate`` events a second, and ``burst`` at once."""

    __slots__ = ("burst", "rate", "tokens", "updated")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.tokens, self.updated = rate, burst, burst, time.monotonic()

    def take(self) -> bool:
        """Whether an event is permitted now."""
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def give(self) -> None:
        """Give an event back that did not happen."""
        self.tokens = min(self.burst, self.tokens + 1)


class Buckets:
    """A token bucket for each address; those that were not used for longest are forgotten beyond ``max_size``."""

    def __init__(self, rate: float, burst: float, max_size: int = 10_000) -> None:
        self._rate, self._burst, self._max_size = rate, burst, max_size
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, address: str) -> bool:
        """Whether an event of this address is permitted now."""
        return self.of(address).take()

    def give(self, address: str) -> None:
        """Give an event of this address back that did not happen."""
        self.of(address).give()

    def of(self, address: str) -> TokenBucket:
        """The bucket of an address."""
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = TokenBucket(self._rate, self._burst)
            if len(self._buckets) > self._max_size:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(address)
        return bucket


SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
        " object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), interest-cohort=()",
}
"""Headers of every response: nothing is loaded from elsewhere, no script stands in a page, no other page shows ours."""
_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def allows_host(host: str, names: Collection[str]) -> bool:
    """Whether a ``Host`` header names this server.

    A page elsewhere can have its own name resolve to our address (DNS rebinding) and would then be of our origin; the header
    shows that name. So names must be known; addresses cannot be rebound.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in names:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def allows_origin(origin: str | None, host: str) -> bool:
    """Whether a request comes from our own pages, or from no page at all; browsers always name the origin of these."""
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class Guard:
    """Middleware: checks Host, Origin and size of requests, and adds the security headers to responses.

    Args:
      app: the application.
      host_names: names besides IP addresses under which the server is reached.
      limits: the limits.
    """

    def __init__(self, app: ASGIApp, host_names: Collection[str], limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._names = frozenset(name.lower() for name in host_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a WebSocket, as ASGI has it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        error = self._error(scope, headers)
        if scope["type"] == "websocket":
            if error:
                # Before it is accepted: the client sees an HTTP response 403.
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": error[1]})
                return
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in _HEADERS if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if error is None:
            try:
                async with asyncio.timeout(self._limits.body_seconds):
                    body = await self._body(receive, scope, headers)
            except TimeoutError:
                error = 408, f"the body of a request must come within {self._limits.body_seconds:g} seconds"
            else:
                if body is not None:
                    await self._app(scope, body, send_guarded)
                    return
                error = 413, f"the body of a request has at most {self._limits.body:,} bytes"
        status, text = error
        content = json.dumps({"error": text, "field": None}).encode()
        start = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send_guarded({"type": "http.response.start", "status": status, "headers": start})
        await send_guarded({"type": "http.response.body", "body": content})

    def _error(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """The status and text with which a request is refused by its headers."""
        host = headers.get(b"host", "")
        if not allows_host(host, self._names):
            return 403, "this server is not known by that name; start it with --names to allow another one"
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_reading and not allows_origin(headers.get(b"origin"), host):
            return 403, "requests from pages of other sites are refused"
        length = headers.get(b"content-length", "0")
        if not length.isascii() or not length.isdecimal() or len(length) > 18 or int(length) > self._limits.body:
            return 413, f"the body of a request has at most {self._limits.body:,} bytes"
        return None

    async def _body(self, receive: Receive, scope: Scope, headers: dict[bytes, str]) -> Receive | None:
        """A ``receive`` that gives the whole body, which is read here; ``None`` where it is too long."""
        if scope["method"] in ("GET", "HEAD") and b"transfer-encoding" not in headers:
            return receive
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.body:
                return None
            if not message.get("more_body"):
                break
        waiting: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def receive_read() -> Message:
            return waiting.pop() if waiting else await receive()

        return receive_read
