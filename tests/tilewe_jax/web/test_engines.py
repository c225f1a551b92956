"""Engines: moves, hints and analyses, faults, and scheduling of compilations."""

import asyncio
import contextlib
import random
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import wait_until
from tests.tilewe_jax.web.support import AGENTS, engine, joined, legal, new_game, serving
from tilewe_jax.web import turns
from tilewe_jax.web.catalog import Agent
from tilewe_jax.web.engines import EnginePool
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.live import Live
from tilewe_jax.web.questions import Question
from tilewe_jax.web.turns import Turns

ENGINE = {"kind": "engine", "agent": "level:1"}
HUMAN = {"kind": "human"}


@pytest.mark.parametrize(("game", "options"), [("duo", {"size": 5}), ("triominos", {"tiles": 20})], ids=["duo", "triominos"])
def test_one_agent_analyses_all_positions_of_a_game(tmp_path: Path, game: str, options: dict[str, Any]) -> None:
    """The analyses of a game against an engine equal the analyses of its record."""
    chance = random.Random(game)
    offered = {**AGENTS, game: [Agent("level:1", "beginner", 0), Agent("puct:num_simulations=64", "own", max_seconds=1.0)]}
    with serving(tmp_path / "games", engine(), agents=offered) as client:
        created = new_game(client, game, options, [HUMAN, ENGINE])
        assert list(created["tokens"]) == [0]
        with joined(client, created, 0, None) as (player, spectator):
            while not player.state["over"]:
                if player.wait(lambda state: state["legal"] or state["over"])["legal"]:
                    player.move_at_random(chance)
            assert player.state["seats"][1] == {"kind": "engine", "name": "beginner", "agent": "level:1", "connected": False}
            assert spectator.wait(lambda state: state["over"])["move"] == player.state["move"]
            numbers = range(player.state["move"] + 1)
            analyses = [player.ask({"type": "analyze", "move": number}) for number in numbers]
            returns = player.state["over"]["returns"]
        path = f"/api/games/{created['id']}"
        moves, replay = client.get(path).json()["moves"], client.get(f"{path}/replay").json()
        assert [thought and thought["agent"] for thought in replay["thoughts"]] == [
            "level:1" if move["player"] else None for move in moves
        ]
        assert set(replay["analyses"]) == {None}
        study = client.post("/api/studies", content=client.get(f"{path}/record").content).json()["id"]
        for number, analysis in zip(numbers, analyses, strict=True):
            assert analysis["agent"] == "puct:num_simulations=64"
            studied = client.post(f"/api/studies/{study}/analysis", json={"move": number}).json()
            assert studied == {name: value for name, value in analysis.items() if name not in ("type", "move", "ref")}
        assert analyses[-1]["value"] == returns
        assert {analysis["simulations"] for analysis in analyses[:-1]} == {50}


@pytest.mark.parametrize("fails", [False, True], ids=["strongest", "falls_back"])
def test_a_review_values_all_positions_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    if fails:
        monkeypatch.setattr("tilewe_jax.web.rooms.REVIEWER", ("missing", 256))
    chance = random.Random(0)
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "duo", {"size": 5}, [HUMAN, ENGINE])
        path = f"/api/games/{created['id']}"
        assert client.get(f"{path}/review").status_code == 409
        with joined(client, created, 0) as (player,):
            while not player.state["over"]:
                if player.wait(lambda state: state["legal"] or state["over"])["legal"]:
                    player.move_at_random(chance)
            over, number = player.state["over"], player.state["move"]

        def review(path: str) -> Any:
            while "done" in (answer := client.get(path).json()):
                assert answer["all"] == number + 1
            return answer

        first = review(f"{path}/review")
        assert first["agent"] == ("puct:num_simulations=64" if fails else "best")
        assert first["simulations"] == 256
        assert len(first["analyses"]) == len(first["values"]) == number + 1
        assert first["values"][-1] == first["analyses"][-1]["value"] == over["returns"]
        moves = client.get(path).json()["moves"]
        assert [each and each["agent"] for each in first["opinions"]] == [
            "level:1" if move["player"] else None for move in moves
        ]
        study = client.post("/api/studies", content=client.get(f"{path}/record").content).json()["id"]
        again = review(f"/api/studies/{study}/review?number=1")
        assert again == {name: value for name, value in first.items() if name != "opinions"}
        assert client.get(f"/api/studies/{study}/review?number=2").json()["field"] == "number"


def test_hints_and_analyses(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "duo", {"size": 8})
        with joined(client, created, 0, 1) as (first, second):
            hint = first.ask({"type": "hint"})
            assert hint["type"] == "hint"
            assert hint["id"] in legal(first.state)
            assert second.ask({"type": "hint"})["type"] == "error"
            analysis = second.ask({"type": "analyze", "simulations": 16, "agent": "level:2"})
            assert [candidate["visits"] for candidate in analysis["candidates"]] == [10, 9, 8, 7, 6]
            assert first.ask({"type": "analyze", "agent": "puct:num_simulations=1000000000"})["field"] == "agent"
            assert first.ask({"type": "analyze", "simulations": 10**9})["field"] == "simulations"
            second.ask({"type": "resign"})
            assert [len(first.ask({"type": "analyze", "move": 0})["value"])] == [2]
        refused = client.post("/api/games", json={"game": "duo", "seats": [HUMAN, {"kind": "engine", "agent": "level:9"}]})
        assert refused.json()["field"] == "seats"
        assert "level:1, level:2" in refused.json()["error"]


def test_a_search_is_warm_after_its_first_answer() -> None:
    """A forced move, and an answer from a book or without simulations, show no search; each size of a block has its program."""
    pool = EnginePool(["none"])
    question = Question("duo", {}, None, [], "level:1")

    def is_warm(candidates: int, simulations: int = 16, batch: int = 1, is_book: bool = False) -> bool:
        row = {"batch": batch, "num_simulations": simulations, "candidates": [{}] * candidates, "is_book": is_book}
        pool._process_of(question)._note_search(question, row, 1.0)
        return pool.is_warm(question)

    assert not is_warm(1)
    assert not is_warm(5, simulations=0)
    assert not is_warm(5, batch=2)
    assert not is_warm(5, is_book=True)
    assert is_warm(5)
    assert not pool.is_warm(replace(question, agent="level:2"))


def test_estimates_are_the_times_of_compilations() -> None:
    """First of the same search, then of the same game, then of all games; with the compilations that come before."""
    pool = EnginePool(["none"])
    row = {"batch": 1, "num_simulations": 16, "candidates": [{}] * 5}
    duo, other, santorini = (
        Question(game, {}, None, [], agent) for game, agent in (("duo", "a"), ("duo", "b"), ("santorini", "a"))
    )
    process = pool._process_of(duo)
    assert pool.estimate(duo) is None
    process._note_search(duo, row, 40.0)
    assert [pool.estimate(each) for each in (duo, other, santorini)] == [0, 40, 40]
    process._note_search(santorini, row, 10.0)
    assert [pool.estimate(each) for each in (duo, other, santorini)] == [0, 40, 0]
    process.warm.clear()  # the process has restarted
    assert [pool.estimate(each) for each in (duo, other, santorini)] == [40, 40, 10]
    process._note_search(duo, row, 6.0)  # this time from the cache on the disk
    process._note_search(duo, {**row, "batch": 4}, 99.0)  # another size of the block is not the first answer
    process.warm.clear()

    async def ask() -> None:
        process.state = "ready"
        first = asyncio.create_task(pool.ask(santorini))
        await settle()
        assert [round(pool.estimate(each) or 0) for each in (duo, santorini)] == [16, 10]
        process._last_answer -= 7  # seconds that have passed
        assert [round(pool.estimate(each) or 0) for each in (duo, santorini)] == [9, 3]
        process._last_answer -= 70
        assert [pool.estimate(each) for each in (duo, santorini)] == [0, 0]
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        assert [round(pool.estimate(each) or 0) for each in (duo, santorini)] == [6, 10]

    asyncio.run(ask())


def test_levels_are_shown_as_ready_after_their_first_search(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:

        def levels(game: str) -> list[tuple[bool, float | None]]:
            (found,) = [each for each in client.get("/api/catalog").json()["games"] if each["id"] == game]
            return [(level["warm"], level["seconds"]) for level in found["levels"]]

        assert levels("santorini") == [(False, None)] * 2
        wait_until(lambda: client.get("/api/catalog").json()["engine"]["state"] == "ready")
        created = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        with joined(client, created, 0) as (player,):
            wait_until(lambda: levels("santorini")[0] == (True, 0))
            ((is_warm, seconds),) = levels("santorini")[1:]
            assert not is_warm
            assert seconds is not None
            assert 0 <= seconds < 30
            player.move_at_random(random.Random(0))
            state = player.wait(lambda state: state["thinking"] or state["move"] == 2)
            assert state["move"] == 2 or (state["engine"]["warm"], state["engine"]["seconds"]) == (True, 0)
    with serving(tmp_path / "games", agents={}) as client:
        assert levels("santorini") == []


def test_engines_play_while_somebody_watches(tmp_path: Path) -> None:
    """Analyses have a separate process, which starts with the first analysis."""
    with serving(tmp_path / "games", engine(processes=3)) as client:
        created = new_game(client, "santorini", {"size": 3}, [ENGINE, ENGINE])
        other = new_game(client, "santorini", {"size": 3}, [HUMAN, ENGINE])
        with joined(client, other, 0) as (player,):
            player.move_at_random(random.Random(0))
            player.wait_for_move(2)
            assert player.ask({"type": "analyze"})["type"] == "analysis"
        assert client.get(f"/api/games/{created['id']}").json()["move"] == 0
        with joined(client, created, None) as (spectator,):
            spectator.wait(lambda state: state["over"])


@pytest.mark.parametrize(("fault", "is_random"), [("dies", True), ("cheats", True), ("silent", True), ("babbles", False)])
def test_a_game_continues_after_a_fault_of_the_engine(tmp_path: Path, fault: str, is_random: bool) -> None:
    with serving(tmp_path / "games", engine(fault, hang_seconds=0.4 if fault == "silent" else 60)) as client:
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            player.wait(lambda state: state["move"] == 1 and state["legal"])
            player.move_at_random(random.Random(0))
            assert ("note" in player.wait_for_move(3)["moves"][-1]) == is_random


def test_an_engine_that_does_not_start(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine("broken")) as client:
        wait_until(lambda: client.get("/api/catalog").json()["engine"]["state"] == "failed")
        assert client.get("/api/catalog").json()["engine"]["reason"] == "this engine is broken"
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            assert player.ask({"type": "analyze"})["type"] == "error"
            assert player.state["engine"]["state"] == "failed"
            assert player.ask({"type": "resign"})["type"] == "ok"


def test_unneeded_questions_are_withdrawn(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine("stuck")) as client:
        engines = client.app.state.server.engines  # type: ignore[attr-defined]
        created = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        with joined(client, created, 0) as (player,):
            player.move_at_random(random.Random(0))
            assert player.state["thinking"]
            wait_until(lambda: engines.num_waiting == 1)
            assert player.ask({"type": "undo"})["type"] == "ok"
            wait_until(lambda: engines.num_waiting == 0)
            assert player.wait(lambda state: state["undos"])["move"] == 0
            for number in range(3):
                player.send({"type": "analyze", "ref": number})
            wait_until(lambda: engines.num_waiting == 3)
        wait_until(lambda: engines.num_waiting == 0)


def test_nothing_is_compiled_for_people_who_have_left(tmp_path: Path) -> None:
    """A search that is not compiled is withdrawn when the last client leaves, and asked again when one returns."""
    with serving(tmp_path / "games", engine("stuck")) as client:
        engines = client.app.state.server.engines  # type: ignore[attr-defined]
        created = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        for _ in range(2):
            with joined(client, created, 0) as (player,):
                if player.state["move"] == 0:
                    player.move_at_random(random.Random(0))
                wait_until(lambda: engines.num_waiting == 1)
            wait_until(lambda: engines.num_waiting == 0)


def test_live_games(tmp_path: Path) -> None:
    """All spectators receive the lines of one process."""
    lines = """print('{"type": "grid", "step": %d}' % n, flush=True)"""
    code = f"import time, itertools\nfor n in itertools.count():\n time.sleep(0.02); {lines}"
    url = "ws://localhost/api/live"
    with serving(tmp_path / "games", live=Live([sys.executable, "-c", code])) as client:
        assert client.get("/api/catalog").json()["live"]
        with client.websocket_connect(url) as first, client.websocket_connect(url) as second:
            steps = [first.receive_json()["step"] for _ in range(5)]
            assert steps == sorted(set(steps))
            assert second.receive_json()["type"] == "grid"
            first.send_text("anything")
            assert first.receive_json()["step"] > steps[-1]
    with serving(tmp_path / "games") as client, client.websocket_connect(url) as socket:
        assert socket.receive_json()["type"] == "error"


# ---- Scheduling


class Engines:
    """Engines that answer on demand."""

    def __init__(self) -> None:
        self.state = "ready"
        self.asked: list[tuple[str, asyncio.Future[Any]]] = []
        self.warm: set[str] = set()

    def is_warm(self, question: Question) -> bool:
        return question.game in self.warm

    def num_waiting_with(self, question: Question) -> int:
        return len(self.games)

    @property
    def games(self) -> list[str]:
        return [game for game, future in self.asked if not future.done()]

    async def ask(self, question: Question) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.asked.append((question.game, future))
        return await future

    def answer(self, game: str) -> None:
        self.warm.add(game)
        for asked, future in self.asked:
            if asked == game and not future.done():
                future.set_result(game)


def question(game: str) -> Question:
    return Question(game, {}, None, (), "agent")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def with_turns(test: Callable[[Engines, Turns], Coroutine[Any, Any, None]], **limits: Any) -> None:
    async def run() -> None:
        engines = Engines()
        await test(engines, Turns(engines, Limits(**limits)))  # type: ignore[arg-type]

    asyncio.run(asyncio.wait_for(run(), 30))


def test_an_address_has_one_search_compiled_at_a_time() -> None:
    async def test(engines: Engines, shared: Turns) -> None:
        asked = [("a", "1"), ("b", "1"), ("a", "1"), ("c", "1"), ("b", "2"), ("d", "2")]
        tasks = [asyncio.create_task(shared.ask(question(game), address)) for game, address in asked]
        await settle()
        assert sorted(engines.games) == ["a", "a", "b"]  # equal searches run together
        while any(not task.done() for task in tasks):
            assert len(set(engines.games)) <= 2
            engines.answer(engines.games[0])
            await settle()
        assert [task.result() for task in tasks] == [game for game, _ in asked]
        again = [asyncio.create_task(shared.ask(question(game), "1")) for game in "abcd"]
        await settle()
        assert engines.games == list("abcd")  # compiled searches do not wait
        for game in "abcd":
            engines.answer(game)
        await asyncio.gather(*again)

    with_turns(test)


def test_an_address_beyond_its_rate_waits_for_an_idle_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)

    async def test(engines: Engines, shared: Turns) -> None:
        engines.warm.add("a")
        busy = asyncio.create_task(shared.ask(question("a"), "2"))
        first = asyncio.create_task(shared.ask(question("b"), "1"))
        await settle()
        engines.answer("b")
        await first
        second = asyncio.create_task(shared.ask(question("c"), "1"))
        for _ in range(30):
            await asyncio.sleep(0.001)
        assert engines.games == ["a"]
        engines.answer("a")
        await busy
        while "c" not in engines.games:
            await asyncio.sleep(0.001)
        engines.answer("c")
        await second

    with_turns(test, compilation_rate=1e-9, compilation_burst=1)


def test_cancelled_questions_leave_nothing() -> None:
    async def test(engines: Engines, shared: Turns) -> None:
        tasks = [asyncio.create_task(shared.ask(question(game), "1")) for game in "abab"]
        tasks += [asyncio.create_task(shared.warm_up(question("e"), "1")) for _ in range(3)]
        await settle()
        for task in tasks:
            task.cancel()
            await settle()
        assert not engines.games
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)

    with_turns(test)


def test_warming_up_waits_for_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)

    async def test(engines: Engines, shared: Turns) -> None:
        engines.warm.add("move")
        move = asyncio.create_task(shared.ask(question("move"), "1"))
        await settle()
        warming = [asyncio.create_task(shared.warm_up(question(game), "2")) for game in "abcd"]
        for _ in range(30):
            await asyncio.sleep(0.001)
        assert engines.games == ["move"]
        engines.answer("move")
        await move
        for _ in range(2):
            while not engines.games:
                await asyncio.sleep(0.001)
            assert len(engines.games) == 1
            engines.answer(engines.games[0])
            await settle()
        await asyncio.gather(*warming)
        assert len(engines.asked) == 3  # the others exceed the rate of their address

    with_turns(test, compilation_rate=1e-9, compilation_burst=2)


def test_addresses_alternate_in_warming_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many games of one address do not delay the searches of another address."""
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)

    async def test(engines: Engines, shared: Turns) -> None:
        warming = [asyncio.create_task(shared.warm_up(question(game), "1")) for game in "abcdef"]
        await settle()
        warming.append(asyncio.create_task(shared.warm_up(question("x"), "2")))
        dropped = asyncio.create_task(shared.warm_up(question("y"), "2"))
        await settle()
        dropped.cancel()  # its people have left
        while not all(task.done() for task in warming):
            for game in engines.games:
                engines.answer(game)
            await asyncio.sleep(0.001)
        order = [game for game, _ in engines.asked]
        assert sorted(order) == [*"abcdefx"]
        assert order.index("x") <= 1

    with_turns(test)


def test_only_games_with_players_warm_up(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        server = client.app.state.server  # type: ignore[attr-defined]
        games = [new_game(client, "duo", {"size": size}, [HUMAN, ENGINE]) for size in (6, 7, 8)]

        def is_warm(number: int) -> bool:
            room = client.portal.call(server.rooms.get, games[number]["id"])  # type: ignore[union-attr]
            warm: bool = server.engines.is_warm(server.rooms.question(room.session, 0, "level:1"))
            return warm

        with joined(client, games[0], None), joined(client, games[1], 0):
            wait_until(lambda: is_warm(1))
            assert not is_warm(0)
            assert not is_warm(2)
