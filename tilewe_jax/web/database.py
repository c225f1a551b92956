"""The database of the server for readers: its queries, its check, and copies of it."""

import logging
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewe_jax.web.stored import DamagedError, ListedGame, StoredGame, StoreError, json_object

log = logging.getLogger("tilewe_jax.web")

APPLICATION_ID = 0x54494C45
"""Application id of the database, the letters TILE."""
SCHEMA_VERSION = 1
"""Version of the tables; a change of ``_SCHEMA`` needs the next version and a migration."""
_MAX_DAMAGED = 1_000
"""Maximum number of damaged rows that are logged."""


class Database:
    """Queries of a database, from any thread. All raise ``StoreError`` if the file cannot be read.

    Args:
      path: its file.
      reader: a connection.
    """

    def __init__(self, path: Path, reader: sqlite3.Connection) -> None:
        self.path, self._reader = path, reader
        self._damaged: set[str] = set()
        self._reading = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def game(self, game_id: str) -> StoredGame | None:
        """Return the game with this id, or ``None``. Raises ``DamagedError``."""
        with self._reading:
            self._query("BEGIN")  # both queries read the same snapshot
            try:
                rows = self._query("SELECT created, setup, state, updated FROM games WHERE id = ?", game_id)
                moves = self._query("SELECT number, action, note FROM moves WHERE game = ? ORDER BY number", game_id)
            finally:
                if self._reader.in_transaction:
                    self._reader.execute("ROLLBACK")
        if not rows:
            return None
        try:
            created, setup, state, updated = rows[0]
            if not isinstance(created, float | int) or not isinstance(updated, float | int):
                raise ValueError("a time is not a number")
            if [number for number, _, _ in moves] != list(range(len(moves))):
                raise ValueError("moves are missing")
            if not all(type(action) is int and isinstance(note, str | None) for _, action, note in moves):
                raise ValueError("a move is not an integer with a text")
            stored = tuple((action, note) for _, action, note in moves)
            return StoredGame(created, json_object(setup), json_object(state), stored, updated)
        except ValueError as error:
            self.report("game", game_id, error)
            raise DamagedError(f"game {game_id} is damaged: {error}") from None

    def ids(self, table: str) -> list[Any]:
        """Return the ids of all games or studies, newest first; the id of a damaged row may be of any type.

        Args:
          table: ``games`` or ``studies``.
        """
        with self._reading:
            return [row[0] for row in self._query(f"SELECT id FROM {table} ORDER BY created DESC")]

    def num_orphans(self) -> int:
        """Return the number of moves without a game."""
        with self._reading:
            return int(self._query("SELECT count(*) FROM moves WHERE game NOT IN (SELECT id FROM games)")[0][0])

    def newest(self, count: int) -> list[ListedGame]:
        """Return the newest public games. Damaged games are omitted."""
        return self._listed("WHERE is_public ORDER BY created DESC LIMIT ?", (10 * count,), count)

    def named(self, ids: Sequence[str]) -> list[ListedGame]:
        """Return the games with these ids, newest first. Unknown ids and damaged games are omitted."""
        return self._listed(f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created DESC", tuple(ids), len(ids))

    def ended(self, since: float, count: int) -> list[tuple[str, float]]:
        """Return ids and times of public games that have ended, see ``stored.Storage``."""
        where = "updated >= ? AND is_public AND is_over AND typeof(id) = 'text'"
        with self._reading:
            return self._query(f"SELECT id, updated FROM games WHERE {where} ORDER BY updated LIMIT ?", since, count)

    def _listed(self, where: str, values: tuple[Any, ...], count: int) -> list[ListedGame]:
        with self._reading:
            # This query reads only an index, so that a damaged row cannot fail it.
            ids = self._query(f"SELECT id FROM games {where}", *values)
        games: list[ListedGame] = []
        for (game_id,) in ids:
            if len(games) == count:
                break
            try:
                if not isinstance(game_id, str):
                    raise ValueError("its id is not text")
                with self._reading:
                    rows = self._query("SELECT setup, state FROM games WHERE id = ?", game_id)
                    moves = self._query("SELECT count(*) FROM moves WHERE game = ?", game_id)
                if rows:  # otherwise it was deleted meanwhile
                    games.append((game_id, json_object(rows[0][0]), json_object(rows[0][1]), moves[0][0]))
            except (StoreError, ValueError) as error:
                self.report("game", game_id, error)
        return games

    def count_games(self) -> int:
        """Return the number of games."""
        return self._count("games")

    def count_studies(self) -> int:
        """Return the number of studies."""
        return self._count("studies")

    def _count(self, table: str) -> int:
        with self._reading:
            return int(self._query(f"SELECT count(*) FROM {table}")[0][0])

    def num_bytes(self) -> int:
        """Return the size in bytes of the used part of the database, without its log."""
        with self._reading:
            pages, free, size = (self._query(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size"))
        return int((pages - free) * size)

    def study(self, study_id: str) -> str | None:
        """Return the content of the study with this id, or ``None``. Raises ``DamagedError``."""
        with self._reading:
            rows = self._query("SELECT content FROM studies WHERE id = ?", study_id)
        if not rows:
            return None
        if not isinstance(rows[0][0], str):
            self.report("study", study_id, "its content is not text")
            raise DamagedError(f"study {study_id} is damaged: its content is not text")
        return rows[0][0]

    def report(self, kind: str, row_id: Any, error: object) -> None:
        """Log a damaged row once."""
        name = f"{kind} {row_id if isinstance(row_id, str) else repr(row_id)[:80]}"
        if name not in self._damaged and len(self._damaged) < _MAX_DAMAGED:
            self._damaged.add(name)
            log.error("%s in %s is damaged and stays in the file: %s", name, self.path, error)

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Texts that are not UTF-8 are bytes."""
        try:
            return self._reader.execute(sql, values).fetchall()
        except UnicodeEncodeError:  # half of a surrogate pair, which no id contains
            return []
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from None


def open_database(path: Path) -> Database:
    """Open a database for queries alone, also while a server uses it. Raises ``StoreError``."""
    file = _opened(path)
    try:
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            file.close()
            hint = f"start the server with it once, which changes them to version {SCHEMA_VERSION}"
            raise StoreError(f"{path} has tables of version {version}; {hint}")
        return Database(path, file)
    except sqlite3.Error as error:
        file.close()
        raise StoreError(f"{path} cannot be read: {error}") from None


def back_up(path: Path, backup: Path) -> None:
    """Copy a database to a new file, also while a server uses it. Raises ``StoreError``."""
    file = _opened(path)
    try:
        copy(file, backup)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path} cannot be copied to {backup}: {error}") from None
    finally:
        file.close()


def integrity(path: Path) -> list[str]:
    """Check the file of a database; return its faults. Raises ``StoreError`` if it cannot be opened."""
    file = _opened(path)
    try:
        rows = [" ".join(str(row[0]).split()) for row in file.execute("PRAGMA integrity_check(20)")]
    except sqlite3.Error as error:
        rows = [str(error)]
    finally:
        file.close()
    return [] if rows == ["ok"] else rows


def copy(source: sqlite3.Connection, path: Path) -> None:
    """Copy a database to a new file and check the copy. The file is complete or absent.

    Raises ``OSError`` and ``sqlite3.Error``.
    """
    with path.open("x"):  # not over a file that exists
        path.chmod(0o600)  # only the owner may read the games
    target = sqlite3.connect(path, isolation_level=None)
    try:
        source.backup(target)
        verdict = target.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"it is damaged: {' '.join(str(verdict).split())[:200]}")
        target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except BaseException:
        target.close()
        path.unlink()
        raise
    target.close()


def free_name(path: Path) -> Path:
    """Return a path, with a number if it exists already."""
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database of this program for reading. Raises ``StoreError``."""
    if not path.is_file():
        raise StoreError(f"{path} does not exist")
    try:
        file = connect(f"{path.absolute().as_uri()}?mode=ro")
        try:
            application, version = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
            check_version(application, version)
        except BaseException:
            file.close()
            raise
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from None
    return file


def check_version(application: int, version: int) -> None:
    """Check that a database is of this program and of a version that it knows. Raises ``sqlite3.DatabaseError``."""
    if application != APPLICATION_ID:
        raise sqlite3.DatabaseError("it is a database of another program")
    if version > SCHEMA_VERSION:
        raise sqlite3.DatabaseError(
            f"its tables have version {version}, and this program knows versions up to {SCHEMA_VERSION}; use a newer program"
        )


def connect(address: str) -> sqlite3.Connection:
    """Connect to a path or a ``file:`` URI."""
    file = sqlite3.connect(address, isolation_level=None, check_same_thread=False, uri=address.startswith("file:"))
    file.text_factory = _text
    return file


def _text(content: bytes) -> str | bytes:
    """Decode a text; return the bytes if they are not UTF-8, so that one damaged row does not fail a query of many."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
