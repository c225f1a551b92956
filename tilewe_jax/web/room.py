"""A room: one game, its connected clients, and the engine that plays in it.

Under the lock of its room, a change of a game takes four steps: the session checks it and returns a new session, the store
writes it, the room adopts the new session, and the clients receive it. Clients never receive a state that is not stored.
"""

import asyncio
import json
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.web.limits import Buckets, Limits
from tilewe_jax.web.questions import EngineError, UnavailableError
from tilewe_jax.web.session import RefusedError, Seat, Session, legal_of
from tilewe_jax.web.stored import StoreError

if TYPE_CHECKING:
    from tilewe_jax.web.rooms import Rooms
    from tilewe_jax.web.turns import Turns

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

MAX_FRAMES = 200
"""Maximum number of views in a message; the replay has the earlier ones."""
RECENT_POSITIONS = 8
"""Number of recent positions that a room keeps, for undo and for clients that missed a few moves."""
SECONDS_UNTIL_VANISHED = 60.0
"""Time without clients after which engines stop and the game leaves memory."""
PHRASE_RATE, PHRASE_BURST = 1 / 3, 3.0
"""Phrases of a player, per second and at most in a row."""
_NO_PREPARATION = {"warm": None, "seconds": None}
"""Readiness of the engine while no engine moves."""
_ENGINE_FAILED = "the engine failed, so a random move was made"
"""Note on a move."""
RETRY_SECONDS = 5.0
"""Delay before an unavailable engine or store is tried again."""


def encoded(value: Any) -> str:
    """Return a value as compact JSON text."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class Connection:
    """A client of a room, with a bounded queue of messages.

    A client that reads slowly does not receive every state, only the latest one once it has read the previous message.

    Args:
      send: sends a text.
      address: address of the client.
      limits: the limits.
    """

    def __init__(self, send: Callable[[str], Awaitable[None]], address: str, limits: Limits) -> None:
        self.address = address
        self.seat: int | None = None
        self.token_hash: str | None = None
        self.known_moves = 0
        """Number of moves that the client knows."""
        self.is_new = True
        """Whether the client has received no state yet."""
        self.needs_start = True
        """Whether the client joined without knowing a move."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Its analyses and hints in progress."""
        self._send, self._limits = send, limits
        self._replies: deque[tuple[str, Callable[[], None] | None]] = deque()
        """Waiting messages, each with a function to call when it was sent."""
        self._has_news = False
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_lost = False

    def notify(self) -> None:
        """Queue the current state."""
        self._has_news = True
        self._wake.set()

    def reply(self, message: Mapping[str, Any], when_sent: Callable[[], None] | None = None) -> None:
        """Queue a message; ``when_sent`` is called after it was sent. The connection ends if the queue is full."""
        if len(self._replies) >= self._limits.replies:
            self._is_lost = True
        else:
            self._replies.append((encoded(message), when_sent))
            if len(self._replies) > self._limits.replies // 2:
                self._has_room.clear()
        self._wake.set()

    async def has_room(self) -> None:
        """Wait until the queue is at most half full."""
        await self._has_room.wait()

    async def run(self, room: "Room") -> None:
        """Send the queued messages until the client is gone or reads too slowly."""
        while not self._is_lost:
            await self._wake.wait()
            self._wake.clear()
            while (self._replies or self._has_news) and not self._is_lost:
                # The state goes first, so that an acknowledged move is already in the last state of the client.
                when_sent = None
                if self._has_news:
                    self._has_news = False
                    text = await room.state_text(self)
                else:
                    text, when_sent = self._replies.popleft()
                    if len(self._replies) <= self._limits.replies // 2:
                        self._has_room.set()
                async with asyncio.timeout(self._limits.send_seconds):
                    await self._send(text)
                if when_sent:
                    when_sent()


class Room:
    """A game and its connected clients.

    Args:
      rooms: all games.
      game_id: id of the game.
      created: time of its creation, in seconds since 1970.
      session: its session.
    """

    def __init__(self, rooms: "Rooms", game_id: str, created: float, session: Session) -> None:
        self.id, self.created = game_id, created
        self.session = session
        self.connections: set[Connection] = set()
        self.last_used = time.monotonic()
        self.lock = asyncio.Lock()
        self._phrases = Buckets(PHRASE_RATE, PHRASE_BURST)
        """Limits of the phrases by seat."""
        self.rematch_lock = asyncio.Lock()
        self.rematch_tokens: dict[int, str] = {}
        """Tokens of the rematch, by seat of this game."""
        self._rooms = rooms
        self._thinking: asyncio.Task[None] | None = None
        self._thinking_about: tuple[int, int] | None = None
        """Numbers of moves and of undos of the position that the engine searches."""
        self._warming: asyncio.Task[None] | None = None
        """Compiles the searches of the engines while people think."""
        self._moved = 0.0
        """Monotonic time of the last change."""
        self._flag: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._moves: list[str] = [encoded(move.json) for move in session.moves]
        self._positions: dict[int, HostPosition] = {len(session.moves): session.position}
        self._views: dict[tuple[int, int | None], str] = {}
        self._legal: str | None = None

    # ---- Clients

    def join(self, connection: Connection, token: str | None, after: int, undos: int | None) -> None:
        """Connect a client.

        Args:
          connection: the client.
          token: token of a seat; ``None`` for a spectator.
          after: number of moves that the client knows.
          undos: number of undos that the client knows.

        Raises ``RefusedError`` for an unknown token.
        """
        session = self.session
        if token is not None:
            connection.seat = session.seat_of(token)
            if connection.seat is None:
                raise RefusedError("this token does not belong to a seat of this game", "token", 403)
            connection.token_hash = session.seats[connection.seat].token_hash
        is_same_past = undos == session.undos or (undos is None and not session.undos)
        connection.known_moves = after if is_same_past and after <= len(session.moves) else 0
        connection.needs_start = not connection.known_moves
        was_connected = self._connected_seats()
        self.connections.add(connection)
        self.last_used = time.monotonic()
        connection.notify()
        if self._connected_seats() != was_connected:
            self.notify()
        self._follow()

    def leave(self, connection: Connection) -> None:
        """Disconnect a client."""
        was_connected = self._connected_seats()
        self.connections.discard(connection)
        self.last_used = time.monotonic()
        for task in connection.tasks:
            task.cancel()
        if self._warming and not self._connected_seats():
            self._warming.cancel()
            self._warming = None
        if self._thinking and not self.connections and not self._is_warm():
            # Nothing is compiled for people who have left. After a short absence a compiled search continues, see ``rest``.
            self._thinking.cancel()
            self._thinking = None
        if self._connected_seats() != was_connected:
            self.notify()

    def notify(self) -> None:
        """Queue the current state for all clients."""
        for connection in self.connections:
            connection.notify()

    @property
    def is_left(self) -> bool:
        """Whether nobody has been connected for a while."""
        return not self.connections and not self.lock.locked() and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED

    @property
    def is_idle(self) -> bool:
        """Whether nobody has been connected for a while and no clock runs."""
        return self.is_left and self._flag is None

    def close(self) -> None:
        """Stop all tasks of the room for good. Another room may continue the stored game."""
        self._is_closed = True
        for task in (self._thinking, self._warming, self._flag):
            if task:
                task.cancel()

    def say(self, seat: int, phrase: str) -> None:
        """Send a phrase of a player to all clients. Raises ``RefusedError`` if the player says too much."""
        if not self._phrases.take(str(seat)):
            raise RefusedError("too many phrases; wait a moment", status=429)
        for connection in self.connections:
            connection.reply({"type": "said", "seat": seat, "phrase": phrase})

    # ---- Changes

    async def change(self, change: Callable[[Session], Session]) -> Session:
        """Change the session and store it. Raises ``RefusedError``, after which the session is unchanged.

        The change completes even if the caller is cancelled, so that room and store never differ.
        """
        task = asyncio.create_task(self._change(change))
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # the caller may be gone
        return await asyncio.shield(task)

    async def _change(self, change: Callable[[Session], Session]) -> Session:
        async with self.lock:
            if self._is_closed:
                raise RefusedError("this game has left memory; try again", status=503)
            old = self.session
            new = change(old)
            if new is old:
                return old
            kept = min(len(old.moves), len(new.moves))  # a change either adds moves or takes some back
            moves = [(move.action, encoded(move.stored) if move.stored else None) for move in new.moves[kept:]]
            try:
                await self._rooms.store.change(self.id, encoded(new.stored_state), new.over is not None, kept, moves)
            except StoreError as error:
                log.error("%s: %s", self.id, error)
                raise RefusedError("the server cannot save the game; try again later", status=503) from None
            self._adopt(new)
            return new

    def _adopt(self, new: Session) -> None:
        """Adopt a stored session and send it to all clients."""
        old, self.session = self.session, new
        self._moved = time.monotonic()
        number = len(new.moves)
        if new.undos != old.undos:
            del self._moves[number:]
            self._positions.clear()
            self._views.clear()
            for connection in self.connections:
                connection.known_moves = min(connection.known_moves, number)
        if new.over and not old.over:
            self._views.clear()  # views now show hidden information
        self._moves += [encoded(move.json) for move in new.moves[len(self._moves) :]]
        oldest = number - RECENT_POSITIONS
        self._positions = {at: position for at, position in self._positions.items() if at > oldest}
        self._positions[number] = new.position
        self._views = {key: view for key, view in self._views.items() if key[0] > oldest}
        self._legal = None
        for connection in self.connections:
            if connection.seat is not None and new.seats[connection.seat].token_hash != connection.token_hash:
                connection.seat = None  # another client has taken the seat
        self.notify()
        self._follow()

    def _follow(self) -> None:
        """Start or stop clock, engine and compilation to match the session."""
        if self._flag:
            self._flag.cancel()
            self._flag = None
        if self._is_closed:
            return
        session = self.session
        if session.clock_runs():
            if session.clock and session.clock.running_since is None:
                self.session = session = session.with_clock_started()
            left = (session.seconds_left() or [])[session.mover or 0]
            self._flag = asyncio.get_running_loop().call_later(left + 0.005, lambda: self._rooms.spawn(self._drop_flag()))
        about = len(session.moves), session.undos
        if self._thinking and (not session.engine_to_move or about != self._thinking_about):
            self._thinking.cancel()
            self._thinking = None
        if session.engine_to_move and not self._thinking and self.connections and self._rooms.engines:
            self._thinking_about = about
            self._thinking = asyncio.create_task(self._think(session, session.engine_to_move))
        if self._warming and (self._thinking or session.over):
            self._warming.cancel()
        elif not self._thinking and not self._warming and not session.over and self._rooms.turns and self._connected_seats():
            self._warming = self._rooms.spawn(self._warm_up(session, self._rooms.turns))

    async def _warm_up(self, session: Session, turns: "Turns") -> None:
        """Compile the searches of the engines before they move."""
        for agent in {seat.agent for seat in session.seats if seat.kind == "engine"}:
            try:
                await turns.warm_up(self._rooms.question(session, 0, agent or ""), self._address)
            except EngineError as error:
                log.warning("warming up %s: %s", agent, error)

    def _is_warm(self) -> bool:
        """Whether the search of the engine to move is compiled."""
        engines, seat = self._rooms.engines, self.session.engine_to_move
        return bool(engines and seat and engines.is_warm(self._rooms.question(self.session, 0, seat.agent or "")))

    @property
    def _address(self) -> str:
        """Address to which the work of the engine is counted: of a connected player, otherwise of a spectator."""
        return next((each.address for each in sorted(self.connections, key=lambda each: each.seat is None)), "")

    async def _drop_flag(self) -> None:
        self._flag = None
        try:
            await self.change(lambda session: session.flagged())
        except RefusedError as error:
            log.error("%s: the loss on time could not be saved: %s", self.id, error)
            await asyncio.sleep(RETRY_SECONDS)
        self._follow()

    def rest(self) -> None:
        """Stop the engine if nobody has watched for a while."""
        if self._thinking and not self.connections and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED:
            self._thinking.cancel()
            self._thinking = None

    async def _think(self, session: Session, seat: Seat) -> None:
        """Make the move of an engine."""
        assert self._rooms.turns
        mover = session.mover
        question = self._rooms.question(session, len(session.moves), seat.agent or "", seed=random.getrandbits(31))
        note = analysis = None
        action, started = -1, time.monotonic()
        was_warm = self._rooms.turns.is_warm(question)
        while action < 0:
            try:
                (answer,) = await self._rooms.turns.ask(question, self._address)
                action = answer["action"]
                analysis = await asyncio.to_thread(analysis_of, session.position, answer, seat.agent)
                if session.position.explain(action) is not None:
                    raise EngineError(f"it chose the illegal action {action}")
                self._rooms.observer.engine_moved(time.monotonic() - started, was_warm)
            except UnavailableError:
                self.notify()
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as error:  # the game continues after any wrong answer
                log.warning("%s: the engine %s has failed: %s", self.id, seat.agent, error)
                action = random.choice(session.position.legal_actions())
                note, analysis = _ENGINE_FAILED, None
        await asyncio.sleep(self._moved + self._rooms.limits.engine_seconds - time.monotonic())
        # From here on the move completes like any other move: nothing cancels it half-way.
        self._thinking = None

        def play(current: Session) -> Session:
            if (len(current.moves), current.undos) != (len(session.moves), session.undos) or current.over:
                return current
            return current.played(mover, action, analysis=analysis, note=note)

        try:
            await self.change(play)
        except RefusedError as error:
            log.error("%s: the engine's move was not made: %s", self.id, error)
            await asyncio.sleep(RETRY_SECONDS)
            self._follow()

    # ---- Messages

    def _connected_seats(self) -> set[int]:
        return {connection.seat for connection in self.connections if connection.seat is not None}

    async def state_text(self, connection: Connection) -> str:
        """Return the state message for a client, with the moves that it does not know."""
        session = self.session
        known = min(connection.known_moves, len(session.moves))
        has_start = connection.is_new and connection.needs_start
        text = await self._text(session, connection.seat, known, connection.is_new, has_start)
        if self.session.undos == session.undos:
            connection.known_moves = max(known, len(session.moves))
        connection.is_new = False
        return text

    async def spectator_text(self) -> str:
        """Return the state message for a new spectator."""
        return await self._text(self.session, None, 0, True, True)

    async def _text(self, session: Session, seat: int | None, known: int, is_first: bool, has_start: bool) -> str:
        setup, over = session.setup, session.over
        connected = self._connected_seats()
        engines, thinking = self._rooms.engines, session.engine_to_move
        clock = None
        if session.clock is not None:
            remaining = [round(seconds, 3) for seconds in session.seconds_left() or ()]
            clock = {"remaining": remaining, "running": session.mover if session.clock_runs() else None}
        agent = thinking.agent if thinking else None
        preparation = self._rooms.readiness(session, agent) if agent else _NO_PREPARATION
        number = len(session.moves)
        state = {
            "type": "state",
            "id": self.id,
            "game": setup.host.id,
            "options": setup.host.options,
            "move": number,
            "undos": session.undos,
            "seats": [
                {"kind": each.kind, "name": each.name, "agent": each.agent, "connected": index in connected}
                for index, each in enumerate(session.seats)
            ],
            "you": seat,
            "casual": setup.is_casual,
            "set_up": setup.is_set_up,
            "clock": clock,
            "undo": session.undo,
            "redo": bool(session.undone) and seat is not None and not over and not session.other_people(seat),
            "over": over,
            "thinking": thinking is not None and engines is not None,
            "engine": {**self._rooms.engine_state, **preparation},
        }
        if session.rounds:
            state["rounds"] = session.rounds
        if session.rematch:
            tokens = {"token": self.rematch_tokens[seat]} if seat in self.rematch_tokens else {}
            state["rematch"] = {"id": session.rematch, **tokens}
        audience = seat if setup.is_hidden and not over else None
        # The remaining fields are JSON texts already, most of them shared by several clients.
        texts = {
            "view": self._view(number, audience, session.position),
            "legal": self._legal_text(session) if seat is not None and seat == session.mover else "null",
            "moves": f"[{','.join(self._moves[known:number])}]",
            "frames": f"[{','.join(await self._frames(session, known, audience))}]",
        }
        if is_first and setup.host.shapes:
            texts["orientations"] = encoded(setup.host.shapes)
        if has_start:
            texts["start"] = encoded(session.view(0, setup.start, audience))
        return "".join([encoded(state)[:-1], *(f',"{name}":{text}' for name, text in texts.items()), "}"])

    async def _frames(self, session: Session, known: int, audience: int | None) -> list[str]:
        """Views after the moves that a client does not know, at most the last ``MAX_FRAMES`` views."""
        last = len(session.moves)
        first = max(known + 1, last - MAX_FRAMES + 1)
        available = {number: self._positions.get(number) for number in range(first, last + 1)}
        if all(position or (number, audience) in self._views for number, position in available.items()):
            return [self._view(number, audience, position) for number, position in available.items()]

        def replayed() -> list[str]:
            positions = enumerate(session.positions())
            return [encoded(session.view(number, position, audience)) for number, position in positions if number >= first]

        return await asyncio.to_thread(replayed)  # a long game takes tenths of a second

    def _view(self, number: int, audience: int | None, position: HostPosition | None) -> str:
        """A view as text, encoded once for all clients that see the same."""
        key = number, audience
        if key not in self._views:
            assert position is not None
            self._views[key] = encoded(self.session.view(number, position, audience))
        return self._views[key]

    def _legal_text(self, session: Session) -> str:
        """The legal actions as text: ids if clients know the shapes of the game, otherwise views of actions."""
        if self._legal is None or session is not self.session:
            text = encoded(legal_of(session.setup.host, session.position))
            if session is not self.session:
                return text
            self._legal = text
        return self._legal


def result_of(host: HostGame, position: HostPosition, agent: str | None) -> Json:
    """Return the result of a finished position in the form of an analysis."""
    scores = position.scores()
    leads = [score - max(scores[:seat] + scores[seat + 1 :]) for seat, score in enumerate(scores)] if len(scores) > 1 else None
    return {
        "agent": agent,
        "action": None,
        "value": list(host.returns(position)),
        "score_lead": leads,
        "simulations": 0,
        "is_book": False,
        "candidates": [],
    }


def analysis_of(position: HostPosition, answer: Mapping[str, Any], agent: str | None) -> Json:
    """Return an answer of ``tilewe-jax analyze`` in the form for clients."""
    return {
        "agent": agent,
        "action": answer["action"],
        "value": answer["value"],
        "score_lead": answer["score_lead"],
        "simulations": answer["num_simulations"],
        "is_book": answer["is_book"],
        "candidates": [
            {
                **position.action_view(candidate["action"]),
                "visits": candidate["visits"],
                "prior": candidate["prior"],
                "value": candidate["value"],
                "value_error": candidate["value_error"],
                "variation": candidate["principal_variation"],
            }
            for candidate in answer["candidates"]
        ],
    }
