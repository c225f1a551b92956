"""Training runs with equal CPU time, and the match of their networks."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from experiments.sweep import __main__ as sweep
from tilewe_jax.training.config import TrainConfig

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


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Arguments of a sweep whose runs end after one iteration."""
    (tmp_path / "preset.py").write_text(PRESET)
    given = {"preset": tmp_path / "preset.py", "out": tmp_path / "out", "cpu-minutes": 1e-4, "games": 40, "batch": 20}
    return [text for name, value in given.items() for text in (f"--{name}", str(value))]


def test_runs_are_trained_once_and_their_networks_play(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    variant = "replay.replay_ratio=1 optimizer.decay_steps=10"
    arguments = [*arguments, "--agent", "gumbel:num_simulations=2,num_candidates=9"]
    out, train = Path(arguments[3]), sweep.train

    def train_base(config: TrainConfig, folder: Path, cpu_seconds: float) -> Any:
        """Train the base run, and copy it for the variant."""
        if folder.name == "base":
            return train(config, folder, cpu_seconds)
        shutil.copytree(out / "base", folder, ignore=shutil.ignore_patterns("finished.json"))
        return {"iterations": 1, "games_learned": 1, "cpu_seconds": 0.0}

    monkeypatch.setattr(sweep, "train", train_base)
    sweep.main([*arguments, "--vary", variant, "--shard", "1/2"])
    assert [path.name for path in out.iterdir()] == ["base"]
    sweep.main([*arguments, "--vary", variant, "--shard", "2/2"])
    assert not (out / "sweep.json").exists()
    monkeypatch.delattr(sweep, "train")
    sweep.main([*arguments, "--vary", variant])
    results = json.loads((out / "sweep.json").read_text())
    assert [row["variant"] for row in results["runs"]] == ["base", variant]
    assert sum(row["elo"] for row in results["runs"]) == pytest.approx(0, abs=0.2)
    assert all(row["iterations"] > 0 for row in results["runs"])
    before = (out / "base" / "config.json").stat().st_mtime_ns
    sweep.main([*arguments, "--vary", variant])
    assert (out / "base" / "config.json").stat().st_mtime_ns == before
    with pytest.raises(SystemExit, match="other settings"):
        sweep.main([*arguments, "--set", "seed=1"])
    (out / "base" / "finished.json").unlink()
    with pytest.raises(SystemExit, match="was interrupted"):
        sweep.main(arguments)
    with pytest.raises(SystemExit, match="changes nothing"):
        sweep.main([*arguments, "--vary", "replay.replay_ratio=4"])


def test_clock_excludes_compilation() -> None:
    clock = sweep.CpuClock()
    assert clock() == 0
    jax.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(7)).block_until_ready()
    assert clock() == 0
    sum(range(200_000))
    assert clock() > 0
