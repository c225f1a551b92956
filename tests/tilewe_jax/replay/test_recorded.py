"""Files of recorded games: both formats by content and by name, and what is in them besides games."""

import json
from pathlib import Path

import pytest

from tilewe_jax import records
from tilewe_jax.host_games import make_host_game
from tilewe_jax.records import Record, RecordError
from tilewe_jax.replay import recorded

SGF = "(;GM[Blokus Duo]B[e10](;W[j5])(;W[i5,j5]))"
GAME = make_host_game("duo_official")
FINISHED = Record(None, (130, 65), (1, 1), (0.5, 0.5), ("a", "b"), {"comment": "good", "rating": [1, 2]})
UNFINISHED = Record(None, (130,), (), ())


@pytest.mark.parametrize("name", ["g.blksgf", "g.BLKSGF", "g.sgf", "g.Sgf", "g.jsonl", "g", "g.txt"])
def test_the_content_says_the_format(name: str, tmp_path: Path) -> None:
    for start in ("", "\ufeff", "\n\n "):
        (tmp_path / name).write_text(start + SGF)
        content = recorded.read(tmp_path / name)
        assert [game.actions for game in content.games] == [(130, 65)]
        assert (content.notes, content.has_variations) == (("1 variation is not read",), True)
        both = recorded.read(tmp_path / name, variations=True)
        assert ([game.actions[0] for game in both.games], both.notes) == ([130, 130], ())
    records.write(tmp_path / name, GAME, [FINISHED])
    assert recorded.read(tmp_path / name).games[0].record == FINISHED


@pytest.mark.parametrize(("name", "message"), [("g.SGF", "invalid SGF"), ("g.jsonl", "not a JSON object")])
def test_without_content_the_name_says_the_format(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(RecordError, match=message):
        recorded.read(tmp_path / name)


def test_records_are_written_again_as_they_were_read(tmp_path: Path) -> None:
    """Further fields and games that are not over too; a reader of games names the fields."""
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, [FINISHED, UNFINISHED], 7)
    lines = path.read_text().splitlines()
    assert json.loads(lines[2]) == {"deal": None, "actions": [130], "scores": None, "returns": None}
    game, read = records.read_on_host(path)
    assert read == [FINISHED, UNFINISHED]
    assert [record.is_finished for record in read] == [True, False]
    assert list(records.lines(game, read, 7)) == path.read_text().splitlines(keepends=True)
    content = recorded.read(path)
    assert content.notes == ("the fields comment (1), rating (1) of games are not read",)
    assert [game.record for game in content.games] == read
    path.write_text("\n".join([json.dumps({**json.loads(lines[0]), "event": "x"}), *lines[1:]]))
    assert recorded.read(path).notes[0] == "the field event of line 1 is not read"


@pytest.mark.parametrize("wrong", [{"scores": None}, {"returns": None}, {"scores": [], "returns": []}])
def test_a_result_is_there_or_null(wrong: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, [FINISHED])
    header, line = path.read_text().splitlines()
    path.write_text(f"{header}\n{json.dumps({**json.loads(line), **wrong})}\n")
    with pytest.raises(RecordError, match="line 2"):
        recorded.read(path)
    del (fields := json.loads(line))["scores"], fields["returns"]
    path.write_text(f"{header}\n{json.dumps(fields)}\n")
    with pytest.raises(RecordError, match="line 2"):
        recorded.read(path)


def test_a_file_of_one_kind_has_games(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, [])
    with pytest.raises(RecordError, match="no games"):
        recorded.read(path).of_one_kind(path)
