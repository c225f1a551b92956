"""Whose searches are compiled, and when: no game waits for what nobody asked for."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.support import engine, joined, new_game, serving
from tests.tilewe_jax.web.test_engines import ENGINE, HUMAN, soon
from tilewe_jax.web import turns
from tilewe_jax.web.engines import Question
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.turns import Turns


class Engines:
    """Engines that answer when the test says so."""

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


Test = Callable[[Engines, Turns], Coroutine[Any, Any, None]]


def with_turns(test: Test, **limits: Any) -> None:
    async def run() -> None:
        engines = Engines()
        shared = Turns(engines, Limits(**limits))  # type: ignore[arg-type]
        await test(engines, shared)
        await settle()
        assert not shared._shares

    asyncio.run(asyncio.wait_for(run(), 30))


def test_an_address_has_one_search_compiled_at_a_time() -> None:
    async def test(engines: Engines, shared: Turns) -> None:
        asked = [("a", "1"), ("b", "1"), ("a", "1"), ("c", "1"), ("b", "2"), ("d", "2")]
        tasks = [asyncio.create_task(shared.ask(question(game), address)) for game, address in asked]
        await settle()
        assert sorted(engines.games) == ["a", "a", "b"]  # equal ones are searched together
        while any(not task.done() for task in tasks):
            assert len(set(engines.games)) <= 2
            engines.answer(engines.games[0])
            await settle()
        assert [task.result() for task in tasks] == [game for game, _ in asked]
        again = [asyncio.create_task(shared.ask(question(game), "1")) for game in "abcd"]
        await settle()
        assert engines.games == list("abcd")  # what is compiled is asked at once
        for game in "abcd":
            engines.answer(game)
        await asyncio.gather(*again)

    with_turns(test)


def test_an_address_beyond_its_share_waits_until_the_engine_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)

    async def test(engines: Engines, shared: Turns) -> None:
        first = asyncio.create_task(shared.ask(question("a"), "1"))
        await settle()
        engines.answer("a")
        await first
        other = asyncio.create_task(shared.ask(question("b"), "2"))
        second = asyncio.create_task(shared.ask(question("c"), "1"))
        await asyncio.sleep(0.1)
        assert engines.games == ["b"]
        engines.answer("b")
        await other
        while "c" not in engines.games:
            await asyncio.sleep(0.001)
        engines.answer("c")
        await second

    with_turns(test, compilation_rate=1e-9, compilation_burst=1)


def test_what_is_cancelled_leaves_nothing() -> None:
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


def test_warming_up_waits_for_those_who_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)

    async def test(engines: Engines, shared: Turns) -> None:
        engines.warm.add("move")
        move = asyncio.create_task(shared.ask(question("move"), "1"))
        await settle()
        warming = [asyncio.create_task(shared.warm_up(question(game), "2")) for game in "abcd"]
        await asyncio.sleep(0.05)
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
        assert len(engines.asked) == 3  # the others are beyond the share of their address

    with_turns(test, compilation_rate=1e-9, compilation_burst=2)


def test_only_games_with_players_warm_up(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        engines = client.app.state.server.engines  # type: ignore[attr-defined]
        soon(lambda: engines.state == "ready")
        (process,) = engines._processes
        games = [new_game(client, "duo", {"size": size}, [HUMAN, ENGINE]) for size in (6, 7, 8)]
        with joined(client, games[0], None):
            pass
        assert process._last_id == 0
        with joined(client, games[1], 0):
            soon(lambda: process.warm)
        assert process._last_id == 1
