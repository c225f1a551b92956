"""Checkpoints: runs that go on bit for bit, and files that are whole or not there."""

import asyncio
import copy
import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
import tensorstore

from experiments import networks
from experiments.config import CheckpointConfig, TrainConfig
from experiments.training import Program, Run, TrainState, checkpoint, loop, metrics
from experiments.training.checkpoint import CheckpointError
from experiments.training.metrics import Log
from experiments.training.run import naming_what_is_kept, read_config
from tests.experiments.toy import SHORT, TOY, raw, trained_in
from tests.support import assert_same


@pytest.fixture(scope="module")
def halfway(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after three iterations."""
    path: Path = tmp_path_factory.mktemp("runs") / "half"
    trained_in(path, program, SHORT)
    return path


def test_a_run_goes_on_bit_for_bit(program: Program, halfway: Path, tmp_path: Path) -> None:
    straight = trained_in(tmp_path / "straight", program, replace(SHORT, iterations=5))
    shutil.copytree(halfway, tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "checkpoints" / "000003")  # as if killed in the third iteration
    resumed = trained_in(tmp_path / "resumed", program, replace(SHORT, iterations=5), resume=True)
    assert_same(jax.tree.map(raw, resumed), jax.tree.map(raw, straight))
    assert read_config(tmp_path / "resumed").iterations == 5, "what may change is changed for the legs that follow, too"

    def lines(name: str) -> list[dict[str, Any]]:
        rows = metrics.read(tmp_path / name / metrics.METRICS)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]

    assert lines("resumed") == lines("straight")
    seconds = [row["seconds"] for row in metrics.read(tmp_path / "resumed" / metrics.METRICS)]
    assert seconds == sorted(seconds)


def test_a_run_goes_on_with_other_settings_of_learning(program: Program, halfway: Path, tmp_path: Path) -> None:
    shutil.copytree(halfway, tmp_path / "run")
    optimizer = replace(SHORT.optimizer, learning_rate=1e-4, ema_decay=0.9)
    changed = replace(SHORT, optimizer=optimizer, loss=replace(SHORT.loss, root_value_weight=0.5))
    assert int(Run(changed, tmp_path / "run", program).resume().iteration) == 3
    assert read_config(tmp_path / "run") == changed


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "run"
    for begin in ("start", "start", "resume"):
        going = Run(SHORT, path, program)
        assert int(getattr(going, begin)().iteration) == 0
        assert [entry.name for entry in (path / "checkpoints").iterdir()] == ["000000"]
        shutil.move(path / "checkpoints" / "000000", path / "checkpoints" / "000000.orbax-checkpoint-tmp")
        (path / "config.jsonab12").write_text("{")
    (path / "notes").write_text("not of a run")
    with pytest.raises(ValueError, match="is not empty"):
        going.start()
    with pytest.raises(CheckpointError, match="has no checkpoint to go on with"):
        going.resume()


def test_minutes_and_checkpoints_by_time(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Self-play takes 30 s, where it is compiled, and then 10; learning takes 3.2 s, and begins with the second iteration."""
    clock = 0.0
    slow = copy.copy(program)

    def taking(function: Any, *seconds: float) -> Any:
        left = list(seconds)

        def call(state: TrainState) -> Any:
            nonlocal clock
            clock += left.pop(0) if len(left) > 1 else left[0]
            return function(state)

        return call

    slow.play, slow.learn = taking(program.play, 30.0, 10.0), taking(program.learn, 0.1)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock))
    kept = CheckpointConfig(checkpoint_every=1000, checkpoint_minutes=0.4, num_kept=100)
    config = replace(SHORT, iterations=1000, max_minutes=2.0, checkpoint=kept, evaluation=TOY.evaluation)
    state = trained_in(tmp_path / "run", slow, replace(config, evaluation=replace(TOY.evaluation, eval_every=1000)))
    assert config.num_updates == 32
    assert int(state.iteration) == 7, "30 + 6 * 13.2 s; another iteration would end after 122.4 s"
    assert checkpoint.numbers(tmp_path / "run" / "checkpoints") == [0, 1, 3, 5, 7]
    # Another command goes on for half a minute of its own, in which two iterations fit.
    slow.play = taking(program.play, 10.0)
    leg = Run(replace(config, max_minutes=0.0, evaluation=replace(TOY.evaluation, eval_every=1000)), tmp_path / "run", slow)
    log = Log(tmp_path / "run", config, None, 7)
    assert int(leg.train(leg.resume(), log, minutes=0.5).iteration) == 9, "2 * 13.2 s; a third would end after 39.6 s"
    log.close()


def test_a_slim_checkpoint_keeps_all_but_the_games(program: Program, tmp_path: Path) -> None:
    config = replace(SHORT, iterations=3, checkpoint=replace(SHORT.checkpoint, slim=True))
    before = trained_in(tmp_path / "run", program, config)
    folder = tmp_path / "run" / "checkpoints" / "000003"
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    assert sum(sizes) < 4 * 4 * networks.num_parameters(before.learner.model) + 120_000
    going = Run(replace(config, iterations=5), tmp_path / "run", program)
    state = going.resume()
    assert_same(jax.tree.map(raw, state.learner), jax.tree.map(raw, before.learner))
    assert int(state.iteration) == 3
    assert int(program.rows_filled(state)) == 0 < int(program.rows_filled(before))
    # The buffer has to be filled again before the network learns: not with the first iteration of this run.
    assert TOY.replay.min_replay_size > TOY.selfplay.unroll_length
    log = Log(tmp_path / "run", config, None, 3)
    after = going.train(state, log)
    log.close()
    assert int(after.learner.steps) == int(before.learner.steps) + config.num_updates


def test_on_several_devices_it_plays_the_same_games(program: Program, halfway: Path) -> None:
    """What is learned differs, as each device draws from its part of the buffer; a checkpoint goes on there all the same."""
    four = Program(SHORT, 4)
    alone, divided = program.begin(0), four.begin(0)
    assert len(divided.games.ply.sharding.device_set) == 4
    alone, stats = program.play(alone)
    divided, divided_stats = four.play(divided)
    assert_same(jax.tree.map(raw, divided.games), jax.tree.map(raw, alone.games))
    assert int(stats.games) == int(divided_stats.games) > 0
    state = Run(SHORT, halfway, four).resume()
    assert int(state.iteration) == 3
    state, losses = four.learn(state)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(losses))
    assert len(state.replay.positions.finished.sharding.device_set) == 4
    with pytest.raises(ValueError, match=r"selfplay\.num_games must be a multiple of the number of devices, 3, not 64"):
        Program(SHORT, 3)


def damage(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def inside(folder: Path) -> None:
        for path in (folder / "checkpoints" / "000003" / "state").rglob("*"):
            if path.is_file() and path.stat().st_size > 10_000:
                change(path)

    return inside


def test_threads_that_a_failed_checkpoint_leaves_print_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: printed.append(unraisable.exc_value))
    with pytest.raises(OSError, match="full"), checkpoint._quiet_threads():
        raise OSError("full")
    hook, is_reported = sys.unraisablehook, threading.Event()

    def observe(unraisable: Any) -> None:
        hook(unraisable)
        is_reported.set()

    sys.unraisablehook = observe

    async def begin() -> Any:
        store = {"driver": "file", "path": str(tmp_path / "array")}
        array = tensorstore.open({"driver": "zarr", "kvstore": store}, create=True, dtype=tensorstore.float32, shape=[4])
        next(array.__await__())
        return array

    asyncio.run(begin()).result()  # TensorStore finishes after the event loop is closed
    assert is_reported.wait(10)
    assert not printed
    hook(SimpleNamespace(exc_value=RuntimeError("another")))
    assert [str(error) for error in printed] == ["another"]


def test_a_failed_write_names_the_run_and_what_is_kept() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/runs/duo/checkpoints/000003")
    for newest, kept in ((None, ""), (2, "; the checkpoint of iteration 2 is kept, and --resume goes on from it")):
        of_run: Any = SimpleNamespace(folder=Path("/runs/duo"), newest_checkpoint=lambda newest=newest: newest)
        with pytest.raises(OSError, match="No space left") as error, naming_what_is_kept(of_run):
            raise full
        assert error.value.filename == "/runs/duo"
        assert error.value.strerror == f"No space left on device (checkpoints/000003){kept}"


@pytest.mark.parametrize(
    ("config", "version", "harm", "message"),
    [
        (
            replace(SHORT, replay=replace(SHORT.replay, replay_ratio=2.0), seed=1),
            1,
            None,
            r"other settings: seed was \d and is 1$",
        ),
        (SHORT, 2, None, "is of version 1 of tilewe, which now is 2"),
        (SHORT, 1, damage(lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])), "000003 is damaged"),
        (SHORT, 1, damage(Path.unlink), "000003 is damaged"),
        (SHORT, 1, lambda folder: shutil.rmtree(folder / "checkpoints"), "has no checkpoint to go on with"),
    ],
    ids=["settings", "version", "cut off", "missing", "none"],
)
def test_checkpoints_that_cannot_go_on(
    program: Program,
    halfway: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: TrainConfig,
    version: int,
    harm: Any,
    message: str,
) -> None:
    shutil.copytree(halfway, tmp_path / "copy")
    if harm:
        harm(tmp_path / "copy")
    going = Run(config, tmp_path / "copy", program)
    monkeypatch.setattr(type(program.game), "version", version)
    with pytest.raises(CheckpointError, match=message):
        going.resume()


def test_only_what_is_ours_is_deleted(program: Program, tmp_path: Path) -> None:
    state = program.begin(0)
    (tmp_path / "000001").mkdir()
    (tmp_path / "000001" / "notes").write_text("not a checkpoint")
    for number in (5, 6, 7):
        checkpoint.save(tmp_path, number, state, TOY, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001", "000006", "000007"]
    assert checkpoint.numbers(tmp_path) == [6, 7]
