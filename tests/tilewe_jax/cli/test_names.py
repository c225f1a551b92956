"""Misspelled names: refused before any work, in one line with the nearest right thing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import bad_inputs

ARENA = ("match", "--game", "santorini", "--games", "2", "random")
TRAIN = ("train", "--out", "run", "--set")
CASES = {
    # agents
    (*ARENA, "puct:num_simulations"): "num_simulations needs a value, such as num_simulations=64",
    (*ARENA, "gumbel:leaves=,num_simulations=8"): "leaves needs a value, such as leaves=1",
    (*ARENA, "puct:num_simulation=4"): "did you mean num_simulations?",
    (*ARENA, "puct:num-candidates=4"): "did you mean num_candidates?",
    (*ARENA, "gumbel:simulations=4"): "did you mean num_simulations?",
    (*ARENA, "gumbel:c_init=1"): "gumbel has no setting 'c_init=1' (puct has)",
    (*ARENA, "puct:leaves=2,"): "a setting is missing before or after a comma",
    (*ARENA, "best:num_simulatons=4"): "did you mean num_simulations?",
    (*ARENA, "pcut"): "did you mean puct?",
    (*ARENA, "Gumbel:leaves=2"): "did you mean gumbel?",
    (*ARENA, "mcts:num_simulations=4"): "there is no search and no module 'mcts'",
    (*ARENA, "json:num_simulations=4"): "there is no search and no module 'json'",
    (*ARENA, "nosuch.module:factory"): "there is no search and no module 'nosuch.module'",
    (*ARENA, "radnom"): "did you mean random?",
    (*ARENA, "random:seed=1"): "the agent 'random' of santorini has no settings",
    (*ARENA, "bset"): "did you mean best?",
    (*ARENA, "level", "8"): "level needs a number after a colon, from level:1 to level:7",
    (*ARENA, "8"): "a level is written level:N, from level:1 to level:7",
    (*ARENA, "level 8"): "a level is written level:N, from level:1 to level:7",
    (*ARENA, "lvl:3"): "a level is written level:N, from level:1 to level:7",
    (*ARENA, "level:12"): "santorini has no level '12'; it has level:1 to level:7",
    (*ARENA, "puct", "num_simulations=64"): "settings follow a search after a colon: puct:num_simulations=64",
    (*ARENA, "x=random", "x=greedy"): "have the same name 'x'",
    (*ARENA, "gtp"): 'gtp:command="program -option"',
    ("match", "--game", "santorini", "gumble"): "did you mean gumbel?",
    ("analyze", "--agent", "pcut"): "did you mean puct?",
    # levels that a ladder would reach later
    ("ladder", "--game", "santorini", "--agent", "random", "--opponent", "level:{level}", "--levels", "6-8"): "no level '8'",
    ("ladder", "--game", "santorini", "--agent", "random", "pcut", "--opponent", "random"): "did you mean puct?",
    # networks
    (*ARENA, "puct:network=santorni"): "network 'santorni': not found (did you mean santorini?)",
    (*ARENA, "puct:network=run"): "network 'run': the run has no weights yet",
    (*ARENA, "puct:network=."): "network '.': it is a folder, but not the folder of a run",
    ("export", "--game", "duo", "--out", "x.onnx", "--network", "dou"): "network 'dou': not found (did you mean duo?)",
    # games and their options
    ("rollout", "--game", "santorni"): "did you mean santorini?",
    ("rollout", "--game", "Duo-official"): "did you mean duo_official?",
    ("rollout", "--game", "santorini", "--set", "szie=4"): "did you mean size?",
    # settings, and their values
    (*TRAIN, "num_games=64"): "did you mean selfplay.num_games?",
    (*TRAIN, "selfplay.search.simulations=3"): "did you mean selfplay.search.num_simulations?",
    (*TRAIN, "game=duo"): "did you mean game.id?",
    (*TRAIN, "network.size=nanno"): "did you mean nano?",
    (*TRAIN, "selfplay.rule=Puct"): "did you mean puct?",
    (*TRAIN, "selfplay.warmup_policy=greddy"): "did you mean greedy?",
    (*TRAIN, "evaluation.opponents=random gredy"): "did you mean greedy?",
    ("train", "--out", "new", "--preset", "duo-cup"): "did you mean duo_cpu?",
    # commands and options
    ("mtach",): "did you mean match?",
    ("rollout", "--gmaes", "3"): "did you mean --games?",
    ("render", "f", "--out", "x.svg", "--theme", "drak"): "not 'drak' (did you mean dark?)",
    ("bench", "--game", "duo", "--policy", "radnom"): "did you mean random?",
    ("bench", "--signature", "--game", "dou"): "did you mean duo?",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands work in a folder of their own, which has a run without weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with bad_inputs.stopped_before_work():
        yield


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_a_misspelled_name_is_refused_with_what_is_right(arguments: tuple[str, ...]) -> None:
    outcome = bad_inputs.run(*arguments)
    assert outcome.is_one_line, outcome
    assert outcome.code == 2
    assert CASES[arguments] in outcome.err
