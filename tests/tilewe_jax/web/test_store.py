"""The database: damaged rows, changes that fail, and the lock of the file."""

import asyncio
import contextlib
import json
import logging
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.tilewe_jax.web.support import Player, new_game, serving
from tilewe_jax.web.store import Store
from tilewe_jax.web.stored import StoreError

JUNK: list[Any] = ["", "[]", "{}", "NaN", '{"over": 1e999}', "[" * 3000, b"\xff\xfe", 7]
COLUMNS = ["games.setup", "games.state", "games.created", "games.id", "moves.action", "moves.number", "moves.note"]


def paths(game: str) -> list[str]:
    return [f"/api/games/{game}{rest}" for rest in ("", "/record", "/replay", "/picture", "/animation?format=svg")]


def check_lobby(client: TestClient, good: str, bad: str) -> None:
    """The lobby lists the good game; requests for the bad one get statuses below 500."""
    response = client.get("/api/games")
    assert response.status_code == 200
    assert good in [game["id"] for game in response.json()]
    assert all(client.get(path).status_code in (200, 409) for path in paths(good))
    for path in paths(bad):
        assert client.get(path).status_code < 500, path
    for answer in (
        client.post(f"/api/games/{bad}/seats/0", json={"name": "Bo"}),
        client.post(f"/api/games/{bad}/rematch", json={"token": "x"}),
    ):
        assert 400 <= answer.status_code < 500
    with (
        contextlib.suppress(WebSocketDisconnect),
        client.websocket_connect(f"ws://localhost/api/games/{bad}/socket") as socket,
    ):
        socket.send_json({"type": "join"})
        socket.receive_json()
    assert client.get("/api/catalog").status_code == 200


def test_damaged_rows_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "games"
    with serving(path) as client:
        good = new_game(client, "duo", {"size": 8})["id"]
        created = new_game(client, "duo", {"size": 8}, clock={"seconds": 100})
        bad = created["id"]
        with client.websocket_connect(f"ws://localhost/api/games/{bad}/socket") as socket:
            player = Player(socket, created["tokens"][0])
            player.move(player.state["legal"][0])
        server = client.app.state.server  # type: ignore[attr-defined]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
            for column in COLUMNS:
                table, name = column.split(".")
                key = "game" if table == "moves" else "id"
                (before,) = file.execute(f"SELECT {name} FROM {table} WHERE {key} = ?", (bad,)).fetchone()
                for junk in JUNK:
                    file.execute(f"UPDATE {table} SET {name} = ? WHERE {key} = ?", (junk, bad))
                    with contextlib.suppress(KeyError):
                        server.rooms._rooms.pop(bad).close()
                    check_lobby(client, good, bad)
                    at = junk if column == "games.id" else bad
                    file.execute(f"UPDATE {table} SET {name} = ? WHERE {key} = ?", (before, at))
            rows = file.execute("SELECT count(*) FROM games").fetchone()
        assert rows == (2,)
        assert client.get(f"/api/games/{bad}").status_code == 200
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert 0 < len([line for line in errors if bad in line]) <= 1


@pytest.mark.parametrize("field", ["seats", "remaining", "undo", "undos", "undone", "over", "rematch"])
def test_damaged_values_of_a_state(tmp_path: Path, field: str) -> None:
    path = tmp_path / "games"
    with serving(path) as client:
        good, bad = (new_game(client, "duo", {"size": 8}, clock={"seconds": 100})["id"] for _ in range(2))
        server = client.app.state.server  # type: ignore[attr-defined]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
            (text,) = file.execute("SELECT state FROM games WHERE id = ?", (bad,)).fetchone()
            for value in (True, -1, 10**30, "x", [None], {"a": 1}, [1, "2"]):
                state = json.dumps({**json.loads(text), field: value})
                file.execute("UPDATE games SET state = ? WHERE id = ?", (state, bad))
                server.rooms._rooms.pop(bad, None)
                check_lobby(client, good, bad)


def test_a_damaged_study(tmp_path: Path) -> None:
    header = {"format": "tilewe-jax-games/1", "game": "duo", "options": {}, "version": 1, "seed": None}
    with serving(tmp_path / "games") as client:
        text = json.dumps(header) + '\n{"deal": null, "actions": [], "scores": [0, 0], "returns": [0, 0]}\n'
        study = client.post("/api/studies", content=text).json()["id"]
        with contextlib.closing(sqlite3.connect(tmp_path / "games", isolation_level=None)) as file:
            (content,) = file.execute("SELECT content FROM studies").fetchone()
            game = json.loads(content)[0]
            changed = [json.dumps([{**game, name: value}]) for name in game for value in (None, 3, {"a": 1}, ["x"], "[")]
            for junk in (*JUNK, "[1]", "[{}]", *changed):
                file.execute("UPDATE studies SET content = ?", (junk,))
                assert client.get(f"/api/studies/{study}").status_code < 500, junk
                body = {"number": 1, "move": 0}
                assert client.post(f"/api/studies/{study}/analysis", json=body).status_code in (400, 409, 503), junk


def other_process(path: Path | str, folder: Path) -> str:
    """Open a store in another process; return its output."""
    code = (
        "import sys; from tilewe_jax.web.store import Store; from tilewe_jax.web.stored import StoreError\n"
        "try: Store(sys.argv[1]).close(); print('open')\nexcept StoreError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True, env=environment).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_the_file_is_locked_on_all_its_paths(tmp_path: Path) -> None:
    path, folder = tmp_path / "games", tmp_path / "folder"
    folder.mkdir()
    store = Store(path)
    (folder / "symbolic").symlink_to(path)
    (folder / "hard").hardlink_to(path)
    (tmp_path / "linked").symlink_to(tmp_path, target_is_directory=True)
    names: list[Path | str] = [path, folder / "symbolic", folder / "hard", tmp_path / "linked" / "games", "../games"]
    for name in names[2:]:
        assert "another server" in other_process(name, folder), name
    for name in names[:4]:
        with pytest.raises(StoreError, match="another server"):
            Store(name)
    store.close()
    assert other_process("../games", folder).endswith("open\n")
    Store(path).close()


def test_files_of_other_kinds(tmp_path: Path) -> None:
    good = tmp_path / "games"
    store = Store(good)
    with pytest.raises(StoreError, match="another server"):
        Store(good)
    store.close()
    noise = tmp_path / "noise"
    noise.write_bytes(random.Random(0).randbytes(10_000))
    with pytest.raises(StoreError, match=r"database\)"):
        Store(noise)
    damaged = bytearray(good.read_bytes())
    damaged[4096:] = bytes(len(damaged) - 4096)
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "damaged")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "missing" / "games")
    Store(good).close()


def test_another_program_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "other"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    assert path.read_bytes() == before


def test_failed_changes(tmp_path: Path) -> None:
    """The caller gets the error, and later changes are written."""
    store = Store(tmp_path / "games")

    async def change() -> None:
        for name in ("old", "played"):
            await store.add(name, "{}", "{}", True)
        for game, action in (("played", 1 << 70), ("missing", 0)):
            with pytest.raises(StoreError):
                await asyncio.wait_for(store.change(game, "{}", False, 0, [(action, None)]), 10)
        await store.change("played", "{}", False, 0, [(7, None)])
        await store.delete_older(0, keep={"played"})

    asyncio.run(change())
    assert store.game("old") is None
    kept = store.game("played")
    assert kept
    assert kept.moves == ((7, None),)
    store.close()


def test_a_game_of_unknown_rules(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = [new_game(client, "duo")["id"] for _ in range(2)]
    with contextlib.closing(sqlite3.connect(tmp_path / "games")) as file:
        file.execute("UPDATE games SET setup = replace(setup, 'duo', 'chess') WHERE id = ?", (created[0],))
        file.commit()
    with serving(tmp_path / "games") as client:
        assert "damaged" in client.get(f"/api/games/{created[0]}").json()["error"]
        assert client.get(f"/api/games/{created[1]}").status_code == 200
