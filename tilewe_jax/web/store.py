"""The database of the server for its one writer. A change is committed before its caller continues.

One thread writes. It commits all waiting changes in one transaction, so that the event loop never waits for the disk and many
games share the cost of a commit.
"""

import asyncio
import contextlib
import logging
import math
import os
import queue
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tilewe_jax.web.database import APPLICATION_ID, SCHEMA_VERSION, Database, check_version, connect, copy, free_name
from tilewe_jax.web.stored import StoredMove, StoreError, UsedError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger("tilewe_jax.web")

MIGRATIONS: dict[int, str] = {}
"""SQL that changes tables of a version to the next version."""
_SCHEMA = """
CREATE TABLE games (
  id TEXT PRIMARY KEY, created REAL NOT NULL, updated REAL NOT NULL,
  setup TEXT NOT NULL, -- constant: the game, its options and deal, the clock
  state TEXT NOT NULL, -- variable, without the moves: seats, remaining seconds, undo request, end
  is_public INTEGER NOT NULL, is_over INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX games_updated ON games (updated);
CREATE INDEX games_public ON games (is_public, created);
CREATE TABLE moves (
  game TEXT NOT NULL, number INTEGER NOT NULL, action INTEGER NOT NULL,
  note TEXT, -- JSON, such as the engine's analysis
  PRIMARY KEY (game, number)
) WITHOUT ROWID;
CREATE TABLE studies (id TEXT PRIMARY KEY, created REAL NOT NULL, content TEXT NOT NULL) WITHOUT ROWID;
"""
_MAX_BATCH = 256
"""Maximum number of changes in a commit."""
_QUICK_CHECK_LIMIT = 1 << 26
"""Maximum size in bytes of a file that is checked for damage when it is opened, which takes a fraction of a second."""
_LOCKED_BYTE = 0x40000000 + 2048
"""Offset of the byte that a server locks. SQLite stores no data in the page at 0x40000000 and locks its first 512 bytes."""
_locked_here: set[tuple[int, int]] = set()
"""The files that this process has locked, see ``_file_of``."""
_MAX_PAGES = (1 << 32) - 2
"""Maximum number of pages of an SQLite file."""
_Task = tuple[Callable[[sqlite3.Connection], Any], "Future[None]"]


class Store(Database):
    """The database.

    Args:
      path: its file, which is created if it does not exist.
      sync: whether each commit waits for the disk. Without, commits survive a crash of this process, but the last of them may
        be lost in a power failure.
      max_bytes: maximum size of the file, beyond which changes fail; its log is not counted.

    Raises ``StoreError`` if the file is used by another server, is not such a database, or is damaged.
    """

    def __init__(self, path: str | Path, sync: bool = False, max_bytes: float = math.inf) -> None:
        self.path, self._sync, self._max_bytes = Path(path), sync, max_bytes
        self._lock = self._locked()
        try:
            self._writer = connect(str(self.path))
            try:
                self._prepare(self._writer)
            except BaseException:
                self._writer.close()
                raise
            # With a write-ahead log, readers and the writer do not wait for each other.
            super().__init__(self.path, connect(str(self.path)))
        except (OSError, sqlite3.Error) as error:
            self._unlock()
            raise StoreError(f"{self.path} cannot be used ({error}): move it away, or name another file with --data") from None
        self._tasks: queue.Queue[_Task | None] = queue.Queue()
        # A daemon thread does not keep the process alive; acknowledged changes are committed already.
        self._thread = threading.Thread(target=self._write_all, name="store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the waiting changes and close the file."""
        self._tasks.put(None)
        self._thread.join()
        super().close()
        self._writer.close()
        self._unlock()

    # ---- Changes

    async def add(self, game: str, setup: str, state: str, is_public: bool) -> None:
        """Add a game with its setup and state, JSON texts."""
        now = time.time()
        row = game, now, now, setup, state, is_public, False
        await self._write(lambda file: file.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?)", row))

    async def change(self, game: str, state: str, is_over: bool, first_move: int, moves: Sequence[StoredMove]) -> None:
        """Set the state of a game, a JSON text, and replace its moves from number ``first_move`` on.

        Raises ``StoreError``, after which the game is unchanged.
        """

        def write(file: sqlite3.Connection) -> None:
            values = state, is_over, time.time(), game
            updated = file.execute("UPDATE games SET state = ?, is_over = ?, updated = ? WHERE id = ?", values)
            if not updated.rowcount:
                raise sqlite3.DataError(f"unknown game {game}")
            file.execute("DELETE FROM moves WHERE game = ? AND number >= ?", (game, first_move))
            rows = [(game, number, *move) for number, move in enumerate(moves, first_move)]
            file.executemany("INSERT INTO moves VALUES (?, ?, ?, ?)", rows)

        await self._write(write)

    async def add_study(self, study_id: str, content: str) -> None:
        """Add a study."""
        await self._write(lambda file: file.execute("INSERT INTO studies VALUES (?, ?, ?)", (study_id, time.time(), content)))

    async def delete_older(self, seconds: float, *, keep: Collection[str] = ()) -> None:
        """Delete studies of this age, and games without a change for this time except those to ``keep``."""
        limit = time.time() - seconds

        def write(file: sqlite3.Connection) -> None:
            rows = file.execute("SELECT id FROM games WHERE updated < ?", (limit,)).fetchall()
            old = [row for row in rows if row[0] not in keep]
            file.executemany("DELETE FROM moves WHERE game = ?", old)
            file.executemany("DELETE FROM games WHERE id = ?", old)
            file.execute("DELETE FROM studies WHERE created < ?", (limit,))

        await self._write(write)

    async def delete(self, ids: Collection[str]) -> None:
        """Delete games and studies. Unknown ids are ignored."""
        rows = [(row_id,) for row_id in ids]

        def write(file: sqlite3.Connection) -> None:
            file.executemany("DELETE FROM moves WHERE game = ?", rows)
            file.executemany("DELETE FROM games WHERE id = ?", rows)
            file.executemany("DELETE FROM studies WHERE id = ?", rows)

        await self._write(write)

    def shrink(self) -> None:
        """Give the space of deleted rows back to the disk. Nothing else may use the store meanwhile."""
        try:
            self._writer.execute("VACUUM")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be made smaller: {error}") from None

    async def check(self) -> None:
        """Check that the database can be read and locked for a change. Raises ``StoreError``."""
        await self._write(lambda file: None)
        await asyncio.to_thread(self.count_studies)

    # ---- The file

    def _locked(self) -> int:
        """Lock the file; return its descriptor. The system releases the lock even if this process is killed.

        The database itself is locked and not a file beside it, because links and mounts can give it several paths.
        """
        used = UsedError(f"{self.path} is used by another server; name another file with --data")
        with contextlib.suppress(OSError):
            # Before opening: closing another descriptor would release the locks that SQLite holds in this process.
            if _file_of(os.stat(self.path)) in _locked_here:
                raise used
        try:
            # Only the owner may read the games.
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
            log.warning(
                "%s has several names (hard links); always use the same one, because SQLite names its log by it", self.path
            )
        return descriptor

    def _unlock(self) -> None:
        _locked_here.discard(_file_of(os.fstat(self._lock)))
        os.close(self._lock)

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Check the file, and create the tables of a new one. Raises ``sqlite3.Error``."""
        tables = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables:  # checked first: the file of another program must stay unchanged
            application = file.execute("PRAGMA application_id").fetchone()[0]
            version = file.execute("PRAGMA user_version").fetchone()[0]
            check_version(application, version)
        page_size = file.execute("PRAGMA page_size").fetchone()[0]
        file.execute(f"PRAGMA max_page_count = {int(min(self._max_bytes / page_size, _MAX_PAGES))}")
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        if not tables:
            file.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        elif version < SCHEMA_VERSION:
            self._migrate(file, version)
        if self.path.stat().st_size <= _QUICK_CHECK_LIMIT:
            verdict = file.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(f"it is damaged: {' '.join(str(verdict).split())[:200]}")

    def _migrate(self, file: sqlite3.Connection, version: int) -> None:
        """Bring the tables of an older version up to date, after a backup. Raises ``sqlite3.Error`` and ``OSError``."""
        backup = free_name(self.path.with_name(f"{self.path.name}.version-{version}"))
        copy(file, backup)
        log.warning(
            "%s has tables of version %d and is changed to version %d; %s is a backup",
            self.path,
            version,
            SCHEMA_VERSION,
            backup,
        )
        try:
            for number in range(version, SCHEMA_VERSION):
                # One transaction for a version: after an error or a crash the tables have the version before.
                file.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;")
        except sqlite3.Error as error:
            if file.in_transaction:
                file.execute("ROLLBACK")
            raise sqlite3.DatabaseError(
                f"its tables could not be changed to version {SCHEMA_VERSION}: {error}; {backup} is a backup"
            ) from None

    # ---- The thread that writes

    async def _write(self, task: Callable[[sqlite3.Connection], Any]) -> None:
        future: Future[None] = Future()
        self._tasks.put((task, future))
        # Even if the request is cancelled, the change must reach its room.
        await asyncio.shield(asyncio.wrap_future(future))

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            batch = [self._tasks.get()]
            while len(batch) < _MAX_BATCH and not self._tasks.empty():
                batch.append(self._tasks.get_nowait())
            is_open = None not in batch
            self._commit([task for task in batch if task is not None])

    def _commit(self, tasks: list[_Task]) -> None:
        """Write changes in one transaction; after an error each in its own, so that correct changes are written."""
        try:
            self._transact([function for function, _ in tasks])
        except Exception as error:  # the thread survives any error
            if len(tasks) == 1:
                tasks[0][1].set_exception(StoreError(f"the game could not be saved: {error}"))
            else:
                for task in tasks:
                    self._commit([task])
        else:
            for _, future in tasks:
                future.set_result(None)

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


def _lock_byte(descriptor: int) -> None:
    """Lock ``_LOCKED_BYTE`` of an open file against other processes. Raises ``OSError`` if it is locked already."""
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    elif sys.platform == "linux" and struct.calcsize("l") == 8:
        # A lock of the open file lasts until this descriptor is closed; other locks end when SQLite closes a descriptor.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhlli4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0))
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)


def _file_of(status: os.stat_result) -> tuple[int, int]:
    """Device and inode of a file, which all of its paths share."""
    return status.st_dev, status.st_ino
