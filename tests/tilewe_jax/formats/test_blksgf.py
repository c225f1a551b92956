"""Pentobi's game files: random games there and back, variations and old spellings, and files that are none."""

import contextlib
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.host_games import make_host_game
from tilewe_jax.records import Record, RecordError
from tilewe_jax.replay import recorded

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
    content = recorded.read(tmp_path / "games.blksgf")
    game, again = content.of_one_kind("games.blksgf")
    assert (game.id, content.notes) == (name, ())
    assert again == records


def test_trees_are_read() -> None:
    text = f"{START}\n C[a \\] (;B\\\\] TE[1]\n(;B[g9] (;W[k6,k7]) (;W[k4,k3]))(;B[x]))"
    (root,) = blksgf.trees(text)
    assert root
    assert (root.properties, len(root.children)) == ([("GM", ["Blokus Duo"])], 1)
    node = root.children[0].children[0]
    assert node.properties == [("W", ["j5"]), ("C", ["a ] (;B\\"]), ("TE", ["1"])]
    assert [[child.properties[0][1] for child in each.children] for each in (node, node.children[0])] == [
        [["g9"], ["x"]],
        [["k6,k7"], ["k4,k3"]],
    ]
    assert len(blksgf.parse(text)[0].actions) == 4, "the second variation is not read, so its move may be wrong"
    with pytest.raises(ValueError, match=re.escape("game 1: variation 2: move 3: invalid move 'x'")):
        blksgf.parse(text, variations=True)


def test_the_rest_of_a_file_is_counted() -> None:
    text = (
        "(;FF[4]AP[x:1]CA[utf-8]GM[Blokus Duo]DT[2024]PB[a]PB[b]PL[B]SZ[14]C[one];B[e10]C[two]XX[1]"
        "(;W[j5]PB[late];B[f9,g9](;W[k6,k7])(;W[k4,k3]))(;W[i5,j5]))(;GM[Blokus Duo])"
    )
    first, empty = blksgf.parse(text)
    properties = {"DT": 1, "PB": 2, "C": 2, "XX": 1}
    assert first.unread == blksgf.Unread(2, properties)
    assert str(first.unread) == "2 variations, 2 comments, the properties DT, PB (2), XX"
    assert (first.players, not empty.unread, empty.actions) == (("a", ""), True, ())
    lines = blksgf.parse(text, variations=True)
    assert [line.unread for line in lines] == [blksgf.Unread(0, properties), *[blksgf.Unread()] * 3]
    assert [len(line.actions) for line in lines] == [4, 4, 2, 0]
    assert lines[0].actions == first.actions
    content = recorded.of_sgf([first, empty])
    assert content.notes == (f"{first.unread} are not read", "game 2 has no moves")
    assert content.has_variations
    latin = blksgf.parse("(;GM[Blokus]CA[ISO-8859-1];1[a20])")[0].unread
    assert latin.properties == {"CA": 1}, "text is always read as UTF-8"


def random_tree(rng: random.Random, game: Any, line: list[Any], lines: list[tuple[int, ...]]) -> str:
    """A random tree of legal moves, written with every choice of parentheses.

    Args:
      rng: its random numbers.
      game: the game.
      line: the positions so far, and the actions after the first of them in turns.
      lines: gets the actions of each line.
    """
    positions, actions = line[::2], tuple(line[1::2])
    text = f";GM[{game.name}]"
    if actions:
        color = game.colors[positions[-2].current_color][0].upper()
        text = f";{rng.choice((color, color.lower()))}[{game.move_text(actions[-1])}]"
    count = rng.choice((0, 1, 1, 2, 3)) if actions else 2
    if not count or len(actions) > 6:
        lines.append(actions)
        return text
    chosen = rng.sample(positions[-1].legal_actions(), count)
    texts = [random_tree(rng, game, [*line, action, positions[-1].after(action)], lines) for action in chosen]
    return text + (texts[0] if count == 1 and rng.random() < 0.7 else "".join(f"({each})\n" for each in texts))


@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2"])
def test_each_line_of_a_tree_is_a_game(name: str) -> None:
    rng = random.Random(1)
    game = blokus_game(make_host_game(name))
    for _ in range(5):
        lines: list[tuple[int, ...]] = []
        text = f"({random_tree(rng, game, [game.start()], lines)})"
        games = blksgf.parse(text, variations=True)
        assert [each.actions for each in games] == lines
        (main,) = blksgf.parse(text)
        assert (main.actions, main.unread.variations) == (lines[0], len(lines) - 1)
        written = "".join(blksgf.render(game, each.actions) for each in games)
        assert [each.actions for each in blksgf.parse(written)] == lines


def test_a_deep_or_wide_tree_is_read() -> None:
    deep = "(;GM[Blokus Duo]" + "(;C[x]" * 100_000 + ")" * 100_001
    (game,) = blksgf.parse(deep, variations=True)
    assert game.unread.properties == {"C": 100_000}
    wide = "(;GM[Blokus Duo]" + "(;B[e10])" * 2_000 + ")"
    assert len(blksgf.parse(wide, variations=True)) == 2_000


def test_what_changes_nothing_is_read() -> None:
    moves = ["e10,f10", "j5"]
    for text in (
        "(;GM[Blokus Duo];b[e10,f10];w[j5])",
        "(;GaMe[Blokus Duo];Black[e10,f10]White[j5])",
        "(;GM[Blokus Duo]B[E10,F10](;W[j5]))",
        "(;GM[Blokus Duo]PL[b];B[e10,f10]PL[White];W[j5]PL[B])",
    ):
        (game,) = blksgf.parse(text)
        assert [game.game.move_text(action) for action in game.actions] == moves
        assert not game.unread
    full = random_record("duo_official", random.Random(2))
    text = blksgf.render(blokus_game(make_host_game("duo_official")), full.actions)
    (game,) = blksgf.parse(text.replace(")", ";B[];W[pass])", 1) if text.count(")") == 1 else text)
    assert game.actions == full.actions, "nobody can move at the end, so that passes change nothing"
    assert game.record() == Record(None, full.actions, full.scores, full.returns)
    with pytest.raises(ValueError, match=re.escape(f"move {len(full.actions) + 1}, B[a1], comes after the end of the game")):
        blksgf.parse(text[:-2] + ";B[a1])")


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
        (f"{START};AE[a1])", "it sets up a position (AE)"),
        (f"{START};AddBlack[a1])", "it sets up a position (AB)"),
        (f"{START}PL[W])", "PL[W] after 2 moves must be B, whose turn it is"),
        (f"{START}PL[x])", "PL[x] after 2 moves"),
        (f"{START}SZ[20])", "SZ[20] must be 14, the size of Blokus Duo"),
        (f"{START};B[])", "move 3, B[], is a pass, which Blokus Duo does not have"),
        (f"{START};b[pass])", "move 3, B[pass], is a pass"),
        (f"{START};B)", "move 3, B[], is a pass"),
        (f"{START};1[e10])", "move 3, 1[e10]: 1 is not a color of Blokus Duo, whose colors are B W"),
        ("(;GM[Blokus];B[a20])", "move 1, B[a20]: B is not a color of Blokus, whose colors are 1 2 3 4"),
        ("(;GM[Blokus Duo];B[e10]B[f10])", "move 2, B[f10], is not the turn of W"),
        (f"{START}(;B[g9]);B[g9])", "';' at character"),
        (f"{START});PB[no]", "';' at character"),
        ("((;GM[Blokus Duo])(;GM[Blokus]))", "game 1: a tree starts with one node, got several variations"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        blksgf.parse(text)
    (tmp_path / "file.blksgf").write_text(text)
    with pytest.raises(RecordError, match=r"file\.blksgf"):
        recorded.read(tmp_path / "file.blksgf")


def test_games_that_are_written_have_default_options_and_the_result_of_their_moves(tmp_path: Path) -> None:
    file = tmp_path / "game.blksgf"
    file.write_text(f"{START})")
    with pytest.raises(ValueError, match="other options"):
        blksgf.write_records(file, make_host_game("duo_official", size=10), [random_record("duo_official", random.Random(0))])
    with pytest.raises(ValueError, match="game 1: action 3"):
        blksgf.write_records(file, make_host_game("duo_official"), [Record(None, (3,), (0, 0), (0.5, 0.5))])
    finished = random_record("duo_official", random.Random(0))
    for wrong, message in (
        (replace(finished, scores=(1, 2)), "and the record says [1, 2]"),
        (replace(finished, actions=finished.actions[:-1]), "game 1: it is not over, and the record says"),
        (replace(finished, actions=(*finished.actions, 0)), "action 0, comes after the end of the game"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            blksgf.write_records(file, make_host_game("duo_official"), [wrong])
    with pytest.raises(ValueError, match="moves that"):
        blksgf.write_records(file, make_host_game("santorini"), [])
    assert file.read_text() == f"{START})"
    duo, classic = finished, random_record("classic", random.Random(0))
    texts = [
        blksgf.render(blokus_game(make_host_game(name)), record.actions)
        for name, record in (("duo_official", duo), ("classic", classic))
    ]
    file.write_text("".join(texts))
    with pytest.raises(RecordError, match="duo_official"):
        recorded.read(file).of_one_kind(file)


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
