"""Outputs of commands: on narrow terminals, in all encodings, to readers that go, and after internal errors."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from rich.console import Console

from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import presets, records
from tilewe_jax.cli import crash, games, streams
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.tables import Rows
from tilewe_jax.host_games import make_host_game
from tilewe_jax.registry import available_games
from tilewe_jax.utils import progress

ROOT = Path(__file__).parents[3]
AGENTS = ("gumbel:num_simulations=16,max_num_considered_actions=4", "gumbel:num_simulations=16,max_num_considered_actions=8")


def process(*arguments: str, closed: str = "", **environment: str) -> tuple[int, str, str]:
    """Run a command as a process; the stream ``closed`` has no reader."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tilewe_jax", *arguments]
    pipes = {name: writer if name == closed else subprocess.PIPE for name in ("stdout", "stderr")}
    done = subprocess.run(command, **pipes, cwd=ROOT, check=False, env={**os.environ, **environment})  # type: ignore[call-overload]
    os.close(writer)
    return done.returncode, *((content or b"").decode("latin-1") for content in (done.stdout, done.stderr))


@pytest.mark.parametrize("width", [1, 7, 40, 59, 80, 200])
def test_tables_keep_names_and_numbers_whole_at_any_width(width: int) -> None:
    table = Rows("agent", "win rate", "ties", wrap=("agent",), title="duo (2 players)")
    for agent in AGENTS:
        table.add(agent, "0.1234 ± 0.5", "36,400")
    file = io.StringIO()
    table.print(Console(file=file, width=width, soft_wrap=True))
    text = file.getvalue()
    assert "…" not in text
    assert text.count("0.1234 ± 0.5") == text.count("36,400") == 2
    assert all(agent in text for agent in AGENTS)
    if width >= 60:
        assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", ["1", "40"])
def test_narrow_terminals_show_all_ids(width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = run(capsys, "games")
    assert code == 0
    assert set(available_games()) <= set(re.findall(r"\w+", out))
    code, out, _ = run(capsys, "train", "--list")
    assert (code, set(presets.names()) <= set(re.findall(r"\w+", out))) == (0, True)
    for arguments in (["--help"], ["games", "--help"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "tilewe-jax" in out
    assert os.environ["COLUMNS"] == width


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_encoding_can_print_every_text(encoding: str) -> None:
    with io.TextIOWrapper(io.BytesIO(), encoding) as stream, mock.patch("sys.stdout", stream):
        streams.encode_everything()
        print("1 ± 2 … \u2588 \udcff")
        stream.flush()
        content = stream.buffer.getvalue()  # type: ignore[attr-defined]
    assert b"1 " in content
    assert b"\\udcff" in content
    if encoding == "ascii":
        assert content == b"1 +- 2 ... \\u2588 \\udcff\n"


def test_processes_print_in_other_encodings() -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, out, err = process("games", "\u20ac", **environment)
    assert (code, out) == (2, "")
    assert err.startswith("tilewe-jax: ")
    code, out, err = process("games", **environment)
    assert (code, err) == (0, "")
    assert "| santorini" in out


@pytest.mark.parametrize("arguments", [["games"], ["--help"], pytest.param(["train", "--list"], marks=pytest.mark.slow)])
def test_a_command_without_a_reader_ends_silently(arguments: list[str]) -> None:
    assert process(*arguments, closed="stdout") == (streams.CODE_OF_BROKEN_PIPE, "", "")


def test_unread_messages_do_not_change_the_exit_code() -> None:
    assert process("nosuch", closed="stderr") == (2, "", "")


def test_an_internal_error_is_one_line_and_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(self: object) -> None:
        raise TypeError("x" * 9_000 + "\nsecond line")

    monkeypatch.setattr(games.Games, "run", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out, err = run(capsys, "games", "--json")
    assert (code, out) == (crash.CODE, "")
    assert err.startswith("tilewe-jax: internal error: TypeError: xxx")
    assert err.count("\n") == 1
    (file,) = tmp_path.iterdir()
    assert str(file) in err
    text = file.read_text()
    assert "Traceback" in text
    assert "second line" in text
    assert "tilewe-jax games --json" in text

    file.unlink()  # no folder for the file
    monkeypatch.setattr("tempfile.mkstemp", mock.Mock(side_effect=OSError("full")))
    code, _, err = run(capsys, "games")
    assert code == crash.CODE
    assert re.search(r"raised in .*test_outputs.py, line \d+\n$", err)
    assert err.count("\n") == 1


class Strange(Exception):  # noqa: N818
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError


def test_the_report_of_an_error_never_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "Strange" in crash.report(Strange(), ["\udcff"], "1")
    with mock.patch("os.path.abspath", side_effect=OSError):
        assert "internal error" in crash.report(RecursionError(), [], "1")


def test_the_development_mode_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games.Games, "run", mock.Mock(side_effect=KeyError("deep")))
    monkeypatch.setattr("sys.flags", mock.Mock(dev_mode=True))
    with pytest.raises(KeyError, match="deep"):
        cli.main(["games"])


@pytest.mark.parametrize(
    ("arguments", "work"),
    [
        (["replay"], "tilewe_jax.records.replay"),
        (["show", "--brief"], "tilewe_jax.cli.terminal.viewer.Replay.position"),
        (["render", "--out", "game.svg"], "tilewe_jax.cli.render.Render._game"),
        (["render", "--out", "games.svg", "--format", "grid"], "tilewe_jax.cli.render.Render._grid"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_progress_is_shown_while_own_games_are_replayed(
    arguments: list[str], work: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class DoneError(BaseException):
        pass

    def check(*args: object, **kwargs: object) -> None:
        assert progress._shown is not None
        raise DoneError

    monkeypatch.chdir(tmp_path)
    game = make_host_game("santorini")
    records.write(tmp_path / "f", game, [records.Record(None, (0,), (0, 0), (0.0, 0.0))])  # type: ignore[arg-type]
    monkeypatch.setattr(work, check)
    command, *options = arguments
    with pytest.raises(DoneError):
        run(capsys, command, "f", *options)


def test_lines_of_progress() -> None:
    shown = progress.Progress(total=1, console=None)
    assert "minute" not in shown.line()
    assert re.search(r": \d+ s$", shown.line())
    shown.update(1, phase="playing")
    assert shown.line().endswith("1 of 1 game")
