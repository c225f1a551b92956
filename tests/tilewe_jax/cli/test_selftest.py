"""The command ``selftest`` finds wrong results, and says where."""

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.test_modes import run as python
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.cli import selftest
from tilewe_jax.cli.benchmarks import signature

SETUP = signature.SETUPS["santorini"]


@pytest.fixture(scope="module")
def results() -> list[Any]:
    """Random games of Santorini and the legal actions of their positions, as on any device."""
    return signature.COLUMNS["random"](SETUP)


def _checked(monkeypatch: pytest.MonkeyPatch, results: list[Any]) -> selftest.Result:
    monkeypatch.setitem(signature.COLUMNS, "random", lambda setup: results)
    return selftest.check("santorini", "random")


def test_right_results_are_exact(monkeypatch: pytest.MonkeyPatch, results: list[Any]) -> None:
    assert _checked(monkeypatch, results).verdict == "exact"


@pytest.mark.parametrize("game", [0, 5, 63])
def test_a_wrong_action_is_found(monkeypatch: pytest.MonkeyPatch, results: list[Any], game: int) -> None:
    games, *others = results
    ply = int(games.rollout.lengths[game]) // 2
    wrong = jax.tree.map(lambda leaf: leaf, games)
    object.__setattr__(wrong, "actions", games.actions.at[game, ply].set(games.actions[game, ply - 1]))
    found = _checked(monkeypatch, [wrong, *others])
    assert found.verdict == "wrong"
    assert {name: found.found[name] for name in ("what", "game")} == {"what": "action", "game": game}
    assert found.found["ply"] in (ply, ply + 1)  # the previous action may be legal once more
    assert found.found["device"] not in found.found["rules"]
    assert found.found["actions"][:ply] == games.actions[game, :ply].tolist()
    json.dumps(vars(found))


def test_a_wrong_mask_is_found(monkeypatch: pytest.MonkeyPatch, results: list[Any]) -> None:
    games, masks, *others = results
    action = int(jnp.argmax(masks[7]))
    found = _checked(monkeypatch, [games, masks.at[7, action].set(False), *others])
    assert (found.verdict, found.found["what"], found.found["game"]) == ("wrong", "legal actions", 7)
    assert set(found.found["rules"]) - set(found.found["device"]) == {action}


def test_a_wrong_score_is_found(monkeypatch: pytest.MonkeyPatch, results: list[Any]) -> None:
    games, *others = results
    rollout = jax.tree.map(lambda leaf: leaf, games.rollout)
    object.__setattr__(rollout, "scores", rollout.scores.at[3, 0].add(1))
    wrong = jax.tree.map(lambda leaf: leaf, games)
    object.__setattr__(wrong, "rollout", rollout)
    found = _checked(monkeypatch, [wrong, *others])
    assert (found.verdict, found.found["what"], found.found["game"]) == ("wrong", "scores", 3)
    assert np.subtract(found.found["device"], found.found["rules"]).tolist() == [1, 0]


def test_other_games_that_follow_the_rules_are_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, results: list[Any], tmp_path: Path
) -> None:
    """The table of another version: device and CPU agree, and the command fails with a report."""
    table = json.loads(signature.TABLE.read_text())
    table["santorini"]["random"] = "0" * 12
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    monkeypatch.setattr(signature, "TABLE", path)
    monkeypatch.setitem(signature.COLUMNS, "random", lambda setup: results)
    report = tmp_path / "report.json"
    arguments = ["--game", "santorini", "--minutes", "0.00001", "--report", str(report)]
    code, out, err = run(capsys, "selftest", *arguments)
    assert code == 1
    assert "wrong" in out
    assert "santorini, random" in err
    content = json.loads(report.read_text())
    assert [check["verdict"] for check in content["checks"]] == ["wrong"]
    assert content["jax"] == jax.__version__
    assert ["santorini", "search"] in content["not_checked"]


def test_few_rounded_actions_of_networks_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    right = jnp.arange(16, dtype=jnp.int32)
    for wrong, verdict in ((1, "rounded"), (9, "wrong")):
        monkeypatch.setattr(selftest, "_on_cpu", lambda setup, column: [right])
        monkeypatch.setitem(signature.COLUMNS, "network", lambda setup, wrong=wrong: [right.at[:wrong].add(1)])
        found = selftest.check("santorini", "network")
        assert (found.verdict, found.found["row"], found.found["rows"]) == (verdict, 0, wrong)


def test_wrong_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, message in (
        (["--game", "chess"], "chess"),
        (["--minutes", "0"], "--minutes"),
        (["--report", str(tmp_path / "missing" / "report.json")], "missing"),
    ):
        code, out, err = run(capsys, "selftest", *arguments)
        assert (code, out) == (2, "")
        assert message in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "verdict"),
    [
        ({"JAX_ENABLE_X64": "1"}, "exact"),
        ({"JAX_NUM_CPU_DEVICES": "3"}, "exact"),
        ({"JAX_DEFAULT_PRNG_IMPL": "rbg"}, "other random numbers"),
        ({"JAX_THREEFRY_PARTITIONABLE": "0"}, "other random numbers"),
        ({"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_enable_fast_math=true"}, "exact"),
    ],
)
def test_other_settings_of_jax(variables: dict[str, str], verdict: str) -> None:
    done = python("-m", "tilewe_jax", "selftest", "--game", "santorini", "--minutes", "0.00001", "--json", **variables)
    assert done.returncode == 0, done.stderr[-2000:]
    content = json.loads(done.stdout)
    assert [check["verdict"] for check in content["checks"]] == [verdict]
    assert "XLA_FLAGS" not in variables or "--xla_cpu_enable_fast_math=true" in content["xla_flags"]
