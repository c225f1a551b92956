"""The command line as people and scripts use it."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax import presets
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.benchmarks import everything, pgx_protocol
from tilewe_jax.registry import available_games
from tilewe_jax.utils import interrupts

SMALL = ["--set", "size=6", "pieces=O1,I2,L3,T4", "--players", "2"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        cli.main(list(arguments))
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_games(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "games")
    assert code == 0
    assert all(name in out for name in ("tilewe", "duo_official", "36,400", "262 B"))
    code, out, err = run(capsys, "games", "--json")
    rows = {row["game"]: row for row in json.loads(out)["games"]}
    assert (code, err) == (0, "")
    assert rows["duo"]["actions"] == 17_836
    assert rows["tilewe"]["options"]["players"] == 4


def test_rollout_replay_and_show(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, picture = tmp_path / "games.jsonl", tmp_path / "game.svg"
    code, out, err = run(capsys, "rollout", *SMALL, "--games", "50", "--batch", "16", "--out", str(path), "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["games"] == 50
    assert summary["moves"] == sum(len(json.loads(line)["actions"]) for line in path.read_text().splitlines()[1:])
    assert sum(summary["win_rate"]) == pytest.approx(1, abs=1e-3)
    assert not summary["interrupted"]

    code, out, _ = run(capsys, "rollout", *SMALL, "--games", "50", "--batch", "16")
    assert code == 0
    assert "50 games" in out
    assert f"{summary['mean_score'][0]:.2f}" in out  # the same seed, the same games
    assert "game over" in out

    code, out, _ = run(capsys, "replay", str(path))
    assert code == 0
    assert "50 of 50 games of tilewe replay" in out
    code, out, err = run(capsys, "show", str(path), "--number", "50", "--brief", "--svg", str(picture))
    assert (code, err) == (0, "")
    assert out.startswith("  1. player 1: ")
    assert picture.read_text().startswith("<svg")

    lines = path.read_text().splitlines()
    record = json.loads(lines[7])
    record["scores"][0] += 1
    lines[7] = json.dumps(record)
    path.write_text("\n".join(lines))
    code, out, err = run(capsys, "replay", str(path), "--json")
    assert code == 1
    assert json.loads(out)["faults"][0]["game"] == 7


@pytest.mark.parametrize(
    ("options", "first", "end", "shapes"),
    [
        (["santorini", "--set", "size=4", "placement=random"], r"player 1: [a-d][1-4]-[a-d][1-4]\*[a-d][1-4]\n 4  ", "wins", 4),
        (
            ["triominos", "--players", "3", "--set", "tiles=20", "tray=4", "hex_scores=50,60,70"],
            r"player \d: (\d\d\d-ABC@0,0|draw)\n",
            "pile: ",
            1,
        ),
    ],
    ids=["santorini", "triominos"],
)
def test_games_that_chance_begins(
    options: list[str], first: str, end: str, shapes: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, picture = tmp_path / "games.jsonl", tmp_path / "end.svg"
    code, out, err = run(capsys, "rollout", "--game", *options, "--games", "40", "--batch", "32", "--out", str(path), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["games"] == 40
    deals = {json.dumps(json.loads(line)["deal"]) for line in path.read_text().splitlines()[1:]}
    assert len(deals) > 30
    code, out, _ = run(capsys, "replay", str(path), "--json")
    assert (code, json.loads(out)["wrong"]) == (0, 0)
    code, out, _ = run(capsys, "show", str(path), "--number", "2", "--svg", str(picture))
    assert code == 0
    assert re.match(r"  1\. " + first, out)
    assert end in "".join(out.splitlines()[-2:])
    assert len(re.findall("tilewe-worker|tilewe-tile", picture.read_text())) >= shapes


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tilewe_jax games | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False
    )
    assert done.stderr == ""


def test_perft(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "perft", "--game", "classic", "--depth", "2", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["leaves"] == 3_364
    assert json.loads(out)["leaves_by_depth"] == [58, 3_364]


@pytest.mark.parametrize("form", ["stream", "games", "step"])
def test_bench(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "play", *SMALL, "--batch", "8", "--seconds", "0.2", "--form", form, "--json"]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert figures["policy"] == "random"
    for name in ("game", "players", "batch", "device", "jax", "moves", "games", "seconds", "cpu_seconds"):
        assert name in figures
    for name in ("moves_per_second", "moves_per_cpu_second", "compile_seconds", "state_bytes"):
        assert figures[name] > 0
    assert figures["players"] == 2


@pytest.mark.parametrize("game", ["santorini", "pgx:connect_four"])
def test_bench_by_the_protocol_of_pgx(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    if game.startswith("pgx:"):
        pytest.importorskip("pgx")
    code, out, err = run(capsys, "bench", "pgx", "--game", game, "--batch", "8", "--seconds", "0.1", "--json")
    assert (code, err) == (0, "")
    (figures,) = json.loads(out)
    assert (figures["game"], figures["batch"], figures["protocol"]) == (game, 8, "pgx")
    assert figures["moves"] == 8 * figures["steps"]
    assert figures["moves_per_second"] > 0


def test_bench_of_everything_keeps_what_it_has_and_ends_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [
        everything.Measurement("kept", ["play", "--game", "nosuch"]),
        everything.Measurement("wrong", ["play", "--game", "nosuch"]),
        everything.Measurement("board", ["play", "--form", "board"]),
    ]
    monkeypatch.setattr(everything, "plan", lambda *_: items)
    (tmp_path / "kept.json").write_text("{}")
    arguments = ["all", "--out", str(tmp_path), "--seconds", "0.1", "--json"]
    code, out, _ = run(capsys, "bench", *arguments)
    assert code == 0
    wrong, board = json.loads(out)
    assert "there is no game 'nosuch'" in wrong["failure"]
    assert board["failure"] is None
    assert json.loads((tmp_path / "board.json").read_text())["game"] == "tilewe"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board.json", "kept.json"]
    assert run(capsys, "bench", *arguments, "--minutes", "0.01")[1] == "[]\n"
    late = everything._measure(tmp_path / "late.json", ["play", "--form", "board"], 0.01)
    assert late
    assert "not done within" in late


def test_everything_that_is_measured_exists() -> None:
    for accelerator in (False, True):
        items = everything.plan(accelerator, True)
        assert len({item.name for item in items}) == len(items)
        assert len({tuple(item.arguments) for item in items}) == len(items)
        for item in items:
            options = dict(zip(item.arguments, item.arguments[1:], strict=False))
            assert options.get("--game", "tilewe").removeprefix("pgx:") in {*available_games(), *pgx_protocol.PGX_GAMES}
            assert options.get("--preset", "tilewe_cpu") in presets.names()


def test_bench_of_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["search", "--batch", "4", "--num-simulations", "6", "--num-candidates", "5", "--seconds", "0.1", "--json"]
    code, out, err = run(capsys, "bench", *arguments)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert (figures["batch"], figures["simulations"], figures["candidates"]) == (4, 6, 5)
    for name in ("ours", "mctx", "ratio", "simulations_per_second", "bytes_per_node", "compile_seconds"):
        assert figures[name] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rollout", "--bacth", "3"], "did you mean --batch?"),
        (["rolout"], "there is no command 'rolout' (did you mean rollout?); see tilewe-jax --help"),
        (["x"], "there is no command 'x' (expected one of games, rollout, "),
        (["--fast", "rollout"], "expected a command before --fast"),
        (["rollout", "--batch", "many"], "--batch must be an integer, not 'many'"),
        (["rollout", "--batch=many"], "--batch must be an integer, not 'many'"),
        (["match", "--sprt", "5"], "--sprt"),
        (["match", "--sprt", "a", "5"], "'a 5'"),
        (["match", "random", "turtle"], "like random turtle random turtle, or play with --players 2"),
        (["rollout", "--batch", "0"], "--batch must be positive, not 0"),
        (["rollout", "--games", "-1"], "--games must be positive, not -1"),
        (["rollout", "--game", "chess"], "there is no game 'chess'; there are tilewe, duo"),
        (["rollout", "--players", "7"], "players must be 1 to 4, not 7"),
        (["rollout", "--game", "duo", "--players", "2"], "duo has no option players; its options are size"),
        (["rollout", "--game", "santorini", "--set", "size=2"], "size must be 3 to 10, not 2 (four workers fill"),
        (["rollout", "--game", "santorini", "--set", "placement=any"], "placement must be one of default, random, chosen"),
        (["rollout", "--game", "triominos", "--players", "7"], "players must be 2 to 6, not 7"),
        (["rollout", "--game", "triominos", "--set", "start=first"], "start must be one of random, highest, winner"),
        (["rollout", "--game", "triominos", "--set", "hex_scores=50,60"], "hex_scores"),
        (["bench", "--game", "triominos", "--policy", "best"], "triominos has no policy 'best'; it has random, random_stuck"),
        (["rollout", "--set", "size"], "--set takes OPTION=VALUE"),
        (["rollout", "--set", "size=40"], "size must be 3 to 32, not 40"),
        (["rollout", "--out", "/no/such/folder/file"], "there is no folder /no/such/folder"),
        (["rollout", "--devices", "64", "--games", "1"], "--devices must be 1 to 4"),
        (["perft", "--depth", "0"], "--depth must be positive"),
        (["bench", "--cores", "999"], "--cores must be 1 to"),
        (["bench", "--form", "fast"], "--form must be one of stream, games, step, board, not 'fast'"),
        (["bench", "search", "--num-simulations", "0"], "--num-simulations must be positive, not 0"),
        (["bench", "search", "--game", "chess"], "there is no game 'chess'"),
        (["show"], "missing: FILE"),
    ],
)
def test_wrong_arguments_give_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("tilewe-jax: ")
    assert err.count("\n") == 1


def test_bad_files_give_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("hello")
    for path, message in ((foreign, "not a JSON object"), (tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        for command in ("replay", "show"):
            code, _, err = run(capsys, command, str(path))
            assert code == 1
            assert message in err
            assert err.count("\n") == 1
    code, _, err = run(capsys, "rollout", *SMALL, "--games", "4", "--out", str(tmp_path))
    assert code == 2
    assert "is a folder" in err


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    arguments = ["rollout", *SMALL, "--games", "100000000", "--batch", "64", "--out", str(path)]
    with subprocess.Popen(
        [sys.executable, "-m", "tilewe_jax", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TERM": "dumb"},
    ) as process:
        try:
            assert process.stderr
            for line in process.stderr:
                if re.match(r"playing: .* [1-9][\d,]* of 100,000,000 games", line):
                    break
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # or it would play on for ever
    assert process.returncode == 130
    assert err.splitlines()[-1] == "tilewe-jax: interrupted"
    games = len(path.read_text().splitlines()) - 1
    assert games > 0
    assert f"{games:,} games written to" in out


def test_a_hangup_ends_a_command_unless_it_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert interrupts.signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # by nohup
        assert interrupts.signals() == [signal.SIGINT, signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("place", ["hook", "dictionary", "set"])
def test_ctrl_c_while_the_garbage_collector_is_at_work_is_not_lost(place: str) -> None:
    """Struck within a hook of it, or within the callback of a weak reference."""
    before = signal.signal(signal.SIGINT, interrupts.interrupt)
    struck = []

    def strike() -> None:
        struck.append(True)
        signal.raise_signal(signal.SIGINT)

    def hook(*_: object) -> None:
        if not struck:
            strike()

    class Key:
        pass

    class Dictionary(dict[Any, Any]):
        def __delitem__(self, key: object) -> None:
            super().__delitem__(key)
            strike()

    class Set(set[Any]):
        def discard(self, element: object) -> None:
            super().discard(element)
            strike()

    def collect_and_wait() -> None:
        if place == "dictionary":
            keys: weakref.WeakKeyDictionary[Key, int] = weakref.WeakKeyDictionary()
            keys.data = Dictionary()
            keys[Key()] = 1  # gone at once
        elif place == "set":
            elements: weakref.WeakSet[Key] = weakref.WeakSet()
            elements.data = Set()
            elements.add(Key())
        else:
            gc.collect()
        time.sleep(5)

    if place == "hook":
        gc.callbacks.append(hook)
    try:
        with pytest.raises(KeyboardInterrupt):
            collect_and_wait()
    finally:
        if place == "hook":
            gc.callbacks.remove(hook)
        signal.signal(signal.SIGINT, before)
    assert struck
