"""The web application: pages, the HTTP API and the WebSockets. README.md in this folder documents the API."""

import asyncio
import contextlib
import hashlib
import logging
import mimetypes
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from tilewe_jax.utils.files import parse_json
from tilewe_jax.web import puzzles
from tilewe_jax.web.catalog import Agent, catalog, games_script, languages_script
from tilewe_jax.web.engines import EnginePool
from tilewe_jax.web.explore import Explorers
from tilewe_jax.web.exports import FORMATS, Studies, animation_of, facts_of, picture_of, record_of, replay_of, replay_text
from tilewe_jax.web.guard import FORWARDING_HEADERS, LOOPBACK, SECURITY_HEADERS, Guard, Network, includes
from tilewe_jax.web.limits import Buckets, Limits
from tilewe_jax.web.live import Live
from tilewe_jax.web.messages import first_of, serve
from tilewe_jax.web.monitor import CONTENT_TYPE, Monitor, Monitored
from tilewe_jax.web.positions import described
from tilewe_jax.web.requests import ANIMATIONS, THEMES, choice_of, ids_of, integer_of, refusal_of
from tilewe_jax.web.reviews import Reviews
from tilewe_jax.web.room import Room
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.runs import Runs
from tilewe_jax.web.session import RefusedError
from tilewe_jax.web.site import offline_script, page_files
from tilewe_jax.web.store import Store
from tilewe_jax.web.stored import StoreError

log = logging.getLogger("tilewe_jax.web")

STATIC = Path(__file__).parent / "static"
RENDER_STATIC = Path(__file__).parents[1] / "draw" / "static"
"""Scripts of ``tilewe_jax.draw``, which draw games on pages without a server too."""
LOCAL_NAMES = ("localhost",)
MAX_ANIMATIONS = 8
"""Maximum number of waiting animations; one is drawn at a time, which takes seconds."""
_NO_CACHE = {"cache-control": "no-cache"}
"""Browsers ask whether a file has changed, so that no old script runs with a new server."""
_WASM_HEADERS = {
    name: value.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'") for name, value in SECURITY_HEADERS.items()
}
"""Headers of the site below ``/offline/``, whose worker runs Pyodide, which is WebAssembly."""
_PART = 1 << 16
"""Size of a part of a response, in bytes. A client must read each part within ``Limits.response_seconds``."""

PAGES = ("/", "/game/{id}", "/editor", "/study", "/study/{id}", "/puzzle", "/puzzle/{game}/{number}", "/dashboard")
"""Addresses of the page, whose script shows the view of each."""
HEALTH_SECONDS = 5.0
"""Time within which the database of a healthy server answers."""

Endpoint = Callable[[Request], Awaitable[Response]]


class Text(Response):
    """A response of encoded JSON text."""

    media_type = "application/json"


class Server:
    """The endpoints and their shared state; ``create_app`` documents the arguments."""

    def __init__(
        self,
        store: Store,
        engines: EnginePool | None,
        agents: Mapping[str, Sequence[Agent]],
        analysis_agents: Mapping[str, str],
        limits: Limits,
        runs: Path | None,
        live: Live | None,
        monitor: Monitor,
        metrics_clients: Sequence[Network],
        games: Sequence[Path],
        offline_bytes: int | None,
    ) -> None:
        self.offline_bytes = offline_bytes
        self.limits, self.engines, self.store, self.monitor = limits, engines, store, monitor
        self.rooms = Rooms(store, engines, agents, analysis_agents, limits, monitor)
        self._metrics_clients = metrics_clients
        self.analyses = Buckets(limits.analysis_rate, limits.analysis_burst)
        self.reviews = Reviews(self.rooms, self.analyses)
        self.studies = Studies(self.rooms, self.reviews)
        self.explorers = Explorers(store, self.studies, games)
        self.runs = Runs(runs)
        self.live = live
        self.games = catalog(agents)
        self.requests = Buckets(limits.request_rate, limits.request_burst)
        self.creations = Buckets(limits.creation_rate, limits.creation_burst)
        self.attempts = Buckets(limits.attempt_rate, limits.attempt_burst)
        self._replaying = asyncio.Semaphore(1)
        """One game is replayed at a time: a long game takes seconds of processor time."""
        self._animating = asyncio.Semaphore(1)
        self._num_animations = 0
        """Number of animations in progress or waiting."""
        self._tasks: Counter[str] = Counter()
        """Number of long requests by address."""
        self.connections: Counter[str] = Counter()
        """Number of WebSockets by address."""
        try:
            self.version = version("tilewe-jax")
        except PackageNotFoundError:
            self.version = ""

    def api(self, endpoint: Endpoint) -> Endpoint:
        """Limit the rate of requests to an endpoint, and turn refusals into responses."""

        async def limited(request: Request) -> Response:
            try:
                if not self.requests.take(address_of(request)):
                    raise RefusedError("too many requests; wait a moment", status=429)
                return await endpoint(request)
            except (RefusedError, StoreError) as error:
                refusal = refusal_of(error)
                headers = {"connection": "close"} if refusal.status in (408, 413) else None  # the body was not read
                return JSONResponse({"error": str(refusal), "field": refusal.field}, refusal.status, headers)

        return limited

    def long(self, endpoint: Endpoint) -> Endpoint:
        """Limit the number of concurrent requests of an address to an endpoint that takes long."""

        async def limited(request: Request) -> Response:
            address = address_of(request)
            if self._tasks[address] >= self.limits.tasks_per_address:
                log.warning("more than %d long requests from one address are refused", self.limits.tasks_per_address)
                raise RefusedError("too many requests in progress; wait for some of them", status=429)
            with _counted(self._tasks, address):
                return await endpoint(request)

        return limited

    @contextlib.contextmanager
    def _creating(self, request: Request) -> Iterator[None]:
        """Count the creation of a game or study. A failed one counts as an attempt only."""
        address = address_of(request)
        if not self.attempts.take(address) or not self.creations.take(address):
            raise RefusedError("too many games were created from this address; try again later", status=429)
        try:
            yield
        except BaseException:
            self.creations.give(address)
            raise

    async def _room(self, request: Request) -> Room:
        return await self.rooms.get(request.path_params["id"])

    async def _content(self, request: Request) -> bytes:
        """The body of a request. Raises ``RefusedError`` if it is too long or too slow."""
        content = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.stream():
                    content += part
                    if len(content) > self.limits.body:
                        raise RefusedError(f"the body must have at most {self.limits.body:,} bytes", status=413)
        except TimeoutError:
            raise RefusedError(f"the body must arrive within {self.limits.body_seconds:g} seconds", status=408) from None
        except ClientDisconnect:
            raise RefusedError("the client has disconnected") from None
        return bytes(content)

    async def _body(self, request: Request) -> Any:
        """The JSON value in the body of a request. Raises ``RefusedError``."""
        try:
            return parse_json(await self._content(request))
        except ValueError:
            raise RefusedError("the body must be JSON") from None

    # ---- Endpoints

    async def catalog(self, request: Request) -> Response:
        """The offered games, and the state of the engines."""
        state = {"engine": self.rooms.engine_state, "version": self.version, "live": self.live is not None}
        state |= {"offline": self.offline_bytes}
        games = [{**game, "levels": await self.rooms.levels(game["id"])} for game in self.games]
        return JSONResponse({"games": games, **state})

    async def create_game(self, request: Request) -> Response:
        """Create a game."""
        with self._creating(request):
            return JSONResponse(await self.rooms.create(await self._body(request)), 201)

    async def list_games(self, request: Request) -> Response:
        """The games of the lobby, or the games with the ids in the query."""
        return JSONResponse(await self.rooms.listed(ids_of(request.query_params)))

    async def game(self, request: Request) -> Response:
        """The state of a game for a spectator."""
        return Text(await (await self._room(request)).spectator_text())

    async def take_seat(self, request: Request) -> Response:
        """Take an open seat."""
        body = await self._body(request)
        name = body.get("name") if isinstance(body, dict) else None
        return JSONResponse(await self.rooms.take_seat(request.path_params["id"], request.path_params["seat"], name), 201)

    async def rematch(self, request: Request) -> Response:
        """Create or join the rematch of a game."""
        body = await self._body(request)
        token = body.get("token") if isinstance(body, dict) else None
        is_new = not (await self._room(request)).session.rematch
        with self._creating(request) if is_new else contextlib.nullcontext():
            return JSONResponse(await self.rooms.rematch(request.path_params["id"], token), 201)

    async def record(self, request: Request) -> Response:
        """A game as a file."""
        form = choice_of(request.query_params, "format", FORMATS)
        room = await self._room(request)
        async with self._replaying:
            text = await asyncio.to_thread(record_of, room.session, form)
        return Response(text, media_type="application/octet-stream", headers=_attachment(room, form))

    async def replay(self, request: Request) -> Response:
        """A game for ``<tilewe-game>``."""
        room = await self._room(request)
        async with self._replaying:
            return Text(await asyncio.to_thread(lambda: replay_text(replay_of(room.session))))

    async def picture(self, request: Request) -> Response:
        """A position of a game as SVG."""
        session = (await self._room(request)).session
        number = integer_of(request.query_params, "move", 0, len(session.moves), len(session.moves))
        theme = choice_of(request.query_params, "theme", THEMES)
        async with self._replaying:
            picture = await asyncio.to_thread(picture_of, session, number, theme)
        return Response(picture, media_type="image/svg+xml")

    async def game_position(self, request: Request) -> Response:
        """A position of a game as facts."""
        session = (await self._room(request)).session
        number = integer_of(request.query_params, "move", 0, len(session.moves), len(session.moves))
        async with self._replaying:
            return JSONResponse(await asyncio.to_thread(facts_of, session, number))

    async def animation(self, request: Request) -> Response:
        """A game as an animation."""
        form, theme = choice_of(request.query_params, "format", ANIMATIONS), choice_of(request.query_params, "theme", THEMES)
        room = await self._room(request)
        if self._num_animations >= MAX_ANIMATIONS:
            raise RefusedError("too many animations are being drawn; try again in a minute", status=503)
        self._num_animations += 1
        try:
            async with self._animating:
                content = await asyncio.to_thread(animation_of, room.session, form, theme)
        finally:
            self._num_animations -= 1
        media_type = "image/gif" if form == "gif" else "image/svg+xml"
        return Response(content, media_type=media_type, headers=_attachment(room, form))

    async def position(self, request: Request) -> Response:
        """A position that a client sets up, checked, with its view."""
        return JSONResponse(await asyncio.to_thread(described, await self._body(request)))

    async def add_study(self, request: Request) -> Response:
        """Store the games of a file."""
        with self._creating(request):
            return JSONResponse(await self.studies.add(await self._content(request)), 201)

    async def study(self, request: Request) -> Response:
        """A game of a study for ``<tilewe-game>``."""
        number = integer_of(request.query_params, "number", 1, 1 << 20, 1)
        return Text(await self.studies.replay(request.path_params["id"], number))

    async def study_analysis(self, request: Request) -> Response:
        """The analysis of a position of a study."""
        address = address_of(request)
        if not self.analyses.take(address):
            raise RefusedError("too many analyses; wait for some of them", status=429)
        return JSONResponse(await self.studies.analysis(request.path_params["id"], await self._body(request), address))

    async def review(self, request: Request) -> Response:
        """The review of a game."""
        room = await self._room(request)
        return JSONResponse(await self.reviews.of_game(room.session, address_of(request)))

    async def study_review(self, request: Request) -> Response:
        """The review of a game of a study."""
        number = integer_of(request.query_params, "number", 1, 1 << 20, 1)
        return JSONResponse(await self.studies.review(request.path_params["id"], number, address_of(request)))

    async def study_line(self, request: Request) -> Response:
        """A position after other moves than those of a game of a study."""
        return JSONResponse(await self.studies.line(request.path_params["id"], await self._body(request)))

    async def explore(self, request: Request) -> Response:
        """The moves that were played from a position of a study."""
        return JSONResponse(await self.explorers.moves(request.path_params["id"], await self._body(request)))

    async def study_branches(self, request: Request) -> Response:
        """Comments and variations of a game of a study."""
        return JSONResponse(await self.studies.branches(request.path_params["id"], await self._body(request)))

    async def study_record(self, request: Request) -> Response:
        """A game of a study with comments and variations as a file."""
        form = choice_of(request.query_params, "format", FORMATS)
        text = await self.studies.record(request.path_params["id"], await self._body(request), form)
        return Response(text, media_type="application/octet-stream")

    async def list_puzzles(self, request: Request) -> Response:
        """The numbers of puzzles by game."""
        return JSONResponse({"puzzles": await asyncio.to_thread(puzzles.counts)})

    async def puzzle(self, request: Request) -> Response:
        """A puzzle, or with ``explain`` the rule that an action breaks."""
        path = request.path_params
        return JSONResponse(await asyncio.to_thread(puzzles.answer, path["game"], path["number"], request.query_params))

    async def list_runs(self, request: Request) -> Response:
        """The training runs."""
        return Text(await self.runs.listed())

    async def run_metrics(self, request: Request) -> Response:
        """The metrics of a training run."""
        after = integer_of(request.query_params, "after", 0, 1 << 30, 0)
        return Text(await self.runs.metrics(request.path_params["name"], after))

    async def run_games(self, request: Request) -> Response:
        """The newest games of a training run."""
        return Text(await self.runs.games(request.path_params["name"]))

    # ---- For operators

    async def health(self, request: Request) -> Response:
        """The state of the server: status 200 if the database can be read and changed, otherwise 503."""
        state = {"engine": self.rooms.engine_state, "version": self.version}
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                await self.store.check()
        except (StoreError, TimeoutError) as error:
            reason = str(error) or f"the database did not answer within {HEALTH_SECONDS:g} seconds"
            log.error("the server is not healthy: %s", reason)
            return JSONResponse({"status": "failed", "error": "the database cannot be used", **state}, 503)
        return JSONResponse({"status": "ok", **state})

    async def metrics(self, request: Request) -> Response:
        """The measurements, for direct requests of permitted addresses."""
        is_forwarded = any(name in request.headers for name in FORWARDING_HEADERS)
        if is_forwarded or not includes(self._metrics_clients, address_of(request)):
            raise RefusedError("metrics are for direct requests of the addresses of --metrics", status=403)
        return Response(await self.monitor.text(self), media_type=CONTENT_TYPE)

    # ---- WebSockets

    async def game_socket(self, websocket: WebSocket) -> None:
        """Serve the WebSocket of a game."""
        await self._accept(websocket, self._talk)

    async def live_socket(self, websocket: WebSocket) -> None:
        """Serve a WebSocket that shows self-play games."""
        await self._accept(websocket, self._show)

    async def _accept(self, websocket: WebSocket, serve: Callable[[WebSocket, str], Awaitable[None]]) -> None:
        address = address_of(websocket)
        await websocket.accept()
        try:
            if not self.requests.take(address):
                raise RefusedError("too many requests; wait a moment", status=429)
            if self.connections.total() >= self.limits.connections:
                raise RefusedError("the server has too many connections; try again later", status=429)
            if self.connections[address] >= self.limits.connections_per_address:
                raise RefusedError("too many connections from this address", status=429)
            with _counted(self.connections, address):
                await serve(websocket, address)
        except (RefusedError, StoreError) as error:
            refusal = refusal_of(error)
            self.monitor.refused("socket", refusal.status, str(refusal), address, websocket.url.path)
            with contextlib.suppress(Exception):  # the client may be gone
                async with asyncio.timeout(self.limits.send_seconds):
                    await websocket.send_json({"type": "error", "ref": None, "error": str(refusal), "field": refusal.field})
                    await websocket.close(4000 + refusal.status)

    async def _show(self, websocket: WebSocket, address: str) -> None:
        if not self.live:
            raise RefusedError("this server shows no self-play games", status=404)

        async def receive() -> None:
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass

        await first_of(self.live.watch(websocket.send_text, self.limits.send_seconds), receive())

    async def _talk(self, websocket: WebSocket, address: str) -> None:
        async def receive() -> str | bytes | None:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise EOFError
            return message.get("text") if message.get("text") is not None else message.get("bytes")

        send = websocket.send_text
        for error in await serve(self.rooms, websocket.path_params["id"], address, self.analyses, receive, send):
            if isinstance(error, RefusedError | StoreError):
                raise error
            # If the client leaves during a message, sending raises WebSocketDisconnect, or a RuntimeError of Starlette.
            if not isinstance(error, EOFError | TimeoutError | OSError | RuntimeError | WebSocketDisconnect):
                log.error("a connection has failed", exc_info=error)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(self.limits.send_seconds):
                await websocket.close(1013)  # the client read too slowly or asked too much; it may reconnect


@contextlib.contextmanager
def _counted(counter: "Counter[str]", address: str) -> Iterator[None]:
    """Count an address in this context; entries of 0 are removed."""
    counter[address] += 1
    try:
        yield
    finally:
        counter[address] -= 1
        if not counter[address]:
            del counter[address]


def _attachment(room: Room, form: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{room.session.setup.host.id}-{room.id}.{form}"'}


def address_of(connection: Request | WebSocket) -> str:
    """Return the address of a client."""
    return connection.client.host if connection.client else ""


async def _error(request: Request, error: Exception) -> Response:
    """Respond to a wrong path or method, or to an unexpected error."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    # A browser gets the page, which explains that the address is unknown.
    if status in (404, 405) and request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", ""):
        return _page(request, status)
    texts = {404: "this page does not exist", 405: f"method {request.method} is not allowed for this path"}
    text = texts.get(status, "the server has failed; its log has the reason")
    return JSONResponse({"error": text, "field": None}, status, getattr(error, "headers", None))


class _Static(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_NO_CACHE)
        return response


def page_at(base_path: str) -> str:
    """Return the HTML of the page for a server with this base path. Its scripts find the base path by their own address."""
    return (STATIC / "index.html").read_text(encoding="utf-8").replace('="/', f'="{base_path}/')


def _page(request: Request, status: int = 200) -> Response:
    return HTMLResponse(request.app.state.page, status, _NO_CACHE)


def _script(text: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(text, media_type="text/javascript", headers=_NO_CACHE)

    return endpoint


def _files(files: Mapping[str, bytes]) -> Endpoint:
    """Return the endpoint of files in memory. Their tags come from their contents: a browser loads only changed files again."""
    tags = {name: f'"{hashlib.sha256(data).hexdigest()[:32]}"' for name, data in files.items()}

    async def parts(data: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(data), _PART):
            yield data[start : start + _PART]

    async def endpoint(request: Request) -> Response:
        name = request.path_params["path"] or "index.html"
        if name not in files:
            raise HTTPException(404)
        headers = {**_WASM_HEADERS, **_NO_CACHE, "etag": tags[name]}
        if tags[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["content-length"] = str(len(files[name]))
        return StreamingResponse(parts(files[name]), headers=headers, media_type=mimetypes.guess_type(name)[0])

    return endpoint


def _offline(page: str, site: Mapping[str, bytes]) -> tuple[list[BaseRoute], int]:
    """Return the routes of the page without a server and of the service worker that keeps it, and the size of all kept files.

    Args:
      page: HTML of the server's page.
      site: files of the page without a server.
    """
    kept = {"./": page.encode(), **page_files(), "offline/": site["index.html"]}
    kept |= {f"offline/{name}": data for name, data in site.items()}
    script = offline_script(kept, games="offline/").decode()
    routes: list[BaseRoute] = [Route("/offline.js", _script(script)), Route("/offline/{path:path}", _files(site))]
    return routes, sum(map(len, kept.values()))


def create_app(
    store: Store,
    engines: EnginePool | None = None,
    agents: Mapping[str, Sequence[Agent]] | None = None,
    *,
    analysis_agents: Mapping[str, str] | None = None,
    host_names: Sequence[str] = LOCAL_NAMES,
    runs: Path | None = None,
    live: Live | None = None,
    limits: Limits | None = None,
    monitor: Monitor | None = None,
    metrics_clients: Sequence[Network] = LOOPBACK,
    base_path: str = "",
    games: Sequence[Path] = (),
    offline: Mapping[str, bytes] | None = None,
) -> Starlette:
    """Return the application of a server.

    Args:
      store: the database, which is closed when the server ends.
      engines: the engines; ``None`` for a server without engines.
      agents: the offered agents by game.
      analysis_agents: default agent for analyses by game, see ``Rooms``.
      host_names: names under which clients reach the server, besides IP addresses.
      runs: folder with training runs to show.
      live: self-play games to show.
      limits: the limits.
      monitor: receives measurements and refusals.
      metrics_clients: addresses that may read the measurements.
      base_path: prefix of all paths, like ``/games``; empty for none.
      games: files of games for the explorer.
      offline: files of the page without a server, see ``site_files``; ``None`` for a server that does not offer it.
    """
    limits, monitor = limits or Limits(), monitor or Monitor()
    page = page_at(base_path)
    offline_routes, offline_bytes = _offline(page, offline) if offline else ([], None)
    agents, analysis_agents = agents or {}, analysis_agents or {}
    server = Server(store, engines, agents, analysis_agents, limits, runs, live, monitor, metrics_clients, games, offline_bytes)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(server.rooms.sweep())
        try:
            await server.rooms.clean()
            if engines:
                engines.start()
            yield
        finally:
            sweeping.cancel()
            server.rooms.close()
            server.runs.close()
            if engines:
                await engines.stop()
            if live:
                await live.stop()
            store.close()
            monitor.close()

    def api(path: str, method: str, endpoint: Endpoint) -> Route:
        return Route(path, server.api(endpoint), methods=[method])

    routes: list[BaseRoute] = [
        *(Route(path, _page) for path in PAGES),
        api("/healthz", "GET", server.health),
        api("/metrics", "GET", server.metrics),
        api("/api/catalog", "GET", server.catalog),
        api("/api/games", "POST", server.create_game),
        api("/api/games", "GET", server.list_games),
        api("/api/positions", "POST", server.long(server.position)),
        api("/api/games/{id}", "GET", server.long(server.game)),
        api("/api/games/{id}/seats/{seat:int}", "POST", server.take_seat),
        api("/api/games/{id}/rematch", "POST", server.rematch),
        api("/api/games/{id}/record", "GET", server.long(server.record)),
        api("/api/games/{id}/replay", "GET", server.long(server.replay)),
        api("/api/games/{id}/review", "GET", server.long(server.review)),
        api("/api/games/{id}/position", "GET", server.long(server.game_position)),
        api("/api/games/{id}/picture", "GET", server.long(server.picture)),
        api("/api/games/{id}/animation", "GET", server.long(server.animation)),
        api("/api/studies", "POST", server.long(server.add_study)),
        api("/api/studies/{id}", "GET", server.long(server.study)),
        api("/api/studies/{id}/review", "GET", server.long(server.study_review)),
        api("/api/studies/{id}/line", "POST", server.long(server.study_line)),
        api("/api/studies/{id}/explore", "POST", server.long(server.explore)),
        api("/api/studies/{id}/variations", "POST", server.long(server.study_branches)),
        api("/api/studies/{id}/record", "POST", server.long(server.study_record)),
        api("/api/studies/{id}/analysis", "POST", server.study_analysis),
        api("/api/puzzles", "GET", server.list_puzzles),
        api("/api/puzzles/{game}/{number:int}", "GET", server.long(server.puzzle)),
        api("/api/runs", "GET", server.list_runs),
        api("/api/runs/{name}/metrics", "GET", server.long(server.run_metrics)),
        api("/api/runs/{name}/games", "GET", server.long(server.run_games)),
        WebSocketRoute("/api/games/{id}/socket", server.game_socket),
        WebSocketRoute("/api/live", server.live_socket),
        Mount("/static/render", _Static(directory=RENDER_STATIC, check_dir=False)),
        Route("/static/games.js", _script(games_script())),
        Route("/static/languages.js", _script(languages_script())),
        Mount("/static", _Static(directory=STATIC, check_dir=False)),
        *offline_routes,
    ]
    if base_path:
        routes = [Route(base_path, lambda request: RedirectResponse(f"{base_path}/")), Mount(base_path, routes=routes)]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Monitored, monitor=monitor), Middleware(Guard, host_names=host_names)],
        exception_handlers={HTTPException: _error, 500: _error},
        lifespan=lifespan,
    )
    app.state.server, app.state.page = server, page
    return app
