"""Limits for clients."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from tilewe_jax.settings import setting, validate


@dataclass(frozen=True)
class Limits:
    """Limits of the server. A rate is per second; a burst is the maximum number of immediate events. Times are in seconds."""

    body: int = setting(1 << 20, 0)
    """Size of a request body, in bytes."""
    body_seconds: float = setting(30.0, positive=True)
    """Time for sending a request body."""
    message: int = setting(1 << 14, 0)
    """Size of a WebSocket message, in bytes."""
    games: int = setting(100_000, 0)
    """Stored games."""
    studies: int = setting(10_000, 0)
    """Stored studies."""
    disk_megabytes: int = setting(10_000, 0)
    """Size of the database in units of 1,000,000 bytes; above nine tenths of it nothing new is created, and moves need the
    rest."""
    days: float = setting(90.0, positive=True)
    """Days after its last change until a game or study is deleted."""
    rooms: int = setting(2_000, 0)
    """Games in memory."""
    connections: int = setting(2_000, 0)
    """WebSockets."""
    connections_per_address: int = setting(600, 0)
    """WebSockets of one address; browsers behind one router share it."""
    http_connections: int = setting(1_000, 0)
    """HTTP connections, WebSockets excluded."""
    http_connections_per_address: int = setting(300, 0)
    """HTTP connections of one address, behind a trusted proxy concurrent requests; a browser opens up to six."""
    header_seconds: float = setting(15.0, positive=True)
    """Time for sending the headers of a request."""
    idle_seconds: float = setting(15.0, positive=True)
    """Idle time of a connection between requests."""
    response_seconds: float = setting(120.0, positive=True)
    """Time for reading a part of a response."""
    connections_per_game: int = setting(200, 0)
    """WebSockets of one game, spectators included."""
    replies: int = setting(64, 0)
    """Answers that wait for a client; the next one closes the connection."""
    send_seconds: float = setting(30.0, positive=True)
    """Time for reading a message."""
    message_rate: float = setting(50.0, 0)
    """Messages of a WebSocket, per second."""
    message_burst: float = setting(200.0, 0)
    """Messages of a WebSocket at a time."""
    request_rate: float = setting(30.0, 0)
    """Requests of an address under /api, including new WebSockets, per second."""
    request_burst: float = setting(120.0, 0)
    """Requests of an address at a time."""
    creation_rate: float = setting(0.5, 0)
    """Games and studies that an address creates, per second."""
    creation_burst: float = setting(20.0, 0)
    """Games and studies that an address creates at a time."""
    attempt_rate: float = setting(2.0, 0)
    """Requests of an address for a new game or study, including refused ones, per second."""
    attempt_burst: float = setting(100.0, 0)
    """Requests of an address for a new game or study at a time."""
    tasks_per_address: int = setting(32, 0)
    """Concurrent requests of an address for replays, pictures, studies and metrics."""
    analysis_rate: float = setting(4.0, 0)
    """Analyses and hints for an address, per second."""
    analysis_burst: float = setting(300.0, 0)
    """Analyses and hints for an address at a time; a page may ask for a whole game."""
    questions_per_address: int = setting(64, 0)
    """Positions that engines search concurrently for an address; further ones wait."""
    compilation_rate: float = setting(1 / 60, 0)
    """Searches that engines compile for an address, because of new options or agents, per second; further ones wait."""
    compilation_burst: float = setting(12.0, 0)
    """Searches that engines compile for an address at a time."""
    engine_seconds: float = setting(0.6, 0)
    """Minimum time between two moves of engines, so that people can follow the game."""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a value of the wrong type or outside of its range."""
        validate(self)


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
