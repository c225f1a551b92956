"""Engines in other processes as players of the arena: whole games, and engines that die, hang and cheat."""

import os
import random
import shlex
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.formats.test_blksgf import random_record
from tilewe_jax import agents, arena
from tilewe_jax.agents.gtp_player import GtpPlayer, gtp_player
from tilewe_jax.formats import blksgf
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.gtp_client import EngineError, GtpEngine

ROOT = Path(__file__).parents[3]
DUO = tilewe_jax.make("duo_official")
PENTOBI = os.environ.get("TILEWE_PENTOBI")


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def fake(*arguments: object) -> str:
    return shlex.join([sys.executable, "-m", "tests.tilewe_jax.agents.fake_gtp_engine", *map(str, arguments)])


def host_game(game: Any = DUO) -> agents.HostGame:
    """A game under way whose rules are asked on the host only, which compiles nothing."""
    return agents.HostGame(game, lambda: pytest.fail("the player asked for a state"))


def play(player: GtpPlayer, game: agents.HostGame, moves: int) -> None:
    for _ in range(moves):
        game.actions.append(player.choose(game, 10, "seed"))


def test_games_side_by_side_have_an_engine_each_which_are_used_again() -> None:
    player = GtpPlayer(DUO, fake())
    games = [host_game() for _ in range(3)]
    for _ in range(2):
        for game, action in zip(games, player.choose_all(games, 10, ["seed"] * 3), strict=True):
            assert isinstance(action, int)
            game.actions.append(action)
    assert len({tuple(game.actions) for game in games}) == 1
    engines = {seat.engine for seat in player._seats.values()}
    assert len(engines) == 3
    game = games[0]
    del games
    play(player, game, 1)
    assert len(player._seats) == 1
    again = host_game()
    play(player, again, 2)
    assert again.actions == game.actions[:2]
    assert player._seats[id(again)].engine in engines
    player.close()
    assert not any(engine.is_open for engine in engines if engine)
    play(player, game, 1)


def test_more_games_than_processes_and_moves_of_others() -> None:
    player = GtpPlayer(DUO, fake(), max_processes=1)
    games = [host_game(), host_game()]
    games[1].actions.append(DUO.action_of([(4, 9), (5, 9)]))
    for _ in range(3):
        for game in games:
            play(player, game, 1)
    assert len(player._seats) == 1
    for game in games:
        position = player._names.start()
        for action in game.actions:
            position = position.after(action)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("killed", "the engine ended during genmove, killed by signal 9"),
        ("exits", "the engine ended during genmove, exit code 3"),
        ("hangs", "the engine did not answer genmove within 1 seconds"),
        ("cheats", "the engine gave an illegal move, a1,a2,a3,a4,a5: it touches no piece of the same colour corner to corner"),
        ("babbles", "the engine gave an invalid move 'idonotknow'"),
        ("passes", "the engine passed although it can move"),
        ("resigns", "the engine resigned"),
        ("refuses", "genmove failed: no idea"),
        ("no_gtp", "'Traceback'"),
        ("floods", "the engine answered genmove with more than 4,194,304 bytes"),
    ],
)
def test_an_engine_that_fails_forfeits_and_is_started_again(fault: str, message: str) -> None:
    player = GtpPlayer(DUO, fake(fault, 3))
    game = host_game()
    play(player, game, 2)
    first = player._seats[id(game)].engine
    started = time.monotonic()
    with pytest.raises(agents.ForfeitError) as forfeit:
        player.choose(game, 1, "seed")
    assert message in str(forfeit.value)
    assert time.monotonic() - started < 5
    assert first
    assert not first.is_open
    with pytest.raises(ProcessLookupError):
        os.kill(first._process.pid, 0)
    del game
    following = host_game()
    play(player, following, 2)
    assert player._seats[id(following)].engine is not first


def test_a_match_goes_on_after_forfeits() -> None:
    """The arena asks for all games at once, and the reason stands in the results; nothing is compiled here."""
    player = GtpPlayer(DUO, fake("cheats", 2))
    match = object.__new__(arena.Match)
    match._host_players, match.names, match.seed, match.move_seconds = {1: player}, ["random", "fake"], 0, 10.0
    results = arena.Results(DUO, match.names)
    games = {index: host_game() for index in (0, 2)}
    for ply, legal in enumerate((True, False)):
        action = np.full(3, -1)
        match._ask_host_players(action, np.array([1, 0, 1]), games, np.arange(3), ply, results)
        assert (action >= 0).tolist() == [legal, False, legal]
        for index, game in games.items():
            game.actions.append(int(action[index]))
    assert "illegal move, a1" in results.faults["fake"]
    assert results.host_seconds["fake"] > 0


def test_slow_starts_and_programs_that_are_not_there() -> None:
    GtpPlayer(DUO, fake("slow_start"))
    with pytest.raises(ValueError, match=r"list_commands"):
        GtpPlayer(DUO, fake("slow_start"), start_seconds=0.2)
    with pytest.raises(ValueError, match="'no-such-engine'"):
        GtpPlayer(DUO, "no-such-engine")
    with pytest.raises(ValueError, match="duo_official: set_game"):
        GtpPlayer(DUO, fake("refuses_game"))
    GtpPlayer(tilewe_jax.make("duo_official", pieces=("O1", "I2")), fake())
    with pytest.raises(ValueError, match="duo_official"):
        GtpPlayer(tilewe_jax.make("duo_official", size=10), fake())
    with pytest.raises(EngineError, match="cannot start"):
        GtpEngine("")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gtp:", "has no command"),
        ("gtp:max_processes=3", "has no command"),
        ("gtp:pentobi-gtp", "is wrong from 'pentobi-gtp' on"),
        ("gtp:command=a,command=b", "is wrong from 'command=b' on"),
        ('gtp:command="a"b', "is wrong from"),
        ("gtp:command=a,max_processes=x", "must be numbers"),
        ("gtp:command=a,max_processes=0", "the settings are"),
        ("gtp:command=a,start_seconds=nan", "the settings are"),
        ("gtp:command=a,level=3", "the settings are"),
        ("gtp:command=no-such-engine", "agent 'gtp:command=no-such-engine' does not work"),
    ],
)
def test_texts_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="gtp:") as error:
        gtp_player(DUO, text)
    assert message in str(error.value)


def test_agents_as_text() -> None:
    player = agents.agent(f'fake=gtp:command="{fake()}",max_processes=2', DUO)
    assert player.name == "fake"
    assert isinstance(player.player, GtpPlayer)
    assert player.player.max_processes == 2
    with pytest.raises(ValueError, match="GTP"):
        agents.agent(f"gtp:command={fake()}", tilewe_jax.make("triominos"))


def test_whole_games_of_santorini_and_deals_told_by_moves() -> None:
    """The engine moves for both players; where the game has a deal it hears of that first. Nothing is compiled here."""
    initial = SantoriniBoard.from_deal(Config(placement="random"), [[0, 0], [4, 1], [2, 2], [3, 4]])
    rules: Any = SimpleNamespace(host=lambda state: state)
    for placement, start in (("default", SantoriniBoard.start()), ("random", initial)):
        player = GtpPlayer(tilewe_jax.make("santorini", placement=placement), fake("none", 1, "santorini", placement))
        game, position = agents.HostGame(rules, lambda start=start: start), start
        while not position.is_terminal:
            play(player, game, 1)
            assert game.actions[-1] == position.legal_actions()[0]
            position = position.after(game.actions[-1])
        assert player._seats[id(game)].position == position
        player.close()


def test_an_engine_that_cheats_in_santorini_forfeits() -> None:
    player = GtpPlayer(tilewe_jax.make("santorini"), fake("cheats", 2, "santorini"))
    game = host_game()
    play(player, game, 1)
    with pytest.raises(agents.ForfeitError, match=r"'a1,a2,a3,a4,a5': .*"):
        player.choose(game, 10, "seed")
    chosen = GtpPlayer(tilewe_jax.make("santorini", placement="chosen"), fake("none", 1, "santorini"))
    game = host_game()
    game.actions.append(128)
    with pytest.raises(agents.ForfeitError, match="'a5'"):
        chosen.choose(game, 10, "seed")


@pytest.mark.slow
@pytest.mark.skipif(not PENTOBI, reason="TILEWE_PENTOBI names no pentobi-gtp")
@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2"])
def test_whole_games_against_pentobi(name: str) -> None:
    """Pentobi plays itself, and agrees at every move about the legal moves, the turn, and the score."""
    game = tilewe_jax.make(name)
    assert isinstance(game, PolyominoGame)
    player = gtp_player(game, f'gtp:command="{PENTOBI} -l 1 --nobook --noresign -q"')
    for seed in range(5):
        played = host_game(game)
        position = player._names.start()
        while not position.is_terminal:
            played.actions.append(player.choose(played, 60, str(seed)))
            position = position.after(played.actions[-1])
            engine = player._seats[id(played)].engine
            assert engine
            for seat, names in enumerate(player._names.colors):
                legal = engine.send(f"all_legal {names[0]}", 60).split()
                assert sorted(map(player._names.action, legal)) == position.position.actions(seat)
        scores = position.scores()
        score = engine.send("final_score", 60)
        if len(scores) == 2:
            margin = scores[0] - scores[1]
            assert score == (f"{'B' if margin > 0 else 'W'}+{abs(margin)}" if margin else "0")
        else:
            assert score == " ".join(map(str, scores))


@pytest.mark.slow
@pytest.mark.skipif(not PENTOBI, reason="TILEWE_PENTOBI names no pentobi-gtp")
def test_pentobi_reads_what_we_write_and_we_what_it_writes(tmp_path: Path) -> None:

    for name in ("duo_official", "classic", "classic_2"):
        engine = GtpEngine(f"{PENTOBI} --nobook -q")
        for seed in range(20):
            record = random_record(name, random.Random(seed))
            ours, theirs = tmp_path / "ours.blksgf", tmp_path / "theirs.blksgf"
            blksgf.write_records(ours, make_host_game(name), [record])
            engine.send(f"loadsgf {ours}", 10)
            engine.send(f"savesgf {theirs}", 10)
            _, (again,) = blksgf.read_records(theirs)
            assert again == record
            score = engine.send("final_score", 10)
            if name == "classic":
                assert tuple(map(int, score.split())) == record.scores
        engine.close()
