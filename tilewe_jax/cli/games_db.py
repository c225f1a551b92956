"""Commands about the database of a game server: list, export, delete, back up and check its games."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import FailedError, Imports, Json, UsageError, err, out, progress
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted

if TYPE_CHECKING:
    from tilewe_jax.host import HostGame
    from tilewe_jax.records import Record
    from tilewe_jax.web.database import Database
    from tilewe_jax.web.session import Session
    from tilewe_jax.web.stored import StoredGame

_DAY = 86_400.0


@dataclass(frozen=True)
class _DatabaseFile(Imports):
    """Option of commands about a database."""

    data: Path = Path("tilewe-jax-games.sqlite")
    """File of the games, as --data of `tilewe-jax serve`."""


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Context manager that turns errors of the database into ``FailedError``."""
    from tilewe_jax.web.stored import StoreError

    try:
        yield
    except StoreError as error:
        raise FailedError(str(error)) from None


@contextlib.contextmanager
def _database(path: Path) -> "Iterator[Database]":
    """Open a database for reading, also while a server uses it."""
    from tilewe_jax.web.database import open_database

    with _failures(), contextlib.closing(open_database(path)) as database:
        yield database


def _games(database: "Database") -> "Iterator[tuple[Any, StoredGame | None, str]]":
    """Yield the id of each game, newest first, the game, and for a damaged game the reason instead of it."""
    from tilewe_jax.web.stored import DamagedError

    for game_id in database.ids("games"):
        if not isinstance(game_id, str):
            yield game_id, None, f"game {game_id!r:.80} is damaged: its id is not text"
            continue
        try:
            stored = database.game(game_id)
        except DamagedError as error:
            yield game_id, None, str(error)
        else:
            if stored:  # otherwise a server has deleted it meanwhile
                yield game_id, stored, ""


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="minutes")[:16]


@dataclass(frozen=True)
class List(_DatabaseFile, Json):
    """List the games in the database of a server, newest first."""

    def run(self) -> None:
        with _database(self.data) as database:
            rows = [_row(game_id, stored, fault) for game_id, stored, fault in _games(database)]
            studies, size = database.count_studies(), database.num_bytes()
        if self.json:
            print(json.dumps({"games": rows, "studies": studies, "bytes": size}))
            return
        table = Rows("id", "game", "created", "changed", "moves", "players", "end", wrap=("players", "end"))
        for row in rows:
            if row["fault"]:
                table.add(str(row["id"]), "damaged", "", "", "", "", row["fault"])
            else:
                times = (_when(row[name]) for name in ("created", "changed"))
                table.add(row["id"], row["game"], *times, str(row["moves"]), ", ".join(row["players"]), row["over"] or "")
        if rows:
            table.print(out)
        out.print(f"{counted(len(rows), 'games')} and {counted(studies, 'studies')} in {size / 1e6:.1f} MB")


def _row(game_id: Any, stored: "StoredGame | None", fault: str) -> dict[str, Any]:
    """Describe a game as JSON."""
    empty = dict.fromkeys(("game", "options", "created", "changed", "moves", "players", "public", "over"))
    row = {"id": game_id if isinstance(game_id, str) else repr(game_id), **empty, "fault": fault or None}
    if stored is None:
        return row
    try:
        setup, state = stored.setup, stored.state
        return row | {
            "game": str(setup["game"]),
            "options": setup["options"],
            "created": stored.created,
            "changed": stored.updated,
            "moves": len(stored.moves),
            "players": [str(seat["name"]) for seat in state["seats"]],
            "public": setup["public"],
            "over": str(state["over"]["reason"]) if state["over"] else None,
        }
    except (LookupError, TypeError) as error:
        return row | {"fault": f"game {game_id} is damaged: {error!r}"}


@dataclass(frozen=True)
class ExportGames(_DatabaseFile):
    """Write games of the database of a server as records, a file for each game with its options.

    Records of unfinished games have no result. Files that exist are replaced.
    """

    ids: Annotated[tuple[str, ...], Option("ID ...")] = ()
    """Games to export; by default all."""
    finished: bool = False
    """Export only games that were played to their end by the rules, without resignation or loss on time."""
    out: Annotated[Path, Option("FOLDER")] = Path("exported-games")
    """Folder of the files, created if needed."""

    def run(self) -> None:
        from tilewe_jax import records
        from tilewe_jax.web.exports import as_record
        from tilewe_jax.web.rooms import session_of

        files: dict[str, tuple[HostGame, list[Record]]] = {}
        faults: list[str] = []
        wanted = set(self.ids)
        with _database(self.data) as database:
            if unknown := sorted(wanted - set(map(str, database.ids("games")))):
                raise UsageError(f"--ids: {self.data} has no game {unknown[0]}")
            with progress(None, "games", "reading games") as shown:
                for number, (game_id, stored, damage) in enumerate(_games(database)):
                    shown.update(number)
                    if wanted and game_id not in wanted:
                        continue
                    fault = damage
                    try:
                        session = session_of(stored) if stored else None
                    except Exception as error:  # other games are exported
                        session, fault = None, f"game {game_id}: {error}"
                    if session is None:
                        faults.append(fault)
                    elif not self.finished or (session.over and session.over["reason"] == "finished"):
                        host = session.setup.host
                        files.setdefault(_file_name(host), (host, []))[1].append(as_record(session))
        self.out.mkdir(parents=True, exist_ok=True)
        for name, (host, games) in sorted(files.items()):
            records.write(self.out / name, host, games[::-1])  # oldest first
            out.print(f"{self.out / name}: {counted(len(games), 'games')}")
        for fault in faults:
            err.print(" ".join(fault.split()))
        if not files:
            out.print("no games were exported")
        if faults:
            sys.exit(1)


def _file_name(host: "HostGame") -> str:
    """Name of the file for a game with its options."""
    from tilewe_jax.host_games import make_host_game

    usual = make_host_game(host.id).options
    changes = [f"{name}={value}" for name, value in host.options.items() if usual.get(name) != value]
    return re.sub(r"[^\w=,.-]+", "_", "-".join([host.id, *([",".join(changes)] if changes else [])]))[:150] + ".jsonl"


@dataclass(frozen=True)
class Delete(_DatabaseFile):
    """Delete games and studies from the database of a server, which must not run.

    Make a backup first: `tilewe-jax games-db backup`.
    """

    ids: Annotated[tuple[str, ...], Option("ID ...")] = ()
    """Games or studies to delete."""
    older: Annotated[float | None, Option("DAYS")] = None
    """Delete the games without a change for this number of days, and the studies that are older."""

    def run(self) -> None:
        from tilewe_jax.web.store import Store
        from tilewe_jax.web.stored import UsedError

        if not self.ids and self.older is None:
            raise UsageError("name the games with --ids ID ..., or their age with --older DAYS")
        if self.older is not None and not 0 <= self.older < 1e5:
            raise UsageError(f"--older must be 0 to 100,000 days, not {self.older:g}")
        with _failures():
            if not self.data.is_file():
                raise FailedError(f"{self.data} does not exist")
            try:
                store = Store(self.data)
            except UsedError:
                raise FailedError(f"{self.data} is used by a server; end it before games are deleted") from None
            try:
                before = _counts(store)
                known = set(store.ids("games")) | set(store.ids("studies"))
                if unknown := sorted(set(self.ids) - known):
                    raise UsageError(f"--ids: {self.data} has no game or study {unknown[0]}")
                if self.ids:
                    asyncio.run(store.delete(self.ids))
                if self.older is not None:
                    asyncio.run(store.delete_older(_DAY * self.older))
                store.shrink()
                after = _counts(store)
                size = store.num_bytes()
            finally:
                store.close()
        games, studies = (old - new for old, new in zip(before, after, strict=True))
        out.print(
            f"{counted(games, 'games')} and {counted(studies, 'studies')} deleted; {counted(after[0], 'games')} and"
            f" {counted(after[1], 'studies')} are left in {size / 1e6:.1f} MB"
        )


def _counts(database: "Database") -> tuple[int, int]:
    """Numbers of games and studies."""
    return database.count_games(), database.count_studies()


@dataclass(frozen=True)
class Backup(_DatabaseFile):
    """Copy the database of a server to a new file, also while the server runs, and check the copy.

    To restore it, end the server, remove the files of the database (FILE, FILE-wal, FILE-shm), and copy the backup to FILE.
    """

    out: Annotated[Path | None, Option("FILE")] = None
    """The new file; by default the name of the database with the time."""

    def run(self) -> None:
        from tilewe_jax.web.database import back_up, free_name

        now = datetime.now().strftime("%Y%m%d-%H%M%S")
        backup = self.out or free_name(self.data.with_name(f"{self.data.name}.{now}"))
        if backup.exists():
            raise UsageError(f"--out: {backup} exists; name a new file")
        with _failures():
            back_up(self.data, backup)
        with _database(backup) as database:
            games, studies = _counts(database)
        out.print(
            f"{backup}: {counted(games, 'games')} and {counted(studies, 'studies')} in {backup.stat().st_size / 1e6:.1f} MB"
        )


@dataclass(frozen=True)
class Check(_DatabaseFile, Json):
    """Check the database of a server: the file, and all games and studies by replaying them.

    A damaged game does not affect others; delete it, or restore a backup.
    """

    def run(self) -> None:
        from tilewe_jax.web.database import integrity

        games = studies = 0
        with _failures():
            faults = [f"the file is damaged: {fault}" for fault in integrity(self.data)]
        try:
            with _database(self.data) as database, progress(None, "rows", "replaying", quiet=self.json) as shown:
                for games, fault in enumerate(_faults_of_games(database), 1):
                    shown.update(games)
                    faults += [fault] if fault else []
                for studies, fault in enumerate(_faults_of_studies(database), 1):
                    shown.update(games + studies)
                    faults += [fault] if fault else []
                if orphans := database.num_orphans():
                    faults.append(f"moves without a game: {orphans:,}")
        except FailedError as error:
            faults.append(str(error))
        faults = [" ".join(fault.split()) for fault in faults]
        if self.json:
            print(json.dumps({"games": games, "studies": studies, "faults": faults}))
        else:
            for fault in faults:
                err.print(fault)
            verdict = "without faults" if not faults else f"with {counted(len(faults), 'faults')}"
            out.print(f"{counted(games, 'games')} and {counted(studies, 'studies')} checked, {verdict}")
        if faults:
            sys.exit(1)


def _faults_of_games(database: "Database") -> Iterator[str]:
    """Yield the fault of each game, empty for a correct one."""
    from tilewe_jax.web.rooms import session_of

    for game_id, stored, damage in _games(database):
        if stored is None:
            yield damage
            continue
        try:
            fault = _fault(session_of(stored))
        except Exception as error:  # any damage; other games are checked
            fault = str(error) or repr(error)
        yield f"game {game_id}: {fault}" if fault else ""


def _fault(session: "Session") -> str:
    """Compare the stored end of a game with its rules; return the fault."""
    over = session.over
    if over is None:
        return "the game is over by its rules, but has no stored end" if session.position.is_terminal else ""
    if over["reason"] == "finished":
        if not session.position.is_terminal:
            return "it is stored as finished, but is not over by its rules"
        if list(over["scores"]) != list(session.position.scores()):
            return f"its stored scores are {over['scores']}, and its moves give {session.position.scores()}"
    return ""


def _faults_of_studies(database: "Database") -> Iterator[str]:
    """Yield the fault of each study, empty for a correct one."""
    from tilewe_jax.web.exports import check_study

    for study_id in database.ids("studies"):
        try:
            check_study(database.study(study_id) or "[]")
            yield ""
        except Exception as error:  # any damage; other studies are checked
            yield f"study {study_id!r:.80}: {error}"
