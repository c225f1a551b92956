"""The command `explore`; the counts are tested in tests/tilewe_jax/test_explorer.py."""

import json
from pathlib import Path

import pytest

from tests.tilewe_jax.cli.test_cli import run
from tests.tilewe_jax.web.test_explore import HOST, random_record
from tilewe_jax import records
from tilewe_jax.host_games import make_host_game


def test_moves_of_several_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    games = [random_record(seed) for seed in range(6)]
    records.write(first, HOST, games[:4])
    records.write(second, HOST, games[4:])
    code, out, err = run(capsys, "explore", str(first), str(second), "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["game"], answer["games"], sum(row["count"] for row in answer["moves"])) == ("duo", 6, 6)
    most = answer["moves"][0]
    code, out, err = run(capsys, "explore", str(first), str(second), "--json", "--after", most["name"])
    assert code == 0, err
    assert sum(row["count"] for row in json.loads(out)["moves"]) == most["count"]
    code, out, err = run(capsys, "explore", str(first))
    assert code == 0, err
    assert "4 games" in out
    assert "lead" in out


def test_wrong_files_and_moves(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first, other, hidden = (tmp_path / f"{name}.jsonl" for name in ("first", "other", "hidden"))
    records.write(first, HOST, [random_record(0)])
    records.write(other, make_host_game("duo"), [records.Record(None, (), (), ())])
    triominos = make_host_game("triominos")
    records.write(hidden, triominos, [])
    for arguments, message in (
        ([str(first), str(other)], "has games of"),
        ([str(first), "--after", "x1"], "--after"),
        ([str(hidden)], "no games"),
        ([str(tmp_path / "missing")], "missing"),
        ([str(first), "--positions", "0"], "positions"),
    ):
        code, out, err = run(capsys, "explore", *arguments)
        assert code in (1, 2)
        assert out == ""
        assert message in err
        assert err.count("\n") == 1
