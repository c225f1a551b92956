"""The command ``solve``."""

import json
from pathlib import Path
from typing import Any

import pytest

import tilewe_jax
from experiments.endings.reference import Exhaustive, best_of
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import records
from tilewe_jax.host_games import make_host_game

OPTIONS = {"size": 5, "pieces": ["O1", "I2", "L3"]}


def test_it_prints_exact_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = make_host_game("duo", **OPTIONS)
    positions, actions = [host.init_from_deal(None)], []
    while not positions[-1].is_terminal:
        actions.append(positions[-1].legal_actions()[-1 if len(actions) % 2 else 0])
        positions.append(positions[-1].after(actions[-1]))
    path = tmp_path / "games"
    record = records.Record(None, tuple(actions), (), (), ())
    records.write(path, tilewe_jax.make("duo", **OPTIONS), [record])

    code, printed, err = run(capsys, "solve", str(path), "--json", "--nodes", "3000")
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(printed)["positions"]
    assert rows[-1]["move"] == len(actions) - 1
    compared = 0
    for row in rows:
        assert row["nodes"] <= 3_000
        position = positions[row["move"]]
        margins = Exhaustive(host, 20_000).action_margins(position)
        if margins is None or not row["exact"]:
            continue
        sign = 1 - 2 * position.current_player
        best = best_of(list(margins.values()), position)
        assert row["margin"] == sign * best
        assert row["outcome"] == ("tie" if not best else "win" if sign * best > 0 else "loss")
        assert margins[position.action_of_name(row["best_move"])] == best
        if row["lost"] is not None:
            assert row["lost"] == sign * (best - margins[actions[row["move"]]])
        compared += 1
    assert compared >= 2

    exact = next(row for row in rows if row["exact"])
    options = ("--move", str(exact["move"]), "--nodes", "3000")
    code, printed, err = run(capsys, "solve", str(path), *options, "--json")
    (row,) = json.loads(printed)["positions"]
    position = positions[exact["move"]]
    for name in row["line"]:
        position = position.after(position.action_of_name(name))
    scores = position.scores()
    assert position.is_terminal
    assert row["margin"] == exact["margin"] == (scores[0] - scores[1]) * (1 - 2 * exact["player"])
    code, printed, err = run(capsys, "solve", str(path), *options)
    assert code == 0, err
    assert row["outcome"] in printed
    code, printed, err = run(capsys, "solve", str(path), "--move", "99")
    assert code == 2
    assert "--move" in err
