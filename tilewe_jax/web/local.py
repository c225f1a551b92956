"""The rooms of the server without a server: requests and sockets as function calls, games in a database of the browser.

``tilewe-jax site`` writes a page on which a worker runs this module in Pyodide. It needs no JAX and no NumPy. Players are those
of ``tilewe_jax.agents.plain``.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tilewe_jax.agents.plain import simulations_of, think
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import OFFERS
from tilewe_jax.utils.files import parse_json
from tilewe_jax.web import puzzles
from tilewe_jax.web.catalog import Agent, catalog, make_game
from tilewe_jax.web.explore import Explorers
from tilewe_jax.web.exports import FORMATS, Studies, animation_of, facts_of, picture_of, record_of, replay_of, replay_text
from tilewe_jax.web.limits import Buckets, Limits
from tilewe_jax.web.messages import serve
from tilewe_jax.web.positions import described
from tilewe_jax.web.questions import EngineError, Question, State
from tilewe_jax.web.requests import ANIMATIONS, THEMES, choice_of, ids_of, integer_of, refusal_of
from tilewe_jax.web.reviews import Reviews
from tilewe_jax.web.room import encoded
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.session import RefusedError
from tilewe_jax.web.stored import DamagedError, ListedGame, StoredGame, StoredMove, StoreError, json_object

log = logging.getLogger("tilewe_jax.web")

Save = Callable[[str, str | None], Awaitable[None]]
"""``save(key, text)`` writes a row of the browser's database; ``None`` deletes it."""

LEVELS = {
    "random": "random moves",
    "heuristic": "quick rules of thumb",
    "search:simulations=20": "search, 20 simulations",
    "search:simulations=100": "search, 100 simulations",
    "search:simulations=400": "search, 400 simulations",
}
"""Titles of the offered players by text, in the order of the time they take."""
ANALYSIS = "search:simulations=100"
"""Player of hints and analyses."""
MAX_GAMES = 500
"""Maximum number of stored games; the games without a change for the longest time are deleted."""
_SLICE_SECONDS = 0.03
"""Time that a search runs before other work."""
_GAME, _STUDY = "game.", "study."

AGENTS = {name: [Agent(text, title) for text, title in LEVELS.items()] for name in OFFERS}
"""The offered players by game."""


def local_catalog() -> dict[str, Any]:
    """Return the answer of ``GET /api/catalog``, without the state of the engines."""
    return {"games": catalog(AGENTS), "version": "", "live": False}


class Memory:
    """A ``stored.Storage`` in memory, with a copy of each row in the browser's database.

    A game is one row: its times, setup, state, and moves.

    Args:
      rows: the stored rows, by key.
      save: writes a row.
    """

    def __init__(self, rows: Mapping[str, str], save: Save) -> None:
        self._save = save
        self._games: dict[str, dict[str, Any]] = {}
        self._studies = {key.removeprefix(_STUDY): text for key, text in rows.items() if key.startswith(_STUDY)}
        for key, text in rows.items():
            if key.startswith(_GAME):
                try:
                    row = json_object(text)
                    row["moves"] = [(action, note) for action, note in row["moves"]]
                    self._games[key.removeprefix(_GAME)] = row
                except (LookupError, TypeError, ValueError) as error:
                    self.report("game", key, error)

    async def _write(self, key: str, text: str | None) -> None:
        """Write a row. A full database must not end a game, which continues in memory."""
        try:
            await self._save(key, text)
        except Exception as error:  # errors of JavaScript
            log.warning("%s is not stored in the browser: %s", key, error)

    async def _write_game(self, game: str) -> None:
        await self._write(_GAME + game, encoded(self._games[game]))

    async def add(self, game: str, setup: str, state: str, is_public: bool) -> None:
        now = time.time()
        values = {"created": now, "updated": now, "setup": setup, "state": state, "public": is_public, "moves": []}
        self._games[game] = values
        await self._write_game(game)
        for old in sorted(self._games, key=self._updated)[:-MAX_GAMES]:
            await self._delete(old)

    async def change(self, game: str, state: str, is_over: bool, first_move: int, moves: Sequence[StoredMove]) -> None:
        if game not in self._games:
            raise StoreError("the game was deleted, because the browser stores only the newest games")
        row = self._games[game]
        row |= {"state": state, "updated": time.time(), "moves": [*row["moves"][:first_move], *moves]}
        await self._write_game(game)

    async def add_study(self, study_id: str, content: str) -> None:
        self._studies[study_id] = content
        await self._write(_STUDY + study_id, content)

    async def delete_older(self, seconds: float, *, keep: Collection[str] = ()) -> None:
        limit = time.time() - seconds
        for game in [game for game in self._games if self._updated(game) < limit and game not in keep]:
            await self._delete(game)

    async def _delete(self, game: str) -> None:
        del self._games[game]
        await self._write(_GAME + game, None)

    def _updated(self, game: str) -> float:
        return float(self._games[game]["updated"])

    def game(self, game_id: str) -> StoredGame | None:
        row = self._games.get(game_id)
        if row is None:
            return None
        try:
            return StoredGame(row["created"], json_object(row["setup"]), json_object(row["state"]), tuple(row["moves"]))
        except (LookupError, ValueError) as error:
            self.report("game", game_id, error)
            raise DamagedError(f"game {game_id} is damaged: {error}") from None

    def newest(self, count: int) -> list[ListedGame]:
        return self.named([game for game, row in self._games.items() if row.get("public")])[:count]

    def named(self, ids: Sequence[str]) -> list[ListedGame]:
        listed = []
        for game in sorted(self._games.keys() & set(ids), key=self._updated, reverse=True):
            try:
                stored = self.game(game)
            except DamagedError:
                continue
            if stored:
                listed.append((game, stored.setup, stored.state, len(stored.moves)))
        return listed

    def ended(self, since: float, count: int) -> list[tuple[str, float]]:
        later = [(self._updated(game), game) for game in self._games if self._updated(game) >= since]
        # All games of a browser are the user's, so that private ones count too.
        ended = [(game, updated) for updated, game in sorted(later) if json_object(self._games[game]["state"]).get("over")]
        return ended[:count]

    def count_games(self) -> int:
        return 0  # there is always space, because old games are deleted

    def count_studies(self) -> int:
        return 0

    def num_bytes(self) -> int:
        return 0  # the browser limits its database, and a game continues without it

    def study(self, study_id: str) -> str | None:
        return self._studies.get(study_id)

    def report(self, kind: str, row_id: Any, error: object) -> None:
        log.warning("%s %s is damaged: %s", kind, row_id, error)


class PlainEngines:
    """``questions.Engines`` that run in this thread, a slice of time each, so that messages are answered meanwhile."""

    state: State = "ready"
    reason = None

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._num_waiting = 0
        self._last: tuple[tuple[Any, ...], list[int], HostPosition] | None = None
        """Game, actions and position of the last question; the next one is usually a few moves later."""

    def listen(self, listener: Callable[[], None]) -> None:
        """Do nothing: the state does not change."""

    def is_warm(self, question: Question) -> bool:
        """Return true: nothing is compiled."""
        return True

    def estimate(self, question: Question) -> float | None:
        return 0.0

    def num_waiting_with(self, question: Question) -> int:
        return self._num_waiting

    async def ask(self, question: Question) -> list[dict[str, Any]]:
        self._num_waiting += 1
        turns = [len(question.actions)] if question.turns is None else question.turns
        answers = []
        try:
            for turn in turns:
                async with self._lock:  # moves of games go between the positions of a review
                    answers.append(await self._answer(replace(question, actions=question.actions[:turn])))
                question.follow(len(answers))
            return answers
        except (LookupError, TypeError, ValueError) as error:
            raise EngineError(str(error)) from error
        finally:
            self._num_waiting -= 1

    async def _answer(self, question: Question) -> dict[str, Any]:
        game = make_game(question.game, dict(question.options))
        position = self._position(game, question)
        steps = think(
            game,
            position,
            question.agent,
            Random(question.seed),
            simulations=question.num_simulations,
            max_candidates=question.max_candidates,
        )
        paused = time.monotonic()
        for answer in steps:
            if answer is not None:
                return answer
            if time.monotonic() - paused > _SLICE_SECONDS:
                await asyncio.sleep(0)
                paused = time.monotonic()
        raise EngineError("the player gave no answer")

    def _position(self, game: HostGame, question: Question) -> HostPosition:
        key = question.game, json.dumps([dict(question.options), question.deal], sort_keys=True)
        actions = list(question.actions)
        position, played = game.init_from_deal(question.deal), 0
        if self._last and self._last[0] == key and actions[: len(self._last[1])] == self._last[1]:
            played, position = len(self._last[1]), self._last[2]
        for action in actions[played:]:
            position = position.after(action)
        self._last = key, actions, position
        return position


class Local:
    """The application in one process.

    Args:
      rows: rows of the browser's database, by key.
      save: writes a row of it.
    """

    def __init__(self, rows: Mapping[str, str], save: Save) -> None:
        # Nobody else uses this process, so that only limits of sizes matter.
        plenty = 1e6
        limits = Limits(message_rate=plenty, message_burst=plenty, analysis_rate=plenty, analysis_burst=plenty)
        analysts = dict.fromkeys(OFFERS, ANALYSIS)
        self.rooms = Rooms(
            Memory(rows, save), PlainEngines(), AGENTS, analysts, limits, reviewer=(ANALYSIS, simulations_of(ANALYSIS))
        )
        self._analyses = Buckets(limits.analysis_rate, limits.analysis_burst)
        self._reviews = Reviews(self.rooms, self._analyses)
        self._studies = Studies(self.rooms, self._reviews)
        self._explorers = Explorers(self.rooms.store, self._studies)
        self._sockets: dict[int, asyncio.Queue[str | None]] = {}

    async def request(self, method: str, address: str, body: str) -> tuple[int, str, str]:
        """Answer a request of the API that the server's README.md describes.

        Args:
          method: GET or POST.
          address: path and query.
          body: the body, empty for GET.

        Returns:
          The status, the media type and the body of the answer.
        """
        try:
            status, kind, answer = await self._answer(method, address, body)
        except (RefusedError, StoreError) as error:
            refusal = refusal_of(error)
            status, kind, answer = refusal.status, "application/json", {"error": str(refusal), "field": refusal.field}
        return status, kind, answer if isinstance(answer, str) else encoded(answer)

    async def _answer(self, method: str, address: str, body: str) -> tuple[int, str, Any]:  # noqa: PLR0911, PLR0912
        parts = urlsplit(address)
        query = dict(parse_qsl(parts.query))
        rooms, studies, json_kind = self.rooms, self._studies, "application/json"
        match (method, *parts.path.removeprefix("/api/").split("/")):
            case "GET", "catalog":
                return 200, json_kind, {**local_catalog(), "engine": rooms.engine_state}  # nothing is compiled
            case "GET", "games":
                return 200, json_kind, await rooms.listed(ids_of(query))
            case "POST", "games":
                return 201, json_kind, await rooms.create(_json(body))
            case "GET", "games", game:
                return 200, json_kind, await (await rooms.get(game)).spectator_text()
            case "POST", "positions":
                return 200, json_kind, described(_json(body))
            case "POST", "games", game, "rematch":
                request = _json(body)
                return 201, json_kind, await rooms.rematch(game, request.get("token") if isinstance(request, dict) else None)
            case "GET", "games", game, "record":
                form = choice_of(query, "format", FORMATS)
                return 200, "application/octet-stream", record_of((await rooms.get(game)).session, form)
            case "GET", "games", game, "replay":
                return 200, json_kind, replay_text(replay_of((await rooms.get(game)).session))
            case "GET", "games", game, "review":
                return 200, json_kind, await self._reviews.of_game((await rooms.get(game)).session)
            case "GET", "games", game, "picture":
                session = (await rooms.get(game)).session
                number = integer_of(query, "move", 0, len(session.moves), len(session.moves))
                return 200, "image/svg+xml", picture_of(session, number, choice_of(query, "theme", THEMES))
            case "GET", "games", game, "position":
                session = (await rooms.get(game)).session
                number = integer_of(query, "move", 0, len(session.moves), len(session.moves))
                return 200, json_kind, facts_of(session, number)
            case "GET", "games", game, "animation":
                form, theme = choice_of(query, "format", ANIMATIONS[1:]), choice_of(query, "theme", THEMES)
                return 200, "image/svg+xml", animation_of((await rooms.get(game)).session, form, theme).decode()
            case "GET", "puzzles":
                return 200, json_kind, {"puzzles": puzzles.counts()}
            case "GET", "puzzles", game, number if number.isdecimal():
                return 200, json_kind, puzzles.answer(game, int(number), query)
            case "POST", "studies":
                return 201, json_kind, await studies.add(body.encode())
            case "GET", "studies", study:
                return 200, json_kind, await studies.replay(study, integer_of(query, "number", 1, 1 << 20, 1))
            case "GET", "studies", study, "review":
                return 200, json_kind, await studies.review(study, integer_of(query, "number", 1, 1 << 20, 1))
            case "POST", "studies", study, "line":
                return 200, json_kind, await studies.line(study, _json(body))
            case "POST", "studies", study, "variations":
                return 200, json_kind, await studies.branches(study, _json(body))
            case "POST", "studies", study, "record":
                form = choice_of(query, "format", FORMATS)
                return 200, "application/octet-stream", await studies.record(study, _json(body), form)
            case "POST", "studies", study, "explore":
                return 200, json_kind, await self._explorers.moves(study, _json(body))
            case "POST", "studies", study, "analysis":
                return 200, json_kind, await studies.analysis(study, _json(body))
        raise RefusedError("this page does not exist", status=404)

    # ---- Sockets

    def connect(self, number: int, path: str, send: Callable[[str], None], closed: Callable[[int], None]) -> None:
        """Open a socket.

        Args:
          number: number of the socket, for the other methods.
          path: path of a game's socket, ``/api/games/ID/socket``.
          send: receives the messages for the client.
          closed: called at the end, with a close code as of a WebSocket, unless the client disconnects.
        """
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._sockets[number] = queue

        async def receive() -> str:
            text = await queue.get()
            if text is None:
                raise EOFError
            return text

        async def answer(text: str) -> None:
            send(text)

        async def talk() -> None:
            code = 1000
            try:
                game = path.removeprefix("/api/games/").removesuffix("/socket")
                for error in await serve(self.rooms, game, "", self._analyses, receive, answer):
                    if isinstance(error, RefusedError | StoreError):
                        raise error
                    if isinstance(error, EOFError):
                        return
                    log.error("a connection has failed", exc_info=error)
            except (RefusedError, StoreError) as error:
                refusal = refusal_of(error)
                send(encoded({"type": "error", "ref": None, "error": str(refusal), "field": refusal.field}))
                code = 4000 + refusal.status
            finally:
                self._sockets.pop(number, None)
            closed(code)

        self.rooms.spawn(talk())

    def receive(self, number: int, text: str) -> None:
        """Receive a message of a client; nothing happens if its socket is closed."""
        with contextlib.suppress(KeyError):
            self._sockets[number].put_nowait(text)

    def disconnect(self, number: int) -> None:
        """Close a socket."""
        with contextlib.suppress(KeyError):
            self._sockets[number].put_nowait(None)


def _json(body: str) -> Any:
    try:
        return parse_json(body)
    except ValueError:
        raise RefusedError("the body must be JSON") from None
