"""Misspelled names: rejected before any work, in one line with the nearest valid name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import bad_inputs

MATCH = ("match", "--game", "santorini", "--games", "2", "random")
TRAIN = ("train", "--out", "run", "--set")
CASES = {
    # agents
    (*MATCH, "puct:num_simulations"): "num_simulations=64",
    (*MATCH, "gumbel:num_candidates=,num_simulations=8"): "num_candidates=64",
    (*MATCH, "puct:num-candidates=4"): "did you mean num_candidates?",
    (*MATCH, "gumbel:simulations=4"): "did you mean num_simulations?",
    (*MATCH, "gumbel:c_init=1"): "puct",
    (*MATCH, "puct:leaves=2,"): "comma",
    (*MATCH, "best:num_simulatons=4"): "did you mean num_simulations?",
    (*MATCH, "pcut"): "did you mean puct?",
    (*MATCH, "Gumbel:leaves=2"): "did you mean gumbel?",
    (*MATCH, "json:num_simulations=4"): "'json'",
    (*MATCH, "nosuch.module:factory"): "'nosuch.module'",
    (*MATCH, "random:seed=1"): "'random'",
    (*MATCH, "bset"): "did you mean best?",
    (*MATCH, "level", "8"): "level:1 to level:7",
    (*MATCH, "level 8"): "level:1 to level:7",
    (*MATCH, "lvl:3"): "level:1 to level:7",
    (*MATCH, "puct", "num_simulations=64"): "puct:num_simulations=64",
    (*MATCH, "x=random", "x=greedy"): "'x'",
    (*MATCH, "gtp"): "gtp:command=",
    ("analyze", "--agent", "pcut"): "did you mean puct?",
    # levels that a ladder would reach later
    ("ladder", "--game", "santorini", "--agent", "random", "--opponent", "level:{level}", "--levels", "6-8"): "'8'",
    ("ladder", "--game", "santorini", "--agent", "random", "pcut", "--opponent", "random"): "did you mean puct?",
    # networks
    (*MATCH, "puct:network=run"): "network 'run'",
    (*MATCH, "puct:network=."): "network '.'",
    ("export", "--game", "duo", "--out", "x.onnx", "--network", "dou"): "did you mean duo?",
    # games and their options
    ("rollout", "--game", "Duo-official"): "did you mean duo_official?",
    ("serve", "--live", "santorni"): "did you mean santorini?",
    # settings, and their values
    (*TRAIN, "num_games=64"): "did you mean selfplay.num_games?",
    (*TRAIN, "selfplay.search.simulations=3"): "did you mean selfplay.search.num_simulations?",
    (*TRAIN, "game=duo"): "did you mean game.id?",
    (*TRAIN, "network.size=nanno"): "did you mean nano?",
    (*TRAIN, "selfplay.rule=Puct"): "did you mean puct?",
    (*TRAIN, "selfplay.warmup_policy=greddy"): "did you mean greedy?",
    (*TRAIN, "evaluation.opponents=random gredy"): "did you mean greedy?",
    # commands and options
    ("mtach",): "did you mean match?",
    ("rollout", "--gmaes", "3"): "did you mean --games?",
    ("render", "f", "--out", "x.svg", "--theme", "drak"): "did you mean dark?",
    ("bench", "--game", "duo", "--policy", "radnom"): "did you mean random?",
    ("bench", "--signature", "--game", "dou"): "did you mean duo?",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with a run without weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with bad_inputs.stopped_before_work():
        yield


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_misspelled_names(arguments: tuple[str, ...]) -> None:
    outcome = bad_inputs.run(*arguments)
    assert outcome.is_one_line, outcome
    assert outcome.code == 2
    assert CASES[arguments] in outcome.err
