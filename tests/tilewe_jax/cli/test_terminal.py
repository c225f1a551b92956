"""The command line on a terminal: the help, parse errors, and recorded games. Nothing is compiled."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from tests.support import heeding_hangups
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import records
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.terminal import viewer
from tilewe_jax.cli.terminal.viewer import Replay, View, clipped, keys_of, pressed, screen
from tilewe_jax.host_games import make_host_game

pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")

ROOT = Path(__file__).parents[3]
LENGTHS = (4, 2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two unfinished games of four and two moves on a small board."""
    header = {"format": records.FORMAT, "game": "tilewe", "version": 1, "options": {"players": 2, "size": 6}}
    game = make_host_game("tilewe", players=2, size=6)
    lines = [header]
    for length in LENGTHS:
        position, actions = game.init_from_deal(None), []
        for _ in range(length):
            actions.append(position.legal_actions()[0])
            position = position.after(actions[-1])
        names = ["first", "second"]
        lines.append({"deal": None, "actions": actions, "scores": position.scores(), "returns": [0.5, 0.5], "players": names})
    path = tmp_path / "games.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def replay(file: Path) -> Replay:
    game, games = records.read_on_host(file)
    return Replay(game, games[0], 1)


# ---- Without a terminal


def fits(text: str, columns: int) -> bool:
    """Return whether all lines fit, except for single words that are wider than the terminal."""
    return all(len(line) <= columns or len(line.split()) == 1 for line in text.splitlines())


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_help_names_every_command(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    (code, out, err), *others = [run(capsys, *arguments) for arguments in ([], ["-h"], ["--help"])]
    assert (code, err) == (0, "")
    assert others == [(code, out, err)] * 2
    for name in cli.COMMANDS:
        assert re.search(rf"^  {name}( |$)", out, re.MULTILINE)
    assert fits(out.partition("\n")[2], columns)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_help_of_a_command_fits_the_terminal(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for option, columns in (("--help", 80), ("--help", 40), ("--help-all", 80)):
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, err = run(capsys, *command.split(), option)
        assert (code, err) == (0, "")
        usage, *lines = out.splitlines()
        assert usage.startswith(f"usage: tilewe-jax {command} ")
        assert fits("\n".join(lines), columns)
        assert len(lines) < 2 * 24 or (option, columns) != ("--help", 80)
        for clutter in ("None", "(default: )", "()", "(False)"):
            assert clutter not in out


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--version")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"tilewe-jax [\d.]+, JAX [\d.]+, jaxlib [\d.]+, Python [\d.]+\n", out)


def test_show_prints_without_a_terminal(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "show", str(file))
    assert (code, err) == (0, "")
    assert re.findall(r"^ +(\d)\. player (\d) \((\w+)\): ", out, re.MULTILINE) == [
        ("1", "1", "first"),
        ("2", "2", "second"),
        ("3", "1", "first"),
        ("4", "2", "second"),
    ]
    code, out, _ = run(capsys, "show", str(file), "--number", "2", "--move", "1", "--svg", str(tmp_path / "board.svg"))
    assert (code, out.count("player")) == (0, 1)
    assert out.startswith("  1. player 1 (first): O1n-a1a1\n")
    assert " 1 b . . . . .\n" in out
    assert (tmp_path / "board.svg").read_text().startswith("<svg")
    code, out, _ = run(capsys, "show", str(file), "--move", "0")
    assert (code, "player" in out, "blue to move" in out) == (0, False, True)
    for arguments, message in ((["--move", "5"], "--move must be 0 to 4"), (["--number", "3"], "--number must be 1 to 2")):
        code, _, err = run(capsys, "show", str(file), *arguments)
        assert (code, message in err, err.count("\n")) == (2, True, 1)


def test_show_names_the_illegal_move(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = file.read_text().splitlines()
    record = json.loads(lines[1])
    record["actions"][2] = record["actions"][0]
    file.write_text("\n".join([lines[0], json.dumps(record)]))
    code, _, err = run(capsys, "show", str(file))
    assert (code, err.count("\n")) == (1, 1)
    assert "game 1, move 3: action 0, O1n at a1, is illegal for blue: " in err


def test_showing_imports_no_jax(file: Path) -> None:
    code = f"import sys; from tilewe_jax.cli import main as cli; cli.main(['show', {str(file)!r}]); print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == "False"


# ---- Keys and the screen


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("\x1b[C", View(0, 1)),
        ("nn\x1b[D", View(0, 1)),
        ("\x1bOC\x1bOC", View(0, 2)),
        ("p", View(0, 0)),
        ("\x1b[F", View(0, 4)),
        ("\x1b[FnnG", View(0, 4)),
        ("\x1b[F\x1b[H", View(0, 0)),
        ("3\r", View(0, 3)),
        ("12\x7f\r", View(0, 1)),
        ("99\r", View(0, 4)),
        ("\r", View(0, 1)),
        ("3q", View(0, 0)),
        ("\x1b[6~", View(0, 4)),
        ("nN", View(1, 0)),
        ("NNnnn", View(1, 2)),
        ("NPP", View(0, 0)),
        ("\x1b[B\x1b[B\x1b[A", View(0, 0, 1)),
        ("x?é\x1b[99~", View(0, 0)),
        ("nq", None),
        ("\x1b", None),
    ],
)
def test_keys(keys: str, expected: View | None) -> None:
    view: View | None = View()
    for key in keys_of(keys):
        assert view is not None
        view = pressed(view, key, LENGTHS)
    assert view == expected


def test_the_screen_shows_players_points_and_the_last_move(replay: Replay) -> None:
    lines = screen(View(0, 0), replay, 2, 80, 24, color=False)
    assert len(lines) == 24
    assert lines[:3] == ["tilewe, game 1 of 2, move 0 of 4", "points >1 first: 0    2 second: 0", "the start"]
    assert lines[-1] == viewer.KEYS
    lines = screen(View(0, 1), replay, 2, 80, 24, color=False)
    assert lines[1:3] == ["points  1 first: 1   >2 second: 0", "1. player 1 (first): O1n-a1a1"]
    assert " 1 b . . . . ." in lines
    assert " 1 B . . . . y" in screen(View(0, 2), replay, 2, 80, 24, color=False)
    assert "scores" in screen(View(0, 4), replay, 2, 80, 24, color=False)[2]
    assert screen(View(typed="12"), replay, 2, 80, 24)[-1] == "go to move 12_"
    long = replace(replay, record=replace(replay.record, players=("gumbel:num_simulations=32,network=tilewe", "second")))
    assert screen(View(), long, 2, 40, 24, color=False)[1] == "points >1 gumbel:nu…: 0    2 second: 0"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (20, 8), (5, 5), (1, 1)])
def test_the_screen_fits_the_terminal(width: int, height: int, replay: Replay) -> None:
    for color in (False, True):
        for top in (0, 2, 100):
            lines = screen(View(0, 3, top), replay, 2, width, height, color)
            assert len(lines) == height
            assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= width for line in lines)


def test_long_positions_are_scrolled(replay: Replay) -> None:
    body = replay.text(0, False).split("\n")
    lines = screen(View(), replay, 2, 80, 8, color=False)
    assert lines[3:7] == body[:4]
    assert lines[0].endswith(f"(lines 1 to 4 of {len(body)}: arrow up and down)")
    assert screen(View(top=99), replay, 2, 80, 8, color=False)[3:7] == body[-4:]


def test_text_is_beside_a_tall_board(replay: Replay) -> None:
    lines = screen(View(0, 1), replay, 2, 80, 10, color=False)
    board = replay.text(1, False).split("\n")[:7]
    assert [line[: len(row)] for line, row in zip(lines, board, strict=False)] == board
    for word in ("move 1 of 4", "points", "1. player 1 (first): O1n-a1a1", "I2", "to move"):
        assert word in "\n".join(lines)


def test_names_have_no_control_characters(replay: Replay) -> None:
    hostile = replace(replay, record=replace(replay.record, players=("\x1b[2J", "a\nb")))
    assert hostile.names == ["?[2J", "a?b"]
    assert not any("\x1b" in line or "\n" in line for line in screen(View(0, 1), hostile, 2, 80, 24, color=False))


def test_colours_do_not_count_as_width() -> None:
    assert clipped("\x1b[94mB\x1b[0m B B", 3) == "\x1b[94mB\x1b[0m B"


# ---- On a terminal


class Terminal:
    """A command on a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *arguments: str) -> None:
        self._main, side = pty.openpty()
        self.settings = termios.tcgetattr(side)
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        command = [sys.executable, "-m", "tilewe_jax", *arguments]
        with heeding_hangups():
            self._process = subprocess.Popen(
                command, stdin=side, stdout=side, stderr=side, cwd=ROOT, env=environment, start_new_session=True
            )
        self._side = side
        self.output = ""

    def expect(self, text: str) -> None:
        """Read until the output has a text."""
        ends = time.monotonic() + 300
        while text not in self.output:
            assert time.monotonic() < ends, self.output
            if select.select([self._main], [], [], 0.1)[0]:
                self.output += os.read(self._main, 65536).decode()

    def expect_more(self) -> None:
        """Wait for more output."""
        assert select.select([self._main], [], [], 120)[0], self.output
        self.output += os.read(self._main, 65536).decode()

    def hang_up(self) -> None:
        """Close the terminal, and wait for the end."""
        os.close(self._side)
        os.close(self._main)
        self._process.wait(60)

    def press(self, keys: str, until: str) -> None:
        """Type keys, and read until the new output has a text."""
        self.output = ""
        os.write(self._main, keys.encode())
        self.expect(until)

    def end(self, number: int | None = None) -> int:
        """Wait for the end, after a signal; the exit code."""
        if number:
            self._process.send_signal(number)
        ends = time.monotonic() + 300
        try:
            # Restoring a terminal waits until all of its output is read.
            while select.select([self._main], [], [], 0.1)[0] or self._process.poll() is None:
                assert time.monotonic() < ends, self.output
                if select.select([self._main], [], [], 0)[0]:
                    self.output += os.read(self._main, 65536).decode()
        finally:
            self._process.kill()
        code = self._process.wait()
        assert termios.tcgetattr(self._side) == self.settings
        os.close(self._main)
        os.close(self._side)
        return code


def test_stepping_through_a_game(file: Path) -> None:
    terminal = Terminal("show", str(file))
    terminal.expect(viewer.KEYS)
    assert "\x1b[?1049h" in terminal.output
    terminal.press("\x1b[C", "move 1 of 4")
    terminal.press("2\r", "move 2 of 4")
    terminal.press("N", "game 2 of 2")
    terminal.press("q", "\x1b[?1049l")
    assert terminal.end() == 0
    assert "\x1b[?25h" in terminal.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_left_clean_after_a_signal(number: int, file: Path) -> None:
    terminal = Terminal("show", str(file))
    terminal.expect(viewer.KEYS)
    assert terminal.end(number) == 130
    assert terminal.output.endswith("\x1b[?25h\x1b[?1049ltilewe-jax: interrupted\r\n")


def test_an_illegal_action_is_one_line_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game, file = make_host_game("triominos"), tmp_path / "games.jsonl"
    tiles = ["".join(numbers) for numbers in combinations_with_replacement("012345", 3)]
    header = {"format": records.FORMAT, "game": "triominos", "version": game.version, "options": {}}
    deal = {"tiles": tiles, "starter": 0, "seed": [0, 0]}
    record = {"deal": deal, "actions": [1], "scores": [0, 0], "returns": [0.5, 0.5], "players": []}
    file.write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    code, _, err = run(capsys, "show", str(file))
    assert (code, err.count("\n")) == (1, 1)
    assert "game 1, move 1: action 1 is illegal" in err


def test_the_terminal_is_left_clean_after_an_error(file: Path) -> None:
    lines = file.read_text().splitlines()
    record = json.loads(lines[1])
    record["actions"][2] = record["actions"][0]
    file.write_text("\n".join([lines[0], json.dumps(record)]))
    terminal = Terminal("show", str(file))
    terminal.expect(viewer.KEYS)
    terminal.press("\x1b[F", "tilewe-jax: ")
    assert terminal.end() == 1
    assert re.search(r"\x1b\[\?25h\x1b\[\?1049ltilewe-jax: .*games.jsonl: game 1, move 3: action 0", terminal.output)


def test_parse_errors_are_one_plain_line_on_a_terminal() -> None:
    terminal = Terminal("match", "--sprt", "5")
    assert terminal.end() == 2
    assert terminal.output.startswith("tilewe-jax: --sprt ")
    assert terminal.output.count("\n") == 1
