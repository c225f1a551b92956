"""Games in the terminal: commands, hidden information, saved games, and whole games on a pseudo-terminal or plain lines."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import slow
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import records
from tilewe_jax.cli.common import FailedError, UsageError
from tilewe_jax.cli.terminal.play import Play
from tilewe_jax.cli.terminal.viewer import Replay, keys_of
from tilewe_jax.host_games import OFFERS, make_host_game
from tilewe_jax.web.catalog import games_script, new_deal

ROOT = Path(__file__).parents[3]
PLAYERS = {"tilewe": {"players": 3}, "triominos": {"players": 3}}


def started(tmp_path: Path, game: str, agents: list[str | None] | None = None, /, **options: Any) -> Play:
    """Start a game of people, or of these agents."""
    host = make_host_game(game, **options)
    record = records.Record(new_deal(host), (), (0,) * host.num_players, (0.0,) * host.num_players)
    return Play(
        Replay(host, record, 1), agents or [None] * host.num_players, host.has_hidden_information, tmp_path / "game.jsonl"
    )


def typed(play: Play, keys: str) -> None:
    for key in keys_of(keys, typing=True):
        play.press(key)


class FakeEngine:
    """An engine that records its questions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def ask(self, agent: str, actions: Any) -> None:
        self.asked.append((agent, actions))


def answer(play: Play, engine: FakeEngine, action: int | None = None, **values: Any) -> None:
    """Answer the last question."""
    agent, actions = engine.asked[-1]
    play.answered({"agent": agent, "state": "ready", "actions": actions, "action": action, **values})


# ---- Whole games


@pytest.mark.parametrize("game", [*OFFERS][:1] + [slow(game) for game in [*OFFERS][1:-2]] + [*OFFERS][-2:])
def test_files_of_whole_games_have_every_move(game: str, tmp_path: Path) -> None:
    play, chance, screens = started(tmp_path, game, **PLAYERS.get(game, {})), random.Random(0), 0
    while not play.position.is_terminal:
        if play.is_covered:
            typed(play, "\r")
        moves = play.moves
        typed(play, chance.choice(list(play.legal)))
        for color in (False, True):
            lines = play.screen(80, 24, color)
            assert len(lines) == 24
            assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) <= 80
        screens += any("(lines " in line for line in lines)
        typed(play, "\r")
        assert play.moves == moves + 1
        host, (record,) = records.read_on_host(tmp_path / "game.jsonl")
        assert record.actions == play.replay.record.actions
    assert "The game is over" in play.message[0]
    assert Replay(host, record, 1).position(play.moves).scores() == record.scores
    assert sum(record.returns) == pytest.approx(1)
    assert game == "triominos" or not screens, "the whole board fits 80 x 24"
    for word in ("moves", "hint", "show 1", "pass"):
        play.enter(word)
        assert "The game is over" in play.message[0]


def test_screens_fit_small_terminals(tmp_path: Path) -> None:
    for game in OFFERS:
        play = started(tmp_path, game, **PLAYERS.get(game, {}))
        for width, height in ((1, 1), (20, 5), (40, 12), (200, 60)):
            for command in ("", "help", "moves"):
                play.enter(command)
                lines = play.screen(width, height, False)
                assert len(lines) == height
                assert all(len(line) <= width for line in lines)


# ---- Hidden information


def shown_trays(play: Play) -> list[int]:
    """The seats whose tiles are on the screen."""
    lines = re.findall(r"^player (\d): -?\d+ points, (\d\d\d)\b", play.text(False), re.MULTILINE)
    return [int(seat) - 1 for seat, _ in lines]


def test_people_see_only_their_own_tray(tmp_path: Path) -> None:
    play, chance = started(tmp_path, "triominos", players=3, game="target", target=60), random.Random(1)
    covered = 0
    while not play.position.is_terminal:
        mover = play.position.current_player
        if play.is_covered:
            covered += 1
            assert shown_trays(play) == []
            for command in ("moves", "hint", "show 1", next(iter(play.legal))):
                before = play.moves
                play.enter(command)
                assert play.moves == before
                assert play.message == []
                assert shown_trays(play) == [mover]
                play._looker = None
            typed(play, "\t")
            assert play.typed == ""
            play.enter("")
        assert shown_trays(play) == [mover]
        play.typed = chance.choice(list(play.legal))
        now = play.replay.text(play.moves, False, mover, open=False).split("\n")
        assert play.text(False).split("\n")[-4:] == now[-4:], "a tried move does not reveal the tile that it draws"
        assert shown_trays(play) == [mover]
        typed(play, "\r")
    assert covered > 5


def test_earlier_positions_show_only_the_own_tray(tmp_path: Path) -> None:
    play, chance = started(tmp_path, "triominos", [None, "level:1"]), random.Random(2)
    for _ in range(8):
        if play.position.is_terminal:
            break
        assert shown_trays(play) == [0]
        play.play(chance.choice(play.position.legal_actions()))
    typed(play, "\x1b[D\x1b[D")
    assert shown_trays(play) == [0]
    play.enter("undo")
    assert play.moves > 1


# ---- Commands


def test_moves_are_listed_tried_and_played_by_number(tmp_path: Path) -> None:
    play = started(tmp_path, "santorini")
    play.enter("moves c4-d4")
    assert play.message[0] == "7 legal moves with c4-d4:"
    assert re.findall(r"(\d) (\S+)", " ".join(play.message[1:]))[1] == ("2", "c4-d4*d5")
    play.enter("show 2")
    assert (play.typed, play.moves) == ("c4-d4*d5", 0)
    assert "[O ]" in play.text(False)
    assert "[O ]" not in play.replay.text(0, False)
    typed(play, "\r")
    assert play.replay.move_line(1).endswith(": c4-d4*d5")


def test_an_unambiguous_start_of_a_move_is_enough(tmp_path: Path) -> None:
    play = started(tmp_path, "duo_official")
    name = next(name for name in play.legal if name.startswith("X5"))
    found = [other for other in play.legal if other.startswith("X5")]
    play.enter("x5")
    assert play.moves == (len(found) == 1)
    assert len(found) == 1 or str(len(found)) in play.message[0]
    play.enter(name)
    assert play.moves == 1


def test_placements_are_found_by_the_cells_that_they_cover(tmp_path: Path) -> None:
    play = started(tmp_path, "tilewe", players=2)
    play.enter("moves W5 c3")
    listed = [play.position.action_name(action) for action in play._listed]
    assert listed
    for name in listed:
        cells = play.position.action_view(play.legal[name])["cells"]
        assert name.startswith("W5")
        assert [2, 2] in cells
    play.enter("moves")
    assert "too many" in play.message[0]


@pytest.mark.parametrize(
    ("game", "text", "reason"),
    [
        ("santorini", "c4-c6*c5", "c6"),
        ("santorini", "c4-d3*d4", "worker Y"),
        ("santorini", "b3-b2*b1", "worker X"),
        ("santorini", "z", ""),
        ("tilewe", "W5n-a1c3", ""),
        ("tilewe", "W5n-a1z9", ""),
        ("duo_official", "pass", ""),
        ("triominos", "pass", ""),
        ("triominos", "999-ABC@0,0", ""),
        ("santorini", "9", ""),
        ("santorini", "\x00\x1b[2J", ""),
    ],
)
def test_an_illegal_move_is_rejected_with_its_reason(game: str, text: str, reason: str, tmp_path: Path) -> None:
    play = started(tmp_path, game)
    play._looker = play.position.current_player
    play.enter(text)
    assert play.moves == 0
    assert len(play.message) == 1
    assert reason in play.message[0]
    assert re.search("did you mean|see moves, and help", play.message[0])


def test_tab_completes_then_tries_every_move(tmp_path: Path) -> None:
    play = started(tmp_path, "santorini")
    typed(play, "c2-d1\t")
    assert play.typed == "c2-d1*"
    tried = []
    for _ in range(6):
        typed(play, "\t")
        tried.append(play.typed)
    assert tried[:-1] == [name for name in play.legal if name.startswith("c2-d1")]
    assert tried[-1] == tried[0]
    typed(play, "\x1b[Z")
    assert play.typed == tried[-2]
    typed(play, "\x1b")
    assert play.typed == ""
    typed(play, "zz\t")
    assert play.typed == "zz"


def test_undo_takes_back_the_last_move_of_a_person(tmp_path: Path) -> None:
    play, engine = started(tmp_path, "santorini", [None, "random"], size=4), FakeEngine()
    play.enter("undo")
    assert len(play.message) == 1
    for turn in range(2):
        play.enter(next(iter(play.legal)))
        play.think(engine)  # type: ignore[arg-type]
        answer(play, engine, play.position.legal_actions()[0])
        assert play.moves == 2 * turn + 2
    play.enter("undo")
    assert play.moves == 2
    play.enter(next(iter(play.legal)))
    play.enter("undo")
    assert play.moves == 2
    assert len(records.read_on_host(tmp_path / "game.jsonl")[1][0].actions) == 2
    people = started(tmp_path, "santorini")
    for _ in range(3):
        people.enter(next(iter(people.legal)))
    people.enter("undo")
    assert people.moves == 2


# ---- Engines


def test_an_answer_to_a_position_that_was_taken_back_is_dropped(tmp_path: Path) -> None:
    play, engine = started(tmp_path, "santorini", [None, "random"]), FakeEngine()
    play.enter("c4-d4*d5")
    play.think(engine)  # type: ignore[arg-type]
    assert engine.asked == [("random", play.replay.record.actions)]
    play.answered({"agent": "random", "state": "compiling"})
    assert play.engine_line().startswith("random is being compiled")
    play.enter("moves")
    assert "turn of player 2" in play.message[0]
    old = play.position.legal_actions()[0]
    play.enter("undo")
    play.enter("c4-d4*e4")
    play.think(engine)  # type: ignore[arg-type]
    assert len(engine.asked) == 1, "one question at a time"
    answer(play, engine, old)
    assert play.moves == 1
    play.think(engine)  # type: ignore[arg-type]
    answer(play, engine, play.position.legal_actions()[0])
    assert play.moves == 2


def test_agents_compile_while_people_think_and_hints_are_shown_on_the_board(tmp_path: Path) -> None:
    play, engine = started(tmp_path, "santorini", [None, "random"]), FakeEngine()
    play.think(engine)  # type: ignore[arg-type]
    assert engine.asked == [("random", None)]
    answer(play, engine)
    play.enter("hint")
    assert play.is_waiting
    play.think(engine)  # type: ignore[arg-type]
    answer(play, engine, play.legal["c4-d4*d5"])
    assert (play.typed, play.moves, play.is_waiting) == ("c4-d4*d5", 0, False)
    play.enter("hint")
    play.think(engine)  # type: ignore[arg-type]
    answer(play, engine, state="failed", error="too little memory")
    assert play.message == ["too little memory"]
    play.enter("hint")
    play.think(engine)  # type: ignore[arg-type]
    play.enter("c4-d4*e4")
    answer(play, engine, play.legal[next(iter(play.legal))])
    assert (play.typed, play.moves) == ("", 1)


def test_a_failing_agent_ends_the_saved_game(tmp_path: Path) -> None:
    play, engine = started(tmp_path, "santorini", [None, "puct:x=1"]), FakeEngine()
    play.think(engine)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no setting"):
        answer(play, engine, state="failed", error="puct has no setting x")
    play = started(tmp_path, "santorini", [None, "random"])
    play.think(engine)  # type: ignore[arg-type]
    answer(play, engine)
    play.enter("c4-d4*d5")
    play.think(engine)  # type: ignore[arg-type]
    with pytest.raises(FailedError, match="forfeit"):
        answer(play, engine, state="failed", error="forfeit")
    assert "--resume" in play.go_on("santorini")


# ---- Files


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--game", "santorni"], 2, "santorni"),
        (["--game", "santorini", "--agent", "level:99"], 2, "level:1 to level:7"),
        (["--game", "santorini", "--agent", "human", "--agent", "human", "--agent", "human"], 2, "2 seats"),
        (["--game", "santorini", "--set", "size=99"], 2, "99"),
        (["--resume", "missing.jsonl"], 1, "missing.jsonl"),
        (["--resume", "saved.jsonl", "--players", "2"], 2, "--players"),
        (["--out", "saved.jsonl"], 2, "saved.jsonl"),
        (["--out", "no/game.jsonl"], 2, "no"),
        (["--resume", "many.jsonl"], 2, "2"),
        (["--resume", "over.jsonl"], 2, "over.jsonl"),
        (["--resume", "illegal.jsonl"], 1, "move 1"),
        (["--resume", "program.jsonl"], 2, "'gtp:command"),
        (["--resume", "factory.jsonl"], 2, "'os:getcwd"),
        (["--resume", "network.jsonl"], 2, "'best:network="),
    ],
)
def test_wrong_arguments_and_files_are_one_line(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    game = make_host_game("santorini", size=3)
    position, actions = game.init_from_deal(None), []
    while not position.is_terminal:
        actions.append(position.legal_actions()[0])
        position = position.after(actions[-1])
    header = {"format": records.FORMAT, "game": game.id, "options": game.options, "version": game.version}
    row = {"deal": None, "actions": actions[:1], "scores": [0, 0], "returns": [0.0, 0.0]}
    agents = {"program": 'gtp:command="touch made"', "factory": "os:getcwd", "network": "best:network=x.npz"}
    files = {
        "saved": [row],
        "many": [row, row],
        "over": [row | {"actions": actions}],
        "illegal": [row | {"actions": [127]}],
        **{name: [row | {"players": ["you", agent]}] for name, agent in agents.items()},
    }
    for name, rows in files.items():
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, [header, *rows])))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result, _, err = run(capsys, "play", *arguments)
    assert (result, err.count("\n")) == (code, 1)
    assert message in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_does_not_end_the_game(tmp_path: Path) -> None:
    play = started(tmp_path, "santorini")
    play.file = tmp_path / "gone" / "game.jsonl"
    play.enter("c4-d4*d5")
    assert play.moves == 1
    assert "not saved" in play.message[0]
    assert play.go_on("santorini") == "The game is not saved."


def test_every_game_has_rules_the_same_as_on_the_page() -> None:
    for game in OFFERS:
        assert OFFERS[game].title in games_script()
        assert len(OFFERS[game].rules) > 1


# ---- As a process


def lines_of(tmp_path: Path, text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command with these lines on standard input."""
    command = [sys.executable, "-m", "tilewe_jax", "play", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)


def test_a_game_on_plain_lines_is_resumed_to_its_end(tmp_path: Path) -> None:
    game = ["--game", "santorini", "--set", "size=3", "--agent", "human"]
    done = lines_of(tmp_path, "help\nrules\nmoves\n1\nnonsense\n", *game)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "go on with: tilewe-jax play --resume santorini-1.jsonl" in done.stdout
    assert OFFERS["santorini"].rules[0] in done.stdout
    again = lines_of(tmp_path, "moves\n1\n" * 60, "--resume", "santorini-1.jsonl")
    assert (again.returncode, again.stderr) == (0, "")
    assert "The game is over: player " in again.stdout
    assert "tilewe-jax show santorini-1.jsonl" in again.stdout
    assert lines_of(tmp_path, "", *game).stdout.endswith("nothing is saved.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["santorini-1.jsonl"]


pty = pytest.importorskip("pty")
from tests.tilewe_jax.cli.test_terminal import Terminal  # noqa: E402


def test_a_whole_game_against_an_engine_on_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    terminal = Terminal("play", "--game", "santorini", "--set", "size=3", "--agent", "random", "--out", str(file))
    terminal.expect("player 1 (you)> ")
    moves = 0
    while "quit to leave>" not in terminal.output:
        terminal.press("\t\t", "Enter plays")
        terminal.press("\r", f"move {moves + 1} of {moves + 1}")
        moves += 2
        while not re.search(rf"of {moves}\b.*player 1 \(you\)> ", terminal.output, re.DOTALL):
            if "quit to leave>" in terminal.output:
                break
            terminal.expect_more()
    terminal.press("\x1b[D", "(right: forward)")
    terminal.press("quit\r", "\x1b[?1049l")
    assert terminal.end() == 0
    assert "The game is over: player " in terminal.output
    game, (record,) = records.read(file)
    assert record.players == ("you", "random")
    assert records.replay(game, [record]) == [None]


@pytest.mark.parametrize(
    ("ending", "code"),
    [(signal.SIGINT, 130), slow(signal.SIGTERM, 130), (signal.SIGHUP, 129), slow("\x04", 0), ("quit\r", 0), slow(None, None)],
)
def test_every_move_is_kept_at_the_end(ending: int | str | None, code: int | None, tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    terminal = Terminal("play", "--game", "santorini", "--agent", "human", "--out", str(file))
    terminal.expect("player 1 (human)> ")
    terminal.press("c4-d4*d5\r", "player 2 (human)> ")
    terminal.press("b3-", "b3-_")
    if ending is None:  # the terminal is closed
        terminal.hang_up()
    elif isinstance(ending, str):
        terminal.press(ending, "\x1b[?1049l") if ending != "quit\r" else terminal.press("\x1bquit\r", "\x1b[?1049l")
        assert terminal.end() == code
    else:
        assert terminal.end(ending) == code
    assert "Traceback" not in terminal.output
    assert ending in (None, signal.SIGHUP) or f"go on with: tilewe-jax play --resume {file}" in terminal.output
    _, (record,) = records.read_on_host(file)
    assert len(record.actions) == 1
    again = Terminal("play", "--resume", str(file))
    again.expect("player 2 (human)> ")
    again.press("b3-b2*a2\r", "move 2 of 2")
    assert again.end(signal.SIGINT) == 130
    assert len(records.read_on_host(file)[1][0].actions) == 2
