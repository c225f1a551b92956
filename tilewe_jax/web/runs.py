"""Runs of training, read from their folders: curves and games, while they go on and after."""

from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from tilewe_jax.files import parse_json, read_input
from tilewe_jax.records import FORMAT, RecordError, read_on_host
from tilewe_jax.web.catalog import GAMES
from tilewe_jax.web.session import RefusedError

Json = dict[str, Any]

METRICS, EVALUATIONS, CONFIG = "metrics.jsonl", "evaluations.jsonl", "config.json"
FILE_LIMIT = 1 << 28
"""Maximum size of a file that is read, in bytes."""
MAX_ROWS = 5_000
"""Rows in an answer; further ones are asked for by their number."""
MAX_GAMES = 24
MAX_RUNS = 1_000


class Runs:
    """The runs in a folder.

    Args:
      folder: a folder with the folders of runs; ``None`` for a server that shows none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def listed(self) -> list[Json]:
        """The runs, the one that was changed last first."""
        rows = []
        for name, path in sorted(self._runs().items(), key=lambda item: -(item[1] / METRICS).stat().st_mtime)[:MAX_RUNS]:
            config = _json(path / CONFIG)
            game = config.get("game") if isinstance(config, dict) else None
            iterations = config.get("iterations") if isinstance(config, dict) else None
            metrics = list(_rows(path / METRICS))
            done = metrics[-1].get("iteration") if metrics else 0
            rows.append(
                {
                    "name": name,
                    "game": game.get("id") if isinstance(game, dict) else game,
                    "rows": len(metrics),
                    "iterations": iterations,
                    "finished": isinstance(iterations, int) and isinstance(done, int) and done >= iterations,
                }
            )
        return rows

    def metrics(self, name: str, after: int) -> Json:
        """The rows of a run after so many of its metrics, and its evaluations. Raises ``RefusedError``."""
        path = self._run(name)
        metrics = list(_rows(path / METRICS))[after : after + MAX_ROWS]
        return {"metrics": metrics, "evaluations": list(_rows(path / EVALUATIONS)), "next": after + len(metrics)}

    def games(self, name: str) -> list[Json]:
        """The last positions of the newest games in the files of records of a run. Raises ``RefusedError``."""
        shown: list[Json] = []
        folder = self._run(name)
        files = [path for path in (*folder.glob("*.jsonl"), *folder.glob("games/*.jsonl")) if path.is_file()]
        for path in sorted(files, key=lambda path: -path.stat().st_mtime):
            if not _is_of_records(path):
                continue
            try:
                host, recorded = read_on_host(path)
                for record in reversed(recorded[-(MAX_GAMES - len(shown)) :]):
                    position = reduce(
                        lambda position, action: position.after(action), record.actions, host.init_from_deal(record.deal)
                    )
                    view, names = position.view(open=True), list(record.players)
                    shown.append({"file": path.name, "names": names, "moves": len(record.actions), "view": view})
            except (OSError, RecordError, ValueError):
                continue  # it is being written
            if len(shown) >= MAX_GAMES:
                break
        return shown

    def _runs(self) -> dict[str, Path]:
        """The folders of runs by name: those directly in the folder that have metrics."""
        if self._folder is None or not self._folder.is_dir():
            return {}
        return {path.name: path for path in self._folder.iterdir() if (path / METRICS).is_file()}

    def _run(self, name: str) -> Path:
        """The folder of a run. A name is looked up and never made a path, so that it leads nowhere else."""
        path = self._runs().get(name)
        if path is None:
            raise RefusedError("there is no such run", None, 404)
        return path


def _rows(path: Path) -> Iterator[Json]:
    """The rows of a file of JSON lines; without a last one that is being written."""
    try:
        content = read_input(path, FILE_LIMIT)
    except OSError:
        return
    for line in content.splitlines():
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield _finite(row)


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
            header = parse_json(file.readline(1 << 16))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT and header.get("game") in GAMES
