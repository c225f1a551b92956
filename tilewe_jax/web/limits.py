"""Limits for clients."""

import time
from collections import OrderedDict
from dataclasses import dataclass


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
