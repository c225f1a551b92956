"""Files of recorded games: recognition of the format, unknown content, and invalid results."""

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


@pytest.mark.parametrize("name", ["g.BLKSGF", "g.sgf", "g.jsonl", "g"])
def test_the_content_decides_the_format(name: str, tmp_path: Path) -> None:
    for start in ("", "\ufeff", "\n\n "):
        (tmp_path / name).write_text(start + SGF)
        content = recorded.read(tmp_path / name)
        assert [game.actions for game in content.games] == [(130, 65)]
        assert (len(content.notes), content.has_variations) == (1, True)
        assert content.notes[0].startswith("1 variation ")
        both = recorded.read(tmp_path / name, variations=True)
        assert ([game.actions[0] for game in both.games], both.notes) == ([130, 130], ())
    records.write(tmp_path / name, GAME, [FINISHED])
    assert recorded.read(tmp_path / name).games[0].record == FINISHED


@pytest.mark.parametrize(("name", "message"), [("g.SGF", "SGF"), ("g.jsonl", "JSON")])
def test_the_name_decides_the_format_of_empty_files(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(RecordError, match=message):
        recorded.read(tmp_path / name)


def test_records_survive_reading_and_writing(tmp_path: Path) -> None:
    """Unknown fields and unfinished games do, too; notes name the fields."""
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, [FINISHED, UNFINISHED], 7)
    lines = path.read_text().splitlines()
    assert json.loads(lines[2]) == {"deal": None, "actions": [130], "scores": None, "returns": None}
    game, read = records.read_on_host(path)
    assert read == [FINISHED, UNFINISHED]
    assert [record.is_finished for record in read] == [True, False]
    assert list(records.lines(game, read, 7)) == path.read_text().splitlines(keepends=True)
    content = recorded.read(path)
    assert "comment (1), rating (1)" in content.notes[0]
    assert [game.record for game in content.games] == read
    path.write_text("\n".join([json.dumps({**json.loads(lines[0]), "event": "x"}), *lines[1:]]))
    assert " event " in recorded.read(path).notes[0]


@pytest.mark.parametrize("wrong", [{"scores": None}, {"returns": None}, {"scores": [], "returns": []}])
def test_incomplete_results_are_rejected(wrong: dict[str, object], tmp_path: Path) -> None:
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


def test_files_without_games_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, [])
    with pytest.raises(RecordError, match="games"):
        recorded.read(path).of_one_kind(path)
