"""The WebSocket of a game: what clients say, and what is done."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

from tilewe_jax.utils.files import parse_json
from tilewe_jax.web.limits import Buckets, Limits, TokenBucket
from tilewe_jax.web.room import Connection, Room
from tilewe_jax.web.rooms import Rooms, name_of
from tilewe_jax.web.session import RefusedError, Session

Json = dict[str, Any]

MAX_MOVES = 1 << 20
_MAX_REF = 100
_MAX_TASKS = 300
"""Analyses that a client may wait for at a time."""


def read_message(text: str | bytes | None, limits: Limits) -> Json:
    """The message in a frame. Raises ``RefusedError`` for what is none."""
    if not isinstance(text, str):
        raise RefusedError("a message is text: a JSON object")
    if len(text) > limits.message:
        raise RefusedError(f"a message has at most {limits.message:,} bytes")
    try:
        message = parse_json(text)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise RefusedError("a message is a JSON object")
    return message


def ref_of(message: Any) -> Any:
    """What the sender calls a message, where it is a number or a short text; ``None`` else."""
    ref = message.get("ref") if isinstance(message, dict) else None
    if isinstance(ref, str):
        return ref if len(ref) <= _MAX_REF else None
    is_number = type(ref) in (int, float) and math.isfinite(ref) and abs(ref) < 1 << 53  # type: ignore[arg-type]
    return ref if is_number else None


def _integer(message: Json, name: str, low: int, high: int, default: int | None = None) -> int:
    value = message.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise RefusedError(f"{name} must be an integer from {low} to {high}", name)
    return value


class Client:
    """A client of a game, from when it has joined.

    Args:
      rooms: all games.
      room: its game.
      connection: where it is told.
      analyses: what its address may ask of engines.
    """

    def __init__(self, rooms: Rooms, room: Room, connection: Connection, analyses: Buckets) -> None:
        self._rooms, self._room, self.connection, self._analyses = rooms, room, connection, analyses
        self.limits = rooms.limits
        self._bucket = TokenBucket(self.limits.message_rate, self.limits.message_burst)
        self._ignored = 0
        self._handlers: dict[str, Callable[[Json], Coroutine[Any, Any, Json | None]]] = {
            "move": self._move,
            "explain": self._explain,
            "undo": self._undo,
            "answer_undo": self._answer_undo,
            "redo": self._redo,
            "resign": self._resign,
            "hint": self._hint,
            "analyze": self._analyze,
            "name": self._name,
            "ping": self._ping,
        }

    async def join(self, message: Json) -> None:
        """Join the game, with the first message. Raises ``RefusedError``."""
        if message.get("type") != "join":
            raise RefusedError('the first message must be {"type": "join", "token": ..., "after": 0}', "type")
        token = message.get("token")
        if token is not None and (not isinstance(token, str) or len(token) > 200):
            raise RefusedError("token must be a text, or null for a spectator", "token")
        after = _integer(message, "after", 0, MAX_MOVES, 0)
        undos = _integer(message, "undos", 0, MAX_MOVES) if "undos" in message else None
        name = name_of(message.get("name"))
        room, connection = self._room, self.connection
        if len(room.connections) >= self._rooms.limits.connections_per_game:
            raise RefusedError("too many are connected to this game", None, 429)
        room.join(connection, token, after, undos)
        seat = connection.seat
        if seat is not None and not room.session.over:

            def take(session: Session) -> Session:
                old = session.seats[seat]
                is_news = old.kind == "open" or name not in (None, old.name)
                return session.seated(seat, name) if is_news and not session.over else session

            await room.change(take)

    async def handle(self, text: str | bytes | None) -> bool:
        """Do what a message asks for, and answer it; whether the connection goes on."""
        connection = self.connection
        message: Any = None
        try:
            if not self._bucket.take():
                self._ignored += 1
                connection.reply(_refused(None, RefusedError("too many messages; send fewer", None, 429)))
                return self._ignored < self._rooms.limits.message_burst
            message = read_message(text, self._rooms.limits)
            handler = self._handlers.get(message["type"]) if isinstance(message.get("type"), str) else None
            if handler is None:
                raise RefusedError(f"type must be one of {', '.join(self._handlers)}", "type")
            answer = await handler(message)
        except RefusedError as refusal:
            answer = _refused(ref_of(message), refusal)
        if answer is not None:
            connection.reply({**answer, "ref": ref_of(message)})
        return True

    # ---- What clients ask for

    def _done(self, session: Session) -> Json:
        return {"type": "ok", "move": len(session.moves)}

    async def _move(self, message: Json) -> Json:
        host = self._room.session.setup.host
        action = _integer(message, "action", 0, host.num_actions - 1)
        known = _integer(message, "move", 0, MAX_MOVES) if "move" in message else None
        seat = self.connection.seat
        return self._done(await self._room.change(lambda session: session.played(seat, action, known)))

    async def _explain(self, message: Json) -> Json:
        host = self._room.session.setup.host
        action = _integer(message, "action", 0, host.num_actions - 1)
        rule = self._room.session.explain(self.connection.seat, action)
        return {"type": "explained", "action": action, "rule": rule}

    async def _undo(self, message: Json) -> Json:
        seat = self.connection.seat
        return self._done(await self._room.change(lambda session: session.undo_asked(seat)))

    async def _answer_undo(self, message: Json) -> Json:
        seat, accepts = self.connection.seat, message.get("accept")
        if not isinstance(accepts, bool):
            raise RefusedError("accept must be true or false", "accept")
        return self._done(await self._room.change(lambda session: session.undo_answered(seat, accepts)))

    async def _redo(self, message: Json) -> Json:
        seat = self.connection.seat
        return self._done(await self._room.change(lambda session: session.redone(seat)))

    async def _resign(self, message: Json) -> Json:
        seat = self.connection.seat
        return self._done(await self._room.change(lambda session: session.resigned(seat)))

    async def _name(self, message: Json) -> Json:
        seat, name = self.connection.seat, name_of(message.get("name"))
        if name is None:
            raise RefusedError("name must be a text that is not empty", "name")
        return self._done(await self._room.change(lambda session: session.renamed(seat, name)))

    async def _ping(self, message: Json) -> Json:
        return {"type": "pong"}

    async def _hint(self, message: Json) -> None:
        session, seat = self._room.session, self.connection.seat
        if seat is None:
            raise RefusedError("spectators only watch; join with the token of a seat", None, 403)
        if not session.setup.is_casual:
            raise RefusedError("hints are given in casual games only", None, 409)
        if session.over:
            raise RefusedError("the game is over", None, 409)
        if seat != session.mover:
            raise RefusedError("it is not your turn", None, 409)

        async def hint() -> Json:
            analysis = await self._rooms.analysis(session, len(session.moves), address=self.connection.address)
            position = session.position
            return {"type": "hint", "move": len(session.moves), **position.action_view(analysis["action"])}

        self._answer_later(hint, message)

    async def _analyze(self, message: Json) -> None:
        session, seat = self._room.session, self.connection.seat
        number = _integer(message, "move", 0, len(session.moves), len(session.moves))
        agent, simulations = message.get("agent"), message.get("simulations")
        if not session.over:
            if not session.setup.is_casual:
                raise RefusedError("analyses are made in casual games, or after the end", None, 409)
            if session.setup.is_hidden and (seat is None or seat != session.mover or number != len(session.moves)):
                raise RefusedError("before the end, an analysis would show what is hidden", None, 409)

        async def analyze() -> Json:
            address = self.connection.address
            answer = await self._rooms.analysis(session, number, agent, simulations, address=address)
            return {"type": "analysis", "move": number, **answer}

        self._answer_later(analyze, message)

    def _answer_later(self, work: Callable[[], Coroutine[Any, Any, Json]], message: Json) -> None:
        """Have an engine asked while the client goes on; it is given up when the client is gone."""
        connection, ref = self.connection, ref_of(message)
        if len(connection.tasks) >= _MAX_TASKS or not self._analyses.take(connection.address):
            raise RefusedError("too many analyses; wait for some of them", None, 429)

        async def run() -> None:
            try:
                answer = await work()
            except RefusedError as refusal:
                answer = _refused(ref, refusal)
            connection.reply({**answer, "ref": ref})

        task = self._rooms.spawn(run())
        connection.tasks.add(task)
        task.add_done_callback(connection.tasks.discard)


def _refused(ref: Any, refusal: RefusedError) -> Json:
    return {"type": "error", "ref": ref, "error": str(refusal), "field": refusal.field}


async def converse(
    receive: Callable[[], Coroutine[Any, Any, str | bytes | None]], client: Client, join_seconds: float = 30.0
) -> None:
    """Talk with a client: first it joins, then it asks. Raises ``RefusedError`` where it does not join.

    Args:
      receive: gives the next frame; raises ``EOFError`` when the client is gone.
      client: the client.
      join_seconds: it must join within so many seconds.
    """
    try:
        async with asyncio.timeout(join_seconds):
            first = await receive()
    except TimeoutError:
        raise RefusedError("nobody has joined", None, 408) from None
    await client.join(read_message(first, client.limits))
    while await client.handle(await receive()):
        await client.connection.has_room()  # who asks faster than it reads is read more slowly
