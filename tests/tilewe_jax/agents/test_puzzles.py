"""Puzzles have exactly one winning move, by an exhaustive search in plain Python."""

from functools import cache
from pathlib import Path

import jax
import pytest

from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import make, records
from tilewe_jax.agents.endings import EndingSolver
from tilewe_jax.batching import trajectories
from tilewe_jax.host_games import make_host_game
from tilewe_jax.web.puzzles import FOLDER

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
        own = [ply for ply in range(len(line)) if at((*puzzle.actions, *line[:ply])).current_player == player]
        for number, ply in enumerate(own[: asked["asked"] + 1]):
            before = (*puzzle.actions, *line[:ply])
            wins = [action for action in at(before).legal_actions() if sign * outcome((*before, action)) == 1]
            is_choice = len(at(before).legal_actions()) > 1
            assert (wins == [line[ply]] and is_choice) == (number < asked["asked"])
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


SHIPPED = sorted(FOLDER.glob("*.jsonl"))


def test_puzzles_are_shipped_for_several_games() -> None:
    counts = {file.stem: len(records.read_on_host(file)[1]) for file in SHIPPED}
    assert len(counts) >= 3
    assert sum(counts.values()) >= 500
    assert sum(file.stat().st_size for file in SHIPPED) <= 300_000


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_puzzles(file: Path) -> None:
    """Every line is legal and ends with a win of the player; no two puzzles are the same."""
    host, puzzles = records.read_on_host(file)
    assert host.options in ({}, {"players": 2})
    assert len({puzzle.actions for puzzle in puzzles}) == len(puzzles)
    for puzzle in puzzles:
        position = host.init_from_deal(puzzle.deal)
        for action in puzzle.actions:
            position = position.after(action)
        player, line, asked = (puzzle.extra["puzzle"][name] for name in ("player", "line", "asked"))
        assert position.current_player == player
        assert len(position.legal_actions()) >= 8
        own = 0
        for action in line:
            own += position.current_player == player
            position = position.after(action)
        assert position.is_terminal
        assert host.returns(position)[player] == 1
        assert 1 <= asked <= own


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=() if file.stem == "santorini" else pytest.mark.slow) for file in SHIPPED]
)
def test_a_sample_of_the_shipped_puzzles_is_proven_again(file: Path) -> None:
    """Each legal action of a puzzle is solved by itself, unlike in the search that found the puzzle."""
    game, puzzles = records.read(file)
    solver = EndingSolver(game, 20_000, margin=False)
    for puzzle in puzzles[:: -(-len(puzzles) // 4)]:
        state = solver.state(puzzle.actions, puzzle.deal)
        player, line = puzzle.extra["puzzle"]["player"], puzzle.extra["puzzle"]["line"]
        position = game.host(jax.device_get(state))
        solutions = {action: solver.solve(solver.after(state, action)) for action in position.legal_actions()}
        assert all(solution.has_outcome for solution in solutions.values())
        assert [action for action, solution in solutions.items() if solution.returns[player] == 1.0] == line[:1]
