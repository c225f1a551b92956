"""The rooms without a server: whole games, stored rows, records and studies; the same code runs in Pyodide."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from tilewe_jax.host_games import OFFERS
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.local import LEVELS, MAX_GAMES, Local, Memory, local_catalog
from tilewe_jax.web.site import needed_modules

Json = dict[str, Any]
HUMAN: Json = {"kind": "human"}
ENGINE: Json = {"kind": "engine", "agent": "heuristic"}
SMALL: dict[str, Json] = {
    "tilewe": {"players": 2, "size": 6},
    "duo": {"size": 7},
    "duo_official": {"size": 7},
    "classic": {"size": 8},
    "classic_2": {"size": 8},
    "santorini": {"size": 3},
    "triominos": {"players": 2, "tiles": 20},
}


class Rows(dict[str, str]):
    """The database of a browser."""

    async def save(self, key: str, text: str | None) -> None:
        await asyncio.sleep(0)
        if text is None:
            del self[key]
        else:
            self[key] = text


def local(rows: Rows) -> Local:
    """Return the application, with engines that do not pause before their moves."""
    app = Local(rows, rows.save)
    app.rooms.limits = Limits(engine_seconds=0)
    return app


class Player:
    """A client of a game."""

    numbers = itertools.count()

    def __init__(self, app: Local, game: str, token: str | None) -> None:
        self.app, self.number = app, next(self.numbers)
        self.messages: asyncio.Queue[Json] = asyncio.Queue()
        self.closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.state: Json = {}
        app.connect(self.number, f"/api/games/{game}/socket", self._receive, self.closed.set_result)
        self.send({"type": "join", "token": token})

    def _receive(self, text: str) -> None:
        message = json.loads(text)
        if message["type"] == "state":
            self.state = message
        self.messages.put_nowait(message)

    def send(self, message: Json) -> None:
        self.app.receive(self.number, json.dumps(message))

    async def until(self, wanted: Callable[[Json], Any]) -> Json:
        while not wanted(message := await self.messages.get()):
            pass
        return message

    async def ask(self, message: Json) -> Json:
        self.send({**message, "ref": "q"})
        return await self.until(lambda answer: answer.get("ref") == "q")

    async def wait(self, wanted: Callable[[Json], Any]) -> None:
        while not self.state or not wanted(self.state):
            await self.messages.get()

    async def play(self, chance: Random, most: int = 1_000) -> None:
        """Play at random until the end, or ``most`` moves."""
        for _ in range(most):
            await self.wait(lambda state: state["over"] or state["legal"])
            if self.state["over"]:
                return
            number, legal = self.state["move"], self.state["legal"]
            action = chance.choice(legal)
            answer = await self.ask(
                {"type": "move", "action": action if isinstance(action, int) else action["id"], "move": number}
            )
            assert answer["type"] == "ok", answer
            await self.wait(lambda state, number=number: state["move"] > number)


async def call(app: Local, method: str, path: str, body: Any = None) -> Any:
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    status, kind, answer = await app.request(method, path, text)
    assert status in (200, 201), (status, answer)
    return json.loads(answer) if kind == "application/json" else answer


async def created(app: Local, game: str, options: Json, seats: list[Json]) -> tuple[str, dict[int, str]]:
    made = await call(app, "POST", "/api/games", {"game": game, "options": options, "seats": seats})
    return made["id"], {seat["seat"]: seat["token"] for seat in made["seats"]}


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(limited())


@pytest.mark.parametrize("game", OFFERS)
def test_a_whole_game_against_the_heuristic(game: str) -> None:
    async def work() -> None:
        rows = Rows()
        app = local(rows)
        players = 4 if game == "classic" else 2
        number, tokens = await created(app, game, SMALL[game], [HUMAN, *[ENGINE] * (players - 1)])
        player = Player(app, number, tokens[0])
        await player.play(Random(1))
        over = player.state["over"]
        assert over["reason"] == "finished"
        record = await call(app, "GET", f"/api/games/{number}/record?format=jsonl")
        assert json.loads(record.splitlines()[1])["scores"] == over["scores"]
        assert (await call(app, "GET", f"/api/games/{number}/picture?theme=dark")).startswith("<svg")
        assert (await call(app, "GET", f"/api/games/{number}/animation?format=svg")).startswith("<svg")
        (listed,) = await call(app, "GET", "/api/games")
        assert (listed["id"], listed["over"], listed["moves"]) == (number, True, player.state["move"])

        study = await call(app, "POST", "/api/studies", record)
        replay = await call(app, "GET", f"/api/studies/{study['id']}?number=1")
        assert len(replay["frames"]) == player.state["move"] + 1
        analysis = await call(app, "POST", f"/api/studies/{study['id']}/analysis", {"number": 1, "move": 1})
        assert analysis["candidates"]
        assert analysis["simulations"] == 100
        line = {"number": 1, "actions": [replay["moves"][0]["id"]], "move": 0}
        after = await call(app, "POST", f"/api/studies/{study['id']}/line", line)
        assert (after["moves"], after["frames"]) == (replay["moves"][:1], replay["frames"][1:2])
        action = next(each if isinstance(each, int) else each["id"] for each in after["legal"])
        tree = {"comments": {"1": "x"}, "variations": [{"move": 1, "actions": [action]}]}
        shown = await call(app, "POST", f"/api/studies/{study['id']}/variations", {"number": 1, **tree})
        file = await call(app, "POST", f"/api/studies/{study['id']}/record?format=jsonl", {"number": 1, **tree})
        back = await call(app, "GET", f"/api/studies/{(await call(app, 'POST', '/api/studies', file))['id']}")
        assert {name: back[name] for name in shown} == shown
        if game == "santorini":
            while "done" in (review := await call(app, "GET", f"/api/games/{number}/review")):
                assert review["all"] == len(replay["frames"])
            assert len(review["values"]) == len(replay["frames"])
            assert review["values"][-1] == over["returns"]

        again = local(rows)  # the page is opened again
        watcher = Player(again, number, tokens[0])
        await watcher.wait(lambda state: state["over"])
        assert watcher.state["over"] == over
        assert watcher.state["you"] == 0
        assert (await call(again, "GET", f"/api/studies/{study['id']}"))["result"] == replay["result"]

    run(work)


def test_a_game_continues_after_the_page_was_closed() -> None:
    async def work() -> None:
        rows = Rows()
        app = local(rows)
        number, tokens = await created(app, "santorini", {}, [HUMAN, ENGINE])
        player = Player(app, number, tokens[0])
        await player.play(Random(1), most=3)
        await player.wait(lambda state: state["move"] == 6)
        app.disconnect(player.number)
        again = Player(local(rows), number, tokens[0])
        await again.wait(lambda state: state["move"] == 6)
        assert again.state["view"] == player.state["view"]
        assert (await again.ask({"type": "undo"}))["type"] == "ok"
        await again.wait(lambda state: state["move"] == 4)
        await again.play(Random(2))
        assert again.state["over"]

    run(work)


def test_levels_hints_and_analyses_answer_while_a_search_runs() -> None:
    async def work() -> None:
        app = local(Rows())
        number, tokens = await created(app, "duo_official", {}, [HUMAN, {"kind": "engine", "agent": "search:simulations=400"}])
        player = Player(app, number, tokens[0])
        await player.wait(lambda state: state["legal"])
        answer = await player.ask({"type": "analyze", "agent": "search:simulations=20"})
        assert (answer["type"], answer["simulations"]) == ("analysis", 20)
        hint = await player.ask({"type": "hint"})
        assert hint["id"] in player.state["legal"]
        await player.ask({"type": "move", "action": hint["id"]})
        await player.wait(lambda state: state["thinking"])
        assert (await player.ask({"type": "ping"}))["type"] == "pong"
        assert player.state["move"] == 1, "the search is still running"
        assert (await player.ask({"type": "resign"}))["type"] == "ok"

    run(work)


def test_errors_are_sentences() -> None:
    async def work() -> None:
        app = local(Rows())
        requests = [
            ("GET", "/api/nothing", "", 404),
            ("POST", "/api/games", "{", 400),
            ("POST", "/api/games", '{"game": "chess"}', 400),
            ("GET", "/api/games/unknown", "", 404),
            ("POST", "/api/studies", "nothing", 400),
            ("GET", "/api/studies/unknown", "", 404),
        ]
        for method, path, body, status in requests:
            answer = await app.request(method, path, body)
            assert answer[0] == status, (path, answer)
            assert json.loads(answer[2])["error"]
        player = Player(app, "unknown", None)
        assert (await player.until(lambda message: message["type"] == "error"))["error"] == "this game does not exist"
        assert await player.closed == 4404
        number, _ = await created(app, "santorini", {}, [HUMAN, ENGINE])
        player = Player(app, number, "wrong")
        assert (await player.until(lambda message: message["type"] == "error"))["error"]
        assert await player.closed == 4403

    run(work)


def test_old_games_and_damaged_rows_leave() -> None:
    async def work() -> None:
        rows = Rows({"game.damaged": "{", "game.wrong": '{"moves": 1}', "other": "x"})
        memory = Memory(rows, rows.save)
        for number in range(MAX_GAMES + 3):
            await memory.add(f"g{number}", "{}", "{}", True)
        assert len([key for key in rows if key.startswith("game.g")]) == MAX_GAMES
        assert "game.g0" not in rows
        assert memory.game("g0") is None
        await memory.delete_older(-1.0, keep=["g5"])
        assert [key for key in rows if key.startswith("game.g")] == ["game.g5"]

    run(work)


def test_a_full_database_does_not_end_a_game() -> None:
    async def fail(key: str, text: str | None) -> None:
        raise OSError("the quota is exceeded")

    async def work() -> None:
        app = Local({}, fail)
        app.rooms.limits = Limits(engine_seconds=0)
        number, tokens = await created(app, "santorini", {"size": 3}, [HUMAN, ENGINE])
        player = Player(app, number, tokens[0])
        await player.play(Random(1))
        assert player.state["over"]

    run(work)


def test_the_catalog_names_all_levels() -> None:
    assert {game["id"]: [level["agent"] for level in game["levels"]] for game in local_catalog()["games"]} == {
        name: list(LEVELS) for name in OFFERS
    }


def test_the_modules_of_the_browser_need_no_packages() -> None:
    """``needed_modules`` imports them without JAX, NumPy and the packages of the server."""
    files = needed_modules()
    assert {"tilewe_jax/web/local.py", "tilewe_jax/records.py", "tilewe_jax/formats/blksgf.py"} < files.keys()
    assert all(file.is_file() for file in files.values())
    assert not [name for name in files if "server" in name or "sockets" in name]
