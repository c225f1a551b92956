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

from tests.support import slow
from tilewe_jax import presets
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.benchmarks import everything, pgx_protocol
from tilewe_jax.registry import available_games
from tilewe_jax.utils import interrupts

SMALL = ["--set", "size=6", "pieces=O1,I2,L3,T4", "--players", "2"]
SANTORINI = ["--game", "santorini", "--set", "size=3"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output, standard error."""
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
    assert all(name in out for name in (*available_games(), "36,400", "262 B"))
    code, out, err = run(capsys, "games", "--json")
    rows = {row["game"]: row for row in json.loads(out)["games"]}
    assert (code, err) == (0, "")
    assert rows["duo"]["actions"] == 17_836
    assert rows["tilewe"]["options"]["players"] == 4


def test_rollout_replay_and_show(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, picture = tmp_path / "games.jsonl", tmp_path / "game.svg"
    code, out, err = run(capsys, "rollout", *SMALL, "--games", "20", "--batch", "8", "--out", str(path), "--json")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert (summary["games"], summary["interrupted"]) == (20, False)
    assert summary["moves"] == sum(len(json.loads(line)["actions"]) for line in path.read_text().splitlines()[1:])
    assert sum(summary["win_rate"]) == pytest.approx(1, abs=1e-3)

    code, out, _ = run(capsys, "rollout", *SMALL, "--games", "20", "--batch", "8")
    assert code == 0
    assert f"{summary['mean_score'][0]:.2f}" in out, "the same seed plays the same games"

    code, out, _ = run(capsys, "replay", str(path))
    assert (code, "20 of 20" in out) == (0, True)
    code, out, err = run(capsys, "show", str(path), "--number", "20", "--brief", "--svg", str(picture))
    assert (code, err) == (0, "")
    assert out.startswith("  1. player 1: ")
    assert picture.read_text().startswith("<svg")

    lines = path.read_text().splitlines()
    record = json.loads(lines[7])
    record["scores"][0] += 1
    lines[7] = json.dumps(record)
    path.write_text("\n".join(lines))
    code, out, err = run(capsys, "replay", str(path), "--json")
    assert (code, json.loads(out)["faults"][0]["game"]) == (1, 7)


@pytest.mark.parametrize(
    ("options", "first", "shapes"),
    [
        (["santorini", "--set", "size=4", "placement=random"], r"player 1: [a-d][1-4]-[a-d][1-4]\*[a-d][1-4]\n 4  ", 4),
        slow(
            ["triominos", "--players", "3", "--set", "tiles=20", "tray=4", "hex_scores=50,60,70"],
            r"player \d: (\d\d\d-ABC@0,0|draw)\n",
            1,
        ),
    ],
    ids=["santorini", "triominos"],
)
def test_games_with_a_random_start(
    options: list[str], first: str, shapes: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
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
    assert len(re.findall("tilewe-worker|tilewe-tile", picture.read_text())) >= shapes


def test_perft(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "perft", *SANTORINI, "--depth", "2", "--json")
    assert (code, err) == (0, "")
    counts = json.loads(out)["leaves_by_depth"]
    assert json.loads(out)["leaves"] == counts[-1]
    assert run(capsys, "perft", *SANTORINI, "--depth", "1", "--json")[1].count(f"[{counts[0]}]") == 1


@pytest.mark.parametrize("form", ["stream", slow("games"), slow("step")])
def test_bench(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "play", *SANTORINI, "--batch", "8", "--seconds", "0.2", "--form", form, "--json"]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert (figures["policy"], figures["players"], figures["batch"]) == ("random", 2, 8)
    for name in ("game", "device", "jax", "moves", "games", "seconds", "cpu_seconds"):
        assert name in figures
    for name in ("moves_per_second", "moves_per_cpu_second", "compile_seconds", "state_bytes"):
        assert figures[name] > 0


def test_bench_of_forms_in_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "play", "--form", "board", "--seconds", "0.1", "--json"]
    of_positions = {"game", "players", "form", "play_us"}
    of_boards = {"positions", "legal_moves", *(f"{name}_us" for name in ("board_play", "generate", "count", "push_and_pop"))}
    for options, names in (
        (SANTORINI, of_positions),
        (["--game", "triominos", "--set", "tiles=10", "tray=2"], of_positions),
        (["--players", "2"], of_positions | of_boards | {"create_us", "copy_us"}),
        (["--set", "size=5"], of_positions),
    ):
        code, out, err = run(capsys, *arguments, *options)
        assert (code, err) == (0, "")
        figures = json.loads(out)
        assert set(figures) == names
        assert all(figures[name] > 0 for name in names - {"game", "form"})
    code, _, err = run(capsys, *arguments, "--game", "experiments.examples.custom_game:ConnectFour")
    assert code == 2
    assert "runs on the device only" in err


@pytest.mark.parametrize("game", [SANTORINI, slow(["--game", "pgx:connect_four"])], ids=["own", "pgx"])
def test_bench_by_the_protocol_of_pgx(game: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if game[1].startswith("pgx:"):
        pytest.importorskip("pgx")
    code, out, err = run(capsys, "bench", "pgx", *game, "--batch", "8", "--seconds", "0.1", "--json")
    assert (code, err) == (0, "")
    (figures,) = json.loads(out)
    assert (figures["game"], figures["batch"], figures["protocol"]) == (game[1], 8, "pgx")
    assert figures["moves"] == 8 * figures["steps"]
    assert figures["moves_per_second"] > 0


@pytest.mark.slow
def test_bench_of_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["search", "--batch", "4", "--num-simulations", "6", "--num-candidates", "5", "--seconds", "0.1", "--json"]
    code, out, err = run(capsys, "bench", *arguments)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert (figures["batch"], figures["simulations"], figures["candidates"]) == (4, 6, 5)
    for name in ("ours", "mctx", "ratio", "simulations_per_second", "bytes_per_node", "compile_seconds"):
        assert figures[name] > 0


def test_bench_all_skips_existing_figures_and_ends_in_time(
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
    assert "nosuch" in wrong["failure"]
    assert board["failure"] is None
    assert json.loads((tmp_path / "board.json").read_text())["game"] == "tilewe"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board.json", "kept.json"]
    assert run(capsys, "bench", *arguments, "--minutes", "0.01")[1] == "[]\n"
    assert everything._measure(tmp_path / "late.json", ["play", "--form", "board"], 0.01)


def test_bench_all_measures_existing_games_and_presets() -> None:
    for accelerator in (False, True):
        items = everything.plan(accelerator, True)
        assert len({item.name for item in items}) == len({tuple(item.arguments) for item in items}) == len(items)
        for item in items:
            options = dict(zip(item.arguments, item.arguments[1:], strict=False))
            assert options.get("--game", "tilewe").removeprefix("pgx:") in {*available_games(), *pgx_protocol.PGX_GAMES}
            assert options.get("--preset", "tilewe_cpu") in presets.names()


def test_bad_files_give_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("hello")
    for path in (foreign, tmp_path / "none", tmp_path):
        for command in ("replay", "show"):
            code, _, err = run(capsys, command, str(path))
            assert (code, err.count("\n"), str(path) in err) == (1, 1, True)
    code, _, err = run(capsys, "rollout", *SMALL, "--games", "4", "--out", str(tmp_path))
    assert (code, err.count("\n"), str(tmp_path) in err) == (2, 1, True)


def test_ctrl_c_keeps_finished_games(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    arguments = ["rollout", *SANTORINI, "--games", "100000000", "--batch", "64", "--out", str(path)]
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
            process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "tilewe-jax: interrupted"
    games = len(path.read_text().splitlines()) - 1
    assert games > 0
    assert f"{games:,} games" in out


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_ends_a_command_unless_it_is_ignored(number: int) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert {signal.SIGINT, signal.SIGTERM, number} <= set(interrupts.signals())
        signal.signal(number, signal.SIG_IGN)  # by nohup
        assert number not in interrupts.signals()
    finally:
        signal.signal(number, before)


def test_a_command_called_as_a_function_restores_the_handlers(capsys: pytest.CaptureFixture[str]) -> None:
    before = {number: signal.getsignal(number) for number in interrupts.signals()}
    assert interrupts.interrupt not in before.values()
    assert run(capsys, "--version")[0] == 0
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("place", ["hook", "dictionary", "set"])
def test_ctrl_c_during_garbage_collection_is_not_lost(place: str) -> None:
    """The signal arrives in a hook of the garbage collector, or in the callback of a weak reference."""
    before = signal.signal(signal.SIGINT, interrupts.interrupt)
    struck = []

    def strike(*_: object) -> None:
        if not struck:
            struck.append(True)
            signal.raise_signal(signal.SIGINT)

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
            keys[Key()] = 1  # collected immediately
        elif place == "set":
            elements: weakref.WeakSet[Key] = weakref.WeakSet()
            elements.data = Set()
            elements.add(Key())
        else:
            gc.collect()
        for _ in range(500):
            time.sleep(0.01)

    if place == "hook":
        gc.callbacks.append(strike)
    try:
        with pytest.raises(KeyboardInterrupt):
            collect_and_wait()
    finally:
        if place == "hook":
            gc.callbacks.remove(strike)
        signal.signal(signal.SIGINT, before)
    assert struck


CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
THREADS = """
import os, sys
from tilewe_jax.cli.common import use_one_thread
use_one_thread(int(sys.argv[1]))
import jax
jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.numpy.zeros(4)))
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print(sum(name.startswith("tf_XLAEigen") for name in names))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("games", "given", "expected"),
    [(1, None, 1), (64, None, 1), (65, None, CORES), (1, "2", 2)],
)
def test_programs_for_few_games_have_one_thread(games: int, given: str | None, expected: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NPROC"} | ({"NPROC": given} if given else {})
    shown = subprocess.run(
        [sys.executable, "-c", THREADS, str(games)], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert int(shown) == expected
