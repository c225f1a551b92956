"""Engines: they move, advise and analyse; and what happens when they fail."""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.support import AGENTS, engine, joined, legal, new_game, serving
from tilewe_jax.web.catalog import Agent
from tilewe_jax.web.engines import EnginePool, Question
from tilewe_jax.web.live import Live

ENGINE = {"kind": "engine", "agent": "level:1"}
HUMAN = {"kind": "human"}


def soon(condition: Callable[[], Any], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize("game", ["duo", "santorini", "triominos"])
def test_a_game_against_an_engine(tmp_path: Path, game: str) -> None:
    chance = random.Random(game)
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, game, {"size": 6} if game == "duo" else {}, [HUMAN, ENGINE])
        assert list(created["tokens"]) == [0]
        with joined(client, created, 0, None) as (player, spectator):
            while not player.state["over"]:
                state = player.wait(lambda state: state["legal"] or state["over"])
                if not state["over"]:
                    player.move_at_random(chance)
            assert player.state["seats"][1] == {"kind": "engine", "name": "beginner", "agent": "level:1", "connected": False}
            told = spectator.wait(lambda state: state["over"])
            assert told["move"] == player.state["move"]
            moves = client.get(f"/api/games/{created['id']}").json()["moves"]
            replay = client.get(f"/api/games/{created['id']}/replay").json()
            assert [thought and thought["agent"] for thought in replay["thoughts"]] == [
                "level:1" if move["player"] else None for move in moves
            ]
            assert set(replay["analyses"]) == {None}, "the thoughts of a player are no analyses"


@pytest.mark.parametrize("game", ["duo", "santorini", "triominos"])
def test_one_agent_analyses_all_positions(tmp_path: Path, game: str) -> None:
    """Whoever has moved: the values of a game against an engine are those of the same moves without any player."""
    chance = random.Random(game)
    offered = {**AGENTS, game: [Agent("level:1", "beginner", 0), Agent("puct:num_simulations=64", "own", max_seconds=1.0)]}
    with serving(tmp_path / "games", engine(), agents=offered) as client:
        created = new_game(client, game, {"size": 5} if game == "duo" else {}, [HUMAN, ENGINE])
        with joined(client, created, 0) as (player,):
            while not player.state["over"]:
                if player.wait(lambda state: state["legal"] or state["over"])["legal"]:
                    player.move_at_random(chance)
            numbers = range(player.state["move"] + 1)
            analyses = [player.ask({"type": "analyze", "move": number}) for number in numbers]
            returns = player.state["over"]["returns"]
        record = client.get(f"/api/games/{created['id']}/record").content
        study = client.post("/api/studies", content=record).json()["id"]
        for number, analysis in zip(numbers, analyses, strict=True):
            assert analysis["agent"] == "puct:num_simulations=64"
            studied = client.post(f"/api/studies/{study}/analysis", json={"move": number}).json()
            assert studied == {name: value for name, value in analysis.items() if name not in ("type", "move", "ref")}
        assert analyses[-1]["value"] == returns
        assert {analysis["simulations"] for analysis in analyses[:-1]} == {50}
        room = client.app.state.server.rooms  # type: ignore[attr-defined]
        session = room._rooms[created["id"]].session
        assert room.question(session, 0, "puct:num_simulations=64", is_analysis=True).max_seconds is None
        assert room.question(session, 0, "puct:num_simulations=64").max_seconds == 1


def test_a_game_that_was_given_up_is_analysed_to_its_last_position(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "duo", {"size": 8})
        with joined(client, created, 0, 1) as (first, second):
            first.move_at_random(random.Random(0))
            second.ask({"type": "resign"})
            first.wait(lambda state: state["over"])
            assert [len(first.ask({"type": "analyze", "move": number})["value"]) for number in (0, 1)] == [2, 2]


def test_an_engine_is_warm_once_a_search_has_run() -> None:
    """A forced move, or no simulations, show no search; a block of another size is another program."""
    pool = EnginePool(["none"])
    question = Question("duo", {}, None, [], "level:1")
    process = pool._players[0]

    def answered(candidates: int, simulations: int = 16, batch: int = 1) -> bool:
        process._note_search(question, {"batch": batch, "num_simulations": simulations, "candidates": [{}] * candidates})
        return pool.is_warm(question)

    assert not answered(1)
    assert not answered(5, simulations=0)
    assert not answered(5, batch=2)
    assert answered(5)
    assert not pool.is_warm(replace(question, agent="level:2"))


def test_several_processes(tmp_path: Path) -> None:
    """Analyses have a process of their own, which is started with the first."""
    with serving(tmp_path / "games", engine(processes=3)) as client:
        engines = client.app.state.server.engines  # type: ignore[attr-defined]
        soon(lambda: [process.state for process in engines._processes] == ["ready", "ready", "starting"])
        created = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        with joined(client, created, 0) as (player,):
            player.move_at_random(random.Random(0))
            player.wait_for_move(2)
            assert not engines._analyst.warm
            assert player.ask({"type": "analyze"})["type"] == "analysis"
            assert len(engines._analyst.warm) == 1


def test_engines_play_while_somebody_watches(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "santorini", {}, [ENGINE, ENGINE])
        time.sleep(0.3)
        assert client.get(f"/api/games/{created['id']}").json()["move"] == 0
        with joined(client, created, None) as (spectator,):
            spectator.wait(lambda state: state["over"])


def test_hints_and_analyses(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "duo", {"size": 8})
        with joined(client, created, 0, 1) as (first, second):
            hint = first.ask({"type": "hint"})
            assert hint["type"] == "hint"
            assert hint["id"] in legal(first.state)
            assert second.ask({"type": "hint"})["error"] == "it is not your turn"
            analysis = second.ask({"type": "analyze", "simulations": 16, "agent": "level:2"})
            assert [candidate["visits"] for candidate in analysis["candidates"]] == [10, 9, 8, 7, 6]
            assert len(analysis["value"]) == 2
            assert "one of" in first.ask({"type": "analyze", "agent": "puct:num_simulations=1000000000"})["error"]
            assert first.ask({"type": "analyze", "simulations": 10**9})["field"] == "simulations"
        refused = client.post("/api/games", json={"game": "duo", "seats": [HUMAN, {"kind": "engine", "agent": "level:9"}]})
        assert refused.json() == {
            "error": "agent must be one of those that the catalog offers for duo: level:1, level:2",
            "field": "seats",
        }
        record = client.get(f"/api/games/{created['id']}/record").text
        study = client.post("/api/studies", content=record.encode()).json()
        body = {"number": 1, "move": 0}
        assert client.post(f"/api/studies/{study['id']}/analysis", json=body).json()["candidates"]
        assert client.get(f"/api/studies/{study['id']}").json()["games"] == 1


def test_an_engine_that_dies_of_a_position(tmp_path: Path) -> None:
    """It is tried twice; then a random move is made, and named as such. Other games wait, and go on."""
    with serving(tmp_path / "games", engine("dies")) as client:
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            player.wait(lambda state: state["move"] == 1 and state["legal"])
            player.move_at_random(random.Random(0))
            player.wait_for_move(3)
            assert player.state["moves"][-1]["note"] == "the engine has failed, so a random move was made"
        again = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        with joined(client, again, 0) as (player,):
            player.move_at_random(random.Random(0))
            player.wait_for_move(2)
            assert "failed twice" in player.ask({"type": "analyze"})["error"]


@pytest.mark.parametrize("fault", ["cheats", "silent"])
def test_an_engine_that_does_not_play(tmp_path: Path, fault: str) -> None:
    with serving(tmp_path / "games", engine(fault, hang_seconds=0.4)) as client:
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            player.wait(lambda state: state["move"] == 1 and state["legal"])
            player.move_at_random(random.Random(0))
            player.wait_for_move(3)
            assert "random move" in player.state["moves"][-1]["note"]


def test_an_engine_that_babbles(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine("babbles")) as client:
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            player.wait(lambda state: state["move"] == 1 and state["legal"])
            player.move_at_random(random.Random(0))
            assert "note" not in player.wait_for_move(3)["moves"][-1]


def test_an_engine_that_does_not_start(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine("broken")) as client:
        soon(lambda: client.get("/api/catalog").json()["engine"]["state"] == "failed")
        assert client.get("/api/catalog").json()["engine"]["reason"] == "this engine does not start"
        created = new_game(client, "santorini", {}, [ENGINE, HUMAN])
        with joined(client, created, 1) as (player,):
            assert "does not start" in player.ask({"type": "analyze"})["error"]
            assert player.state["engine"]["state"] == "failed"
            assert player.ask({"type": "resign"})["type"] == "ok"


def test_what_nobody_waits_for_is_taken_back(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine("slow")) as client:
        engines = client.app.state.server.engines  # type: ignore[attr-defined]
        soon(lambda: engines.state == "ready")
        created = new_game(client, "santorini", {}, [HUMAN, ENGINE])
        soon(lambda: engines.num_waiting == 0)
        with joined(client, created, 0) as (player,):
            player.move_at_random(random.Random(0))
            assert player.state["thinking"]
            soon(lambda: engines.num_waiting == 1)
            assert player.ask({"type": "undo"})["type"] == "ok"
            soon(lambda: engines.num_waiting == 0, 0.3)
            assert player.wait(lambda state: state["undos"])["move"] == 0
            for number in range(3):
                player.send({"type": "analyze", "ref": number})
            soon(lambda: engines.num_waiting == 3)
        soon(lambda: engines.num_waiting == 0, 0.4)


def test_live_games(tmp_path: Path) -> None:
    """Lines of a process go to all who watch; it is started again where it has ended, and ends with the server."""
    lines = """print('{"type": "grid", "step": %d}' % n, flush=True)"""
    code = f"import time, itertools\nfor n in itertools.count():\n time.sleep(0.02); {lines}"
    url = "ws://localhost/api/live"
    with serving(tmp_path / "games", live=Live([sys.executable, "-c", code])) as client:
        assert client.get("/api/catalog").json()["live"]
        with client.websocket_connect(url) as one, client.websocket_connect(url) as two:
            steps = [one.receive_json()["step"] for _ in range(5)]
            assert steps == sorted(set(steps))
            assert two.receive_json()["type"] == "grid"
            one.send_text("anything")
            assert one.receive_json()["step"] > steps[-1]
    with serving(tmp_path / "games") as client, client.websocket_connect("ws://localhost/api/live") as socket:
        assert "no games of self-play" in socket.receive_json()["error"]
