"""Training runs of equal CPU time, and the match of their networks."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from experiments.sweep import sweep

PRESET = """
from tilewe_jax.training.config import *
from tilewe_jax.search import SearchSettings

CONFIG = TrainConfig(
    game=GameConfig("tests.search.tictactoe:TicTacToe"),
    network=NetworkConfig("mlp", "tiny"),
    selfplay=SelfplayConfig(
        num_games=16, unroll_length=8, search=SearchSettings(num_simulations=4, num_candidates=9, candidate_pool=9)
    ),
    replay=ReplayConfig(replay_size=16, min_replay_size=8),
    optimizer=OptimizerConfig(batch_size=16),
)
"""


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A sweep of two runs that end at once."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "preset.py").write_text(PRESET)
    given = {"preset": folder / "preset.py", "out": folder / "out", "cpu-minutes": 1e-4, "games": 40, "batch": 20, "opening": 1}
    return [text for name, value in given.items() for text in (f"--{name}", str(value))]


def test_runs_are_made_once_and_their_networks_play_each_other(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    variant = "replay.replay_ratio=1 optimizer.decay_steps=10"
    agent = ["--agent", "gumbel:num_simulations=2,num_candidates=9"]
    sweep.main([*arguments, *agent, "--vary", variant])
    out = Path(arguments[3])
    results = json.loads((out / sweep.RESULTS).read_text())
    assert [row["variant"] for row in results["runs"]] == ["base", variant]
    assert sum(row["elo"] for row in results["runs"]) == pytest.approx(0, abs=0.2)
    for row in results["runs"]:
        assert row["iterations"] > 0
        assert Path(row["weights"]).exists()
    configs = [json.loads((Path(row["weights"]).parents[1] / "config.json").read_text()) for row in results["runs"]]
    assert [config["replay"]["replay_ratio"] for config in configs] == [4.0, 1.0]
    assert variant in capsys.readouterr().out
    before = (out / "base" / "config.json").stat().st_mtime_ns
    # The name of weights in a file, which might name code, is not believed.
    finished = out / "base" / "finished.json"
    finished.write_text(json.dumps({**json.loads(finished.read_text()), "weights": "os:getcwd"}))
    sweep.main([*arguments, *agent, "--vary", variant])
    assert (out / "base" / "config.json").stat().st_mtime_ns == before
    # Runs of other settings, or interrupted ones, are neither taken for finished nor lost.
    with pytest.raises(SystemExit, match="base has a run with other settings: seed was 0 and is 1"):
        sweep.main([*arguments, *agent, "--set", "seed=1"])
    (out / "base" / "finished.json").unlink()
    with pytest.raises(SystemExit, match="base has a run that was interrupted"):
        sweep.main([*arguments, *agent])
    assert (out / "base" / "config.json").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--vary", "replay.replay_ratio"], "--vary takes SETTING=VALUE, not 'replay.replay_ratio'"),
        (["--vary", "replay.replay_ratio=4"], "the variant 'replay.replay_ratio=4' changes nothing"),
        (["--vary", "seed=1", "seed=1"], "the variants must differ from each other"),
        (["--vary", "replay.ratio=4"], "replay.ratio"),
        (["--cpu-minutes", "-1"], "cpu_minutes"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], given: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        sweep.main([*arguments, *given])


def test_compilation_is_not_counted() -> None:
    clock = sweep.CpuClock()
    assert clock() == 0
    jax.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(7)).block_until_ready()
    assert clock() == 0
    sum(range(200_000))
    assert clock() > 0
