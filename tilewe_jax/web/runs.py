"""Training runs, read from their folders during and after training: metrics and games."""

import asyncio
import json
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewe_jax.utils.files import JSON_LIMIT, open_input, parse_json, read_input
from tilewe_jax.web.exports import read_records
from tilewe_jax.web.session import RefusedError

Json = dict[str, Any]

METRICS, EVALUATIONS, CONFIG = "metrics.jsonl", "evaluations.jsonl", "config.json"
FILE_LIMIT = 1 << 28
"""Maximum size of a file, in bytes."""
MAX_ROWS = 5_000
"""Maximum number of rows in an answer."""
MAX_BYTES = 1 << 22
"""Maximum size of the rows in an answer, in bytes; an answer has at least one row."""
MAX_GAMES = 24
MAX_RUNS = 1_000
MAX_FILES = 4 * MAX_RUNS
"""Maximum number of files whose index is kept."""
_HEADER = 1 << 16
"""Maximum size of the first line of a file of recorded games, in bytes."""
_TAIL = 256
_RECORDS_TAIL = 1 << 22
"""Number of bytes that are read at the end of a file of recorded games."""

_State = tuple[int, ...]


class Runs:
    """The training runs in a folder.

    One thread reads them, so that games do not wait for it. Equal concurrent requests share one answer.

    Args:
      folder: folder with the folders of runs; ``None`` for a server without runs.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._executor = ThreadPoolExecutor(1, "runs")
        self._answers: dict[tuple[Any, ...], asyncio.Future[str]] = {}
        self._rows = lru_cache(MAX_FILES)(Rows)

    def close(self) -> None:
        """Stop the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def listed(self) -> str:
        """Return the runs as JSON text, the last changed one first."""
        return await self._ask(self._listed)

    async def metrics(self, name: str, after: int) -> str:
        """Return the metrics of a run after the first ``after`` rows, and its evaluations. Raises ``RefusedError``."""
        return await self._ask(self._metrics, name, after)

    async def games(self, name: str) -> str:
        """Return the last positions of the newest recorded games of a run. Raises ``RefusedError``."""
        return await self._ask(self._newest_games, name)

    async def _ask(self, function: Callable[..., str], *arguments: Any) -> str:
        key = (function.__name__, *arguments)
        future = self._answers.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
            self._answers[key] = future

            def done(future: "asyncio.Future[str]") -> None:
                del self._answers[key]
                if not future.cancelled():
                    future.exception()  # the callers may be gone

            future.add_done_callback(done)
        return await asyncio.shield(future)

    # ---- In the thread

    def _listed(self) -> str:
        rows = []
        for name, path in self._newest_runs()[:MAX_RUNS]:
            config = _json(path / CONFIG)
            game, iterations = config.get("game"), config.get("iterations")
            metrics = self._rows(path / METRICS)
            metrics.update()
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
        metrics, evaluations = self._rows(path / METRICS), self._rows(path / EVALUATIONS)
        metrics.update()
        evaluations.update()
        number, rows = metrics.after(after)
        _, newest = evaluations.after(len(evaluations) - MAX_ROWS)
        return json.dumps({"metrics": rows, "evaluations": newest, "next": number})

    def _newest_games(self, name: str) -> str:
        folder = self._run(name)
        paths = (*folder.glob("*.jsonl"), *folder.glob("games/*.jsonl"))
        files = [(state, path) for path in paths if (state := _state(path))]
        games: list[Json] = []
        for state, path in sorted(files, key=lambda item: -item[0][2]):
            if len(games) < MAX_GAMES:
                games += _games_in(path, state)
        return json.dumps({"games": _finite(games[:MAX_GAMES])})

    def _newest_runs(self) -> list[tuple[str, Path]]:
        """The folders with metrics, by name."""
        try:
            paths = [] if self._folder is None else list(self._folder.iterdir())
        except OSError:  # the folder was deleted
            return []
        runs = [(state[2], path) for path in paths if (state := _state(path / METRICS))]
        return [(path.name, path) for _, path in sorted(runs, key=lambda item: -item[0])]

    def _run(self, name: str) -> Path:
        """Folder of a run. The name is looked up and never used in a path, so that it cannot lead to other folders."""
        path = dict(self._newest_runs()).get(name)
        if path is None:
            raise RefusedError("this run does not exist", status=404)
        return path


class Rows:
    """Index of a file of JSON lines that grows. An update reads only the new lines.

    ``tilewe_jax.training.metrics`` reads the same files completely, checks them, and refuses damaged ones; this class skips
    lines that are not JSON objects, and accepts any fields.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: _State | None = None
        self._reset()

    def _reset(self) -> None:
        self._ends = array("Q", [0])
        """Offsets after each complete line, preceded by 0."""
        self._tail = b""
        """The last bytes before the last offset. If they differ, the file was rewritten."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def update(self) -> None:
        """Index the new lines, or all lines if the file was rewritten."""
        state = _state(self._path)
        if state == self._state:
            return
        self._state = state
        try:
            with open_input(self._path, FILE_LIMIT) as file:
                file.seek(self._ends[-1] - len(self._tail))
                if file.read(len(self._tail)) != self._tail:
                    self._reset()
                    file.seek(0)
                while (line := file.readline()).endswith(b"\n"):
                    self._ends.append(self._ends[-1] + len(line))
                start = max(0, self._ends[-1] - _TAIL)
                file.seek(start)
                self._tail = file.read(self._ends[-1] - start)
        except OSError:
            self._reset()

    def after(self, number: int) -> tuple[int, list[Json]]:
        """Return the rows after the first ``number`` lines, up to the limits, and the number of the next line."""
        number = min(max(0, number), len(self))
        last = bisect_right(self._ends, self._ends[number] + MAX_BYTES) - 1
        last = min(max(last, number + 1), number + MAX_ROWS, len(self))
        rows: list[Json] = []
        try:
            with open_input(self._path, FILE_LIMIT) as file:
                file.seek(self._ends[number])
                lines = file.read(self._ends[last] - self._ends[number]).split(b"\n")
        except OSError:
            lines = []
        for line in lines:
            with suppress(ValueError):
                row = parse_json(line) if len(line) <= JSON_LIMIT else None
                if isinstance(row, dict):
                    rows.append(_finite(row))
        return last, rows

    def last(self) -> Json:
        """Return the last row, or an empty object if the last lines are not rows."""
        rows = self.after(len(self) - 10)[1]
        return rows[-1] if rows else {}


def _state(path: Path) -> _State | None:
    """Inode, size and time of a regular file, which change with its content; ``None`` for other files."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if path.is_file() else None


@lru_cache(256)
def _games_in(path: Path, state: _State) -> list[Json]:
    """Last positions of the newest games in a file; empty if it has other content or is damaged.

    Args:
      path: the file.
      state: its state, for the cache.
    """
    try:
        with path.open("rb") as file:
            header = file.readline(_HEADER)
            start = file.tell()
            file.seek(max(start, file.seek(0, os.SEEK_END) - _RECORDS_TAIL))
            if file.tell() > start:
                file.readline()  # the rest of a line
            lines = file.read(_RECORDS_TAIL).splitlines(keepends=True)
        games: list[Json] = []
        for game in reversed(read_records(b"".join([header, *lines[-MAX_GAMES:]])).games):
            position = game.game.init_from_deal(game.deal)
            for action in game.actions:
                position = position.after(action)
            view = position.view(open=True)
            games.append({"file": path.name, "names": list(game.names), "moves": len(game.actions), "view": view})
        return games
    except (LookupError, OSError, RefusedError, TypeError, ValueError):
        return []


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by ``None``."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _json(path: Path) -> Json:
    """The JSON object in a file; empty if it has other content."""
    try:
        value = parse_json(read_input(path, 1 << 20))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
