"""The games of the server in one SQLite file. A change is committed before whoever asked for it hears of it.

Changes are written by one thread, which commits all that wait at once: the event loop never waits for the disk, and many games
share the price of a commit.
"""

import asyncio
import contextlib
import json
import logging
import os
import queue
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tilewe_jax.utils.files import parse_json

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger("tilewe_jax.web")

Result = TypeVar("Result")

APPLICATION_ID = 0x54494C45
"""Marks the file as one of this server; the letters TILE."""
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE games (
  id TEXT PRIMARY KEY, created REAL NOT NULL, updated REAL NOT NULL,
  setup TEXT NOT NULL, -- what never changes: the game, its options and deal, the clock
  state TEXT NOT NULL, -- what changes besides the moves: seats, remaining seconds, undo request, end
  is_public INTEGER NOT NULL, is_over INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX games_updated ON games (updated);
CREATE INDEX games_public ON games (is_public, created);
CREATE TABLE moves (
  game TEXT NOT NULL, number INTEGER NOT NULL, action INTEGER NOT NULL,
  note TEXT, -- what is said of the move, such as the engine's analysis
  PRIMARY KEY (game, number)
) WITHOUT ROWID;
CREATE TABLE studies (id TEXT PRIMARY KEY, created REAL NOT NULL, content TEXT NOT NULL) WITHOUT ROWID;
"""
_MAX_BATCH = 256
"""Maximum number of changes in a commit."""
_QUICK_CHECK_LIMIT = 1 << 26
"""A file up to this size, in bytes, is checked for damage when it is opened; that takes a fraction of a second."""
_LOCKED_BYTE = 0x40000000 + 2048
"""The byte of the file that a server locks: SQLite keeps no data in the page at 0x40000000, and locks its first 512 bytes."""
_locked_here: set[tuple[int, int]] = set()
"""The files that this process has locked, see ``_file_of``."""
_MAX_DAMAGED = 1_000
"""Damaged rows whose ids are remembered, so that each is logged once."""


class StoreError(Exception):
    """The file cannot be used; the message says why in one line."""


class DamagedError(StoreError):
    """A row of the file is damaged. It stays in the file, and other rows can be used."""


@dataclass(frozen=True)
class StoredMove:
    """A move of a game."""

    action: int
    note: str | None = None
    """JSON text."""


@dataclass(frozen=True)
class StoredGame:
    """A game as it is kept."""

    id: str
    created: float
    """Seconds since 1970, as all times in the file."""
    setup: dict[str, Any]
    state: dict[str, Any]
    moves: tuple[StoredMove, ...]


@dataclass(frozen=True)
class Change:
    """What a request changes of a game: its state, and the moves from ``first_move`` on."""

    game: str
    state: str
    """JSON text."""
    is_over: bool
    first_move: int
    """Moves from this number on, from 0, are replaced by ``moves``."""
    moves: tuple[StoredMove, ...] = ()


@dataclass(frozen=True)
class NewGame:
    """A game that is added."""

    id: str
    setup: str
    state: str
    is_public: bool


_Task = tuple[Callable[[sqlite3.Connection], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


ListedGame = tuple[str, dict[str, Any], dict[str, Any], int]
"""Id, setup, state and number of moves of a game."""


class Store:
    """The file of the games.

    Args:
      path: the file, which is made where there is none.
      sync: whether each commit waits for the disk. Without, a commit survives the end of this process in any way, but not that
        of the machine: after a power failure the last changes may be missing.

    Raises ``StoreError`` where the file is used by another server, is no such file, or is damaged.
    """

    def __init__(self, path: str | Path, sync: bool = False) -> None:
        self.path, self._sync = Path(path), sync
        self._damaged: set[str] = set()
        self._lock = self._locked()
        try:
            self._writer = self._open()
            # Read where they are needed, and the writer never waits for them: that is what the write-ahead log gives.
            self._reader = self._connect()
        except sqlite3.Error as error:
            self._unlock()
            raise StoreError(f"{self.path} cannot be used ({error}): move it away, or name another file with --data") from None
        self._reading = threading.Lock()
        self._tasks: queue.Queue[_Task | None] = queue.Queue()
        # A daemon: whatever ends this process before ``close``, it ends; what was acknowledged is committed.
        self._thread = threading.Thread(target=self._write_all, name="store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._tasks.put(None)
        self._thread.join()
        self._reader.close()
        self._writer.close()
        self._unlock()

    # ---- Changes

    async def add(self, game: NewGame) -> None:
        """Add a game."""
        now = time.time()
        row = game.id, now, now, game.setup, game.state, game.is_public, False
        await self._write(lambda file: file.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?)", row))

    async def change(self, change: Change) -> None:
        """Change a game. It is committed when this returns; after an error nothing has changed."""

        def write(file: sqlite3.Connection) -> None:
            updated = file.execute(
                "UPDATE games SET state = ?, is_over = ?, updated = ? WHERE id = ?",
                (change.state, change.is_over, time.time(), change.game),
            )
            if not updated.rowcount:
                raise sqlite3.DataError(f"there is no game {change.game}")
            file.execute("DELETE FROM moves WHERE game = ? AND number >= ?", (change.game, change.first_move))
            rows = [
                (change.game, number, move.action, move.note) for number, move in enumerate(change.moves, change.first_move)
            ]
            file.executemany("INSERT INTO moves VALUES (?, ?, ?, ?)", rows)

        await self._write(write)

    async def add_study(self, study_id: str, content: str) -> None:
        """Add a study."""
        await self._write(lambda file: file.execute("INSERT INTO studies VALUES (?, ?, ?)", (study_id, time.time(), content)))

    async def delete_older(self, seconds: float, *, keep: Collection[str] = ()) -> None:
        """Delete games that have not changed for so long, but for those to ``keep``, and studies as old."""
        limit = time.time() - seconds

        def write(file: sqlite3.Connection) -> None:
            rows = file.execute("SELECT id FROM games WHERE updated < ?", (limit,)).fetchall()
            old = [row for row in rows if row[0] not in keep]
            file.executemany("DELETE FROM moves WHERE game = ?", old)
            file.executemany("DELETE FROM games WHERE id = ?", old)
            file.execute("DELETE FROM studies WHERE created < ?", (limit,))

        await self._write(write)

    # ---- Questions; from any thread. All of them raise ``StoreError`` if the file cannot be read.

    def game(self, game_id: str) -> StoredGame | None:
        """The game with this id, or ``None``. Raises ``DamagedError``."""
        with self._reading:
            file = self._reader
            self._query("BEGIN")  # both questions see the same moment
            try:
                rows = self._query("SELECT created, setup, state FROM games WHERE id = ?", game_id)
                moves = self._query("SELECT number, action, note FROM moves WHERE game = ? ORDER BY number", game_id)
            finally:
                if file.in_transaction:
                    file.execute("ROLLBACK")
        if not rows:
            return None
        try:
            created, setup, state = rows[0]
            if not isinstance(created, float | int):
                raise ValueError("its time is not a number")
            if [number for number, _, _ in moves] != list(range(len(moves))):
                raise ValueError("moves are missing")
            if not all(type(action) is int and isinstance(note, str | None) for _, action, note in moves):
                raise ValueError("a move is not an integer with a text")
            stored = tuple(StoredMove(action, note) for _, action, note in moves)
            return StoredGame(game_id, created, json_object(setup), json_object(state), stored)
        except ValueError as error:
            self.report("game", game_id, error)
            raise DamagedError(f"game {game_id} is damaged: {error}") from None

    def newest(self, count: int) -> list[ListedGame]:
        """The public games that were made last: id, setup, state, and number of moves. Damaged games are omitted."""
        return self._listed("WHERE is_public ORDER BY created DESC LIMIT ?", (10 * count,), count)

    def named(self, ids: Sequence[str]) -> list[ListedGame]:
        """Return the games with these ids, public or not, newest first; unknown ids and damaged games are omitted."""
        return self._listed(f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created DESC", tuple(ids), len(ids))

    def _listed(self, where: str, values: tuple[Any, ...], count: int) -> list[ListedGame]:
        with self._reading:
            # This question reads only an index, so that a damaged row does not fail it.
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
                if rows:  # it was deleted otherwise
                    games.append((game_id, json_object(rows[0][0]), json_object(rows[0][1]), moves[0][0]))
            except (StoreError, ValueError) as error:
                self.report("game", game_id, error)
        return games

    def count_games(self) -> int:
        """Number of games."""
        with self._reading:
            return int(self._query("SELECT count(*) FROM games")[0][0])

    def count_studies(self) -> int:
        """Number of studies."""
        with self._reading:
            return int(self._query("SELECT count(*) FROM studies")[0][0])

    def study(self, study_id: str) -> str | None:
        """The content of the study with this id, or ``None``. Raises ``DamagedError``."""
        with self._reading:
            rows = self._query("SELECT content FROM studies WHERE id = ?", study_id)
        if not rows:
            return None
        if not isinstance(rows[0][0], str):
            self.report("study", study_id, "its content is not text")
            raise DamagedError(f"study {study_id} is damaged: its content is not text")
        return rows[0][0]

    def report(self, kind: str, row_id: Any, error: object) -> None:
        """Log a damaged row, each once."""
        name = f"{kind} {row_id if isinstance(row_id, str) else repr(row_id)[:80]}"
        if name not in self._damaged and len(self._damaged) < _MAX_DAMAGED:
            self._damaged.add(name)
            log.error("%s in %s is damaged and stays in the file: %s", name, self.path, error)

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a question; a text that is not UTF-8 is bytes in them."""
        try:
            return self._reader.execute(sql, values).fetchall()
        except UnicodeEncodeError:  # half a surrogate pair, which no id has
            return []
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from None

    # ---- The file

    def _locked(self) -> int:
        """A descriptor of the database that holds a lock; the system unlocks it even if this process is killed.

        The file itself is locked, which may have several paths: by links, and by mounts.
        """
        used = StoreError(f"{self.path} is used by another server; name another file with --data")
        with contextlib.suppress(OSError):
            # Asked before it is opened: to close another descriptor would release the locks that SQLite has in this process.
            if _file_of(os.stat(self.path)) in _locked_here:
                raise used
        try:
            # The games of people are not for everybody.
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            _lock_byte(descriptor)
        except OSError:
            os.close(descriptor)
            raise used from None
        status = os.fstat(descriptor)
        _locked_here.add(_file_of(status))
        if status.st_nlink > 1:
            log.warning("%s has several names (hard links): always use the same one, as SQLite names its log by it", self.path)
        return descriptor

    def _unlock(self) -> None:
        _locked_here.discard(_file_of(os.fstat(self._lock)))
        os.close(self._lock)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.text_factory = _text
        return connection

    def _open(self) -> sqlite3.Connection:
        """The connection that writes, to a file that has our tables. Raises ``sqlite3.Error`` and ``StoreError``."""
        file = self._connect()
        try:
            self._prepare(file)
        except BaseException:
            file.close()
            raise
        return file

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Set up the connection that writes, and check the file."""
        tables = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables:
            # Before anything is changed: a file of another program stays as it is.
            application = file.execute("PRAGMA application_id").fetchone()[0]
            version = file.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION_ID:
                raise sqlite3.DatabaseError("it is a database of another program")
            if version != SCHEMA_VERSION:
                raise sqlite3.DatabaseError(
                    f"it has version {version} of the tables, and this program version {SCHEMA_VERSION}"
                )
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        if not tables:
            file.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        if self.path.stat().st_size <= _QUICK_CHECK_LIMIT:
            verdict = file.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(f"it is damaged: {' '.join(str(verdict).split())[:200]}")

    # ---- The thread that writes

    async def _write(self, task: Callable[[sqlite3.Connection], Result]) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._tasks.put((task, loop, future))
        # A request that is given up must not hide from its game that the change was written.
        await asyncio.shield(future)

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            batch = [self._tasks.get()]
            while len(batch) < _MAX_BATCH and not self._tasks.empty():
                batch.append(self._tasks.get_nowait())
            is_open = None not in batch
            tasks = [task for task in batch if task is not None]
            if tasks:
                self._commit(tasks)

    def _commit(self, tasks: list[_Task]) -> None:
        """Write changes in one transaction; after an error, each in its own, so that only those fail that are to blame."""
        try:
            self._transact([task for task, _, _ in tasks])
        except Exception as error:  # whatever it is, the thread goes on, and whoever waits is answered
            if len(tasks) == 1:
                self._answer(tasks, StoreError(f"the game could not be saved: {error}"))
                return
            for task in tasks:
                self._commit([task])
            return
        self._answer(tasks, None)

    def _transact(self, functions: list[Callable[[sqlite3.Connection], Any]]) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            for function in functions:
                function(self._writer)
            self._writer.execute("COMMIT")
        except Exception:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    @staticmethod
    def _answer(tasks: list[_Task], error: StoreError | None) -> None:
        def settle(futures: list["asyncio.Future[Any]"]) -> None:
            for future in futures:
                if not future.done():
                    future.set_exception(error) if error else future.set_result(None)

        by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[Any]]] = {}
        for _, loop, future in tasks:
            by_loop.setdefault(loop, []).append(future)
        for loop, futures in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, futures)


def _text(content: bytes) -> str | bytes:
    """A text in the file; the bytes themselves if they are not UTF-8, so that one row does not fail the question for all."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def json_object(text: Any) -> dict[str, Any]:
    """A JSON object in the file. Raises ``ValueError``."""
    if not isinstance(text, str):
        raise ValueError("it is not text")
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    json.dumps(value, allow_nan=False)  # raises ``ValueError`` for infinite numbers, which cannot be sent
    return value


def _lock_byte(descriptor: int) -> None:
    """Lock ``_LOCKED_BYTE`` of an open file against other processes. Raises ``OSError`` if it is locked already."""
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    elif sys.platform == "linux" and struct.calcsize("l") == 8:
        # A lock of the open file, which holds until this descriptor is closed; SQLite closes others.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhlli4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0))
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)


def _file_of(status: os.stat_result) -> tuple[int, int]:
    """Device and inode of a file, which all of its paths share."""
    return status.st_dev, status.st_ino
