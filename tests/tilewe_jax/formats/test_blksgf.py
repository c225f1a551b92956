"""Pentobi's game files: round trips, variations, old spellings, and invalid files."""

import contextlib
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax import records, variations
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


@pytest.mark.parametrize("name", ["duo_official", "classic_2", "tilewe"])
def test_round_trip_of_random_games(name: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    records = [random_record(name, rng) for _ in range(3)]
    blksgf.write_records(tmp_path / "games.blksgf", make_host_game(name), records)
    content = recorded.read(tmp_path / "games.blksgf")
    game, again = content.of_one_kind("games.blksgf")
    assert (game.id, content.notes) == (name, ())
    assert again == records


def test_reading_of_trees() -> None:
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
    assert len(blksgf.parse(text)[0].actions) == 4, "the invalid move is in a variation, which is ignored"
    with pytest.raises(ValueError, match=r"game 1: variation 2: move 3: .*'x'"):
        blksgf.parse(text, variations=True)


def test_ignored_content_is_counted() -> None:
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
    """Format a random tree of legal moves with random optional parentheses.

    Args:
      rng: random generator.
      game: the game.
      line: alternating positions and actions so far.
      lines: receives the actions of each line.
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


@pytest.mark.parametrize("name", ["duo_official", "classic_2"])
def test_each_line_of_a_tree_is_a_game(name: str) -> None:
    rng = random.Random(1)
    game = blokus_game(make_host_game(name))
    for _ in range(3):
        lines: list[tuple[int, ...]] = []
        text = f"({random_tree(rng, game, [game.start()], lines)})"
        games = blksgf.parse(text, variations=True)
        assert [each.actions for each in games] == lines
        (main,) = blksgf.parse(text)
        assert (main.actions, main.unread.variations) == (lines[0], len(lines) - 1)
        written = "".join(blksgf.render(game, each.actions) for each in games)
        assert [each.actions for each in blksgf.parse(written)] == lines


def test_reading_of_deep_and_wide_trees() -> None:
    deep = "(;GM[Blokus Duo]" + "(;C[x]" * 20_000 + ")" * 20_001
    (game,) = blksgf.parse(deep, variations=True)
    assert game.unread.properties == {"C": 20_000}
    wide = "(;GM[Blokus Duo]" + "(;B[e10])" * 500 + ")"
    assert len(blksgf.parse(wide, variations=True)) == 500


def test_redundant_properties_are_accepted() -> None:
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
    assert game.actions == full.actions, "passes of blocked players are ignored"
    assert game.record() == Record(None, full.actions, full.scores, full.returns)
    with pytest.raises(ValueError, match=re.escape(f"move {len(full.actions) + 1}, B[a1]: ")):
        blksgf.parse(text[:-2] + ";B[a1])")


def test_old_spellings() -> None:
    (game,) = blksgf.parse("(;GM[Blokus];BLUE[a20][a19];YELLOW[t20];3[t1];GREEN[a1])")
    assert [game.game.move_text(action) for action in game.actions] == ["a19,a20", "t20", "t1", "a1"]
    assert game.players == ()


def test_two_colors_of_a_player() -> None:
    """Moves have the names of colours, 1 to 4, but players are B and W."""
    text = "(;GM[Blokus Two-Player]CA[UTF-8]PB[one]PW[two]\n;1[a20]\n;2[t20]\n;3[t1]\n;4[a1])\n"
    (game,) = blksgf.parse(text)
    assert game.game.host.id == "classic_2"
    assert game.players == ("one", "two")
    assert blksgf.render(game.game, game.actions, game.players) == text
    with pytest.raises(ValueError, match=re.escape("move 2, 3[a1]: it is the turn of 2")):
        blksgf.parse("(;GM[Blokus Two-Player];1[a20];3[a1])")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no tree"),
        ("hello", "'hello' at character 1"),
        ("(", "ends inside"),
        ("[a]", "'[a]' at character 1"),
        ("(;B[a", "'[a' at character 4"),
        ("(;[a])", "'[a]' at character 3"),
        ("(;B[a1])", "game 1: "),
        ("()", "game 1: "),
        ("(;GM[Chess])", "game 1: unknown game 'Chess'"),
        (f"{START})(;GM[Blokus Duo];W[j5])", "game 2: move 1, W[j5]: it is the turn of B"),
        (f"{START};B[e10])", "move 3, B[e10]: action 130"),
        (f"{START};B[zz])", "move 3: invalid move 'zz'"),
        (f"{START};AE[a1])", "AE after 2 moves: a position can be set up before the first move only"),
        (f"{START};AddBlack[a1])", "AB after 2 moves"),
        ("(;GM[Blokus Duo]AB[a1])", "a piece of blue must cover e10: the first piece starts there"),
        ("(;GM[Blokus Duo]AB[e10,z9])", "do not form a piece on the board"),
        ("(;GM[Blokus Duo]A3[e10])", "A3[e10]: 3 is not a color of Blokus Duo; colors are B W"),
        ("(;GM[Blokus Duo]AB[e10]AE[a1])", "AE[a1] must be a piece on the board"),
        ("(;GM[Blokus Duo]AB[e10]PL[RED])", "PL[RED]: RED is not a color of Blokus Duo"),
        (f"{START}PL[W])", "PL[W] after 2 moves must be B"),
        (f"{START}SZ[20])", "SZ[20] must be 14"),
        (f"{START};b[pass])", "move 3, B[pass]: Blokus Duo has no pass"),
        (f"{START};B)", "move 3, B[]: Blokus Duo has no pass"),
        ("(;GM[Blokus];B[a20])", "colors are 1 2 3 4"),
        ("(;GM[Blokus Duo];B[e10]B[f10])", "move 2, B[f10]: it is the turn of W"),
        (f"{START}(;B[g9]);B[g9])", "';' at character"),
        ("((;GM[Blokus Duo])(;GM[Blokus]))", "game 1: "),
    ],
)
def test_invalid_files_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        blksgf.parse(text)
    (tmp_path / "file.blksgf").write_text(text)
    with pytest.raises(RecordError, match=r"file\.blksgf"):
        recorded.read(tmp_path / "file.blksgf")


def test_games_that_cannot_be_written_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "game.blksgf"
    file.write_text(f"{START})")
    with pytest.raises(ValueError, match="options of duo_official"):
        blksgf.write_records(file, make_host_game("duo_official", size=10), [random_record("duo_official", random.Random(0))])
    with pytest.raises(ValueError, match="game 1: action 3"):
        blksgf.write_records(file, make_host_game("duo_official"), [Record(None, (3,), (0, 0), (0.5, 0.5))])
    finished = random_record("duo_official", random.Random(0))
    for wrong, message in (
        (replace(finished, scores=(1, 2)), "[1, 2]"),
        (replace(finished, actions=finished.actions[:-1]), "game 1: "),
        (replace(finished, actions=(*finished.actions, 0)), "action 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            blksgf.write_records(file, make_host_game("duo_official"), [wrong])
    with pytest.raises(ValueError, match="santorini"):
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


def test_damaged_texts_do_not_crash_the_parser() -> None:
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


def random_lines(rng: random.Random, positions: list[Any], first: int, depth: int) -> dict[str, Any]:
    """Return random comments and variations of a line, which are after at least ``first`` moves."""
    last = len(positions) - 1
    texts = ["good", "a ] and a \\ and [", "two\nlines", "\N{SNOWMAN}"]
    comments = {str(number): rng.choice(texts) for number in range(first, last + 1) if rng.random() < 0.2}
    branches = []
    for move in sorted(rng.choices(range(first, last + 1), k=rng.randrange(3))) if depth < 3 and first <= last else ():
        line, actions = positions[: move + 1], []
        while len(actions) < 4 and not line[-1].is_terminal:
            actions.append(rng.choice(line[-1].legal_actions()))
            line.append(line[-1].after(actions[-1]))
        if actions:
            branches.append({"move": move, "actions": actions, **random_lines(rng, line, move + 1, depth + 1)})
    return {"comments": comments, "variations": branches}


@pytest.mark.parametrize("name", ["duo_official", "classic_2", "duo"])
def test_comments_and_variations_there_and_back(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    host = make_host_game(name)
    game = blokus_game(host)
    for plies in (0, 3, 12, 200):
        positions, actions = [game.start()], []
        while len(actions) < plies and not positions[-1].is_terminal:
            actions.append(rng.choice(positions[-1].legal_actions()))
            positions.append(positions[-1].after(actions[-1]))
        extra = random_lines(rng, positions, 0, 0)
        assert variations.checked(host, None, actions, extra) == extra
        (read,) = blksgf.parse(blksgf.render(game, actions, (), extra), keep=True)
        assert (read.actions, not read.unread) == (tuple(actions), True)
        assert {"comments": {}, "variations": []} | read.extra == extra
        lines = blksgf.parse(blksgf.render(game, actions, (), extra), variations=True)
        assert lines[0].actions == tuple(actions)

        path = tmp_path / "games.jsonl"
        records.write(path, host, [read.record()])
        (again,) = recorded.read(path).games
        assert not recorded.read(path).notes
        assert again.extra == read.extra
        if plies == 200:
            blksgf.write_records(tmp_path / "game.blksgf", host, [again.record])
            (back,) = recorded.read(tmp_path / "game.blksgf", keep=True).games
            assert (back.actions, back.extra) == (again.actions, again.extra)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"comments": []}, None),
        ({"comments": ["x"]}, "comments must be an object"),
        ({"comments": {"3": "x"}}, "from 0 to 2, got '3'"),
        ({"comments": {"x": "x"}}, "from 0 to 2, got 'x'"),
        ({"comments": {"0": 1}}, "must be a text"),
        ({"variations": {"move": 0}}, "variations a list"),
        ({"variations": [{"move": 3, "actions": [1]}]}, "from 0 to 2, got 3"),
        ({"variations": [{"move": True, "actions": [1]}]}, "from 0 to 2, got True"),
        ({"variations": [{"move": 1, "actions": []}]}, "at least one"),
        ({"variations": [{"move": 1, "actions": [10**9]}]}, "a variation after 1 moves, move 2"),
        ({"variations": [{"move": 1, "actions": ["first"], "comments": {"1": "x"}}]}, "action ids"),
    ],
)
def test_wrong_comments_and_variations(extra: Any, message: str | None) -> None:
    host = make_host_game("duo_official")
    position, actions = host.init_from_deal(None), []
    for _ in range(2):
        actions.append(position.legal_actions()[0])
        position = position.after(actions[-1])
    if message is None:
        assert variations.checked(host, None, actions, extra) == {"comments": {}, "variations": []}
        return
    with pytest.raises(ValueError, match=message):
        variations.checked(host, None, actions, extra)
    first = {"move": 1, "actions": [actions[1]], "variations": [{"move": 1, "actions": [actions[1]]}]}
    with pytest.raises(ValueError, match="from 2 to 2, got 1"):
        variations.checked(host, None, actions, {"variations": [first]})


def test_nested_variations_are_limited() -> None:
    text = "(;GM[Blokus Duo]" + "(;B[e10])(;C[x]" * 2_000 + ")" * 2_001
    with pytest.raises(ValueError, match="at most 50 deep"):
        blksgf.parse(text, keep=True)


@pytest.mark.parametrize("name", ["duo_official", "classic", "classic_2", "tilewe", "duo"])
def test_round_trip_of_games_from_positions(name: str, tmp_path: Path) -> None:
    host, rng = make_host_game(name), random.Random(1)
    assert host.positions
    starts = [host.init_from_deal(None)]
    while not starts[-1].is_terminal:
        starts.append(starts[-1].after(rng.choice(starts[-1].legal_actions())))
    games = []
    for start in [*rng.sample(starts[1:], 3), starts[-1]]:
        position, actions = start, []
        while not position.is_terminal:
            actions.append(rng.choice(position.legal_actions()))
            position = position.after(actions[-1])
        facts = host.positions.write(start)
        returns = tuple(map(float, host.returns(position)))
        games.append(Record({"position": facts}, tuple(actions), position.scores(), returns))
    blksgf.write_records(tmp_path / "games.blksgf", host, games)
    _, again = recorded.read(tmp_path / "games.blksgf").of_one_kind("games.blksgf")
    for ours, theirs in zip(again, games, strict=True):
        assert ours == replace(theirs, deal=ours.deal)
        placed = [{color: set(own) for color, own in each.deal["position"]["placed"].items()} for each in (ours, theirs)]
        assert placed[0] == placed[1]
        if theirs.actions:  # at the end no colour is to move
            assert ours.deal["position"]["current_color"] == theirs.deal["position"]["current_color"]


def test_setups_are_read_in_all_their_forms() -> None:
    (game,) = blksgf.parse("(;GM[Blokus Duo]AddBlack[f10,e10][g9];AW[j5]AE[g9]PL[BLACK];B[g9];W[k6,k7])")
    assert game.deal["position"]["placed"] == {"blue": ["e10,f10"], "yellow": ["j5"]}
    assert game.deal["position"]["monomino_last"] == ["yellow"]
    assert len(game.actions) == 2
    (moved,) = blksgf.parse("(;GM[Blokus Duo]PL[W];W[j5])")
    assert moved.deal["position"]["current_color"] == "yellow"
    (usual,) = blksgf.parse("(;GM[Blokus Duo]PL[B];B[e10])")
    assert usual.deal is None
    (kept,) = blksgf.parse("(;GM[Blokus]A1[a20]A3[t1]PL[4]C[hi](;4[a1])(;4[a1,a2]))", keep=True)
    assert kept.deal["position"]["current_color"] == "green"
    assert kept.extra["comments"] == {"0": "hi"}
    (again,) = blksgf.parse(blksgf.render(kept.game, kept.actions, (), kept.extra, kept.deal), keep=True)
    assert (again.deal, again.actions, again.extra) == (kept.deal, kept.actions, kept.extra)
    with pytest.raises(ValueError, match="a variation sets up another position"):
        blksgf.parse("(;GM[Blokus](;1[a20])(;A1[a20]PL[2];2[t20]))", keep=True)
    lines = blksgf.parse("(;GM[Blokus](;1[a20])(;A1[a20]PL[2];2[t20]))", variations=True)
    assert [each.deal is None for each in lines] == [True, False]


def test_a_voluntary_pass_cannot_be_set_up() -> None:
    facts = {"placed": {"blue": ["a14"]}, "current_color": "yellow", "out": ["blue"]}
    with pytest.raises(ValueError, match="blue has passed although it could move"):
        blksgf.render(blokus_game(make_host_game("duo")), (), deal={"position": facts})
