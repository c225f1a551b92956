import json
import os
from pathlib import Path

import jax
import pytest

import tilewe_jax
from tilewe_jax import records
from tilewe_jax.cli.benchmarks.rollouts import play_games
from tilewe_jax.records import Record, RecordError

GAME = tilewe_jax.make("duo", voluntary_pass=True, size=5, pieces=("O1", "I2", "L3"))


@pytest.fixture(scope="module")
def games() -> list[Record]:
    return play_games(GAME, 20, 8, 3, 1, True, lambda _: None).records


def test_round_trip_and_replay(games: list[Record], tmp_path: Path) -> None:
    assert len(games) == 20
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, games, 3)
    game, back = records.read(path)
    assert game == GAME
    assert back == games
    assert any(game.num_actions - 1 in record.actions for record in back), "no game has a voluntary pass"
    assert records.replay(game, back, batch=8) == [None] * 20
    header = json.loads(path.read_text().splitlines()[0])
    assert header["seed"] == 3
    assert header["version"] == GAME.version


def test_replay_detects_wrong_records(games: list[Record]) -> None:
    good = games[0]
    state = GAME.init(jax.random.key(0))
    illegal = int((~GAME.legal_action_mask(state)).argmax())
    bad = [
        good,
        Record(None, (illegal, *good.actions[1:]), good.scores, good.returns),
        Record(None, good.actions[:-1], good.scores, good.returns),
        Record(None, (*good.actions[:-1], good.actions[0]), good.scores, good.returns),
        Record(None, good.actions, (99, 99), good.returns),
        Record(None, good.actions, good.scores, (0.25, 0.75)),
    ]
    verdicts = records.replay(GAME, bad, batch=8)
    assert verdicts[0] is None
    assert verdicts[1] == f"action 1, {illegal}, is not legal"
    assert "not over after" in verdicts[2]
    assert f"action {len(good.actions)}, {good.actions[0]}, is not legal" in verdicts[3]
    assert "[99, 99]" in verdicts[4]
    assert "[0.25, 0.75]" in verdicts[5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: not a JSON object"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"GIF89a", "line 1: not a JSON object"),
        (b'{"format": "something"}', "tilewe-jax-games/1"),
        (b'{"format": "tilewe-jax-games/1", "game": "chess", "options": {}}', "there is no game 'chess'"),
        (b'{"format": "tilewe-jax-games/1", "game": "duo", "options": {"size": 99}}', "size must be 3 to 32"),
        (b'{"format": "tilewe-jax-games/1", "game": "duo"}', "options"),
        (b'{"format": "tilewe-jax-games/1", "game": "duo", "options": {}, "version": 0}', "version .* got 0"),
    ],
)
def test_foreign_files_are_rejected(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=message):
        records.read(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "must have a deal"),
        ('{"deal": null, "actions": [0.5], "scores": [1, 2], "returns": [0, 1]}', "lists of actions"),
        ('{"deal": null, "actions": [], "scores": [1], "returns": [1]}', "must be 2 numbers"),
        ('{"deal": null, "actions": [-1], "scores": [1, 2], "returns": [0, 1]}', f"0 to {GAME.num_actions - 1}"),
        ('{"deal": null, "actions": [9999], "scores": [1, 2], "returns": [0, 1]}', f"0 to {GAME.num_actions - 1}"),
        (json.dumps({"deal": None, "actions": [0] * 99, "scores": [1, 2], "returns": [0, 1]}), f"at most {GAME.max_steps} "),
        ('{"deal": 7, "actions": [], "scores": [1, 2], "returns": [0, 1]}', "deal of duo must be null, got 7"),
    ],
)
def test_invalid_lines_are_rejected(line: str, message: str, games: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, games[:1])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RecordError, match=f"line 3: .*{message}"):
        records.read(path)


def test_a_failed_write_keeps_the_old_file(games: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records.write(path, GAME, games)
    before = path.read_text()

    def broken():
        yield games[0]
        raise RuntimeError("the lights went out")

    with pytest.raises(RuntimeError, match="lights"):
        records.write(path, GAME, broken())
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["games.jsonl"]
    with pytest.raises(OSError, match="nowhere"):
        records.write(tmp_path / "nowhere" / "games.jsonl", GAME, games)
