"""Checkpoints: bit-exact resumption, atomic files, damage, and the metrics of resumed runs."""

import asyncio
import copy
import errno
import json
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorstore

from tests.support import assert_same, content
from tests.toy import SHORT, TOY, raw, trained_in
from tilewe_jax import networks
from tilewe_jax.training import Program, Run, TrainState, checkpoint, loop, metrics
from tilewe_jax.training.checkpoint import CheckpointError
from tilewe_jax.training.config import CheckpointConfig, TrainConfig
from tilewe_jax.training.metrics import Log
from tilewe_jax.training.run import locked, naming, read_config


@pytest.fixture(scope="module")
def halfway(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three iterations."""
    path: Path = tmp_path_factory.mktemp("runs") / "half"
    trained_in(path, program, SHORT)
    return path


def test_resumed_run_is_bit_exact(program: Program, halfway: Path, tmp_path: Path) -> None:
    straight = trained_in(tmp_path / "straight", program, replace(SHORT, iterations=5))
    shutil.copytree(halfway, tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "checkpoints" / "000003")  # as if killed in the third iteration
    resumed = trained_in(tmp_path / "resumed", program, replace(SHORT, iterations=5), resume=True)
    assert_same(jax.tree.map(raw, resumed), jax.tree.map(raw, straight))
    assert read_config(tmp_path / "resumed").iterations == 5

    def lines(name: str) -> list[dict[str, Any]]:
        rows = metrics.read(tmp_path / name / metrics.METRICS)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]

    assert lines("resumed") == lines("straight")
    seconds = [row["seconds"] for row in metrics.read(tmp_path / "resumed" / metrics.METRICS)]
    assert seconds == sorted(seconds)


def test_settings_of_learning_change_at_resume(program: Program, halfway: Path, tmp_path: Path) -> None:
    shutil.copytree(halfway, tmp_path / "run")
    optimizer = replace(SHORT.optimizer, learning_rate=1e-4, ema_decay=0.9)
    changed = replace(SHORT, optimizer=optimizer, loss=replace(SHORT.loss, root_value_weight=0.5))
    assert int(Run(changed, tmp_path / "run", program).resume().iteration) == 3
    assert read_config(tmp_path / "run") == changed


def test_run_killed_before_its_first_checkpoint_restarts(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "run"
    for method in ("start", "start", "resume"):
        training = Run(SHORT, path, program)
        assert int(getattr(training, method)().iteration) == 0
        assert [entry.name for entry in (path / "checkpoints").iterdir()] == ["000000"]
        shutil.move(path / "checkpoints" / "000000", path / "checkpoints" / "000000.orbax-checkpoint-tmp")
        (path / "config.jsonab12").write_text("{")
    (path / "notes").write_text("not of a run")
    with pytest.raises(ValueError, match="not empty"):
        training.start()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        training.resume()


def test_minutes_and_checkpoints_by_time(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Self-play takes 30 s, where it is compiled, and then 10; learning takes 3.2 s from the second iteration on."""
    clock = 0.0
    _, stats = zeros_of(program.play, program.like)
    _, losses = zeros_of(program.learn, program.like)
    simulated = copy.copy(program)

    def playing(*seconds: float) -> Any:
        left = list(seconds)

        def play(state: TrainState) -> Any:
            nonlocal clock
            clock += left.pop(0) if len(left) > 1 else left[0]
            return replace(state, iteration=state.iteration + 1), stats

        return play

    def learn(state: TrainState) -> Any:
        nonlocal clock
        clock += 0.1
        return state, losses

    simulated.play, simulated.learn = playing(30.0, 10.0), learn
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock))
    kept = CheckpointConfig(checkpoint_every=1000, checkpoint_minutes=0.4, num_kept=100, slim=True)
    evaluation = replace(TOY.evaluation, eval_every=1000, opponents=())
    config = replace(SHORT, iterations=1000, max_minutes=2.0, checkpoint=kept, evaluation=evaluation)
    state = trained_in(tmp_path / "run", simulated, config)
    assert config.num_updates == 32
    assert int(state.iteration) == 7, "30 + 6 * 13.2 s; another iteration would end after 122.4 s"
    assert checkpoint.numbers(tmp_path / "run" / "checkpoints") == [0, 1, 3, 5, 7]
    # A second command has a limit of half a minute, which is enough for two iterations.
    simulated.play = playing(10.0)
    leg, log = Run(replace(config, max_minutes=0.0), tmp_path / "run", simulated), Log(tmp_path / "run", config, None, 7)
    state = replace(leg.resume(), replay=state.replay)
    assert int(leg.train(state, log, minutes=0.5).iteration) == 9, "2 * 13.2 s; a third would end after 39.6 s"
    log.close()


def zeros_of(function: Any, *arguments: Any) -> Any:
    """Return the results of a function as NumPy arrays of zeros."""
    shaped = jax.eval_shape(function, *arguments)
    return jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype) if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf, shaped
    )


def test_slim_checkpoint_excludes_games_and_replay_buffer(program: Program, tmp_path: Path) -> None:
    config = replace(SHORT, iterations=3, checkpoint=replace(SHORT.checkpoint, slim=True))
    before = trained_in(tmp_path / "run", program, config)
    folder = tmp_path / "run" / "checkpoints" / "000003"
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    assert sum(sizes) < 4 * 4 * networks.num_parameters(before.learner.model) + 120_000
    training = Run(replace(config, iterations=5), tmp_path / "run", program)
    state = training.resume()
    assert_same(jax.tree.map(raw, state.learner), jax.tree.map(raw, before.learner))
    assert int(state.iteration) == 3
    assert int(program.rows_filled(state)) == 0 < int(program.rows_filled(before))
    # The network learns again from the second iteration on, when the buffer is filled.
    assert TOY.replay.min_replay_size > TOY.selfplay.unroll_length
    log = Log(tmp_path / "run", config, None, 3)
    after = training.train(state, log)
    log.close()
    assert int(after.learner.steps) == int(before.learner.steps) + config.num_updates


def test_selfplay_is_the_same_on_several_devices(program: Program, halfway: Path) -> None:
    """Batches differ, because each device samples from its shard of the buffer, but checkpoints can be restored."""
    four = Program(SHORT, 4)
    alone, divided = program.init(0), four.init(0)
    assert len(divided.games.ply.sharding.device_set) == 4
    alone, stats = program.play(alone)
    divided, divided_stats = four.play(divided)
    assert_same(jax.tree.map(raw, divided.games), jax.tree.map(raw, alone.games))
    assert int(stats.games) == int(divided_stats.games) > 0
    state = Run(SHORT, halfway, four).resume()
    assert int(state.iteration) == 3
    state, losses = four.learn(state)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(losses))
    assert len(state.replay.positions.game_index.sharding.device_set) == 4
    with pytest.raises(ValueError, match=r"selfplay\.num_games"):
        Program(SHORT, 3)


def damaging(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def inside(folder: Path) -> None:
        for path in (folder / "checkpoints" / "000003" / "state").rglob("*"):
            if path.is_file() and path.stat().st_size > 10_000:
                change(path)

    return inside


@pytest.mark.slow
def test_threads_of_a_failed_checkpoint_print_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert is_reported.wait(120)
    assert not printed
    hook(SimpleNamespace(exc_value=RuntimeError("another")))
    assert [str(error) for error in printed] == ["another"]


def test_failed_write_names_the_run_and_its_checkpoint() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/runs/duo/checkpoints/000003")
    for newest in (None, 2):
        with pytest.raises(OSError, match="No space left") as error, naming(Path("/runs/duo"), lambda newest=newest: newest):
            raise full
        assert error.value.filename == "/runs/duo"
        assert "(checkpoints/000003)" in error.value.strerror
        assert ("checkpoint of iteration 2" in error.value.strerror) == (newest == 2)


@pytest.mark.parametrize(
    ("config", "version", "harm", "message"),
    [
        (
            replace(SHORT, replay=replace(SHORT.replay, replay_ratio=2.0), seed=1),
            1,
            None,
            r"seed was \d and is 1$",
        ),
        (SHORT, 2, None, "version 1 of tilewe"),
        (SHORT, 1, damaging(lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])), "000003 is damaged"),
        (SHORT, 1, damaging(Path.unlink), "000003 is damaged"),
        (SHORT, 1, lambda folder: shutil.rmtree(folder / "checkpoints"), "no checkpoint"),
        (SHORT, 1, lambda folder: (folder / "checkpoints" / "000009").write_text(""), "000009 is damaged"),
        (SHORT, 1, lambda folder: (folder / "metrics.jsonl").write_text('{"iteration": 1}\n'), "line 1 .*: seconds"),
        (SHORT, 1, lambda folder: (folder / "evaluations.jsonl").write_text("{}\n"), "line 1 .*: iteration"),
    ],
    ids=["settings", "version", "cut off", "missing", "none", "a file", "metrics", "evaluations"],
)
def test_checkpoints_that_cannot_be_resumed(
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
    training, before = Run(config, tmp_path / "copy", program), content(tmp_path / "copy")
    monkeypatch.setattr(type(program.game), "version", version)
    with pytest.raises(CheckpointError, match=message):
        training.resume()
    assert content(tmp_path / "copy") == before


def test_only_checkpoints_of_the_run_are_deleted(program: Program, tmp_path: Path) -> None:
    state = program.init(0)
    (tmp_path / "000001").mkdir()
    (tmp_path / "000001" / "notes").write_text("not a checkpoint")
    for number in (5, 6, 7):
        checkpoint.save(tmp_path, number, state, TOY, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001", "000006", "000007"]
    assert checkpoint.numbers(tmp_path) == [6, 7]


def test_flipped_bit_in_any_file_is_detected(program: Program, halfway: Path, tmp_path: Path) -> None:
    run, chance = shutil.copytree(halfway, tmp_path / "run"), random.Random(0)
    folder = run / "checkpoints"
    checkpoint.verify(folder, 3)
    files = [path for path in (folder / "000003").rglob("*") if path.is_file() and path.stat().st_size]
    assert len(files) > 5
    for path in files:
        good = path.read_bytes()
        for _ in range(3):
            bad = bytearray(good)
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            path.write_bytes(bad)
            with pytest.raises(CheckpointError, match="000003 is damaged"):
                checkpoint.verify(folder, 3)
        path.write_bytes(good)
    (folder / "000003" / "more").write_text("")
    with pytest.raises(CheckpointError, match="SHA256SUMS"):
        checkpoint.verify(folder, 3)


def test_damage_names_the_newest_undamaged_checkpoint(program: Program, halfway: Path, tmp_path: Path) -> None:
    run = shutil.copytree(halfway, tmp_path / "run")
    (run / "checkpoints" / "000003" / "about" / "metadata").write_text("{}")
    before, training = content(run), Run(replace(SHORT, iterations=4), run, program)
    with pytest.raises(CheckpointError, match=r"000003 is damaged: about/metadata .* iteration 2 .* --checkpoint 2") as error:
        training.resume()
    assert "\n" not in str(error.value)
    assert content(run) == before
    with pytest.raises(CheckpointError, match="2, 3"):
        training.resume(1)
    state = training.resume(2)
    assert int(state.iteration) == 2
    assert [Path(note.partition(":")[0]).name for note in training.notes] == ["000003.aside"]
    log = Log(run, training.config, None, 2)
    assert [note for note in log.notes if "iteration 3," in note]
    training.train(state, log)
    log.close()
    assert checkpoint.numbers(run / "checkpoints") == [2, 4]
    aside = content(run / "checkpoints" / "000003.aside")
    assert {f"checkpoints/000003/{name}": checksum for name, checksum in aside.items()}.items() <= before.items()
    shutil.rmtree(run / "checkpoints" / "000004" / "state")
    shutil.rmtree(run / "checkpoints" / "000002" / "state")
    with pytest.raises(CheckpointError, match=r"000004"):
        training.resume()


def test_checkpoint_of_another_format_is_rejected(program: Program, halfway: Path, tmp_path: Path) -> None:
    run = shutil.copytree(halfway, tmp_path / "run")
    folder = run / "checkpoints" / "000003"
    (folder / checkpoint.CHECKSUMS).unlink()
    training = Run(SHORT, run, program)
    with pytest.raises(CheckpointError, match="SHA256SUMS"):
        training.resume()
    about = json.loads((folder / "about" / "metadata").read_text())
    (folder / "about" / "metadata").write_text(json.dumps({**about, "format": 5}))
    with pytest.raises(CheckpointError, match="format 5"):
        training.resume()


def test_unfinished_checkpoints_are_deleted(program: Program, halfway: Path, tmp_path: Path) -> None:
    run = shutil.copytree(halfway, tmp_path / "run")
    folder = run / "checkpoints"

    def cut_off() -> None:
        for name in ("000004.unfinished", "000004.unfinished.orbax-checkpoint-tmp", "000002.orbax-checkpoint-tmp-7"):
            (folder / name / "state").mkdir(parents=True)
            (folder / name / "state" / "part").write_bytes(bytes(100))

    cut_off()
    state = Run(SHORT, run, program).resume()
    assert sorted(path.name for path in folder.iterdir()) == ["000002", "000003"]
    cut_off()
    checkpoint.save(folder, 5, state, SHORT, 1)
    assert sorted(path.name for path in folder.iterdir()) == ["000003", "000005"]
    checkpoint.verify(folder, 5)


@pytest.mark.parametrize("name", ["config.json", "checkpoints/000003/about/metadata", "new"])
def test_pipe_in_the_folder_of_a_run_is_rejected(halfway: Path, tmp_path: Path, name: str) -> None:
    run = shutil.copytree(halfway, tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(OSError, match="regular file") as error, locked(run):
        pass
    assert error.value.filename == str(run)


def test_folder_is_locked_during_training(halfway: Path, tmp_path: Path) -> None:
    run = shutil.copytree(halfway, tmp_path / "run")
    (run / ".lock").write_text("")  # of a process that was killed
    before = content(run)
    with locked(run):
        with pytest.raises(OSError, match="another process") as error, locked(run):
            pass
        assert error.value.filename == str(run)
        assert metrics.read(run / metrics.METRICS)
    with locked(run):
        pass
    assert content(run).items() <= before.items()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("")
    with locked(tmp_path / "other"):
        assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes"]


ROW = {"iteration": 1, "seconds": 1.0, "play_seconds": 1.0, "learn_seconds": 0.5, "games": 2, "moves": 9, "simulations": 9}
ROW |= {"plies": 9, "returns": [1.0, 1.0], "search_entropy": 1.0, "surprise": 0.1}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"iteration": 1}', 2], "line 1 .*: seconds"),
        ([1, '{"iteration": 2, "sec', 3], "line 2 "),
        ([1, "[]"], "line 2 .*JSON object"),
        ([2, 1], "iteration 1 comes after iteration 2"),
        ([{**ROW, "games": 1.5}], "games must be .*1.5"),
        ([{**ROW, "games": True}], "games must be"),
        ([{**ROW, "seconds": float("nan")}], "seconds must be"),
        ([{**ROW, "returns": [1.0, None]}], "returns must be"),
        ([{**ROW, "policy_loss": 1.0}], "outcome_loss"),
        ([b'{"\xff": 1}'], "line 1 .*UTF-8"),
    ],
)
def test_damaged_line_of_metrics_is_named(tmp_path: Path, lines: list[Any], message: str) -> None:
    rows = [{**ROW, "iteration": line} if isinstance(line, int) else line for line in lines]
    parts = [
        json.dumps(row).encode() if isinstance(row, dict) else row if isinstance(row, bytes) else row.encode() for row in rows
    ]
    path = tmp_path / metrics.METRICS
    path.write_bytes(b"\n".join(parts) + b"\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as error:
        Log(tmp_path, SHORT, None, 9)
    assert str(path) in str(error.value)
    assert path.read_bytes() == before


def test_notes_on_dropped_and_missing_rows(tmp_path: Path) -> None:
    path = tmp_path / metrics.METRICS
    rows = [json.dumps({**ROW, "more": [1.50, "é"], "iteration": number}, separators=(",", ":")) for number in (1, 2, 5, 6, 7)]
    path.write_text("\n".join(rows))
    log = Log(tmp_path, SHORT, None, 7)
    log.close()
    assert path.read_text() == "\n".join(rows) + "\n"
    assert len(log.notes) == 1
    assert "iterations 3 to 4" in log.notes[0]
    path.write_text("\n".join(rows)[:-4])
    log = Log(tmp_path, SHORT, None, 5)
    log.close()
    assert path.read_text() == "\n".join(rows[:3]) + "\n"
    assert ["iteration 6," in note or "incomplete" in note or "lacks" in note for note in log.notes] == [True] * 3
    log = Log(tmp_path, SHORT, None, 8)
    log.close()
    assert "iterations 3 to 4, iterations 6 to 8" in log.notes[0]


def test_losses_exclude_unfinished_games(program: Program, tmp_path: Path) -> None:
    _, stats = zeros_of(program.play, program.like)
    _, zeros = zeros_of(program.learn, program.like)
    log = Log(tmp_path, SHORT, None)
    half = zeros._replace(
        policy=np.float32(1.0), calibration=np.full_like(zeros.calibration, 0.5 * 2 / zeros.calibration.shape[1])
    )
    for iteration, losses in ((1, [zeros, zeros]), (2, [zeros, half])):
        log.add_iteration(iteration, 1.0, 1.0, 1.0, stats, losses)
    log.close()
    first, second = metrics.read(tmp_path / metrics.METRICS)
    assert "policy_loss" not in first
    assert "agreement" not in first
    assert second["policy_loss"] == pytest.approx(2.0)
