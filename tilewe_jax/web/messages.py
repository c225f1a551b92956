"""The WebSocket of a game: messages of clients and their answers."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tilewe_jax.utils.files import parse_json
from tilewe_jax.web.limits import Buckets, Limits, TokenBucket
from tilewe_jax.web.room import Connection, Room
from tilewe_jax.web.rooms import Rooms, name_of
from tilewe_jax.web.session import RefusedError, Session

Json = dict[str, Any]

PHRASES = ("hello", "luck", "good", "oops", "wait", "thanks", "bye", "again")
"""The phrases that players can say instead of a chat; the page has their texts."""
MAX_MOVES = 1 << 20
_MAX_REF = 100
_MAX_TASKS = 300
"""Maximum number of analyses that a client may wait for."""


def read_message(text: str | bytes | None, limits: Limits) -> Json:
    """Return the message in a frame. Raises ``RefusedError`` for other content."""
    if isinstance(text, str) and len(text) > limits.message:
        raise RefusedError(f"a message must have at most {limits.message:,} characters")
    try:
        message = parse_json(text) if isinstance(text, str) else None
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise RefusedError("a message must be text with a JSON object")
    return message


def ref_of(message: Any) -> Any:
    """Return the reference of a message if it is a number or a short text, otherwise ``None``."""
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
    """A client of a game.

    Args:
      rooms: all games.
      room: its game.
      connection: its connection.
      analyses: limits of the analyses by address.
    """

    def __init__(self, rooms: Rooms, room: Room, connection: Connection, analyses: Buckets) -> None:
        self._rooms, self._room, self.connection, self._analyses = rooms, room, connection, analyses
        self.limits = rooms.limits
        self._bucket = TokenBucket(self.limits.message_rate, self.limits.message_burst)

        self._ignored = 0
        self._handlers: dict[str, Callable[[Json], Coroutine[Any, Any, Json | None]]] = {
            "move": self._move,
            "explain": self._explain,
            "undo": lambda message: self._change(lambda session, seat: session.undo_asked(seat)),
            "answer_undo": self._answer_undo,
            "redo": lambda message: self._change(lambda session, seat: session.redone(seat)),
            "resign": lambda message: self._change(lambda session, seat: session.resigned(seat)),
            "hint": self._hint,
            "analyze": self._analyze,
            "name": self._name,
            "say": self._say,
            "ping": self._ping,
        }

    async def join(self, message: Json) -> None:
        """Join the game with the first message. Raises ``RefusedError``."""
        if message.get("type") != "join":
            raise RefusedError('the first message must be {"type": "join", "token": ..., "after": 0}', "type")
        token = message.get("token")
        if token is not None and (not isinstance(token, str) or len(token) > 200):
            raise RefusedError("token must be a text, or null for a spectator", "token")
        after = _integer(message, "after", 0, MAX_MOVES, 0)
        undos = _integer(message, "undos", 0, MAX_MOVES) if "undos" in message else None
        name = name_of(message.get("name"))
        room, connection = self._room, self.connection
        if len(room.connections) >= self.limits.connections_per_game:
            raise RefusedError("too many clients are connected to this game", status=429)
        room.join(connection, token, after, undos)
        seat = connection.seat
        if seat is not None and not room.session.over:

            def take(session: Session) -> Session:
                old = session.seats[seat]
                is_news = old.kind == "open" or name not in (None, old.name)
                return session.seated(seat, name) if is_news and not session.over else session

            await room.change(take)

    async def handle(self, text: str | bytes | None) -> bool:
        """Handle a message and send its answer; return whether the connection continues."""
        connection, started = self.connection, time.monotonic()
        message: Any = None
        try:
            if not self._bucket.take():
                self._ignored += 1
                connection.reply(self._refused(None, RefusedError("too many messages; wait a moment", status=429)))
                return self._ignored < self.limits.message_burst
            message = read_message(text, self.limits)
            handler = self._handlers.get(message["type"]) if isinstance(message.get("type"), str) else None
            if handler is None:
                raise RefusedError(f"type must be one of {', '.join(self._handlers)}", "type")
            answer = await handler(message)
        except RefusedError as refusal:
            answer = self._refused(ref_of(message), refusal)
        if answer is not None:
            observer = self._rooms.observer
            is_move = answer["type"] == "ok" and message["type"] == "move"
            when_sent = (lambda: observer.acknowledged(time.monotonic() - started)) if is_move else None
            connection.reply({**answer, "ref": ref_of(message)}, when_sent)
        return True

    def _refused(self, ref: Any, refusal: RefusedError) -> Json:
        """Return the answer to a refused message, and note the refusal."""
        path = f"/api/games/{self._room.id}/socket"
        self._rooms.observer.refused("message", refusal.status, str(refusal), self.connection.address, path)
        return {"type": "error", "ref": ref, "error": str(refusal), "field": refusal.field}

    # ---- Handlers by type

    async def _change(self, change: Callable[[Session, int | None], Session]) -> Json:
        seat = self.connection.seat
        session = await self._room.change(lambda session: change(session, seat))
        return {"type": "ok", "move": len(session.moves)}

    def _action(self, message: Json) -> int:
        return _integer(message, "action", 0, self._room.session.setup.host.num_actions - 1)

    async def _move(self, message: Json) -> Json:
        action = self._action(message)
        known = _integer(message, "move", 0, MAX_MOVES) if "move" in message else None
        return await self._change(lambda session, seat: session.played(seat, action, known))

    async def _explain(self, message: Json) -> Json:
        action = self._action(message)
        rule = self._room.session.explain(self.connection.seat, action)
        return {"type": "explained", "action": action, "rule": rule}

    async def _answer_undo(self, message: Json) -> Json:
        accepts = message.get("accept")
        if not isinstance(accepts, bool):
            raise RefusedError("accept must be true or false", "accept")
        return await self._change(lambda session, seat: session.undo_answered(seat, accepts))

    async def _name(self, message: Json) -> Json:
        name = name_of(message.get("name"))
        if name is None:
            raise RefusedError("name must not be empty", "name")
        return await self._change(lambda session, seat: session.renamed(seat, name))

    async def _say(self, message: Json) -> Json:
        phrase, seat = message.get("phrase"), self.connection.seat
        if phrase not in PHRASES:
            raise RefusedError(f"phrase must be one of {', '.join(PHRASES)}", "phrase")
        if seat is None:
            raise RefusedError("spectators say nothing; join with the token of a seat", status=403)
        self._room.say(seat, phrase)
        return {"type": "ok", "move": len(self._room.session.moves)}

    async def _ping(self, message: Json) -> Json:
        return {"type": "pong"}

    async def _hint(self, message: Json) -> None:
        session, seat = self._room.session, self.connection.seat
        if seat is None:
            raise RefusedError("spectators get no hints; join with the token of a seat", status=403)
        if not session.setup.is_casual:
            raise RefusedError("hints are available in casual games only", status=409)
        if session.over:
            raise RefusedError("the game is over", status=409)
        if seat != session.mover:
            raise RefusedError("it is not your turn", status=409)

        async def hint() -> Json:
            analysis = await self._rooms.analysis(session, len(session.moves), address=self.connection.address)
            return {"type": "hint", "move": len(session.moves), **session.position.action_view(analysis["action"])}

        self._answer_later(hint, message)

    async def _analyze(self, message: Json) -> None:
        session, seat = self._room.session, self.connection.seat
        number = _integer(message, "move", 0, len(session.moves), len(session.moves))
        agent, simulations = message.get("agent"), message.get("simulations")
        if not session.over:
            if not session.setup.is_casual:
                raise RefusedError("analyses are available in casual games or after the end", status=409)
            if session.setup.is_hidden and (seat is None or seat != session.mover or number != len(session.moves)):
                raise RefusedError("this analysis is available after the end, because it would show hidden tiles", status=409)

        async def analyze() -> Json:
            address = self.connection.address
            answer = await self._rooms.analysis(session, number, agent, simulations, address=address)
            return {"type": "analysis", "move": number, **answer}

        self._answer_later(analyze, message)

    def _answer_later(self, work: Callable[[], Coroutine[Any, Any, Json]], message: Json) -> None:
        """Answer in the background; the work is cancelled when the client leaves."""
        connection, ref = self.connection, ref_of(message)
        if len(connection.tasks) >= _MAX_TASKS or not self._analyses.take(connection.address):
            raise RefusedError("too many analyses; wait for some of them", status=429)

        async def run() -> None:
            try:
                answer = await work()
            except RefusedError as refusal:
                answer = self._refused(ref, refusal)
            connection.reply({**answer, "ref": ref})

        task = self._rooms.spawn(run())
        connection.tasks.add(task)
        task.add_done_callback(connection.tasks.discard)


async def converse(
    receive: Callable[[], Coroutine[Any, Any, str | bytes | None]], client: Client, join_seconds: float = 30.0
) -> None:
    """Handle the messages of a client, the first of which must join. Raises ``RefusedError`` if it does not.

    Args:
      receive: returns the next frame; raises ``EOFError`` when the client is gone.
      client: the client.
      join_seconds: time limit for joining.
    """
    try:
        async with asyncio.timeout(join_seconds):
            first = await receive()
    except TimeoutError:
        raise RefusedError(f"the first message must arrive within {join_seconds:g} seconds", status=408) from None
    await client.join(read_message(first, client.limits))
    while await client.handle(await receive()):
        await client.connection.has_room()  # messages are read only as fast as the client reads the answers


async def serve(
    rooms: Rooms,
    game_id: str,
    address: str,
    analyses: Buckets,
    receive: Callable[[], Coroutine[Any, Any, str | bytes | None]],
    send: Callable[[str], Awaitable[None]],
) -> list[BaseException]:
    """Serve a client of a game until it leaves or fails; return the errors. Raises ``RefusedError`` for an unknown game.

    Args:
      rooms: all games.
      game_id: id of the game.
      address: address of the client.
      analyses: limits of the analyses by address.
      receive: returns the next frame; raises ``EOFError`` when the client is gone.
      send: sends a text.
    """
    room = await rooms.get(game_id)
    connection = Connection(send, address, rooms.limits)
    try:
        return await first_of(converse(receive, Client(rooms, room, connection, analyses)), connection.run(room))
    finally:
        room.leave(connection)


async def first_of(*coroutines: Awaitable[None]) -> list[BaseException]:
    """Run coroutines until the first one ends, cancel the others, and return the errors."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [error for task in tasks if not task.cancelled() and (error := task.exception())]
