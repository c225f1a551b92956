"""Measurements of a server in the text format of Prometheus."""

import asyncio
import json
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilewe_jax.web.events import Observer

if TYPE_CHECKING:
    from tilewe_jax.web.app import Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""Upper limits of the classes of acknowledgements and requests, in seconds."""
_SLOW = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300)
"""Upper limits of the classes of engine moves, in seconds."""
_BAD_REQUEST = 400


class Monitor(Observer):
    """Counters, and gauges that are read when they are asked for. All names start with ``tilewe_``."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"tilewe_{name}", text, labels, registry=registry)

        self._games = gauge("games", "Games: stored in the database, in memory, and with connected clients", "where")
        self._studies = gauge("studies", "Studies in the database")
        self._sockets = gauge("sockets", "Open WebSockets")
        self._questions = gauge("engine_questions", "Positions that wait for an engine or are being searched", "process")
        self._ready = gauge("engine_ready", "Whether an engine process is ready", "process")
        self._warm = gauge("engine_warm_searches", "Compiled searches of an engine process", "process")
        self._bytes = gauge("database_bytes", "Size of the used part of the database")
        self._starts = gauge("engine_ends", "Number of times that an engine process has ended unexpectedly", "process")
        self._refusals = Counter(
            "tilewe_refusals",
            "Refused connections, requests, WebSockets and messages",
            ("channel", "status"),
            registry=registry,
        )
        self._requests = Histogram(
            "tilewe_request_seconds", "Time of an HTTP request", ("method",), buckets=_FAST, registry=registry
        )
        self._acknowledgements = Histogram(
            "tilewe_acknowledgement_seconds",
            "Time from the arrival of a move until its acknowledgement was sent",
            buckets=_FAST,
            registry=registry,
        )
        self._engine_moves = Histogram(
            "tilewe_engine_move_seconds",
            "Time of an engine for a move; without a warm search it includes the compilation",
            ("warm",),
            buckets=_SLOW,
            registry=registry,
        )

    def refused(self, channel: str, status: int, error: str, address: str, path: str) -> None:
        self._refusals.labels(channel, str(status)).inc()

    def acknowledged(self, seconds: float) -> None:
        self._acknowledgements.observe(seconds)

    def engine_moved(self, seconds: float, was_warm: bool) -> None:
        self._engine_moves.labels(str(was_warm).lower()).observe(seconds)

    def requested(self, method: str, seconds: float) -> None:
        """Note the time of an HTTP request."""
        self._requests.labels(method if method in ("GET", "HEAD", "POST") else "other").observe(seconds)

    async def text(self, server: "Server") -> bytes:
        """Return all measurements of a server. Raises ``StoreError`` if the database cannot be read."""
        store, rooms = server.store, server.rooms
        games, studies = await asyncio.gather(asyncio.to_thread(store.count_games), asyncio.to_thread(store.count_studies))
        self._games.labels("database").set(games)
        self._games.labels("memory").set(rooms.num_in_memory)
        self._games.labels("connected").set(rooms.num_connected)
        self._studies.set(studies)
        self._sockets.set(server.connections.total())
        self._bytes.set(await asyncio.to_thread(store.num_bytes))
        for name, process in server.engines.processes.items() if server.engines else ():
            self._questions.labels(name).set(process.num_waiting)
            self._ready.labels(name).set(process.state == "ready")
            self._warm.labels(name).set(len(process.warm))
            self._starts.labels(name).set(process.num_ends)
        return generate_latest(self._registry)


class Monitored:
    """Middleware that measures requests and notes the refused ones.

    Args:
      app: the application.
      monitor: receives the measurements.
    """

    def __init__(self, app: ASGIApp, monitor: Monitor) -> None:
        self._app, self._monitor = app, monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request or WebSocket."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, error, started = 0, "", time.monotonic()

        async def send_noted(message: Message) -> None:
            nonlocal status, error
            if message["type"] == "http.response.start":
                status = message["status"]
            elif status >= _BAD_REQUEST and not error:
                error = _error_in(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._monitor.requested(scope["method"], time.monotonic() - started)
            if status >= _BAD_REQUEST:
                self._monitor.refused("http", status, error, _address(scope), scope["path"])

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_accepted = False

        async def send_noted(message: Message) -> None:
            nonlocal is_accepted
            is_accepted |= message["type"] == "websocket.accept"
            if message["type"] == "websocket.close" and not is_accepted:
                self._monitor.refused("socket", 403, message.get("reason") or "", _address(scope), scope["path"])
            await send(message)

        await self._app(scope, receive, send_noted)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _error_in(body: bytes) -> str:
    """Return the message of a JSON error, or an empty text."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, LookupError, TypeError):
        return ""
