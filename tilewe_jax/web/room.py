"""A room: a game, those who are connected to it, and the engine that thinks in it.

A change of a game is made in this order, under the lock of its room: the session checks it and gives a new session; the store
writes it; the room takes the new session; clients hear of it. Whatever happens in between, nobody hears of what is not kept.
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
from tilewe_jax.web.engines import EngineError, UnavailableError
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.session import RefusedError, Seat, Session
from tilewe_jax.web.store import Change, StoredMove, StoreError

if TYPE_CHECKING:
    from tilewe_jax.web.rooms import Rooms
    from tilewe_jax.web.turns import Turns

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

MAX_FRAMES = 200
"""Views that a message has at most; those of earlier moves are in the replay."""
RECENT_POSITIONS = 8
"""Positions of a game that are kept, for undo and for those who have missed a few moves."""
SECONDS_UNTIL_VANISHED = 60.0
"""Engines stop, and a game leaves the memory, when nobody has been connected for so long."""
SECONDS_UNTIL_ASKED_AGAIN = 5.0
"""An engine that is not available is asked again after this time."""


def encoded(value: Any) -> str:
    """A value as JSON text, for the wire."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class Connection:
    """A client of a room. What it is told waits here, in bounded space, until it reads.

    A client that reads slowly is not sent every state, but the last one when it is ready.

    Args:
      send: sends a text.
      address: where it comes from.
      limits: the limits.
    """

    def __init__(self, send: Callable[[str], Awaitable[None]], address: str, limits: Limits) -> None:
        self.address = address
        self.seat: int | None = None
        self.token_hash: str | None = None
        self.known_moves = 0
        """Moves that it has been told."""
        self.is_new = True
        """Whether it has not been sent a state yet."""
        self.starts_anew = True
        """Whether it has joined without knowing a move."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Its analyses and hints."""
        self._send, self._limits = send, limits
        self._replies: deque[str] = deque()
        self._has_news = False
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_lost = False

    def notify(self) -> None:
        """Have the state sent to it."""
        self._has_news = True
        self._wake.set()

    def reply(self, message: Mapping[str, Any]) -> None:
        """Send it a message."""
        if len(self._replies) >= self._limits.replies:
            self._is_lost = True
        else:
            self._replies.append(encoded(message))
            if len(self._replies) > self._limits.replies // 2:
                self._has_room.clear()
        self._wake.set()

    async def has_room(self) -> None:
        """Wait until it has read so much that it may ask for more."""
        await self._has_room.wait()

    async def run(self, room: "Room") -> None:
        """Send what there is to send, until the client does not read any more, or is gone."""
        while not self._is_lost:
            await self._wake.wait()
            self._wake.clear()
            while (self._replies or self._has_news) and not self._is_lost:
                # A refusal is said before the state in which it was made; what was done, after the state that has it.
                if self._has_news:
                    self._has_news = False
                    text = await room.state_text(self)
                else:
                    text = self._replies.popleft()
                    if len(self._replies) <= self._limits.replies // 2:
                        self._has_room.set()
                async with asyncio.timeout(self._limits.send_seconds):
                    await self._send(text)


class Room:
    """A game and those who are connected to it."""

    def __init__(self, rooms: "Rooms", game_id: str, created: float, session: Session) -> None:
        self.id, self.created = game_id, created
        self.session = session
        self.connections: set[Connection] = set()
        self.last_used = time.monotonic()
        self.lock = asyncio.Lock()
        self.rematch_lock = asyncio.Lock()
        self.rematch_tokens: dict[int, str] = {}
        """By seat of this game, the tokens of the game that follows."""
        self._rooms = rooms
        self._thinking: asyncio.Task[None] | None = None
        self._thinking_of: tuple[int, int] | None = None
        """The number of moves, and of times that some were taken back, of the position that the engine thinks about."""
        self._warming: asyncio.Task[None] | None = None
        """Has the searches of the engines compiled while people think."""
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
        """Connect a client, which knows ``after`` moves, from before the ``undos``-th time that moves were taken back.

        Raises ``RefusedError`` for a token of no seat.
        """
        session = self.session
        seat = None
        if token is not None:
            seat = session.seat_of(token)
            if seat is None:
                raise RefusedError("that token opens no seat of this game", "token", 403)
            connection.token_hash = session.seats[seat].token_hash
        connection.seat = seat
        is_same_past = undos == session.undos or (undos is None and not session.undos)
        connection.known_moves = after if is_same_past and after <= len(session.moves) else 0
        connection.starts_anew = not connection.known_moves
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
        if self._connected_seats() != was_connected:
            self.notify()

    def notify(self) -> None:
        """Have the state sent to everybody."""
        for connection in self.connections:
            connection.notify()

    @property
    def is_left(self) -> bool:
        """Whether nobody has been here for a while."""
        return not self.connections and not self.lock.locked() and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED

    @property
    def is_idle(self) -> bool:
        """Whether nobody has been here for a while, and nothing goes on."""
        return self.is_left and self._flag is None

    def close(self) -> None:
        """Stop what goes on, for good; the game is in the file, and another room may go on with it."""
        self._is_closed = True
        for task in (self._thinking, self._warming):
            if task:
                task.cancel()
        if self._flag:
            self._flag.cancel()

    # ---- Changes

    async def change(self, change: Callable[[Session], Session]) -> Session:
        """Change the session. Raises ``RefusedError``; nothing has changed then.

        It goes on to its end even where the caller is cancelled: the room never differs from the file.
        """
        task = asyncio.create_task(self._change(change))
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # the caller may have gone
        return await asyncio.shield(task)

    async def _change(self, change: Callable[[Session], Session]) -> Session:
        async with self.lock:
            if self._is_closed:
                raise RefusedError("the game was left meanwhile; try again", None, 503)
            old = self.session
            new = change(old)
            if new is old:
                return old
            kept = min(len(old.moves), len(new.moves))  # one change either adds a move or takes some back
            moves = tuple(
                StoredMove(move.action, None if move.stored is None else encoded(move.stored)) for move in new.moves[kept:]
            )
            try:
                await self._rooms.store.change(Change(self.id, encoded(new.stored_state), new.over is not None, kept, moves))
            except StoreError as error:
                log.error("%s: %s", self.id, error)
                raise RefusedError("the server cannot save the game, so nothing was done; try again later", None, 503) from None
            self._take(new)
            return new

    def _take(self, new: Session) -> None:
        """Take a session that is kept in the file, and tell everybody."""
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
            self._views.clear()  # hidden things are shown from now on
        self._moves += [encoded(move.json) for move in new.moves[len(self._moves) :]]
        self._positions[number] = new.position
        self._legal = None
        for old_number in [key for key in self._positions if key <= number - RECENT_POSITIONS]:
            del self._positions[old_number]
        for key in [key for key in self._views if key[0] <= number - RECENT_POSITIONS]:
            del self._views[key]
        for connection in self.connections:
            if connection.seat is not None and new.seats[connection.seat].token_hash != connection.token_hash:
                connection.seat = None  # somebody else has taken the seat
        self.notify()
        self._follow()

    def _follow(self) -> None:
        """Have the engine think, and the clock run out, as the session has it now."""
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
        question_of = (len(session.moves), session.undos)
        if self._thinking and (not session.engine_to_move or question_of != self._thinking_of):
            self._thinking.cancel()
            self._thinking = None
        if session.engine_to_move and not self._thinking and self.connections and self._rooms.engines:
            self._thinking_of = question_of
            self._thinking = asyncio.create_task(self._think(session, session.engine_to_move))
        if self._warming and (self._thinking or session.over):
            self._warming.cancel()
        elif not self._thinking and not self._warming and not session.over and self._rooms.turns and self._connected_seats():
            self._warming = self._rooms.spawn(self._warm_up(session, self._rooms.turns))

    async def _warm_up(self, session: Session, turns: "Turns") -> None:
        """Have the searches of the engines compiled before they move, while a player is connected."""
        for agent in {seat.agent for seat in session.seats if seat.kind == "engine"}:
            question = self._rooms.question(session, 0, agent or "")
            try:
                await turns.warm_up(question, self._address)
            except EngineError as error:
                log.warning("warming up %s: %s", agent, error)

    @property
    def _address(self) -> str:
        """The address for which the engine works: of a player who is connected, otherwise of a spectator."""
        return next((each.address for each in sorted(self.connections, key=lambda each: each.seat is None)), "")

    async def _drop_flag(self) -> None:
        self._flag = None
        try:
            await self.change(lambda session: session.flagged())
        except RefusedError as error:
            log.error("%s: the end of the time was not saved: %s", self.id, error)
            await asyncio.sleep(SECONDS_UNTIL_ASKED_AGAIN)
        self._follow()

    def rest(self) -> None:
        """Have the engine stop where nobody watches."""
        if self._thinking and not self.connections and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED:
            self._thinking.cancel()
            self._thinking = None

    async def _think(self, session: Session, seat: Seat) -> None:
        """Have the engine to move make its move."""
        assert self._rooms.turns
        mover = session.mover
        question = self._rooms.question(session, len(session.moves), seat.agent or "", seed=random.getrandbits(31))
        note = analysis = None
        action = -1
        while action < 0:
            try:
                answer = await self._rooms.turns.ask(question, self._address)
                action = answer["action"]
                analysis = await asyncio.to_thread(analysis_of, session.position, answer, seat.agent)
                if session.position.explain(action) is not None:
                    raise EngineError("it wants to make an illegal move")
            except UnavailableError:
                self.notify()
                await asyncio.sleep(SECONDS_UNTIL_ASKED_AGAIN)
            except Exception as error:  # whatever an engine answers, its game goes on
                log.warning("%s: the engine %s has failed: %s", self.id, seat.agent, error)
                action = random.choice(session.position.legal_actions())
                note, analysis = "the engine has failed, so a random move was made", None
        await asyncio.sleep(self._moved + self._rooms.limits.engine_seconds - time.monotonic())
        # From here on it is a move like any other, and is not taken back half-way.
        self._thinking = None

        def play(current: Session) -> Session:
            if (len(current.moves), current.undos) != (len(session.moves), session.undos) or current.over:
                return current
            return current.played(mover, action, analysis=analysis, note=note)

        try:
            await self.change(play)
        except RefusedError as error:
            log.error("%s: the engine's move was not made: %s", self.id, error)
            await asyncio.sleep(SECONDS_UNTIL_ASKED_AGAIN)
            self._follow()

    # ---- What clients are told

    def _connected_seats(self) -> set[int]:
        return {connection.seat for connection in self.connections if connection.seat is not None}

    async def state_text(self, connection: Connection) -> str:
        """The state as a client may see it: all that is new to it."""
        session = self.session
        known = min(connection.known_moves, len(session.moves))
        has_start = connection.is_new and connection.starts_anew
        text = await self._text(session, connection.seat, known, connection.is_new, has_start)
        if self.session.undos == session.undos:
            connection.known_moves = max(known, len(session.moves))
        connection.is_new = False
        return text

    async def spectator_text(self) -> str:
        """The state as everybody may see it, from the start."""
        return await self._text(self.session, None, 0, True, True)

    async def _text(self, session: Session, seat: int | None, known: int, is_first: bool, has_start: bool) -> str:
        setup, over = session.setup, session.over
        connected = self._connected_seats()
        engines = self._rooms.engines
        thinking = session.engine_to_move
        clock = None
        if session.clock is not None:
            remaining = [round(seconds, 3) for seconds in session.seconds_left() or ()]
            clock = {"remaining": remaining, "running": session.mover if session.clock_runs() else None}
        is_warm = thinking and engines and engines.is_warm(self._rooms.question(session, 0, thinking.agent or ""))
        state = {
            "type": "state",
            "id": self.id,
            "game": setup.host.id,
            "options": setup.host.options,
            "move": len(session.moves),
            "undos": session.undos,
            "seats": [
                {"kind": each.kind, "name": each.name, "agent": each.agent, "connected": index in connected}
                for index, each in enumerate(session.seats)
            ],
            "you": seat,
            "casual": setup.is_casual,
            "clock": clock,
            "undo": session.undo,
            "redo": bool(session.undone) and seat is not None and not over and not session.people_but(seat),
            "over": over,
            "thinking": thinking is not None and engines is not None,
            "engine": {**self._rooms.engine_state, "warm": bool(is_warm) if thinking else None},
        }
        if session.rounds:
            state["rounds"] = session.rounds
        if session.rematch:
            rematch = {"id": session.rematch}
            if seat in self.rematch_tokens:
                rematch["token"] = self.rematch_tokens[seat]
            state["rematch"] = rematch
        number = len(session.moves)
        audience = seat if setup.is_hidden and not over else None
        parts = [encoded(state)[:-1], ',"view":', self._view(number, audience, session.position)]
        parts += [',"legal":', self._legal_text(session) if seat is not None and seat == session.mover else "null"]
        parts += [',"moves":[', ",".join(self._moves[known:number]), "]"]
        frames = await self._frames(session, known, audience)
        parts += [',"frames":[', ",".join(frames), "]"]
        if is_first and setup.host.shapes:
            parts += [',"orientations":', encoded(setup.host.shapes)]
        if has_start:
            parts += [',"start":', encoded(session.view(0, setup.start, audience))]
        return "".join([*parts, "}"])

    async def _frames(self, session: Session, known: int, audience: int | None) -> list[str]:
        """The views after the moves that a client does not know, of the last ``MAX_FRAMES`` of them."""
        last = len(session.moves)
        first = max(known + 1, last - MAX_FRAMES + 1)
        numbers = range(first, last + 1)
        available = {number: self._positions.get(number) for number in numbers}
        if all(position or (number, audience) in self._views for number, position in available.items()):
            return [self._view(number, audience, available[number]) for number in numbers]

        def replayed() -> list[str]:
            # Another thread: a long game takes tenths of a second.
            positions = enumerate(session.positions())
            return [encoded(session.view(number, position, audience)) for number, position in positions if number >= first]

        return await asyncio.to_thread(replayed)

    def _view(self, number: int, audience: int | None, position: HostPosition | None) -> str:
        """A view as text, which is made once for all who see the same."""
        key = number, audience
        if key not in self._views:
            assert position is not None
            self._views[key] = encoded(self.session.view(number, position, audience))
        return self._views[key]

    def _legal_text(self, session: Session) -> str:
        """What the seat to move may do: ids where clients know the shapes of the game, and whole actions elsewhere."""
        if self._legal is None or session is not self.session:
            position = session.position
            legal = position.legal_actions()
            has_shapes = session.setup.host.shapes
            text = encoded(legal if has_shapes else [position.action_view(action) for action in legal])
            if session is not self.session:
                return text
            self._legal = text
        return self._legal


def result_of(host: HostGame, position: HostPosition, agent: str | None) -> Json:
    """Return the result of a finished position in the form of an analysis: its value without a search."""
    scores = position.scores()
    leads = [score - max(scores[:seat] + scores[seat + 1 :]) for seat, score in enumerate(scores)] if len(scores) > 1 else None
    return {
        "agent": agent,
        "action": None,
        "value": list(host.returns(position)),
        "score_lead": leads,
        "simulations": 0,
        "candidates": [],
    }


def analysis_of(position: HostPosition, answer: Mapping[str, Any], agent: str | None) -> Json:
    """An answer of ``tilewe-jax analyze`` as clients get it."""
    return {
        "agent": agent,
        "action": answer["action"],
        "value": answer["value"],
        "score_lead": answer["score_lead"],
        "simulations": answer["num_simulations"],
        "candidates": [
            {
                **position.action_view(candidate["action"]),
                "visits": candidate["visits"],
                "prior": candidate["prior"],
                "value": candidate["value"],
                "variation": candidate["principal_variation"],
            }
            for candidate in answer["candidates"]
        ],
    }
