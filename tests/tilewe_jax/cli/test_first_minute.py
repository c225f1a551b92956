"""The compilation cache, progress, and interrupts before the first result. Nothing is compiled."""

import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests.support import wait_until
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.cli import compilation_cache, match
from tilewe_jax.cli.benchmarks import rollouts
from tilewe_jax.training import checkpoint
from tilewe_jax.training.loop import _Pace
from tilewe_jax.utils import programs, progress
from tilewe_jax.utils.progress import Progress

VARIABLES = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", programs.FOLDER, *compilation_cache._SETTINGS)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for caches, without settings of the user."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # restored after the test
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    return tmp_path


def test_the_tests_have_their_own_cache() -> None:
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] != str(compilation_cache.folder())


def test_the_cache_is_in_the_folder_of_the_user(caches: Path) -> None:
    with warnings.catch_warnings():
        compilation_cache.enable()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(caches / "tilewe_jax")
    assert (caches / "tilewe_jax").is_dir()
    assert int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) == compilation_cache.MAX_BYTES
    assert os.environ[programs.FOLDER] == str(caches / "tilewe_jax" / "programs")


@pytest.mark.parametrize(
    ("name", "value", "folder"),
    [
        ("JAX_COMPILATION_CACHE_DIR", "elsewhere", {programs.FOLDER: str(Path("elsewhere", "programs"))}),
        ("JAX_COMPILATION_CACHE_DIR", "gs://elsewhere", {}),
        ("JAX_ENABLE_COMPILATION_CACHE", "False", {}),
    ],
)
def test_the_settings_of_the_user_stay(
    caches: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, folder: dict[str, str]
) -> None:
    monkeypatch.setenv(name, value)
    compilation_cache.enable()
    assert {variable: os.environ[variable] for variable in VARIABLES if variable in os.environ} == {name: value, **folder}
    assert not list(caches.iterdir())


def test_an_option_turns_the_cache_off(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--no-cache", "games", "--json")[0] == 0
    assert os.environ["JAX_ENABLE_COMPILATION_CACHE"] == "false"
    assert not os.environ[programs.FOLDER]
    assert not list(caches.iterdir())


def test_commands_have_a_cache_and_help_needs_none(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--help",), ("--version",), ("match", "--help"), ("match", "--nosuch")):
        run(capsys, *arguments)
        assert not set(VARIABLES) & set(os.environ)
        assert not list(caches.iterdir())
    assert run(capsys, "games", "--json")[0] == 0
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(compilation_cache.folder())


def test_a_read_only_folder_disables_the_cache(caches: Path) -> None:
    (caches / "tilewe_jax").write_text("a file")
    compilation_cache.enable()
    assert not set(VARIABLES) & set(os.environ)


def test_unfinished_and_damaged_entries_are_deleted(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JAX fails to delete entries without a time of access, and does not replace damaged ones."""
    folder = caches / "tilewe_jax"
    folder.mkdir()
    names = ("jit_old-1-cache", "jit_new-2-cache", "jit_play-3-cache", "jit_play-3-atime", "jit_play_on-4-cache")
    for name in names:
        (folder / name).write_bytes(b"")
    os.utime(folder / "jit_old-1-cache", (0, 0))
    with warnings.catch_warnings():
        compilation_cache.enable()
        warnings.warn("Error reading persistent compilation cache entry for 'jit_play': ValueError: cut off", stacklevel=1)
        warnings.warn("Error writing persistent compilation cache entry for 'jit_x': OSError: disk full", stacklevel=1)
    left = {path.name for path in folder.iterdir()}
    assert left == {"jit_new-2-cache", "jit_play-3-atime", "jit_play_on-4-cache"}
    assert capsys.readouterr().err == ""


def test_a_damaged_entry_is_replaced_in_silence(caches: Path) -> None:
    """JAX compiles a small function in two processes."""
    program = (
        "from tilewe_jax.cli import compilation_cache; compilation_cache.enable()\n"
        "import jax; print(jax.jit(lambda x: x + 1)(1))"
    )
    environment = {**os.environ, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "PYTHONWARNINGS": "default"}
    folder, sizes = caches / "tilewe_jax", []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("2\n", "")
        entries = sorted(folder.glob("*-cache"))
        sizes.append([entry.stat().st_size for entry in entries])
        for entry in entries:
            entry.write_bytes(entry.read_bytes()[:20])
    assert sizes[0] == sizes[1]
    assert min(sizes[0]) > 20


def test_lines_of_progress_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.02)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    written = io.StringIO()
    with Progress(total=2000, console=Console(file=written, width=40)) as shown:
        assert progress.is_compiling()
        wait_until(written.getvalue)
        shown.update(1500, lambda: "win rates a 61%, b 39%", "playing")
        assert not progress.is_compiling()
        wait_until(lambda: "b 39%\n" in written.getvalue())
    lines = written.getvalue().splitlines()
    assert lines[0] == f"{progress.COMPILING}: 0 s"
    assert lines[-1] == "playing: 0 s, 1,500 of 2,000 games, win rates a 61%, b 39%"
    assert progress._shown is None


def test_a_line_names_the_program_that_is_compiled() -> None:
    progress.compiling("the search", 1, 2)  # nothing is shown
    with Progress(console=None) as shown:
        progress.compiling("the search", 2, 3)
        assert shown.line() == "compiling the search, 2 of 3: 0 s"
        progress.compiling("the moves", 1, 1)
        assert shown.line() == "compiling the moves: 0 s"
        progress.compiling("", 0, 0)
        assert shown.line() == f"{progress.COMPILING}: 0 s"
        progress.compiling("the search", 2, 3)
        shown.phase("playing")
        assert shown.line() == "playing: 0 s, 0 games"


def test_lines_are_frequent_again_after_a_long_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, written = SimpleNamespace(seconds=0.0), io.StringIO()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    for name, seconds in (("SECONDS_BETWEEN_LINES", 0.02), ("_SLOWLY", 100.0)):
        monkeypatch.setattr(progress, name, seconds)
    with Progress(console=Console(file=written, width=80)) as shown:
        for _ in range(3):
            clock.seconds += 0.5 * progress._PATIENCE
            lines = written.getvalue().count("\n")
            wait_until(lambda lines=lines: written.getvalue().count("\n") > lines + 1)
        shown.phase("playing")
        wait_until(lambda: written.getvalue().count("playing") > 2)


def test_a_match_shows_its_speed_before_the_first_game_ends() -> None:
    begun = SimpleNamespace(games=0, ply=0, decisions={}, clock=0.0, names=["puct"])
    assert not match._so_far(begun)
    first = SimpleNamespace(games=0, ply=3, decisions={"puct": 384}, clock=2.0, names=["puct"])
    assert match._so_far(first).endswith("192.0 moves/s")


def test_progress_on_a_terminal() -> None:
    written = io.StringIO()
    with Progress(total=2000, console=Console(file=written, width=120, force_terminal=True)):
        wait_until(lambda: "compiling" in written.getvalue())
    assert written.getvalue().rstrip().endswith("\x1b[2K"), "nothing of it is left on the screen"


def test_an_early_ctrl_c_keeps_the_file_and_prints_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play_games(game: object, *_: object) -> rollouts.RandomGames:
        return rollouts.RandomGames(game, interrupted=True)  # type: ignore[arg-type]

    monkeypatch.setattr(rollouts, "play_games", play_games)
    path = tmp_path / "games.jsonl"
    path.write_text("before")
    assert run(capsys, "rollout", "--out", str(path)) == (130, "", "tilewe-jax: interrupted\n")
    assert path.read_text() == "before"


def test_the_pace_of_a_run() -> None:
    """A part that is new in an iteration must compile, which takes about as long as the first iteration."""
    pace = _Pace()
    assert pace.of(["self-play", "learning"]) == 0
    pace.add({"self-play": 30.0, "learning": 0.0})
    pace.add({"self-play": 2.0, "learning": 0.0})
    assert pace.of(["self-play"]) == 2
    assert pace.of(["self-play", "learning", "evaluation"]) == 62
    pace.add({"evaluation": 5.0, "learning": 1.0})
    assert pace.of(["self-play", "learning", "evaluation"]) == 8


def test_folders_of_unfinished_checkpoints(tmp_path: Path) -> None:
    assert checkpoint.has_no_other(tmp_path / "none")
    (tmp_path / "000000.orbax-checkpoint-tmp").mkdir()
    assert checkpoint.has_no_other(tmp_path)
    (tmp_path / "000001").mkdir()
    assert not checkpoint.has_no_other(tmp_path)
    checkpoint.delete_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["000001"]


def test_json_alone_is_printed_off_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.001)
    code, out, err = run(capsys, "perft", "--game", "santorini", "--set", "size=3", "--depth", "1", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["depth"] == 1
