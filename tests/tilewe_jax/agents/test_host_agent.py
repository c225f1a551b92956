"""Agents as GTP engines, and the commands gtp and convert."""

import io
import json
import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewe_jax
from tests.bad_inputs import run
from tests.tilewe_jax.formats.test_blksgf import random_record
from tilewe_jax import agents, records
from tilewe_jax.agents.analysis import SearchProgram
from tilewe_jax.agents.timed_search import MAX_PARTS
from tilewe_jax.cli import gtp as commands
from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.analysis import Analysis
from tilewe_jax.interop.gtp import GtpError, GtpSession

OPTIONS: dict[str, Any] = {"size": 6, "pieces": ("O1", "I2", "L3")}
GAME = tilewe_jax.make("duo_official", **OPTIONS)
NAMES = blokus_game(make_host_game("duo_official", **OPTIONS))
AGENT = "puct:num_simulations=16,num_candidates=8,num_playouts=0,stop_early=false"


class Lowest:
    """A player on the host."""

    name = "lowest"

    def choose(self, game: agents.OngoingGame, seconds: float, seed: str) -> int:
        if seconds == 7:
            raise agents.ForfeitError("too few seconds")
        return game.position.legal_actions()[0]


def answers(session: GtpSession, *lines: str) -> list[str]:
    texts = [session.answer(line) for line in lines]
    assert all(text.startswith("= ") for text in texts), texts
    return [text[2:-2] for text in texts]


def test_searches_keep_their_tree_and_time_limits() -> None:
    agent = agents.agent(AGENT, GAME).host()
    session = GtpSession(NAMES, lambda names: agent)
    (first,) = answers(session, "genmove b")
    assert int(agent.memory.visits[0]) == 17, "one visit per simulation and one of the root"
    reply, *_, again = answers(session, "genmove w", "undo", "undo", "clear_board", "set_random_seed 0", "genmove b")
    assert first == again
    action = agent.choose(session.actions)
    answers(session, f"play w {NAMES.move_text(action)}")
    assert reply
    agent.follow(session.actions)
    assert int(agent.memory.visits[0]) > 1, "the subtree is kept"
    visits: dict[float, int] = {}
    for seconds in (0, 1000):
        answers(session, "clear_board", f"time_settings 0 {seconds} 1", "genmove b")
        visits[seconds] = int(agent.memory.visits[0])
    assert (visits[0] - 1) * MAX_PARTS == visits[1000] - 1 == 16, "one part without time, all simulations with enough time"
    answers(session, "clear_board", "time_settings 0 1 0")
    assert session.answer("get_value").startswith("?")
    move, *_ = answers(session, "genmove b", f"param num_simulations {agent.parameters['num_simulations']}")
    root, rows = agent.last_search(), [row.split() for row in answers(session, "move_values")[0].split("\n")]
    assert root
    assert sum(int(row[0]) for row in rows) == 16
    assert move in [row[3] for row in rows if row[0] == rows[0][0]], "one of the most visited"
    mean = sum(item.visits * item.value for item in root.moves) / 16
    assert abs(17 * root.value - 16 * mean - float(agent.memory.raw_value[0, 0])) < 1e-4, (
        "the root value includes its raw value"
    )
    assert (
        answers(session, "play w " + answers(session, "all_legal w")[0].split("\n")[0], "get_value")[1] == f"{root.value:.6f}"
    )
    moves = answers(session, "clear_board", *["g"] * 7)
    assert moves[-1] == "pass"
    assert session._position.is_terminal


def test_policies_and_players_on_the_host() -> None:
    agent = agents.agent("random", GAME).host()
    moves = []
    for seed in range(8):
        agent.set_seed(seed % 4)
        moves.append(agent.choose(()))
    assert moves[:4] == moves[4:]
    assert len(set(moves)) > 1
    with pytest.raises(GtpError, match="random"):
        agent.set_time(1)
    with pytest.raises(GtpError, match="random"):
        agent.last_search()
    assert agent.parameters == {}
    host = agents.agent(Lowest(), GAME).host()
    assert host.choose(()) == NAMES.start().legal_actions()[0]
    host.set_time(7)
    with pytest.raises(GtpError, match="too few"):
        host.choose(())


def test_the_command_answers_on_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(
        commands,
        "sys",
        SimpleNamespace(stdin=SimpleNamespace(buffer=io.BytesIO(b"1 name\ngenmove b\n")), stdout=SimpleNamespace(buffer=out)),
    )
    settings = ("--game", "duo_official", "--set", "size=6", "pieces=O1,I2,L3")
    outcome = run("gtp", *settings, "--agent", f"{__name__}:Lowest", "--name", "My bot")
    assert outcome.code == 0
    assert out.getvalue() == b"=1 My bot\n\n= b5\n\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("gtp --game triominos", "triominos"),
        ("gtp --game santorini --set placement=random", "santorini"),
        ("gtp --game duo --agent nosuch", "'nosuch'"),
        ("gtp --game duo --name a\nb", "--name"),
        ("gtp --game duo --name=", "--name"),
        ("gtp --game duo --seed 99999999999999999999", "--seed"),
        ("match --game duo random gtp:command=no-such-engine", "'no-such-engine'"),
        ("convert book.sgf b.SGF", ".blksgf"),
        ("convert book.sgf b.jsonl --number 2", "--number"),
        ("convert a.jsonl b.jsonl", ".blksgf"),
        ("convert a.jsonl b.blksgf --number 0", "--number"),
        ("convert a.jsonl b.blksgf", "a.jsonl"),
        ("convert a.blksgf nosuch/b.jsonl", "nosuch/b.jsonl"),
        ("convert bad.blksgf b.jsonl", "bad.blksgf: game 1"),
        ("convert small.jsonl b.blksgf", "small.jsonl: game 1"),
    ],
)
def test_errors_are_one_line(command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.blksgf").write_text("(;B[a1])")
    Path("book.sgf").write_text("(;GM[Blokus Duo];B[e10])")
    records.write("small.jsonl", GAME, [records.Record(None, (0,), (1, 0), (1.0, 0.0))])
    outcome = run(*command.split(" "))
    assert outcome.is_one_line, outcome
    assert message in outcome.err


@pytest.mark.parametrize("name", ["duo_official", "classic"])
def test_conversion_round_trip(name: str, tmp_path: Path) -> None:
    game = tilewe_jax.make(name)
    assert isinstance(game, PolyominoGame)
    paths = [str(tmp_path / file) for file in ("games.jsonl", "games.blksgf", "again.jsonl")]
    rng = random.Random(0)
    records.write(paths[0], game, [random_record(name, rng) for _ in range(3)])
    for source, target in pairwise(paths):
        outcome = run("convert", source, target)
        assert (outcome.code, outcome.err) == (0, "")
    assert [json.loads(line) for line in Path(paths[0]).read_text().splitlines()] == [
        json.loads(line) for line in Path(paths[2]).read_text().splitlines()
    ]
    assert Path(paths[1]).read_text().count("GM[") == len(blksgf.read(paths[1])) == 3
    assert run("convert", *paths[:2], "--number", "2").code == 0
    assert Path(paths[1]).read_text().count("GM[") == 1
    outcome = run("convert", *paths[:2], "--number", "4")
    assert "--number" in outcome.err


BOOK = "(;GM[Blokus Duo]C[x](;B[e10](;W[j5])(;W[i5,j5];B[f9,g9]))(;B[e10,f10]))"


@pytest.mark.parametrize("name", ["book.BLKSGF", "book.txt"])
def test_all_commands_read_books(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(BOOK)
    commands_of = {
        "convert": ("convert", name, "out.jsonl"),
        "replay": ("replay", name),
        "show": ("show", name, "--brief"),
        "render": ("render", name, "--format", "grid", "--out", "out.svg"),
        "rate": ("rate", name, "--agent", "puct:num_simulations=1,num_playouts=0,num_candidates=2", "--brief"),
    }
    monkeypatch.setattr(records, "replay", lambda game, games, **options: [None] * len(games))  # it compiles, as a search does
    nothing = Analysis(0, (), (0.5, 0.5), None, 0.0, 0, 0.0, 1)
    monkeypatch.setattr(SearchProgram, "analyze", lambda program, positions: [nothing for _ in positions])
    for kind, command in commands_of.items():
        outcome = run(*command)
        assert outcome.code in (None, 0), outcome
        is_noted = f"{name}: 2 variations, 1 comment" in outcome.err.replace("\n", " ")
        assert is_noted == (kind != "convert")  # which keeps them
        outcome = run(*command, "--variations")
        assert f"{name}: 1 comment" in outcome.err.replace("\n", " ")
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()[1:]]
    assert [len(line["actions"]) for line in lines] == [2, 3, 1]
    assert {line["scores"] for line in lines} == {None}
    assert run("convert", "out.jsonl", "again.SGF").code in (None, 0)
    assert [game.actions for game in blksgf.read("again.SGF")] == [tuple(line["actions"]) for line in lines]
    assert "--number" in run("show", "again.SGF", "--number", "4").err
