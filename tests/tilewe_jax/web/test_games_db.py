"""The database for operators: list, export, delete, backup, check, and migrations."""

import contextlib
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.cli.test_cli import run
from tests.tilewe_jax.web.support import joined, new_game, play_out, serving
from tilewe_jax.web import database as databases
from tilewe_jax.web import store as stores
from tilewe_jax.web.store import Store
from tilewe_jax.web.stored import StoreError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, str]]:
    """A database with a finished, a resigned and an unfinished game and a study; ids of the games by their state."""
    path = tmp_path_factory.mktemp("db") / "games"
    chance = random.Random(0)
    ids = {}
    with serving(path) as client:
        for state, game, options in (
            ("finished", "duo", {"size": 5}),
            ("resigned", "duo", {"size": 5}),
            ("open", "santorini", {}),
        ):
            created = new_game(client, game, options)
            ids[state] = created["id"]
            with joined(client, created, 0, 1) as players:
                play_out(players, chance, 10_000 if state == "finished" else 2)
                if state == "resigned":
                    assert players[0].ask({"type": "resign"})["type"] == "ok"
        record = client.get(f"/api/games/{ids['finished']}/record").content
        ids["study"] = client.post("/api/studies", content=record).json()["id"]
    return path.read_bytes(), ids


@pytest.fixture
def database(made: tuple[bytes, dict[str, str]], tmp_path: Path) -> Path:
    path = tmp_path / "games"
    path.write_bytes(made[0])
    return path


@pytest.fixture
def ids(made: tuple[bytes, dict[str, str]]) -> dict[str, str]:
    return made[1]


def change(path: Path, sql: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert file.execute(sql, values).rowcount != 0


def games_db(capsys: pytest.CaptureFixture[str], action: str, path: Path, *more: Any) -> tuple[int, str, str]:
    code, out, err = run(capsys, "games-db", action, "--data", str(path), *map(str, more))
    progress = ("reading games: ", "replaying: ")
    return code, out, "".join(line for line in err.splitlines(keepends=True) if not line.startswith(progress))


def test_list(database: Path, ids: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = games_db(capsys, "list", database)
    assert (code, err) == (0, "")
    assert all(ids[state] in out for state in ("finished", "resigned", "open"))
    assert "3 games and 1 study" in out
    change(database, "UPDATE games SET setup = '[' WHERE id = ?", ids["open"])
    change(database, "UPDATE games SET state = '{}' WHERE id = ?", ids["resigned"])
    code, out, err = games_db(capsys, "list", database, "--json")
    rows = {row["id"]: row for row in json.loads(out)["games"]}
    finished = rows[ids["finished"]]
    assert (finished["over"], finished["game"], finished["options"]["size"]) == ("finished", "duo", 5)
    assert finished["moves"] > 2
    assert finished["created"] <= finished["changed"]
    assert [rows[ids[state]]["fault"] is None for state in ("finished", "resigned", "open")] == [True, False, False]
    assert "damaged" in games_db(capsys, "list", database)[1]


def test_export(database: Path, ids: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    code, out, err = games_db(capsys, "export", database, "--out", folder)
    assert (code, err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["duo-size=5.jsonl", "santorini.jsonl"]
    assert "duo-size=5.jsonl: 2 games" in out
    assert len((folder / "duo-size=5.jsonl").read_text().splitlines()) == 3
    code, out, err = games_db(capsys, "export", database, "--out", tmp_path / "finished", "--finished")
    assert (code, [path.name for path in (tmp_path / "finished").iterdir()]) == (0, ["duo-size=5.jsonl"])
    code, out, err = run(capsys, "replay", str(tmp_path / "finished" / "duo-size=5.jsonl"))
    assert (code, "1 of 1 game" in out) == (0, True)
    one = tmp_path / "one"
    assert games_db(capsys, "export", database, "--out", one, "--ids", ids["open"])[0] == 0
    assert [path.name for path in one.iterdir()] == ["santorini.jsonl"]
    code, out, err = games_db(capsys, "export", database, "--ids", "unknown")
    assert (code, "no game unknown" in err) == (2, True)
    change(database, "UPDATE moves SET action = 1 WHERE game = ? AND number = 0", ids["finished"])
    code, out, err = games_db(capsys, "export", database, "--out", folder)
    assert (code, err.count("\n"), ids["finished"] in err) == (1, 1, True)
    assert "duo-size=5.jsonl: 1 game" in out


def test_delete(database: Path, ids: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = games_db(capsys, "delete", database, "--ids", ids["open"], "unknown")
    assert (code, "unknown" in err) == (2, True)
    code, _, err = games_db(capsys, "delete", database)
    assert (code, "--older" in err) == (2, True)
    store = Store(database)
    code, _, err = games_db(capsys, "delete", database, "--ids", ids["open"])
    assert (code, "is used by a server; end it" in err) == (1, True)
    store.close()
    code, out, err = games_db(capsys, "delete", database, "--ids", ids["open"], ids["study"])
    assert (code, err) == (0, "")
    assert out.startswith("1 game and 1 study deleted; 2 games and 0 studies are left")
    change(database, "UPDATE games SET updated = updated - 10 * 86400 WHERE id = ?", ids["resigned"])
    code, out, _ = games_db(capsys, "delete", database, "--older", "9")
    assert out.startswith("1 game and 0 studies deleted; 1 game")
    with contextlib.closing(sqlite3.connect(database)) as file:
        assert file.execute("SELECT DISTINCT game FROM moves").fetchall() == [(ids["finished"],)]
        assert file.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert games_db(capsys, "check", database)[0] == 0


def test_backup_while_the_server_runs(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup = tmp_path / "backup"
    with serving(database) as client:
        created = new_game(client, "santorini")
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(0), 2)
            code, out, err = games_db(capsys, "backup", database, "--out", backup)
            assert (code, err) == (0, "")
            assert out.startswith(f"{backup}: 4 games and 1 study")
            play_out(players, random.Random(0), 2)
            assert games_db(capsys, "list", database)[0] == games_db(capsys, "check", database)[0] == 0
    assert not list(tmp_path.glob("backup-*")), "a backup is one file"
    assert backup.stat().st_mode & 0o077 == 0
    code, out, _ = games_db(capsys, "check", backup)
    assert (code, out) == (0, "4 games and 1 study checked, without faults\n")
    with serving(backup) as client:
        assert client.get(f"/api/games/{created['id']}").json()["move"] == 2
    assert games_db(capsys, "backup", database, "--out", backup)[0] == 2
    assert games_db(capsys, "backup", database)[0] == 0
    assert len(list(tmp_path.glob("games.2*"))) == 1
    assert games_db(capsys, "backup", database, "--out", tmp_path / "no" / "x")[0] == 1


def test_check_names_every_fault(database: Path, ids: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert games_db(capsys, "check", database)[:2] == (0, "3 games and 1 study checked, without faults\n")
    change(database, "DELETE FROM moves WHERE game = ? AND number = 0", ids["open"])
    change(database, "UPDATE games SET state = replace(state, '\"scores\":[', '\"scores\":[9') WHERE id = ?", ids["finished"])
    change(database, "UPDATE games SET state = replace(state, 'resignation', 'finished') WHERE id = ?", ids["resigned"])
    change(database, "UPDATE studies SET content = replace(content, '\"actions\":[', '\"actions\":[0,')")
    change(database, "INSERT INTO moves VALUES ('nowhere', 0, 1, NULL)")
    code, out, err = games_db(capsys, "check", database)
    assert code == 1
    assert "with 5 faults" in out, err
    lines = err.splitlines()
    assert len(lines) == 5
    for part in (ids["finished"], ids["resigned"], ids["open"], ids["study"], "without a game: 1"):
        assert len([line for line in lines if part in line]) == 1, part
    code, out, _ = games_db(capsys, "check", database, "--json")
    assert (code, len(json.loads(out)["faults"])) == (1, 5)


def test_a_damaged_file(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(database.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    database.write_bytes(content)
    code, out, err = games_db(capsys, "check", database)
    assert (code, "the file is damaged" in err, "fault" in out) == (1, True, True)
    for action, more in (("list", ()), ("export", ()), ("backup", ("--out", tmp_path / "b")), ("delete", ("--ids", "x"))):
        code, _, err = games_db(capsys, action, database, *more)
        assert (code, err.count("\n")) == (1, 1), (action, err)
    assert not (tmp_path / "b").exists()
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise" * 1000)
    other = tmp_path / "other"
    with contextlib.closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE theirs (x)")
    for path in (noise, other, tmp_path / "missing"):
        for action, more in (("list", ()), ("check", ()), ("export", ()), ("backup", ()), ("delete", ("--ids", "x"))):
            code, _, err = games_db(capsys, action, path, *more)
            assert (code, err.count("\n"), path.name in err) == (1, 1, True), (action, err)
    assert not (tmp_path / "missing").exists()


def test_actions(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "games-db")
    assert (code, all(f"games-db {action} " in out for action in ("list", "export", "delete", "backup", "check"))) == (0, True)
    code, _, err = run(capsys, "games-db", "lst")
    assert (code, "did you mean list?" in err) == (2, True)


# ---- Migrations


def versions(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


def test_older_tables_are_migrated_after_a_backup(
    database: Path, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = {1: "ALTER TABLE games ADD COLUMN stars INTEGER NOT NULL DEFAULT 0;", 2: "UPDATE games SET stars = 3;"}
    monkeypatch.setattr(stores, "MIGRATIONS", steps)
    for module in (databases, stores):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 3)
    code, _, err = games_db(capsys, "list", database)
    assert (code, "version 1" in err) == (1, True)
    store = Store(database)
    assert store.game(ids["finished"])
    store.close()
    assert versions(database) == 3
    backup = database.with_name("games.version-1")
    assert versions(backup) == 1
    with contextlib.closing(sqlite3.connect(database)) as file:
        assert file.execute("SELECT count(*) FROM games WHERE stars = 3").fetchone() == (3,)
    Store(database).close()
    assert len(list(database.parent.glob("games.version-*"))) == 1
    monkeypatch.undo()
    with pytest.raises(StoreError, match="version 3, and this program knows versions up to 1"):
        Store(database)
    code, _, err = games_db(capsys, "list", database)
    assert (code, "newer program" in err) == (1, True)
    database.write_bytes(backup.read_bytes())
    assert games_db(capsys, "check", database)[0] == 0


@pytest.mark.parametrize("fault", ["UPDATE games SET nothing = 1;", "DROP TABLE studies; SELECT * FROM studies;"])
def test_a_failed_migration_changes_nothing(database: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MIGRATIONS", {1: "ALTER TABLE games ADD COLUMN stars INTEGER;", 2: fault})
    for module in (databases, stores):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 3)
    for name in ("games.version-1", "games.version-2"):
        with pytest.raises(StoreError, match=f"{name} is a backup"):
            Store(database)
    assert versions(database) == 2  # the first step was complete
    monkeypatch.setattr(stores, "MIGRATIONS", {1: "", 2: "DROP TABLE studies;"})
    Store(database).close()
    assert versions(database) == 3
    assert versions(database.with_name("games.version-2-2")) == 2
