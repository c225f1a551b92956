"""All games of the server, in memory and in the database, and the questions to engines about them."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewe_jax.host_games import OFFERS
from tilewe_jax.web.catalog import Agent, make_game, new_deal
from tilewe_jax.web.events import Observer
from tilewe_jax.web.forms import NUMBER, fits
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.positions import deal_of
from tilewe_jax.web.questions import EngineError, Engines, Question, UnavailableError
from tilewe_jax.web.room import SECONDS_UNTIL_VANISHED, Room, analysis_of, encoded, result_of
from tilewe_jax.web.session import ClockSettings, RefusedError, Seat, Session, Setup, hash_of, new_token, restored, started
from tilewe_jax.web.stored import DamagedError, Storage, StoredGame, StoreError, json_object
from tilewe_jax.web.turns import Turns

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

ANALYSIS_AGENT = "puct:num_simulations=64"
REVIEWER = ("best", 256)
"""Agent of the reviews of games, and its number of simulations for each position."""
MAX_LISTED = 50
"""Number of games in the lobby."""
MAX_NAME = 40
"""Maximum length of the name of a player."""
MAX_IDS = 200
"""Maximum number of ids in a request for games."""
DAY = 86_400.0
FULL = 0.9
"""Used part of the space for the database above which nothing new is created, because moves need the rest."""
SIMULATIONS = (16, 64, 256, 1024)
"""Numbers of simulations that a client may choose for an analysis; each is compiled once."""
CONCURRENT_ANALYSES = 16
"""Maximum number of analyses that the engines receive in parallel, so that the moves of games do not wait for more."""
SECONDS = (1.0, 30 * DAY)
"""Range of the time of a clock, in seconds."""
INCREMENT = (0.0, 7 * DAY)
"""Range of the increment of a clock, in seconds."""
_LISTED_SEAT = {"name": str, "kind": ("human", "open", "engine")}


class Rooms:
    """All games, in memory and in the database.

    Args:
      store: the database.
      engines: the engines; ``None`` for a server without engines.
      agents: the offered agents by game.
      analysis_agents: default agent for analyses by game; ``ANALYSIS_AGENT`` for other games.
      limits: the limits.
      observer: receives measurements and refusals.
      reviewer: agent of the reviews of games, with its number of simulations; by default ``REVIEWER``.
    """

    def __init__(
        self,
        store: Storage,
        engines: Engines | None,
        agents: Mapping[str, Sequence[Agent]],
        analysis_agents: Mapping[str, str],
        limits: Limits,
        observer: Observer | None = None,
        reviewer: tuple[str, int] | None = None,
    ) -> None:
        self.store, self.engines, self.limits, self.reviewer = store, engines, limits, reviewer or REVIEWER
        self.observer = observer or Observer()
        self.agents, self._analysis_agents = agents, analysis_agents
        self._rooms: dict[str, Room] = {}
        self._usual: dict[str, Session] = {}
        """A game with the usual options, by name."""
        self._loading: dict[str, asyncio.Task[Room | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._analyses = asyncio.Semaphore(CONCURRENT_ANALYSES)
        self.turns = Turns(engines, limits) if engines else None
        if engines:
            engines.listen(self._engines_changed)

    # ---- Tasks

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine in the background and log its errors."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a task has failed", exc_info=error)

    async def sweep(self) -> None:
        """Remove idle games from memory, and old games from the database once a day; runs until it is cancelled."""
        cleaned = time.monotonic()
        while True:
            await asyncio.sleep(SECONDS_UNTIL_VANISHED / 4)
            self._sweep()
            if time.monotonic() - cleaned > DAY:
                cleaned = time.monotonic()
                try:
                    await self.clean()
                except StoreError as error:
                    log.error("old games could not be deleted: %s", error)

    async def clean(self) -> None:
        """Delete games and studies without a change for ``Limits.days``, except for games in memory."""
        await self.store.delete_older(self.limits.days * DAY, keep={*self._rooms, *self._loading})

    def _sweep(self) -> None:
        # If memory is full, games without clients leave even if a clock runs; the clock stops then.
        is_full = len(self._rooms) >= self.limits.rooms
        for room in list(self._rooms.values()):
            room.rest()
            if room.is_left if is_full else room.is_idle:
                room.close()
                del self._rooms[room.id]

    def close(self) -> None:
        """Stop all rooms and tasks."""
        for task in list(self._tasks):
            task.cancel()
        for room in self._rooms.values():
            room.close()

    def _engines_changed(self) -> None:
        for room in self._rooms.values():
            if room.session.engine_to_move:
                room.notify()

    @property
    def num_in_memory(self) -> int:
        """Number of games in memory."""
        return len(self._rooms)

    @property
    def num_connected(self) -> int:
        """Number of games with connected clients."""
        return sum(bool(room.connections) for room in self._rooms.values())

    @property
    def engine_state(self) -> Json:
        """State of the engines, for clients."""
        if self.engines is None:
            return {"state": "off", "reason": None}
        return {"state": self.engines.state, "reason": self.engines.reason}

    # ---- Games

    async def get(self, game_id: str) -> Room:
        """Return the room of a game. Raises ``RefusedError`` if the game does not exist."""
        room = self._rooms.get(game_id)
        if room is None:
            # Concurrent requests share one task, which continues if some of them are cancelled.
            task = self._loading.get(game_id)
            if task is None:
                task = self._loading[game_id] = asyncio.create_task(self._load(game_id))
                task.add_done_callback(lambda task: self._loading.pop(game_id) and (task.cancelled() or task.exception()))
            room = await asyncio.shield(task)
        if room is None:
            raise RefusedError("this game does not exist", status=404)
        room.last_used = time.monotonic()
        return room

    async def _load(self, game_id: str) -> Room | None:
        if len(self._rooms) >= self.limits.rooms:
            self._sweep()
            if len(self._rooms) >= self.limits.rooms:
                raise RefusedError("the server has too many active games; try again later", status=503)
        loaded = await asyncio.to_thread(self._read, game_id)
        if loaded is None:
            return None
        stored, session = loaded
        room = self._rooms[game_id] = Room(self, game_id, stored.created, session)
        return room

    def _read(self, game_id: str) -> tuple[StoredGame, Session] | None:
        """Read a game from the database. Raises ``StoreError``."""
        stored = self.store.game(game_id)
        if stored is None:
            return None
        try:
            return stored, session_of(stored)
        except Exception as error:  # other games remain available
            self.store.report("game", game_id, error)
            raise DamagedError(f"game {game_id} is damaged or was played under other rules") from None

    async def create(self, request: Any) -> Json:
        """Create a game from a request; return its id and the tokens of its seats. Raises ``RefusedError``."""
        setup, seats, tokens = await asyncio.to_thread(self._described, request)
        game_id = await self._add(started(setup, seats))
        return {"id": game_id, "seats": [{"seat": seat, "token": token} for seat, token in tokens.items()]}

    async def _add(self, session: Session) -> str:
        await self.check_space(self.store.count_games, self.limits.games, "games")
        game_id = secrets.token_urlsafe(9)
        setup, state = encoded(session.stored_setup), encoded(session.stored_state)
        try:
            await self.store.add(game_id, setup, state, session.setup.is_public)
        except StoreError as error:
            log.error("a game could not be added: %s", error)
            raise RefusedError("the server cannot save the game; try again later", status=503) from None
        if len(self._rooms) < self.limits.rooms:
            self._rooms[game_id] = Room(self, game_id, time.time(), session)
        return game_id

    async def check_space(self, count: Callable[[], int], limit: int, kind: str) -> None:
        """Raise ``RefusedError`` if the database has too many rows of a kind, or is too large for a new one."""
        space = FULL * 1e6 * self.limits.disk_megabytes
        if await asyncio.to_thread(lambda: count() >= limit or self.store.num_bytes() >= space):
            log.warning("the database is full, so that no %s are created; see --limit and tilewe-jax games-db", kind)
            raise RefusedError(f"the server cannot store more {kind}", status=429)

    def _described(self, request: Any) -> tuple[Setup, list[Seat], dict[int, str]]:
        """Setup, seats and tokens by seat of a request. Raises ``RefusedError``."""
        if not isinstance(request, dict):
            raise RefusedError("the body must be a JSON object")
        try:
            host = make_game(request.get("game"), request.get("options", {}), only_offered=True)
        except (TypeError, ValueError) as error:
            known = isinstance(request.get("game"), str) and request["game"] in OFFERS
            raise RefusedError(str(error), "options" if known else "game") from None
        for name in ("casual", "public"):
            if not isinstance(request.get(name, True), bool):
                raise RefusedError(f"{name} must be true or false", name)
        described = request.get("seats")
        if not isinstance(described, list) or len(described) != host.num_players:
            raise RefusedError(f"seats must be a list of {host.num_players} seats", "seats")
        seats, tokens = _with_tokens([self._described_seat(host.id, *item) for item in enumerate(described)])
        clock = _clock_settings(request.get("clock"))
        deal = deal_of(host, request["position"]) if request.get("position") is not None else new_deal(host)
        setup = Setup(host, deal, clock, request.get("casual", True), request.get("public", True))
        return setup, seats, tokens

    def _described_seat(self, game: str, index: int, values: Any) -> Seat:
        if not fits(values, {"kind": ("human", "engine", "open")}):
            raise RefusedError('a seat must be like {"kind": "human", "name": "Ada"}; kind is human, engine or open', "seats")
        kind, name = values["kind"], name_of(values.get("name"))
        if kind != "engine":
            return Seat(kind, name or f"player {index + 1}")
        if not self.engines:
            raise RefusedError("this server has no engines", "seats", 409)
        agent = self.agent(game, values.get("agent"), "seats")
        return Seat("engine", name or agent.title, agent.agent)

    def agent(self, game: str, name: Any, field: str) -> Agent:
        """Return an offered agent of a game. Raises ``RefusedError`` for other agents."""
        offered = self.agents.get(game, ())
        for agent in offered:
            if agent.agent == name:
                return agent
        known = ", ".join(agent.agent for agent in offered) or "none"
        raise RefusedError(f"agent must be one of the agents for {game}: {known}", field)

    async def listed(self, ids: Sequence[str] | None = None) -> list[Json]:
        """Return the newest public games, or the games with these ids, public or not. Damaged games are omitted."""

        def read() -> list[Json]:
            listed = []
            for row in self.store.newest(MAX_LISTED) if ids is None else self.store.named(ids):
                try:
                    listed.append(_summary(*row))
                except Exception as error:  # other games are listed
                    self.store.report("game", row[0], error)
            return listed

        return await asyncio.to_thread(read)

    async def take_seat(self, game_id: str, seat: int, name: Any) -> Json:
        """Take an open seat of a public game; return its new token. Raises ``RefusedError``."""
        room = await self.get(game_id)
        chosen = name_of(name)
        token = new_token()

        def take(session: Session) -> Session:
            if not 0 <= seat < len(session.seats):
                raise RefusedError(f"seat must be from 0 to {len(session.seats) - 1}", "seat", 404)
            if not session.setup.is_public:
                raise RefusedError("the seats of this game are by invitation only", status=403)
            if session.seats[seat].kind != "open" or session.over:
                raise RefusedError("this seat is taken", "seat", 409)
            return session.seated(seat, chosen, hash_of(token))

        await room.change(take)
        return {"id": game_id, "seat": seat, "token": token}

    async def rematch(self, game_id: str, token: Any) -> Json:
        """Create the rematch of a game with rotated seats, unless it exists; return the caller's seat and token for it.

        Raises ``RefusedError``.
        """
        room = await self.get(game_id)
        seat = room.session.seat_of(token) if isinstance(token, str) else None
        if seat is None:
            raise RefusedError("a rematch needs the token of a seat", "token", 403)
        if not room.session.over:
            raise RefusedError("the game is not over", status=409)
        new_id = await self._rematch_of(room)
        new_seat = (seat + 1) % len(room.session.seats)
        if seat not in room.rematch_tokens:
            # The server has restarted since, and the database has only hashes of tokens.
            room.rematch_tokens[seat] = new_token()
            hashed = hash_of(room.rematch_tokens[seat])
            await (await self.get(new_id)).change(lambda session: session.seated(new_seat, None, hashed))
        return {"id": new_id, "seat": new_seat, "token": room.rematch_tokens[seat]}

    async def _rematch_of(self, room: Room) -> str:
        """Id of the rematch, which is created if necessary."""
        async with room.rematch_lock:
            old = room.session
            if old.rematch:
                return old.rematch
            setup = old.setup
            seats, tokens = _with_tokens([old.seats[-1], *old.seats[:-1]])
            deal = setup.deal if setup.is_set_up else await asyncio.to_thread(new_deal, setup.host)
            new_id = await self._add(started(replace(setup, deal=deal), seats))
            room.rematch_tokens = {(seat - 1) % len(seats): token for seat, token in tokens.items()}
            await room.change(lambda session: session.followed_by(new_id))
            return new_id

    # ---- Questions to engines

    def readiness(self, session: Session, agent: str) -> Json:
        """Return whether the search of an agent is compiled (``warm``), and otherwise the estimated ``seconds`` or ``None``."""
        if not self.engines:
            return {"warm": False, "seconds": None}
        question = self.question(session, 0, agent)
        if self.engines.is_warm(question):
            return {"warm": True, "seconds": 0.0}
        seconds = self.engines.estimate(question) if self.engines.state == "ready" else None
        return {"warm": False, "seconds": None if seconds is None else round(seconds, 1)}

    async def levels(self, game: str) -> list[Json]:
        """Return the offered agents of a game, with their readiness for its usual options."""
        if game not in self._usual:
            host = await asyncio.to_thread(make_game, game, {})
            self._usual[game] = started(Setup(host, await asyncio.to_thread(new_deal, host), None, True, True), ())
        offered = self.agents.get(game, ())
        return [{**agent.view, **self.readiness(self._usual[game], agent.agent)} for agent in offered]

    def analysis_agent(self, game: str) -> str:
        """Return the default agent for analyses of a game."""
        return self._analysis_agents.get(game, ANALYSIS_AGENT)

    def question(
        self,
        session: Session,
        number: int,
        agent: str,
        *,
        seed: int = 0,
        num_simulations: int | None = None,
        is_analysis: bool = False,
    ) -> Question:
        """Return the question about the position after ``number`` moves."""
        setup = session.setup
        offered = next((entry for entry in self.agents.get(setup.host.id, ()) if entry.agent == agent), None)
        # The analysis agent has no time limit: its values must not depend on the load of the machine.
        is_timed = offered and num_simulations is None and not (is_analysis and agent == self.analysis_agent(setup.host.id))
        return Question(
            game=setup.host.id,
            options=setup.host.options,
            deal=setup.deal,
            actions=session.actions[:number],
            agent=agent,
            max_seconds=offered.max_seconds if offered and is_timed else None,
            num_simulations=num_simulations,
            seed=seed,
            is_analysis=is_analysis,
        )

    async def analysis(
        self, session: Session, number: int, agent: Any = None, simulations: Any = None, *, address: str = ""
    ) -> Json:
        """Return the analysis of the position after ``number`` moves, by the analysis agent if ``agent`` is ``None``.

        The value of a finished position is its result, which needs no search. Raises ``RefusedError``.
        """
        game = session.setup.host.id
        if simulations is not None and simulations not in SIMULATIONS:
            raise RefusedError(f"simulations must be one of {', '.join(map(str, SIMULATIONS))}", "simulations")
        if not self.turns:
            raise RefusedError("this server has no engines", status=503)
        name = self.analysis_agent(game) if agent is None else self.agent(game, agent, "agent").agent
        position = await asyncio.to_thread(session.position_at, number)
        if position.is_terminal:
            return result_of(session.setup.host, position, name)
        question = self.question(session, number, name, num_simulations=simulations, is_analysis=True)
        try:
            async with self._analyses:
                (answer,) = await self.turns.ask(question, address)
            return await asyncio.to_thread(analysis_of, position, answer, name)
        except UnavailableError as error:
            raise RefusedError(str(error), status=503) from None
        except (EngineError, KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"the engine could not analyse this position: {error}", status=500) from None


def session_of(stored: StoredGame) -> Session:
    """Replay a stored game. Raises ``ValueError`` and other errors if it is damaged or breaks the rules."""
    host = make_game(stored.setup["game"], stored.setup["options"])
    if stored.setup["version"] != host.version:
        raise ValueError(f"its rules have version {stored.setup['version']}, and this program has {host.version}")
    clock = ClockSettings(**stored.setup["clock"]) if stored.setup["clock"] else None
    setup = Setup(host, stored.setup["deal"], clock, stored.setup["casual"], stored.setup["public"])
    moves = [(action, json_object(note) if note else {}) for action, note in stored.moves]
    return restored(setup, stored.state, moves)


def _with_tokens(seats: Sequence[Seat]) -> tuple[list[Seat], dict[int, str]]:
    """Seats with new tokens for people, and the tokens by seat."""
    tokens = {index: new_token() for index, seat in enumerate(seats) if seat.kind != "engine"}
    hashes = {index: hash_of(token) for index, token in tokens.items()}
    return [replace(seat, token_hash=hashes.get(index)) for index, seat in enumerate(seats)], tokens


def _summary(game_id: str, setup: Json, state: Json, moves: int) -> Json:
    """Return the entry of a game in the lobby. Raises an error if the game is damaged."""
    seats = state["seats"]
    if setup["game"] not in OFFERS or not isinstance(setup["options"], dict) or not fits(seats, [_LISTED_SEAT]):
        raise ValueError("its game or its seats are unknown")
    return {
        "id": game_id,
        "game": setup["game"],
        "options": setup["options"],
        "names": [seat["name"] for seat in seats],
        "open_seats": [index for index, seat in enumerate(seats) if seat["kind"] == "open"],
        "moves": moves,
        "mover": state.get("mover"),  # games of earlier versions are without it until their next move
        "over": state["over"] is not None,
    }


def name_of(value: Any) -> str | None:
    """Return the printable part of a player's name, or ``None`` if it is empty. Raises ``RefusedError``."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 10 * MAX_NAME:
        raise RefusedError(f"name must be a text of at most {MAX_NAME} characters", "name")
    name = "".join(letter for letter in value if letter.isprintable())
    return " ".join(name.split())[:MAX_NAME] or None


def _clock_settings(value: Any) -> ClockSettings | None:
    if value is None:
        return None
    clock = {"increment": 0, **value} if isinstance(value, dict) else None
    if (
        clock is None
        or not fits(clock, {"seconds": NUMBER, "increment": NUMBER})
        or not SECONDS[0] <= clock["seconds"] <= SECONDS[1]
        or not INCREMENT[0] <= clock["increment"] <= INCREMENT[1]
    ):
        raise RefusedError(
            'clock must be null or like {"seconds": 300, "increment": 5}, with'
            f" {SECONDS[0]:,.0f} to {SECONDS[1]:,.0f} seconds and an increment of at most {INCREMENT[1]:,.0f}",
            "clock",
        )
    return ClockSettings(float(clock["seconds"]), float(clock["increment"]))
