"""Shards: their joined results equal those of one command, and bad input is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax.arena.shards import Shard
from tilewe_jax.arguments import from_arguments, to_arguments
from tilewe_jax.cli import main as cli
from tilewe_jax.cli.match import Match

GAME = ["--game", "santorini", "--set", "size=3"]
MATCH = ["match", "greedy", "random", "again=random", *GAME, "--games", "22", "--batch", "4", "--seed", "5"]
SEARCH = "puct:num_playouts=0,priors=false,num_candidates=8,max_depth=2,reuse_subtree=false,num_simulations="
LADDER = ["ladder", *GAME, "--agent", "greedy", "--opponent", SEARCH + "{level}", "--levels", "1,3"]
LADDER += ["--games", "10", "8", "--repeats", "2", "--batch", "4", "--level-elo", "100", "200"]


def shards(folder: Path, command: list[str], count: int) -> Path:
    for number in range(1, count + 1):
        cli.main([*command, "--shard", f"{number}/{count}", "--out", str(folder)])
    return folder


def without_times(value: Any) -> Any:
    """Remove the fields that depend on time."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if "second" not in name}
    return value


def test_merged_match_equals_the_whole_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*MATCH, "--json", "--out", str(tmp_path / "whole.jsonl")])
    whole = json.loads(capsys.readouterr().out)
    folder, plot = shards(tmp_path / "shards", MATCH, 3), tmp_path / "elo.svg"
    assert "shard 3/3: 8 games written" in capsys.readouterr().err
    cli.main(["merge", str(folder), "--json", "--out", str(tmp_path / "merged.jsonl"), "--plot", str(plot)])
    assert without_times(json.loads(capsys.readouterr().out)) == without_times(whole)
    assert whole["games"] == 22
    assert (tmp_path / "merged.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    assert plot.read_text().count("<circle") == 3


def test_merged_ladder_equals_the_whole_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*LADDER, "--out", str(tmp_path / "whole"), "--json"])
    whole = json.loads(capsys.readouterr().out)
    folder = shards(tmp_path / "shards", LADDER, 2)
    cli.main(["merge", *map(str, folder.iterdir()), "--out", str(tmp_path / "merged"), "--json"])
    merged = json.loads(capsys.readouterr().out)
    assert without_times(merged) == without_times(whole)
    assert [row["games"] for entry in merged["agents"] for row in entry["levels"]] == [20, 16]
    assert {path.name for path in (tmp_path / "merged").iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
    for path in (tmp_path / "whole").glob("*.jsonl"):
        assert (tmp_path / "merged" / path.name).read_text() == path.read_text()


def changed(path: Path, folder: Path, **values: Any) -> Path:
    """Write a shard with other values to a folder."""
    content = json.loads(path.read_text())
    for name, value in values.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    result = folder / f"changed-{len(list(folder.iterdir()))}.json"
    result.write_text(json.dumps(content))
    return result


def test_bad_shards_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shards(tmp_path / "pair", ["match", "random", *GAME, "--games", "4", "--seed", "5"], 2)
    first, second = (folder / f"match-{number}-of-2.json" for number in (1, 2))
    arguments = json.loads(second.read_text())["arguments"]
    broken = tmp_path / "broken.json"
    broken.write_text(second.read_text()[:-9])
    cases = [
        ([second], "shard 1 of 2 is missing"),
        (
            [first, changed(first, tmp_path, about={})],
            "are the same shard 1/2",
        ),
        ([first, changed(second, tmp_path, shard=[2, 3])], "is shard 2/3"),
        ([first, changed(second, tmp_path, arguments=[*arguments, "--seed=6"])], "--seed is 5 in shard 1 and 6 in shard 2"),
        ([first, changed(second, tmp_path, arguments=["greedy"])], '--game is "santorini" in shard 1 and "tilewe" in shard 2'),
        ([first, changed(second, tmp_path, about={"jax": "9"})], '"9" in shard 2'),
        ([first, changed(second, tmp_path, game={"version": 9})], "version of santorini"),
        ([first, changed(second, tmp_path, matches=[])], "1 match, not 0"),
        ([first, changed(second, tmp_path, command="train")], "'train'"),
        ([first, changed(second, tmp_path, shard=[0, 2])], "'0/2'"),
        ([first, broken], f"{broken} is not a shard"),
        ([first, tmp_path / "none.json"], "none.json: No such file"),
        ([tmp_path / "nothing"], "must have the shards of a command"),
    ]
    (tmp_path / "nothing").mkdir()
    for paths, message in cases:
        with pytest.raises(SystemExit) as stop:
            cli.main(["merge", *map(str, paths)])
        assert stop.value.code == 1
        assert message in capsys.readouterr().err
    assert list(tmp_path.glob("*.jsonl")) == []


def test_bad_options_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        (["--shard", "1/2"], "--shard needs --out"),
        (["--shard", "3/2"], "'3/2'"),
        (["--shard", "1"], "3/16, not '1'"),
        (["--shard", "1/2", "--sprt", "0", "9"], "--sprt cannot be given with --shard"),
        (["--shard", "1/12"], "at most 11 shards"),
    ]
    for options, message in cases:
        out = [] if "needs" in message else ["--out", str(tmp_path)]
        with pytest.raises(SystemExit) as stop:
            cli.main([*MATCH, *options, *out])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*LADDER, "--shard", "1/2", "--out", str(tmp_path), "--precision", "0.1"])
    assert "--precision cannot be given with --shard" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [1, 2, 7])
def test_shards_cover_all_games(count: int) -> None:
    for games in (14, 20, 31):
        parts = [Shard(number, count).games(games, 2) for number in range(1, count + 1)]
        assert [game for part in parts for game in part] == list(range(games))
        assert max(map(len, parts)) - min(map(len, parts)) <= 3


def test_arguments_are_restored() -> None:
    options = {"game": "duo", "set": ("x=1", "y=2"), "sprt": (0.0, 1.5), "list": True, "batch": 3, "import_": ("m", "n")}
    for command in (Match(agents=()), Match(agents=("a b", "puct:num_simulations=1"), **options)):
        assert from_arguments(Match, to_arguments(command)) == command
