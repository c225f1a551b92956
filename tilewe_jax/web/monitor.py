"""Measurements of a server in the text format of Prometheus, and its log of requests and refusals in JSON lines."""

import asyncio
import contextlib
import json
import logging
import logging.handlers
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilewe_jax.web.events import Observer

if TYPE_CHECKING:
    from tilewe_jax.web.app import Server

log = logging.getLogger("tilewe_jax.web")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""Upper limits of the classes of acknowledgements and requests, in seconds."""
_SLOW = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300)
"""Upper limits of the classes of engine moves, in seconds."""
_BAD_REQUEST = 400


class Journal:
    """A log of JSON lines. If its file is moved, a new file is started.

    Args:
      path: the file, to which lines are appended; ``-`` for standard error.

    Raises ``OSError`` if the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._handler = logging.StreamHandler(sys.stderr) if path == "-" else _File(Path(path), encoding="utf-8")

    def write(self, event: str, **values: Any) -> None:
        """Append a line with the time in UTC, the kind of the event, and its values."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, "event": event, **values})
        self._handler.handle(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # the last lines could not be written
            self._handler.close()


class _File(logging.handlers.WatchedFileHandler):
    def emit(self, record: logging.LogRecord) -> None:
        """Append a line; the folder may be gone."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Report an error of the current line, for example because the disk is full; the server continues."""
        log.warning("the log %s cannot be written: %s", self.baseFilename, sys.exception())


class Monitor(Observer):
    """Counters, and gauges that ``text`` updates. All names start with ``tilewe_``.

    Args:
      journal: receives requests, WebSockets and refusals.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
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
        self._max_bytes = gauge("database_limit_bytes", "Limit of the size of the database")
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
        if self._journal and channel != "http":  # a line of a request has its refusal
            values = {"channel": channel, "status": status, "error": error, "address": address, "path": path}
            self._journal.write("refusal", **values)

    def acknowledged(self, seconds: float) -> None:
        self._acknowledgements.observe(seconds)

    def engine_moved(self, seconds: float, was_warm: bool) -> None:
        self._engine_moves.labels(str(was_warm).lower()).observe(seconds)

    def requested(self, method: str, path: str, address: str, status: int, error: str, seconds: float, size: int) -> None:
        """Note an HTTP request.

        Args:
          method: its method.
          path: its path.
          address: address of the client.
          status: status of the response.
          error: the reason of a refusal.
          seconds: time until the response was sent.
          size: size of the response, in bytes.
        """
        self._requests.labels(method if method in ("GET", "HEAD", "POST") else "other").observe(seconds)
        if status >= _BAD_REQUEST:
            self.refused("http", status, error, address, path)
        if self._journal:
            values = {"address": address, "method": method, "path": path, "status": status, "bytes": size}
            refusal = {"error": error} if error else {}
            self._journal.write("request", **values, seconds=round(seconds, 6), **refusal)

    def left(self, path: str, address: str, code: int | None, seconds: float, received: int, sent: int) -> None:
        """Note the end of a WebSocket.

        Args:
          path: its path.
          address: address of the client.
          code: code with which it was closed.
          seconds: time since it was opened.
          received: number of messages of the client.
          sent: number of messages to the client.
        """
        if self._journal:
            values = {"address": address, "path": path, "code": code, "received": received, "sent": sent}
            self._journal.write("socket", **values, seconds=round(seconds, 3))

    def close(self) -> None:
        """Close the log."""
        if self._journal:
            self._journal.close()

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
        self._max_bytes.set(1e6 * server.limits.disk_megabytes)
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
        status, error, size, started = 0, "", 0, time.monotonic()

        async def send_noted(message: Message) -> None:
            nonlocal status, error, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                body = message.get("body", b"")
                size += len(body)
                if status >= _BAD_REQUEST and not error:
                    error = _error_in(body)
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            seconds = time.monotonic() - started
            self._monitor.requested(scope["method"], scope["path"], _address(scope), status, error, seconds, size)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_accepted, code, started = False, None, time.monotonic()
        received = sent = 0
        address, path = _address(scope), scope["path"]

        async def send_noted(message: Message) -> None:
            nonlocal is_accepted, code, sent
            is_accepted |= message["type"] == "websocket.accept"
            sent += message["type"] == "websocket.send"
            if message["type"] == "websocket.close":
                code = message.get("code", 1000) if code is None else code
                if not is_accepted:
                    self._monitor.refused("socket", 403, message.get("reason") or "", address, path)
            await send(message)

        async def receive_noted() -> Message:
            nonlocal code, received
            message = await receive()
            received += message["type"] == "websocket.receive"
            if message["type"] == "websocket.disconnect" and code is None:
                code = message.get("code")
            return message

        try:
            await self._app(scope, receive_noted, send_noted)
        finally:
            if is_accepted:
                self._monitor.left(path, address, code, time.monotonic() - started, received, sent)


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _error_in(body: bytes) -> str:
    """Return the message of a JSON error, or an empty text."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, LookupError, TypeError):
        return ""
