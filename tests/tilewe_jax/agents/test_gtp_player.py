"""GTP engines as players: whole games, and engines that die, hang and cheat."""

import os
import random
import shlex
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewe_jax
from tests.tilewe_jax.formats.test_blksgf import random_record
from tilewe_jax import agents
from tilewe_jax.agents.gtp_player import GtpPlayer, gtp_player
from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import blokus_game
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


def host_game(game: Any = DUO) -> agents.OngoingGame:
    """A new game whose initial state is never needed, so that nothing is compiled."""
    return agents.OngoingGame(game, lambda: pytest.fail("the player asked for a state"))


def play(player: GtpPlayer, game: agents.OngoingGame, moves: int) -> None:
    for _ in range(moves):
        game.actions.append(player.choose(game, 10, "seed"))


def test_parallel_games_use_separate_engines_that_are_reused() -> None:
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
    second = host_game()
    play(player, second, 2)
    assert second.actions == game.actions[:2]
    assert player._seats[id(second)].engine in engines
    player.close()
    assert not any(engine.is_open for engine in engines if engine)
    play(player, game, 1)


def test_more_games_than_processes() -> None:
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
        ("killed", "signal 9"),
        ("exits", "exit code 3"),
        ("hangs", "within 1 seconds"),
        ("cheats", "illegal move, a1,a2,a3,a4,a5"),
        ("babbles", "'idonotknow'"),
        ("passes", "passed"),
        ("resigns", "resigned"),
        ("refuses", "no idea"),
        ("no_gtp", "'Traceback'"),
        ("floods", "4,194,304 bytes"),
    ],
)
def test_failing_engines_forfeit_and_are_restarted(fault: str, message: str) -> None:
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
    next_game = host_game()
    play(player, next_game, 2)
    assert player._seats[id(next_game)].engine is not first


def test_forfeits_in_parallel_games() -> None:
    player = GtpPlayer(DUO, fake("cheats", 2))
    games = [host_game(), host_game()]
    for game, action in zip(games, player.choose_all(games, 10, ["0", "1"]), strict=True):
        assert isinstance(action, int)
        game.actions.append(action)
    for forfeit in player.choose_all(games, 10, ["0", "1"]):
        assert isinstance(forfeit, agents.ForfeitError)
        assert "illegal move, a1" in str(forfeit)


def test_slow_starts_and_unusable_programs() -> None:
    GtpPlayer(DUO, fake("slow_start"))
    with pytest.raises(ValueError, match="list_commands"):
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
    ("text", "name"),
    [
        ("gtp:", "command"),
        ("gtp:max_processes=3", "command"),
        ("gtp:pentobi-gtp", "'pentobi-gtp'"),
        ("gtp:command=a,command=b", "command twice"),
        ('gtp:command="a', "quotation"),
        ("gtp:command=a,max_processes=x", "max_processes"),
        ("gtp:command=a,max_processes=0", "max_processes"),
        ("gtp:command=a,start_seconds=nan", "start_seconds"),
        ("gtp:command=a,level=3", "'level'"),
        ("gtp:command=no-such-engine", "'no-such-engine'"),
    ],
)
def test_invalid_texts(text: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"(?i)gtp:.*{name}") as error:
        gtp_player(DUO, text)
    assert "\n" not in str(error.value)


def test_agents_as_text() -> None:
    player = agents.agent(f'fake=gtp:command="{fake()}",max_processes=2', DUO)
    assert player.name == "fake"
    assert isinstance(player.player, GtpPlayer)
    assert player.player.max_processes == 2
    with pytest.raises(ValueError, match="GTP"):
        agents.agent(f"gtp:command={fake()}", tilewe_jax.make("triominos"))


def test_whole_games_of_santorini_with_and_without_a_deal() -> None:
    initial = SantoriniBoard.from_deal(Config(placement="random"), [[0, 0], [4, 1], [2, 2], [3, 4]])
    rules: Any = SimpleNamespace(host=lambda state: state)  # nothing is compiled
    for placement, start in (("default", SantoriniBoard.start()), ("random", initial)):
        player = GtpPlayer(tilewe_jax.make("santorini", placement=placement), fake("none", 1, "santorini", placement))
        game, position = agents.OngoingGame(rules, lambda start=start: start), start
        while not position.is_terminal:
            play(player, game, 1)
            assert game.actions[-1] == position.legal_actions()[0]
            position = position.after(game.actions[-1])
        assert player._seats[id(game)].position == position
        player.close()


def test_illegal_moves_in_santorini_forfeit() -> None:
    player = GtpPlayer(tilewe_jax.make("santorini"), fake("cheats", 2, "santorini"))
    game = host_game()
    play(player, game, 1)
    with pytest.raises(agents.ForfeitError, match="'a1,a2,a3,a4,a5'"):
        player.choose(game, 10, "seed")
    chosen = GtpPlayer(tilewe_jax.make("santorini", placement="chosen"), fake("none", 1, "santorini"))
    game = host_game()
    game.actions.append(128)
    with pytest.raises(agents.ForfeitError, match="'a5'"):
        chosen.choose(game, 10, "seed")


def test_engines_receive_the_position_at_the_start() -> None:
    facts = {"placed": {"blue": ["e10,f10"], "yellow": ["j5"]}, "current_color": "yellow"}
    game = agents.OngoingGame(DUO, lambda: pytest.fail("the player asked for a state"), deal={"position": facts})
    player = GtpPlayer(DUO, fake())
    play(player, game, 3)
    position = make_host_game("duo_official").init_from_deal(game.deal)
    assert position.explain(game.actions[0]) is None
    board = {"heights": ["00000", "01200", *["00000"] * 3], "workers": [["b3", "c2"], ["a1", "e5"]], "current_player": 1}
    santorini = tilewe_jax.make("santorini", placement="random")
    game = agents.OngoingGame(santorini, lambda: pytest.fail("the player asked for a state"), deal={"position": board})
    play(GtpPlayer(santorini, fake("none", 1, "santorini", "random")), game, 2)
    assert make_host_game("santorini").init_from_deal(game.deal).explain(game.actions[0]) is None


@pytest.mark.slow
@pytest.mark.skipif(not PENTOBI, reason="TILEWE_PENTOBI names no pentobi-gtp")
@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2"])
def test_whole_games_against_pentobi(name: str) -> None:
    """Pentobi plays itself; legal moves, turn and score agree after every move."""
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
def test_game_files_round_trip_through_pentobi(tmp_path: Path) -> None:
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


@pytest.mark.slow
@pytest.mark.skipif(not PENTOBI, reason="TILEWE_PENTOBI names no pentobi-gtp")
@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2"])
def test_pentobi_opens_positions_and_plays_on(name: str, tmp_path: Path) -> None:
    """Pentobi's legal moves, score and file agree after it opens a position, and it plays the game to its end."""
    host = make_host_game(name)
    assert host.positions
    names, chance = blokus_game(host), random.Random(3)
    engine = GtpEngine(f"{PENTOBI} --nobook -q")
    for number in range(10):
        position = host.init_from_deal(None)
        for _ in range(chance.randrange(1, 30)):
            position = position.after(chance.choice(position.legal_actions()))
        deal = {"position": host.positions.write(position)}
        ours, theirs = tmp_path / "ours.blksgf", tmp_path / "theirs.blksgf"
        ours.write_text(blksgf.render(names, (), deal=deal))
        engine.send(f"loadsgf {ours}", 10)
        for color, accepted in enumerate(names.colors):
            legal = engine.send(f"all_legal {accepted[0]}", 60).split()
            assert sorted(map(names.action, legal)) == position.position.actions(color)
        engine.send(f"savesgf {theirs}", 10)
        (again,) = blksgf.read(theirs)
        assert {color: set(own) for color, own in again.deal["position"]["placed"].items()} == {
            color: set(own) for color, own in deal["position"]["placed"].items()
        }
        assert again.deal["position"]["current_color"] == deal["position"]["current_color"]
        if number:
            continue
        game = tilewe_jax.make(name)
        player = gtp_player(game, f'gtp:command="{PENTOBI} -l 1 --nobook --noresign -q"')
        played = agents.OngoingGame(game, lambda game=game, deal=deal: game.init_from_deal(deal), deal=deal)
        while not position.is_terminal:
            played.actions.append(player.choose(played, 60, "seed"))
            position = position.after(played.actions[-1])
    engine.close()
