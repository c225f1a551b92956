"""All games: those in memory, and the file that keeps them; and what is asked of engines about them."""

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from tilewe_jax.host_games import OFFERS
from tilewe_jax.web.catalog import Agent, make_game, new_deal
from tilewe_jax.web.engines import EngineError, EnginePool, Question, UnavailableError
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.room import SECONDS_UNTIL_VANISHED, Room, analysis_of, encoded, result_of
from tilewe_jax.web.session import ClockSettings, RefusedError, Seat, Session, Setup, hash_of, new_token, restored, started
from tilewe_jax.web.store import DamagedError, NewGame, Store, StoredGame, StoreError, json_object
from tilewe_jax.web.turns import Turns

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

MAX_LISTED = 50
"""Games of the lobby."""
MAX_NAME = 40
MAX_IDS = 200
"""Maximum number of ids in a request for games."""
DAY = 86_400.0
MAX_DAYS = 90
"""Games and studies that nobody has touched for so many days are deleted."""
SIMULATIONS = (16, 64, 256, 1024)
"""Numbers of simulations that an analysis may be asked for; each is compiled once."""
ANALYSES_AT_ONCE = 16
"""Analyses that are with the engines at the same time: a move that an engine has to make waits for no more than these."""
SECONDS = (1.0, 86_400.0)
"""Range of the seconds of a clock."""
INCREMENT = (0.0, 3_600.0)


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
        self.analysis_agent = analysis_agent
        self._rooms: dict[str, Room] = {}
        self._loading: dict[str, asyncio.Future[Room | None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._analyses = asyncio.Semaphore(ANALYSES_AT_ONCE)
        self.turns = Turns(engines, limits) if engines else None
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
        """Forget idle games, for ever; they are in the file. Every day, delete those that nobody has touched for long."""
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
        """Delete games and studies that nobody has touched for ``MAX_DAYS``, except for games in memory."""
        await self.store.delete_older(MAX_DAYS * DAY, keep={*self._rooms, *self._loading})

    def _sweep(self) -> None:
        # Where there is no room for more, games go too whose clocks run while nobody is there: these stand still then.
        is_full = len(self._rooms) >= self.limits.rooms
        for room in list(self._rooms.values()):
            room.rest()
            if room.is_left if is_full else room.is_idle:
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
            known = isinstance(error, RefusedError | StoreError)
            future.set_exception(error if known else RefusedError("the game cannot be read", None, 503))
            future.exception()  # somebody has seen it
            raise
        finally:
            del self._loading[game_id]
        return room

    def _read(self, game_id: str) -> tuple[StoredGame, Session] | None:
        """Read a game from the file. Raises ``StoreError``."""
        stored = self.store.game(game_id)
        if stored is None:
            return None
        setup = stored.setup
        try:
            host = make_game(setup["game"], setup["options"])
            clock = ClockSettings(**setup["clock"]) if setup["clock"] else None
            values = Setup(host, setup["deal"], clock, setup["casual"], setup["public"])
            if setup["version"] != host.version:
                raise ValueError(f"it was played by version {setup['version']} of the rules")
            moves = [(move.action, json_object(move.note) if move.note else {}) for move in stored.moves]
            return stored, restored(values, stored.state, moves)
        except Exception as error:  # the server goes on with other games
            self.store.report("game", game_id, error)
            raise DamagedError(f"game {game_id} is damaged, or of other rules than today's") from None

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
        return game_id

    def _described(self, request: Any) -> tuple[Setup, list[Seat], dict[int, str]]:
        """The setup and seats that a request describes, and the tokens of seats. Raises ``RefusedError``."""
        if not isinstance(request, dict):
            raise RefusedError("the body must be a JSON object")
        options = request.get("options", {})
        try:
            host = make_game(request.get("game"), options, only_offered=True)
        except (TypeError, ValueError) as error:
            known = isinstance(request.get("game"), str) and request["game"] in OFFERS
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
        setup = Setup(host, new_deal(host), clock, is_casual, request.get("public", True))
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

    async def listed(self, ids: Sequence[str] | None = None) -> list[Json]:
        """Return the newest public games, or the games with these ids, public or not: an id cannot be guessed.

        Damaged games are omitted.
        """

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
            deal = await asyncio.to_thread(new_deal, setup.host)
            again = Setup(setup.host, deal, setup.clock, setup.is_casual, setup.is_public)
            new_id = await self._add(started(again, seats))
            room.rematch_tokens = tokens
            await room.change(lambda session: session.followed_by(new_id))
            return new_id

    # ---- Questions to engines

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
        """The question what to do after so many moves."""
        setup = session.setup
        offered = next((entry for entry in self.agents.get(setup.host.id, ()) if entry.agent == agent), None)
        return Question(
            game=setup.host.id,
            options=setup.host.options,
            deal=setup.deal,
            actions=session.actions[:number],
            agent=agent,
            # The analysis agent runs without a limit of time: its values must not depend on the load of the machine.
            max_seconds=offered.max_seconds
            if offered and num_simulations is None and not (is_analysis and agent == self.analysis_agent)
            else None,
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
            raise RefusedError("this server has no engines", None, 503)
        name = self.analysis_agent if agent is None else self.agent(game, agent, "agent").agent
        position = await asyncio.to_thread(session.position_at, number)
        if position.is_terminal:
            return result_of(session.setup.host, position, name)
        question = self.question(session, number, name, num_simulations=simulations, is_analysis=True)
        try:
            async with self._analyses:
                answer = await self.turns.ask(question, address)
            return await asyncio.to_thread(analysis_of, position, answer, name)
        except UnavailableError as error:
            raise RefusedError(str(error), None, 503) from None
        except (EngineError, KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"the engine could not analyse this position: {error}", None, 500) from None


def _summary(game_id: str, setup: Json, state: Json, moves: int) -> Json:
    """A game as the lobby lists it. Raises an error if it is damaged."""
    seats = state["seats"]
    if setup["game"] not in OFFERS or not isinstance(setup["options"], dict) or not isinstance(seats, list):
        raise ValueError("its game or its seats are unknown")
    if not all(isinstance(seat["name"], str) and seat["kind"] in ("human", "open", "engine") for seat in seats):
        raise ValueError("a seat has a value of the wrong type")
    return {
        "id": game_id,
        "game": setup["game"],
        "options": setup["options"],
        "names": [seat["name"] for seat in seats],
        "open_seats": [index for index, seat in enumerate(seats) if seat["kind"] == "open"],
        "moves": moves,
        "over": state["over"] is not None,
    }


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
            not isinstance(seconds, bool)
            and not isinstance(increment, bool)
            and SECONDS[0] <= seconds <= SECONDS[1]
            and INCREMENT[0] <= increment <= INCREMENT[1]
        ):
            return ClockSettings(float(seconds), float(increment))
    raise RefusedError(
        f'clock must be null or like {{"seconds": 300, "increment": 5}}: {SECONDS[0]:g} to {SECONDS[1]:g} seconds, and up to'
        f" {INCREMENT[1]:g} more for each move",
        "clock",
    )
