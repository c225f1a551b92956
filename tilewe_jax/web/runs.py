"""Runs of training, read from their folders: curves and games, while they go on and after."""

import asyncio
import json
import os
import tempfile
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import Any

from tilewe_jax.host_games import OFFERS
from tilewe_jax.records import FORMAT, RecordError, read_on_host
from tilewe_jax.utils.files import JSON_LIMIT, open_input, parse_json, read_input
from tilewe_jax.web.session import RefusedError

Json = dict[str, Any]

METRICS, EVALUATIONS, CONFIG = "metrics.jsonl", "evaluations.jsonl", "config.json"
FILE_LIMIT = 1 << 28
"""Maximum size of a file that is read, in bytes."""
MAX_ROWS = 5_000
"""Rows in an answer; further ones are asked for by their number."""
MAX_BYTES = 1 << 22
"""Bytes of the rows in an answer, except that it has at least one row."""
MAX_GAMES = 24
MAX_RUNS = 1_000
MAX_FILES = 4 * MAX_RUNS
"""Files of which something is remembered."""
_HEADER = 1 << 16
_TAIL = 256
_RECORDS_TAIL = 1 << 22
"""Bytes at the end of a file of recorded games that are read."""


class Runs:
    """The runs in a folder.

    A separate thread reads them, so that games never wait for it. It reads only the new rows of a file. Equal requests share
    one answer while the thread works on it.

    Args:
      folder: a folder with the folders of runs; ``None`` for a server that shows none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._executor = ThreadPoolExecutor(1, "runs")
        self._asked: dict[tuple[Any, ...], asyncio.Future[str]] = {}
        self._files: dict[Path, _Rows] = {}
        self._games: dict[Path, tuple[tuple[int, ...], list[Json]]] = {}
        """By file of recorded games, its state when it was read, and its newest games."""

    def close(self) -> None:
        """Stop reading."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def listed(self) -> str:
        """The runs as JSON text, the one that was changed last first."""
        return await self._ask(self._listed)

    async def metrics(self, name: str, after: int) -> str:
        """The rows of a run after the first ``after`` of its metrics, and its evaluations. Raises ``RefusedError``."""
        return await self._ask(self._metrics, name, after)

    async def games(self, name: str) -> str:
        """The last positions of the newest games in the files of records of a run. Raises ``RefusedError``."""
        return await self._ask(self._newest_games, name)

    async def _ask(self, function: Callable[..., str], *arguments: Any) -> str:
        key = (function.__name__, *arguments)
        future = self._asked.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
            self._asked[key] = future

            def done(future: "asyncio.Future[str]") -> None:
                del self._asked[key]
                if not future.cancelled():
                    future.exception()  # those who asked may have gone

            future.add_done_callback(done)
        return await asyncio.shield(future)

    # ---- In the thread

    def _listed(self) -> str:
        rows = []
        for name, path in self._newest_runs()[:MAX_RUNS]:
            config = _json(path / CONFIG)
            game = config.get("game") if isinstance(config, dict) else None
            iterations = config.get("iterations") if isinstance(config, dict) else None
            metrics = self._rows_of(path / METRICS)
            done = metrics.last().get("iteration", 0)
            rows.append(
                {
                    "name": name,
                    "game": game.get("id") if isinstance(game, dict) else game,
                    "rows": len(metrics),
                    "iterations": iterations,
                    "finished": isinstance(iterations, int) and isinstance(done, int) and done >= iterations,
                }
            )
        return json.dumps({"runs": _finite(rows)})

    def _metrics(self, name: str, after: int) -> str:
        path = self._run(name)
        number, metrics = self._rows_of(path / METRICS).after(after)
        evaluations = self._rows_of(path / EVALUATIONS)
        _, newest = evaluations.after(max(0, len(evaluations) - MAX_ROWS))
        return f'{{"metrics": [{",".join(metrics)}], "evaluations": [{",".join(newest)}], "next": {number}}}'

    def _newest_games(self, name: str) -> str:
        shown: list[Json] = []
        folder = self._run(name)
        files = []
        for path in (*folder.glob("*.jsonl"), *folder.glob("games/*.jsonl")):
            state = _state(path)
            if state and _is_of_records(path):
                files.append((state, path))
        for state, path in sorted(files, key=lambda item: -item[0][2]):
            known = self._games.get(path)
            if known is None or known[0] != state:
                known = state, _games_in(path)
                _remember(self._games, path, known)
            shown += known[1][: MAX_GAMES - len(shown)]
            if len(shown) >= MAX_GAMES:
                break
        return json.dumps({"games": _finite(shown)})

    def _rows_of(self, path: Path) -> "_Rows":
        rows = self._files.get(path) or _Rows(path)
        _remember(self._files, path, rows)
        rows.read()
        return rows

    def _newest_runs(self) -> list[tuple[str, Path]]:
        """The folders of runs by name: those directly in the folder that have metrics."""
        found = []
        try:
            for path in self._folder.iterdir() if self._folder is not None else ():
                state = _state(path / METRICS)
                if state:
                    found.append((state[2], path))
        except OSError:  # the folder was deleted
            return []
        return [(path.name, path) for _, path in sorted(found, key=lambda item: -item[0])]

    def _run(self, name: str) -> Path:
        """The folder of a run. A name is looked up and never made a path, so that it leads nowhere else."""
        path = dict(self._newest_runs()).get(name)
        if path is None:
            raise RefusedError("there is no such run", None, 404)
        return path


class _Rows:
    """The rows of a file of JSON lines. Each call of ``read`` reads only the rows that were added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: tuple[int, ...] | None = None
        self._starts = array("Q")
        """Offsets of the rows: complete lines in braces."""
        self._end = 0
        """Offset after the last complete line."""
        self._tail = b""
        """The last bytes before ``_end``. Other bytes there show that the file was rewritten."""

    def __len__(self) -> int:
        return len(self._starts)

    def read(self) -> None:
        """Find the rows that were added since the last call; all rows if the file was replaced or rewritten."""
        state = _state(self._path)
        if state == self._state:
            return
        self._state = state
        try:
            with open_input(self._path, FILE_LIMIT) as file:
                file.seek(max(0, self._end - _TAIL))
                if file.read(min(self._end, _TAIL)) != self._tail:
                    self._starts, self._end, self._tail = array("Q"), 0, b""
                    file.seek(0)
                while line := file.readline():
                    if not line.endswith(b"\n") and _row(line) is None:
                        break  # it is being written
                    if line.startswith(b"{") and line.rstrip().endswith(b"}") and len(line) <= JSON_LIMIT:
                        self._starts.append(self._end)
                    self._end += len(line)
                file.seek(max(0, self._end - _TAIL))
                self._tail = file.read(min(self._end, _TAIL))
        except OSError:
            self._starts, self._end, self._tail = array("Q"), 0, b""

    def after(self, number: int) -> tuple[int, list[str]]:
        """The rows after the first ``number``, as JSON texts, with the number of the next one; ``MAX_ROWS`` of them at most.

        Rows that are not JSON are omitted.
        """
        rows: list[str] = []
        size = 0
        number = min(number, len(self))
        for line in self._lines(number, min(len(self), number + MAX_ROWS)):
            number += 1
            size += len(line)
            row = _row(line)
            if row is not None:
                rows.append(json.dumps(row))
            if size > MAX_BYTES:
                break
        return number, rows

    def last(self) -> Json:
        """The last row, or an empty object."""
        for number in range(len(self) - 1, max(-1, len(self) - 10), -1):
            for line in self._lines(number, number + 1):
                row = _row(line)
                if row is not None:
                    return row
        return {}

    def _lines(self, first: int, end: int) -> Iterator[bytes]:
        if first >= end:
            return
        try:
            with open_input(self._path, FILE_LIMIT) as file:
                for number in range(first, end):
                    file.seek(self._starts[number])
                    following = self._starts[number + 1] if number + 1 < len(self) else self._end
                    yield file.read(following - self._starts[number])
        except OSError:
            return


def _remember(known: dict[Path, Any], path: Path, value: Any) -> None:
    known.pop(path, None)
    known[path] = value
    if len(known) > MAX_FILES:
        del known[next(iter(known))]


def _state(path: Path) -> tuple[int, ...] | None:
    """Inode, size and time of a regular file, which show whether it has changed; ``None`` for other files."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if path.is_file() else None


def _row(line: bytes) -> Json | None:
    try:
        row = parse_json(line.split(b"\n", 1)[0])
    except ValueError:
        return None
    return _finite(row) if isinstance(row, dict) else None


def _newest_lines(path: Path) -> bytes:
    """The header of a file of records and its last games. Raises ``OSError``."""
    with path.open("rb") as file:
        header = file.readline(_HEADER)
        start = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(max(start, end - _RECORDS_TAIL))
        if file.tell() > start:
            file.readline()  # a part of a line
        lines = file.read(_RECORDS_TAIL).splitlines(keepends=True)
    return b"".join([header, *lines[-MAX_GAMES:]])


def _games_in(path: Path) -> list[Json]:
    """The last positions of the newest games of a file of records; empty if it is damaged, or is being written."""
    shown: list[Json] = []
    try:
        with tempfile.TemporaryDirectory(prefix="tilewe-run-") as folder:
            part = Path(folder) / "part.jsonl"
            part.write_bytes(_newest_lines(path))
            host, recorded = read_on_host(part)
        for record in reversed(recorded[-MAX_GAMES:]):
            start = host.init_from_deal(record.deal)
            position = reduce(lambda position, action: position.after(action), record.actions, start)
            view, names = position.view(open=True), list(record.players)
            shown.append({"file": path.name, "names": names, "moves": len(record.actions), "view": view})
    except (LookupError, OSError, RecordError, TypeError, ValueError):
        pass
    return shown


def _finite(value: Any) -> Any:
    """A value in which ``null`` stands for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _json(path: Path) -> Any:
    try:
        return parse_json(read_input(path, 1 << 20))
    except (OSError, ValueError):
        return None


def _is_of_records(path: Path) -> bool:
    """Whether a file is one of records of a game of this package; others would be imported."""
    try:
        with path.open("rb") as file:
            header = parse_json(file.readline(_HEADER))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT and header.get("game") in OFFERS
