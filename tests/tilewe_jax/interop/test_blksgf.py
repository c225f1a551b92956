"""Pentobi's game files: random games there and back, variations and old spellings, and files that are none."""

import contextlib
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop import blksgf
from tilewe_jax.interop.blokus import blokus_game
from tilewe_jax.records import Record, RecordError

START = "(;GM[Blokus Duo];B[e10,f10];W[j5]"


def random_record(name: str, rng: random.Random, **options: Any) -> Record:
    position = blokus_game(make_host_game(name, **options)).start()
    actions = []
    while not position.is_terminal:
        actions.append(rng.choice(position.legal_actions()))
        position = position.after(actions[-1])
    scores = position.scores()
    returns = tuple((score == max(scores)) / scores.count(max(scores)) for score in scores)
    names = tuple(f"agent [{seat}] \\ puct:x=1" for seat in range(len(scores)))
    return Record(None, tuple(actions), scores, returns, names)


@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2", "duo", "tilewe"])
def test_random_games_come_back(name: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    records = [random_record(name, rng) for _ in range(5)]
    blksgf.write_records(tmp_path / "games.blksgf", make_host_game(name), records)
    game, again = blksgf.read_records(tmp_path / "games.blksgf")
    assert game.host.id == name
    assert again == records


def test_the_main_line_is_read() -> None:
    text = f"{START}\n C[a \\] (;B\\\\] TE[1]\n(;B[h7,g8,h8,h9,i9] (;W[k6]) (;W[k4]))(;B[x]));PB[no]"
    with pytest.raises(ValueError, match="';' at character"):
        blksgf.main_lines(text)
    nodes = blksgf.main_lines(text.removesuffix(";PB[no]"))
    assert [[dict(node) for node in tree] for tree in nodes] == [
        [
            {"GM": ["Blokus Duo"]},
            {"B": ["e10,f10"]},
            {"W": ["j5"], "C": ["a ] (;B\\"], "TE": ["1"]},
            {"B": ["h7,g8,h8,h9,i9"]},
            {"W": ["k6"]},
        ]
    ]


def test_old_spellings() -> None:
    (game,) = blksgf.parse("(;GM[Blokus];BLUE[a20][a19];YELLOW[t20];3[t1];GREEN[a1])")
    assert [game.game.move_text(action) for action in game.actions] == ["a19,a20", "t20", "t1", "a1"]
    assert game.players == ()


def test_two_colors_of_a_player() -> None:
    """Moves are of colours, 1 to 4, and names of players, B and W."""
    text = "(;GM[Blokus Two-Player]CA[UTF-8]PB[one]PW[two]\n;1[a20]\n;2[t20]\n;3[t1]\n;4[a1])\n"
    (game,) = blksgf.parse(text)
    assert game.game.host.id == "classic_2"
    assert game.players == ("one", "two")
    assert blksgf.render(game.game, game.actions, game.players) == text
    with pytest.raises(ValueError, match=re.escape("move 2, 3[a1], is not the turn of 2")):
        blksgf.parse("(;GM[Blokus Two-Player];1[a20];3[a1])")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no tree"),
        ("hello", "'hello' at character 1 is out of place"),
        ("(", "ends inside"),
        (")", "')' at character 1"),
        ("[a]", "'[a]' at character 1"),
        ("(;B[a", "'[a' at character 4"),
        ("(;[a])", "out of place"),
        ("(B[a])", "out of place"),
        ("(;B[a1])", "game 1: it does not name its game"),
        ("()", "game 1: it does not name its game"),
        ("(;GM[Chess])", "game 1: unknown game 'Chess'"),
        (f"{START})(;GM[Blokus Duo];W[j5])", "game 2: move 1, W[j5], is not the turn of B"),
        (f"{START};B[e10])", "move 3, B[e10]: action 130"),
        (f"{START};B[zz])", "move 3: invalid move 'zz'"),
        (f"{START};AB[a1])", "it sets up a position (AB)"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        blksgf.parse(text)
    (tmp_path / "file.blksgf").write_text(text)
    with pytest.raises(RecordError, match=r"file\.blksgf"):
        blksgf.read_records(tmp_path / "file.blksgf")


def test_records_are_finished_games_of_one_kind_with_default_options(tmp_path: Path) -> None:
    file = tmp_path / "game.blksgf"
    file.write_text(f"{START})")
    with pytest.raises(RecordError, match="game 1: the game is not over after its 2 moves"):
        blksgf.read_records(file)
    with pytest.raises(ValueError, match="other options"):
        blksgf.write_records(file, make_host_game("duo_official", size=10), [random_record("duo_official", random.Random(0))])
    with pytest.raises(ValueError, match="game 1: action 3"):
        blksgf.write_records(file, make_host_game("duo_official"), [Record(None, (3,), (0, 0), (0.5, 0.5))])
    with pytest.raises(ValueError, match="santorini has no moves that are sets of cells"):
        blksgf.write_records(file, make_host_game("santorini"), [])
    assert file.read_text() == f"{START})"
    duo, classic = random_record("duo_official", random.Random(0)), random_record("classic", random.Random(0))
    texts = [
        blksgf.render(blokus_game(make_host_game(name)), record.actions)
        for name, record in (("duo_official", duo), ("classic", classic))
    ]
    file.write_text("".join(texts))
    with pytest.raises(RecordError, match="game 2 is Blokus, and the games before are Blokus Duo"):
        blksgf.read_records(file)


def test_damaged_texts_are_read_or_refused() -> None:
    rng = random.Random(0)
    game = blokus_game(make_host_game("duo_official"))
    text = blksgf.render(game, random_record("duo_official", rng).actions, ("a", "b"))
    read = 0
    for _ in range(300):
        damaged = list(text)
        for _ in range(rng.randrange(1, 4)):
            start = rng.randrange(len(damaged))
            damaged[start : start + rng.randrange(3)] = rng.choices("()[];\\,BWGM1a\n\0é", k=rng.randrange(3))
        with contextlib.suppress(ValueError):
            blksgf.parse("".join(damaged))
            read += 1
    assert 0 < read < 300
