"""Training runs: growing, rewritten and damaged files."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax.web import runs as module
from tilewe_jax.web.runs import Runs
from tilewe_jax.web.session import RefusedError


def make(folder: Path, name: str, rows: list[Any]) -> Path:
    run = folder / name
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"game": {"id": "duo"}, "iterations": 3}))
    path = run / "metrics.jsonl"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def listed(runs: Runs) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(asyncio.run(runs.listed()))["runs"]}


def metrics(runs: Runs, after: int = 0, name: str = "a") -> Any:
    return json.loads(asyncio.run(runs.metrics(name, after)))


def test_added_and_rewritten_rows(tmp_path: Path) -> None:
    path = make(tmp_path, "a", [{"iteration": 1}, {"iteration": 2}])
    runs = Runs(tmp_path)
    assert (listed(runs)["a"]["rows"], listed(runs)["a"]["finished"]) == (2, False)
    with path.open("a") as file:
        file.write('{"iteration": 3, "loss": NaN}\n{"iterat')
    assert (listed(runs)["a"]["rows"], listed(runs)["a"]["finished"]) == (3, True)
    assert metrics(runs, 2) == {"metrics": [{"iteration": 3, "loss": None}], "evaluations": [], "next": 3}
    with path.open("a") as file:
        file.write('ion": 4}\n{"iteration": 5}\n')
    assert metrics(runs, 3)["metrics"] == [{"iteration": 4}, {"iteration": 5}]
    rows = [{"iteration": number, "new": True} for number in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert metrics(runs) == {"metrics": rows, "evaluations": [], "next": 9}
    path.unlink()
    assert listed(runs) == {}
    with pytest.raises(RefusedError):
        metrics(runs)


def test_damaged_rows_are_skipped(tmp_path: Path) -> None:
    make(tmp_path, "a", [{"iteration": 1}, "{no}\n", "[1]\n", "\n", "{" * 100 + "}\n", {"iteration": 7}, "{also no}\n"])
    make(tmp_path, "b", [])
    (tmp_path / "a" / "evaluations.jsonl").write_bytes(b'\xff\xfe\n{"elo": 1}\n')
    os.mkfifo(tmp_path / "b" / "evaluations.jsonl")
    runs = Runs(tmp_path)
    assert [row["iteration"] for row in metrics(runs)["metrics"]] == [1, 7]
    assert metrics(runs)["evaluations"] == [{"elo": 1}]
    assert listed(runs)["a"]["finished"]
    assert metrics(runs, name="b") == {"metrics": [], "evaluations": [], "next": 0}


def test_answers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    rows = [{"iteration": number, "text": "x" * (number % 7) * 20} for number in range(30)]
    make(tmp_path, "a", rows)
    runs = Runs(tmp_path)
    read: list[Any] = []
    after = 0
    while part := (answer := metrics(runs, after))["metrics"]:
        assert len(part) <= 4
        read += part
        after = answer["next"]
    assert read == rows


def test_equal_requests_share_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a", [{"iteration": number} for number in range(10)])
    runs = Runs(tmp_path)
    updates: list[Any] = []

    def update(rows: module.Rows) -> None:
        updates.append(rows)

    monkeypatch.setattr(module.Rows, "update", update)

    async def ask() -> list[str]:
        return await asyncio.gather(*(runs.listed() for _ in range(25)))

    assert len(set(asyncio.run(ask()))) == len(updates) == 1
