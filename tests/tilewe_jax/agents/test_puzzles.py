"""Puzzles have exactly one winning move, by an exhaustive search in plain Python."""

from functools import cache
from pathlib import Path

import jax
import pytest

from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import make, records
from tilewe_jax.batching import trajectories
from tilewe_jax.host_games import make_host_game

OPTIONS = {"players": 2, "size": 5, "pieces": ["I2", "L3", "T4"]}
GAME, HOST = make("tilewe", **OPTIONS), make_host_game("tilewe", **OPTIONS)
GAMES = 40


@cache
def games() -> list[tuple[int, ...]]:
    """Random games."""
    actions = jax.jit(lambda key: trajectories(GAME, key, GAMES))(jax.random.key(3)).actions
    return [tuple(row[row >= 0].tolist()) for row in actions]


@cache
def outcome(actions: tuple[int, ...]) -> int:
    """Return 1 if seat 0 wins under best play after these actions, -1 if it loses, 0 in a tie."""
    position = at(actions)
    if position.is_terminal:
        first, second = position.scores()
        return (first > second) - (first < second)
    sign = 1 if position.current_player == 0 else -1
    return sign * max(sign * outcome((*actions, action)) for action in position.legal_actions())


def at(actions: tuple[int, ...]):
    position = HOST.init_from_deal(None)
    for action in actions:
        position = position.after(action)
    return position


def test_one_move_alone_wins(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, written = tmp_path / "games.jsonl", tmp_path / "puzzles.jsonl"
    records.write(path, HOST, [records.Record(None, actions, (), ()) for actions in games()])
    code, out, err = run(capsys, "puzzles", str(path), "--out", str(written), "--min-legal", "2", "--obvious", "--json")
    assert code == 0, err
    game, puzzles = records.read_on_host(written)
    assert f'"puzzles": {len(puzzles)}' in out
    assert (game.id, game.options) == (HOST.id, HOST.options)
    assert len(puzzles) >= 3
    for puzzle in puzzles:
        assert not puzzle.is_finished
        position, asked = at(puzzle.actions), puzzle.extra["puzzle"]
        player, line = asked["player"], asked["line"]
        assert position.current_player == player
        legal, sign = position.legal_actions(), 1 if player == 0 else -1
        assert len(legal) >= 2
        assert [action for action in legal if sign * outcome((*puzzle.actions, action)) == 1] == line[:1]
        assert at((*puzzle.actions, *line)).is_terminal
        assert outcome((*puzzle.actions, *line)) == sign


def test_wrong_arguments_leave_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    three, written = tmp_path / "three.jsonl", tmp_path / "puzzles.jsonl"
    records.write(three, make_host_game("tilewe", players=3), [records.Record(None, (), (), ())])
    written.write_text("kept")
    for arguments, message in (
        ([], "--out"),
        (["--out", str(written)], "two players"),
        (["--out", str(written), "--nodes", "0"], "nodes"),
    ):
        code, out, err = run(capsys, "puzzles", str(three), *arguments)
        assert (code, out) == (2, "")
        assert message in err
    assert written.read_text() == "kept"
