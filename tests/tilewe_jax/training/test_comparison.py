"""Reports of several runs: groups of equal settings, curves with bands over seeds, and trackers of experiments."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.tilewe_jax.cli.test_cli import run
from tests.toy import TOY
from tilewe_jax import settings
from tilewe_jax.training import Program, comparison, curves, metrics
from tilewe_jax.training import run as training


def made_run(folder: Path, seed: int, losses: list[float], **changes: Any) -> Path:
    """Write the files of a run with one game in each iteration, and one evaluation at its end."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings.to_json(replace(TOY, seed=seed, **changes))))
    row = {"seconds": 1.0, "play_seconds": 1.0, "learn_seconds": 0.0, "games": 1, "moves": 4, "simulations": 0, "plies": 4}
    learned = dict.fromkeys(("outcome_loss", "score_loss", "policy_entropy", "agreement"), 0.5)
    rows = [
        {"iteration": i, **row, "returns": [1.0, 0.0], "policy_loss": loss, **learned, "calibration": [[1], [0.5], [0.5]]}
        for i, loss in enumerate(losses, 1)
    ]
    (folder / metrics.METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    won = {"win_rate": 0.25 * seed, "standard_error": 0.1, "seating": [[0, 1], [1, 0]], "results": [[1, 0], [0, 1]]}
    evaluation = {"iteration": len(losses), "seconds": 9.0, "games_before": len(losses), "opponents": {"random": won}}
    (folder / metrics.EVALUATIONS).write_text(json.dumps(evaluation) + "\n")
    return folder


def test_mean_curve_is_that_of_student() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 5))
    runs = [[(i, float(i), value, np.nan) for i, value in enumerate(row)] for row in values]
    x, mean, ci95 = curves.mean_curve([*runs[:2], runs[2][:4]])
    assert x.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(mean, values[:, :4].mean(axis=0))
    low, high = stats.t.interval(0.95, 2, mean, stats.sem(values[:, :4], axis=0))
    np.testing.assert_allclose([mean - ci95, mean + ci95], [low, high])
    x, mean, ci95 = curves.mean_curve([[(0, 3.0, 0.5, 0.1)]])
    assert (x.tolist(), mean.tolist(), ci95.tolist()) == ([3], [0.5], [0.1])


def test_long_curves_are_thinned_to_means() -> None:
    x, mean, _ = curves.mean_curve([[(i, float(i), float(i % 2), np.nan) for i in range(1000)]])
    assert len(x) == 200
    assert x.mean() == pytest.approx(499.5)
    assert mean.mean() == pytest.approx(0.5)


def test_runs_of_equal_settings_form_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [made_run(tmp_path / "a" / f"seed{seed}", seed, [2.0, 1.0 + seed], iterations=10 + seed) for seed in range(3)]
    fast = replace(TOY.optimizer, learning_rate=0.125)
    folders.append(made_run(tmp_path / "b", 1, [3.0], optimizer=fast))
    assert comparison.runs_in(tmp_path / "a") == folders[:3]
    code, out, err = run(
        capsys, "report", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "x.html"), "--json"
    )
    assert (code, json.loads(out)) == (0, {"report": str(tmp_path / "x.html")}), err
    text = (tmp_path / "x.html").read_text()
    assert text.count("<tr>") == 3
    assert "optimizer.learning_rate=0.125" in text
    half = stats.t.ppf(0.975, 2) * 0.25 / np.sqrt(3)  # of win rates 0, 0.25 and 0.5
    assert f"25.0% ± {half:.1%}" in text
    assert "seed=" not in text
    code, out, _ = run(capsys, "report", str(tmp_path / "a"))
    assert (code, out) == (0, f"{tmp_path / 'a' / 'report.html'}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("a b", "--out is needed"),
        ("a --curve x.svg", "--curve cannot be given"),
        ("b --out x.html", "--out cannot be given"),
        ("a nothing --out x.html", "nothing has no run"),
        ("a damaged --out x.html", "line 1 is damaged: policy_loss must be a number"),
    ],
)
def test_wrong_comparisons(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/seed0", "a/seed1", "b"):
        made_run(tmp_path / name, 0, [1.0])
    made_run(tmp_path / "damaged", 0, ["x"])  # type: ignore[list-item]
    code, out, err = run(capsys, "report", *arguments.split())
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert not (tmp_path / "x.html").exists()


def test_one_command_trains_several_seeds(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "Program", lambda config, devices: program)
    preset, folder = tmp_path / "preset.py", tmp_path / "runs"
    preset.write_text("from tests.toy import SHORT as CONFIG")
    command = ["train", "--preset", str(preset), "--out", str(folder), "--seeds", "2", "--resume-or-start", "--json", "--set"]
    for iterations in (1, 2):
        code, out, err = run(capsys, *command, f"iterations={iterations}", *(["seed=5"] if iterations == 1 else []))
        assert code == 0, err
        figures = json.loads(out)
        assert [row["iterations"] for row in figures["runs"]] == [iterations] * 2
        assert Path(figures["report"]) == folder / "report.html"
    assert [json.loads((folder / f"seed{i}" / "config.json").read_text())["seed"] for i in range(2)] == [5, 6]
    first, second = (metrics.read(folder / f"seed{i}" / metrics.METRICS)[0] for i in range(2))
    assert first["returns"] != second["returns"]
    assert [row["iteration"] for row in metrics.read(folder / "seed1" / metrics.METRICS)] == [1, 2]


def test_weights_and_biases_continues_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package, whose run is sent to a server, records the calls."""
    given: list[dict[str, Any]] = []
    logged: list[dict[str, Any]] = []
    ends: list[bool] = []

    def init(**options: Any) -> Any:
        given.append(options)
        return SimpleNamespace(define_metric=lambda *_, **__: None, log=logged.append, finish=lambda: ends.append(True))

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    folder = made_run(tmp_path / "run", 1, [1.0, 0.5])
    (evaluation,) = metrics.read(folder / metrics.EVALUATIONS)
    for iteration in (3, 4):
        log = metrics.Log(folder, replace(TOY, tensorboard=False, wandb="project"), None, iteration - 1)
        log.add_evaluation(iteration, 1.0, {"opponents": evaluation["opponents"]})
        log.close()
    assert [(row["project"], row["name"], row["resume"]) for row in given] == [("project", "run", "allow")] * 2
    assert given[0]["id"] == given[1]["id"]
    assert given[0]["config"]["game"]["id"] == "tilewe"
    assert logged == [{"iteration": iteration, "win_rate/random": 0.25} for iteration in (3, 4)]
    assert len(ends) == 2
