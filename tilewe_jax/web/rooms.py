"""Rooms: games with those who are connected to them, the engines that play in them, and the file that keeps them.

A change of a game is made in this order, under the lock of its room: the session checks it and gives a new session; the store
writes it; the room takes the new session; clients hear of it. Whatever happens in between, nobody hears of what is not kept.
"""

import asyncio
import json
import logging
import random
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostPosition
from tilewe_jax.web.catalog import GAMES, Agent, make_game, new_deal
from tilewe_jax.web.engines import EngineError, EnginePool, Question, UnavailableError
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.session import ClockSettings, RefusedError, Seat, Session, Setup, hash_of, new_token, restored, started
from tilewe_jax.web.store import Change, NewGame, Store, StoredGame, StoredMove, StoreError

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
MAX_NAME = 40
SIMULATIONS = (16, 64, 256, 1024)
"""Numbers of simulations that an analysis may be asked for; each is compiled once."""
ANALYSES_AT_ONCE = 16
"""Analyses that are with the engines at the same time: a move that an engine has to make waits for no more than these."""
SECONDS = (1.0, 86_400.0)
"""Range of the seconds of a clock."""
INCREMENT = (0.0, 3_600.0)


def encoded(value: Any) -> str:
    """A value as JSON text, for the wire."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=64)
def orientations_json(orientations: tuple[int, ...]) -> str:
    """The orientations of pieces by their ids, for clients that have no geometry of their own."""
    return encoded(
        [
            {
                "id": index,
                "name": ORIENTATIONS[index].name,
                "piece": PIECE_NAMES[ORIENTATIONS[index].piece],
                "cells": [list(cell) for cell in ORIENTATIONS[index].cells],
            }
            for index in orientations
        ]
    )


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
        self._wake.set()

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
        self._flag: asyncio.TimerHandle | None = None
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
        if self._connected_seats() != was_connected:
            self.notify()

    def notify(self) -> None:
        """Have the state sent to everybody."""
        for connection in self.connections:
            connection.notify()

    @property
    def is_idle(self) -> bool:
        """Whether nobody has been here for a while, and nothing goes on."""
        return (
            not self.connections
            and not self.lock.locked()
            and self._flag is None
            and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED
        )

    def close(self) -> None:
        """Stop what goes on; the game is in the file."""
        if self._thinking:
            self._thinking.cancel()
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
        session = self.session
        if session.clock_runs():
            if session.clock and session.clock.running_since is None:
                self.session = session = session.with_clock_started()
            left = (session.seconds_left() or [])[session.mover or 0]
            self._flag = asyncio.get_running_loop().call_later(left + 0.005, self._rooms.spawn, self._drop_flag())
        question_of = (len(session.moves), session.undos)
        if self._thinking and (not session.engine_to_move or question_of != self._thinking_of):
            self._thinking.cancel()
            self._thinking = None
        if session.engine_to_move and not self._thinking and self.connections and self._rooms.engines:
            self._thinking_of = question_of
            self._thinking = asyncio.create_task(self._think(session, session.engine_to_move))

    _thinking_of: tuple[int, int] | None = None

    async def _drop_flag(self) -> None:
        self._flag = None
        await self.change(lambda session: session.flagged())
        self._follow()

    def rest(self) -> None:
        """Have the engine stop where nobody watches."""
        if self._thinking and not self.connections and time.monotonic() - self.last_used > SECONDS_UNTIL_VANISHED:
            self._thinking.cancel()
            self._thinking = None

    async def _think(self, session: Session, seat: Seat) -> None:
        """Have the engine to move make its move."""
        assert self._rooms.engines
        mover = session.mover
        question = self._rooms.question(session, len(session.moves), seat.agent or "", seed=random.getrandbits(31))
        note = analysis = None
        action = -1
        while action < 0:
            try:
                answer = await self._rooms.engines.ask(question)
                action = answer["action"]
                analysis = await asyncio.to_thread(analysis_of, session.position, answer, seat.agent)
                if session.position.explain(action) is not None:
                    raise EngineError("it wants to make an illegal move")
            except UnavailableError:
                self.notify()
                await asyncio.sleep(SECONDS_UNTIL_ASKED_AGAIN)
            except (EngineError, KeyError, TypeError, ValueError) as error:
                log.warning("%s: the engine %s has failed: %s", self.id, seat.agent, error)
                action = random.choice(session.position.legal_actions())
                note, analysis = "the engine has failed, so a random move was made", None
        # From here on it is a move like any other, and is not taken back half-way.
        self._thinking = None

        def play(now: Session) -> Session:
            if (len(now.moves), now.undos) != (len(session.moves), session.undos) or now.over:
                return now
            return now.played(mover, action, analysis=analysis, note=note)

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
            "options": setup.options,
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
        if is_first and isinstance(session.position, PolyominoPosition):
            parts += [',"orientations":', orientations_json(session.position.config.orientations)]
        if has_start:
            parts += [',"start":', encoded(setup.start.view(seat=audience, open=over is not None))]
        return "".join([*parts, "}"])

    async def _frames(self, session: Session, known: int, audience: int | None) -> list[str]:
        """The views after the moves that a client does not know, of the last ``MAX_FRAMES`` of them."""
        last = len(session.moves)
        first = max(known + 1, last - MAX_FRAMES + 1)
        numbers = range(first, last + 1)
        available = {number: self._positions.get(number) for number in numbers}
        if all(position or (number, audience) in self._views for number, position in available.items()):
            return [self._view(number, audience, available[number]) for number in numbers]
        is_open = session.over is not None

        def replayed() -> list[str]:
            # Another thread: a long game takes tenths of a second.
            positions = enumerate(session.positions())
            return [encoded(position.view(seat=audience, open=is_open)) for number, position in positions if number >= first]

        return await asyncio.to_thread(replayed)

    def _view(self, number: int, audience: int | None, position: HostPosition | None) -> str:
        """A view as text, which is made once for all who see the same."""
        key = number, audience
        if key not in self._views:
            assert position is not None
            self._views[key] = encoded(position.view(seat=audience, open=self.session.over is not None))
        return self._views[key]

    def _legal_text(self, session: Session) -> str:
        """What the seat to move may do: ids for polyomino games, which have hundreds, and whole actions for others."""
        if self._legal is None or session is not self.session:
            position = session.position
            legal = position.legal_actions()
            is_polyomino = isinstance(position, PolyominoPosition)
            text = encoded(legal if is_polyomino else [position.action_view(action) for action in legal])
            if session is not self.session:
                return text
            self._legal = text
        return self._legal


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


class Rooms:
    """All games: those in memory, and the file with all of them.

    Args:
      store: the file.
      engines: the engines; ``None`` for a server without.
      agents: by game, the agents that are offered.
      analysis_agent: the agent that analyses where no other is asked for.
      limits: the limits.
    """

    def __init__(
        self,
        store: Store,
        engines: EnginePool | None,
        agents: Mapping[str, Sequence[Agent]],
        analysis_agent: str,
        limits: Limits,
    ) -> None:
        self.store, self.engines, self.limits = store, engines, limits
        self.agents = agents
        self._analysis_agent = analysis_agent
        self._rooms: dict[str, Room] = {}
        self._loading: dict[str, asyncio.Future[Room | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._analyses = asyncio.Semaphore(ANALYSES_AT_ONCE)
        if engines:
            engines.listen(self._engines_changed)

    # ---- Life

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something beside everything else; what it raises is logged."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a task has failed", exc_info=error)

    async def sweep(self) -> None:
        """Forget idle games, for ever; they are in the file."""
        while True:
            await asyncio.sleep(SECONDS_UNTIL_VANISHED / 4)
            self._sweep()

    def _sweep(self) -> None:
        for room in list(self._rooms.values()):
            room.rest()
            if room.is_idle:
                room.close()
                del self._rooms[room.id]

    def close(self) -> None:
        """Stop what goes on in all rooms."""
        for task in list(self._tasks):
            task.cancel()
        for room in self._rooms.values():
            room.close()

    def _engines_changed(self) -> None:
        for room in self._rooms.values():
            if room.session.engine_to_move:
                room.notify()

    @property
    def engine_state(self) -> Json:
        """The state of the engines, for clients."""
        return (
            {"state": self.engines.state, "reason": self.engines.reason} if self.engines else {"state": "off", "reason": None}
        )

    # ---- Games

    async def get(self, game_id: str) -> Room:
        """The room of a game. Raises ``RefusedError`` where there is none."""
        room = self._rooms.get(game_id)
        if room is None:
            room = await self._load(game_id)
        if room is None:
            raise RefusedError("there is no such game", None, 404)
        room.last_used = time.monotonic()
        return room

    async def _load(self, game_id: str) -> Room | None:
        """Read a game from the file, once for all who ask for it meanwhile."""
        if game_id in self._loading:
            return await asyncio.shield(self._loading[game_id])
        future = self._loading[game_id] = asyncio.get_running_loop().create_future()
        try:
            if len(self._rooms) >= self.limits.rooms:
                self._sweep()
                if len(self._rooms) >= self.limits.rooms:
                    raise RefusedError("too many games are being played; try again later", None, 503)
            loaded = await asyncio.to_thread(self._read, game_id)
            room = None
            if loaded:
                stored, session = loaded
                room = self._rooms[game_id] = Room(self, game_id, stored.created, session)
            future.set_result(room)
        except BaseException as error:
            future.set_exception(
                error if isinstance(error, RefusedError) else RefusedError("the game cannot be read", None, 500)
            )
            future.exception()  # somebody has seen it
            raise
        finally:
            del self._loading[game_id]
        return room

    def _read(self, game_id: str) -> tuple[StoredGame, Session] | None:
        stored = self.store.game(game_id)
        if stored is None:
            return None
        setup = stored.setup
        host = make_game(setup["game"], setup["options"])
        clock = ClockSettings(**setup["clock"]) if setup["clock"] else None
        values = Setup(host, setup["options"], setup["deal"], clock, setup["casual"], setup["public"])
        try:
            if setup["version"] != host.version:
                raise ValueError(f"it was played by version {setup['version']} of the rules")
            moves = [(move.action, json.loads(move.note) if move.note else {}) for move in stored.moves]
            return stored, restored(values, stored.state, moves)
        except (KeyError, TypeError, ValueError) as error:
            log.error("game %s in %s cannot be read: %s", game_id, self.store.path, error)
            raise RefusedError("the game is damaged, or of other rules than today's", None, 500) from None

    async def create(self, request: Any) -> Json:
        """Begin a game that a request describes. Raises ``RefusedError``."""
        setup, seats, tokens = await asyncio.to_thread(self._described, request)
        session = started(setup, seats)
        game_id = await self._add(session)
        return {"id": game_id, "seats": [{"seat": seat, "token": token} for seat, token in tokens.items()]}

    async def _add(self, session: Session) -> str:
        if await asyncio.to_thread(self.store.count_games) >= self.limits.games:
            raise RefusedError("the server keeps no more games", None, 429)
        game_id = secrets.token_urlsafe(9)
        new = NewGame(game_id, encoded(session.stored_setup), encoded(session.stored_state), session.setup.is_public)
        try:
            await self.store.add(new)
        except StoreError as error:
            log.error("a game could not be added: %s", error)
            raise RefusedError("the server cannot save the game; try again later", None, 503) from None
        if len(self._rooms) < self.limits.rooms:
            self._rooms[game_id] = Room(self, game_id, time.time(), session)
        self._warm_up(session)
        return game_id

    def _warm_up(self, session: Session) -> None:
        """Have what the engines of a game need compiled while people still look at it."""
        for agent in {seat.agent for seat in session.seats if seat.kind == "engine"}:
            question = self.question(session, 0, agent or "")
            if self.engines and not self.engines.is_warm(question):
                self.spawn(self._ask_quietly(question))

    async def _ask_quietly(self, question: Question) -> None:
        assert self.engines
        try:
            await self.engines.ask(question)
        except EngineError as error:
            log.warning("warming up %s: %s", question.agent, error)

    def _described(self, request: Any) -> tuple[Setup, list[Seat], dict[int, str]]:
        """The setup and seats that a request describes, and the tokens of seats. Raises ``RefusedError``."""
        if not isinstance(request, dict):
            raise RefusedError("the body must be a JSON object")
        options = request.get("options", {})
        try:
            host = make_game(request.get("game"), options)
        except (TypeError, ValueError) as error:
            known = isinstance(request.get("game"), str) and request["game"] in GAMES
            raise RefusedError(str(error), "options" if known else "game") from None
        for name in ("casual", "public"):
            if not isinstance(request.get(name, True), bool):
                raise RefusedError(f"{name} must be true or false", name)
        described = request.get("seats")
        if not isinstance(described, list) or len(described) != host.num_players:
            raise RefusedError(f"seats must be a list of {host.num_players}, one a player", "seats")
        seats: list[Seat] = []
        tokens: dict[int, str] = {}
        for index, values in enumerate(described):
            seat = self._described_seat(host.id, index, values)
            if seat.kind != "engine":
                tokens[index] = new_token()
                seat = Seat(seat.kind, seat.name, None, hash_of(tokens[index]))
            seats.append(seat)
        clock = _clock_settings(request.get("clock"))
        is_casual = request.get("casual", True)
        setup = Setup(host, options, new_deal(host, options), clock, is_casual, request.get("public", True))
        return setup, seats, tokens

    def _described_seat(self, game: str, index: int, values: Any) -> Seat:
        if not isinstance(values, dict) or values.get("kind") not in ("human", "engine", "open"):
            raise RefusedError('a seat is like {"kind": "human", "name": "Ada"}; kind is human, engine or open', "seats")
        kind = values["kind"]
        if kind != "engine":
            return Seat(kind, name_of(values.get("name")) or f"player {index + 1}")
        if not self.engines:
            raise RefusedError("this server has no engines", "seats", 409)
        agent = self.agent(game, values.get("agent"), "seats")
        return Seat("engine", name_of(values.get("name")) or agent.title, agent.agent)

    def agent(self, game: str, name: Any, field: str) -> Agent:
        """An agent that is offered for a game. Raises ``RefusedError``."""
        for agent in self.agents.get(game, ()):
            if agent.agent == name:
                return agent
        known = ", ".join(agent.agent for agent in self.agents.get(game, ())) or "none"
        raise RefusedError(f"agent must be one of those that the catalog offers for {game}: {known}", field)

    async def listed(self) -> list[Json]:
        """The public games that began last."""
        rows = await asyncio.to_thread(self.store.newest, 50)
        return [
            {
                "id": game_id,
                "game": setup["game"],
                "options": setup["options"],
                "names": [seat["name"] for seat in state["seats"]],
                "open_seats": [index for index, seat in enumerate(state["seats"]) if seat["kind"] == "open"],
                "moves": moves,
                "over": state["over"] is not None,
            }
            for game_id, setup, state, moves in rows
        ]

    async def take_seat(self, game_id: str, seat: int, name: Any) -> Json:
        """Take an open seat of a public game: its new token. Raises ``RefusedError``."""
        room = await self.get(game_id)
        chosen = name_of(name)
        token = new_token()

        def take(session: Session) -> Session:
            if not 0 <= seat < len(session.seats):
                raise RefusedError("there is no such seat", "seat", 404)
            if not session.setup.is_public:
                raise RefusedError("the seats of this game are taken by invitation", None, 403)
            if session.seats[seat].kind != "open" or session.over:
                raise RefusedError("that seat is taken", "seat", 409)
            return session.seated(seat, chosen, hash_of(token))

        await room.change(take)
        return {"id": game_id, "seat": seat, "token": token}

    async def rematch(self, game_id: str, token: Any) -> Json:
        """Begin the game that follows one, with the seats rotated; or give a player of the first the token for it.

        Raises ``RefusedError``.
        """
        room = await self.get(game_id)
        seat = room.session.seat_of(token) if isinstance(token, str) else None
        if seat is None:
            raise RefusedError("a rematch needs the token of a seat", "token", 403)
        if not room.session.over:
            raise RefusedError("the game is not over", None, 409)
        new_id = await self._rematch_of(room)
        new_seat = (seat + 1) % len(room.session.seats)
        if seat not in room.rematch_tokens:
            # The server was started anew since, and keeps hashes alone.
            room.rematch_tokens[seat] = new_token()
            following = await self.get(new_id)
            hashed = hash_of(room.rematch_tokens[seat])
            await following.change(lambda session: session.seated(new_seat, None, hashed))
        return {"id": new_id, "seat": new_seat, "token": room.rematch_tokens[seat]}

    async def _rematch_of(self, room: Room) -> str:
        """The id of the game that follows, which is begun where there is none."""
        async with room.rematch_lock:
            old = room.session
            if old.rematch:
                return old.rematch
            setup = old.setup
            count = len(old.seats)
            tokens: dict[int, str] = {}
            seats = []
            for index in range(count):
                before = (index - 1) % count
                seat = old.seats[before]
                if seat.kind != "engine":
                    tokens[before] = new_token()
                    seat = Seat(seat.kind, seat.name, None, hash_of(tokens[before]))
                seats.append(seat)
            deal = await asyncio.to_thread(new_deal, setup.host, setup.options)
            again = Setup(setup.host, setup.options, deal, setup.clock, setup.is_casual, setup.is_public)
            new_id = await self._add(started(again, seats))
            room.rematch_tokens = tokens
            await room.change(lambda session: session.followed_by(new_id))
            return new_id

    # ---- Questions to engines

    def question(
        self, session: Session, number: int, agent: str, *, seed: int = 0, num_simulations: int | None = None
    ) -> Question:
        """The question what to do after so many moves."""
        setup = session.setup
        offered = next((entry for entry in self.agents.get(setup.host.id, ()) if entry.agent == agent), None)
        return Question(
            game=setup.host.id,
            options=setup.options,
            deal=setup.deal,
            actions=session.actions[:number],
            agent=agent,
            max_seconds=offered.max_seconds if offered and num_simulations is None else None,
            num_simulations=num_simulations,
            seed=seed,
        )

    async def analysis(self, session: Session, number: int, agent: Any = None, simulations: Any = None) -> Json:
        """The analysis of the position after so many moves. Raises ``RefusedError``."""
        game = session.setup.host.id
        if simulations is not None and simulations not in SIMULATIONS:
            raise RefusedError(f"simulations must be one of {', '.join(map(str, SIMULATIONS))}", "simulations")
        if not self.engines:
            raise RefusedError("this server has no engines", None, 503)
        name = self._analysis_agent if agent is None else self.agent(game, agent, "agent").agent
        position = await asyncio.to_thread(session.position_at, number)
        if position.is_terminal:
            raise RefusedError("the game is over there, so there is nothing to analyse", "move")
        question = self.question(session, number, name, num_simulations=simulations)
        try:
            async with self._analyses:
                answer = await self.engines.ask(question)
            return await asyncio.to_thread(analysis_of, position, answer, name)
        except UnavailableError as error:
            raise RefusedError(str(error), None, 503) from None
        except (EngineError, KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"the engine could not analyse this position: {error}", None, 500) from None


def name_of(value: Any) -> str | None:
    """The name that a person has chosen, without what is not printed; ``None`` where there is none. Raises ``RefusedError``."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 10 * MAX_NAME:
        raise RefusedError(f"name must be a text of at most {MAX_NAME} characters", "name")
    name = "".join(letter for letter in value if letter.isprintable())
    return " ".join(name.split())[:MAX_NAME] or None


def _clock_settings(value: Any) -> ClockSettings | None:
    if value is None:
        return None
    fields = value if isinstance(value, dict) else {}
    match fields.get("seconds"), fields.get("increment", 0):
        case (int() | float()) as seconds, (int() | float()) as increment if (
            SECONDS[0] <= seconds <= SECONDS[1] and INCREMENT[0] <= increment <= INCREMENT[1]
        ):
            return ClockSettings(float(seconds), float(increment))
    raise RefusedError(
        f'clock must be null or like {{"seconds": 300, "increment": 5}}: {SECONDS[0]:g} to {SECONDS[1]:g} seconds, and up to'
        f" {INCREMENT[1]:g} more for each move",
        "clock",
    )
