"""Limits for clients, and protection against requests that other web pages make in a visitor's browser."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Limits:
    """Limits of the server. A rate is per second; a burst is the maximum number of immediate events."""

    body: int = 1 << 20
    """Size of a request body, in bytes."""
    body_seconds: float = 30.0
    """Time for sending a request body."""
    message: int = 1 << 14
    """Size of a WebSocket message, in bytes."""
    games: int = 100_000
    """Number of stored games."""
    studies: int = 10_000
    """Number of stored studies."""
    rooms: int = 2_000
    """Number of games in memory."""
    connections: int = 2_000
    """Number of WebSockets."""
    connections_per_address: int = 600
    """Number of WebSockets of one address; browsers behind one router share it."""
    http_connections: int = 1_000
    """Number of HTTP connections, WebSockets excluded."""
    http_connections_per_address: int = 300
    """Number of HTTP connections of one address; a browser opens up to six."""
    header_seconds: float = 15.0
    """Time for sending the headers of a request."""
    idle_seconds: float = 15.0
    """Idle time of a connection between requests."""
    response_seconds: float = 120.0
    """Time for reading a part of a response."""
    connections_per_game: int = 200
    """Number of WebSockets of one game, spectators included."""
    replies: int = 64
    """Number of answers that wait for a client; the next one closes the connection."""
    send_seconds: float = 30.0
    """Time for reading a message."""
    message_rate: float = 50.0
    message_burst: float = 200.0
    """Messages of a WebSocket."""
    request_rate: float = 30.0
    request_burst: float = 120.0
    """Requests of an address under /api, including new WebSockets."""
    creation_rate: float = 0.5
    creation_burst: float = 20.0
    """Games and studies that an address creates."""
    attempt_rate: float = 2.0
    attempt_burst: float = 100.0
    """Requests of an address for a new game or study, including refused ones."""
    tasks_per_address: int = 32
    """Number of concurrent requests of an address for replays, pictures, studies and metrics."""
    analysis_rate: float = 4.0
    analysis_burst: float = 300.0
    """Analyses and hints for an address; a page may ask for a whole game."""
    questions_per_address: int = 64
    """Number of positions that engines search concurrently for an address; further ones wait."""
    compilation_rate: float = 1 / 60
    compilation_burst: float = 12.0
    """Searches that engines compile for an address, because of new options or agents; further ones wait."""
    engine_seconds: float = 0.6
    """Minimum time between two moves of engines, so that people can follow the game."""


class TokenBucket:
    """Rate limiter that permits ``rate`` events per second and bursts of ``burst`` events."""

    __slots__ = ("burst", "rate", "tokens", "updated")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.tokens, self.updated = rate, burst, burst, time.monotonic()

    def take(self) -> bool:
        """Count an event; return whether it is permitted."""
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def give(self) -> None:
        """Remove an event from the count."""
        self.tokens = min(self.burst, self.tokens + 1)


class Buckets:
    """Token buckets by address. Beyond ``max_size`` the least recently used buckets are dropped."""

    def __init__(self, rate: float, burst: float, max_size: int = 10_000) -> None:
        self._rate, self._burst, self._max_size = rate, burst, max_size
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, address: str) -> bool:
        """Count an event of an address; return whether it is permitted."""
        return self._of(address).take()

    def give(self, address: str) -> None:
        """Remove an event of an address from the count."""
        self._of(address).give()

    def _of(self, address: str) -> TokenBucket:
        bucket = self._buckets.setdefault(address, TokenBucket(self._rate, self._burst))
        self._buckets.move_to_end(address)
        if len(self._buckets) > self._max_size:
            self._buckets.popitem(last=False)
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
"""Headers of every response. They forbid content of other servers, inline scripts, and frames in other pages."""
_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def allows_host(host: str, names: Collection[str]) -> bool:
    """Return whether a ``Host`` header has an IP address or one of these names.

    With DNS rebinding, the name of another site resolves to the address of this server, so that pages of that site count as
    its own. The header has the name of that site then.
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
    """Return whether a request comes from a page of this server or, without an origin, from a program."""
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class Guard:
    """Middleware that checks host and origin of requests, and adds the security headers to responses.

    Args:
      app: the application.
      host_names: names under which clients reach the server, besides IP addresses.
    """

    def __init__(self, app: ASGIApp, host_names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in host_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request or WebSocket."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in _HEADERS if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        error = self._error(scope) if scope["type"] in ("http", "websocket") else None
        if error is None:
            await self._app(scope, receive, send_guarded)
        elif scope["type"] == "http":
            await JSONResponse({"error": error, "field": None}, 403, {"connection": "close"})(scope, receive, send_guarded)
        else:  # a close before the acceptance gives an HTTP response 403
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": error})

    def _error(self, scope: Scope) -> str | None:
        """Reason to refuse a request because of its headers, or ``None``."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not allows_host(host, self._names):
            return f"the server does not accept the host name {host[:80]!r}; start it with --names to add it"
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_reading and not allows_origin(headers.get("origin"), host):
            return "requests from pages of other sites are not allowed"
        return None
