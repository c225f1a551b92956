"""Training: a toy game learned to perfection, runs that go on bit for bit, and files that are whole or not there."""

import asyncio
import copy
import errno
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorstore

import tilewe_jax
from experiments import networks, presets, settings
from experiments.config import (
    CheckpointConfig,
    EvaluationConfig,
    GameConfig,
    LossConfig,
    NetworkConfig,
    OptimizerConfig,
    ReplayConfig,
    SelfplayConfig,
    TrainConfig,
)
from experiments.networks import weights
from experiments.training import Program, Run, TrainState, checkpoint, loop, loss, metrics, report
from experiments.training.checkpoint import CheckpointError
from experiments.training.evaluation import Evaluation
from experiments.training.metrics import Log
from experiments.training.run import naming_what_is_kept
from search import SearchSettings
from tests.browser import browser_page
from tests.experiments.test_cli import run
from tests.support import assert_same, batched, rows

TOY = TrainConfig(
    game=GameConfig("tilewe", {"players": 2, "size": 4, "pieces": ("I2", "L3")}),
    network=NetworkConfig(size="tiny"),
    selfplay=SelfplayConfig(
        num_games=64,
        unroll_length=16,
        search=SearchSettings(num_simulations=16, num_candidates=24, candidate_pool=64, max_depth=6),
        temperature_plies=1,
    ),
    replay=ReplayConfig(replay_size=128, min_replay_size=32),
    loss=LossConfig(root_value_weight=0.0),
    optimizer=OptimizerConfig(batch_size=128, learning_rate=5e-3, warmup_steps=20, ema_decay=0.98),
    evaluation=EvaluationConfig(eval_every=10, eval_games=16, eval_simulations=4, opponents=("random", "last")),
    checkpoint=CheckpointConfig(checkpoint_every=10),
    iterations=20,
)
GAME = TOY.game.make()


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(TOY, 1)


def trained_in(folder: Path, program: Program, config: TrainConfig, resume: bool = False) -> TrainState:
    """A run to its end."""
    going = Run(config, folder, program)
    state = going.resume() if resume else going.start()
    log = Log(folder, config, None, int(state.iteration))
    try:
        return going.train(state, log)
    finally:
        log.close()


@pytest.fixture(scope="module")
def folder(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the toy game."""
    path: Path = tmp_path_factory.mktemp("runs") / "toy"
    trained_in(path, program, TOY)
    report.write(path)
    return path


def levels_of(game: Any) -> list[tuple[Any, tuple[np.ndarray, ...]]]:
    """All positions of a game, by ply, and from each its moves: positions, actions, and where they lead in the next ply."""
    functions, room = batched(game), 512

    def ask(function: Any, states: Any, *args: Any) -> Any:
        count, parts = len(jax.tree.leaves(states)[0]), []
        for start in range(0, count, room):
            index = np.minimum(np.arange(start, start + room), count - 1)
            part = function(rows(states, index), *(arg[index] for arg in args))
            parts.append(jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[: count - start], part))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    levels: list[tuple[Any, tuple[np.ndarray, ...]]] = []
    while True:
        parents, actions = np.nonzero(ask(functions.legal_actions, states))
        outcome = ask(functions.returns, states), ask(functions.current_player, states)
        if not len(parents):
            return [*levels, (states, (parents, actions, parents, *outcome))]
        after = ask(functions.step, rows(states, parents), actions.astype(np.int32))
        numbers: dict[bytes, int] = {}
        codes = [b"".join(leaf[i].tobytes() for leaf in jax.tree.leaves(after)) for i in range(len(parents))]
        child = np.array([numbers.setdefault(code, len(numbers)) for code in codes])
        _, first = np.unique(child, return_index=True)
        levels.append((states, (parents, actions, child, *outcome)))
        states = rows(after, first)


def test_a_toy_game_is_learned_to_perfection(folder: Path) -> None:
    """The network alone, without search, never loses what it could have, whatever the other does (exhaustive max^n)."""
    model = weights.read(GAME, folder / "weights" / f"{TOY.iterations:06d}.npz").model

    @jax.jit
    @jax.vmap
    def choose(state: Any) -> Any:
        logits, _ = networks.predict(model, GAME.observe(state, GAME.current_player(state)))
        return jnp.argmax(jnp.where(GAME.legal_actions(state), logits, -jnp.inf))

    levels = levels_of(GAME)
    assert sum(len(level[3]) for _, level in levels) > 1000
    # For each position: its max^n value, and what each player gets who follows the network while the other does its worst.
    best = held = np.zeros((0, 2))
    chances = 0
    for states, (parents, actions, child, returns, movers) in reversed(levels):
        values, kept = returns.astype(float), np.tile(returns.astype(float), (1, 1))
        chosen = np.concatenate(
            [
                np.asarray(choose(rows(states, np.minimum(np.arange(i, i + 512), len(movers) - 1))))
                for i in range(0, len(movers), 512)
            ]
        )
        for position in np.unique(parents):
            mine, me = parents == position, movers[position]
            options = best[child[mine]]
            values[position] = options[options[:, me].argmax()]
            chances += options[:, me].min() < options[:, me].max()
            following = held[child[mine & (actions == chosen[position])][0]]
            kept[position, me] = following[me]
            kept[position, 1 - me] = held[child[mine]][:, 1 - me].min()
        best, held = values, kept
    assert chances > 100
    assert best[0].tolist() == [0.5, 0.5]
    assert held[0].tolist() == [0.5, 0.5]


def test_what_a_run_leaves_behind(folder: Path) -> None:
    lines, evaluations = metrics.read(folder / metrics.METRICS), metrics.read(folder / metrics.EVALUATIONS)
    assert [row["iteration"] for row in lines] == list(range(1, TOY.iterations + 1))
    assert all(row["moves"] == TOY.selfplay.num_games * TOY.selfplay.unroll_length for row in lines)
    assert sum(row["games"] for row in lines) > 3000
    assert lines[-1]["policy_loss"] < lines[1]["policy_loss"]
    assert lines[-1]["agreement"] > 0.5
    assert [list(row["opponents"]) for row in evaluations] == [["random"], ["random", "last"]]
    assert evaluations[-1]["opponents"]["random"]["win_rate"] > 0.5
    ratings = {name: (rating, ci95) for name, rating, ci95 in report.elo(evaluations)}
    assert set(ratings) == {"10", "20", "random"}
    assert ratings["20"][0] > ratings["random"][0]
    assert checkpoint.numbers(folder / "checkpoints") == [10, 20]
    assert sorted(path.name for path in (folder / "weights").iterdir()) == ["000010.npz", "000020.npz"]
    assert next((folder / "events").iterdir()).name.startswith("events")


def test_a_report_before_any_game_has_ended(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "config.json", tmp_path)
    first = {**metrics.read(folder / metrics.METRICS)[0], "games": 0, "plies": 0, "returns": [0.0, 0.0]}
    (tmp_path / metrics.METRICS).write_text(json.dumps(first) + "\n")
    assert "Length of games" in report.write(tmp_path).read_text()


class _Outside(HTMLParser):
    """The addresses that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "data") and value and not value.startswith(("data:", "#")):
                self.addresses.append(value)


def test_the_report_needs_no_network(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    page = _Outside()
    page.feed(text)
    assert not page.addresses
    assert "@import" not in text
    assert "Elo over hours" in text
    assert text.count('class="game"') == 3
    with pytest.raises(ValueError, match=r"has no run: there is no config\.json in it"):
        report.write(folder.parent)


def test_the_report_in_a_browser(folder: Path) -> None:
    """Its games show their first position, and step on by themselves."""
    with browser_page() as page:
        page.goto(f"file://{folder / 'report.html'}")
        games = page.locator("tilewe-game")
        assert games.count() == 3
        assert games.locator(".caption").all_text_contents() == ["Start"] * 3
        games.nth(1).get_by_label("Next move").click()
        assert games.nth(1).locator(".caption").text_content().startswith("1. ")
        assert games.nth(0).locator(".caption").text_content() == "Start"


@pytest.mark.slow
def test_only_what_is_stronger_passes_the_gate(folder: Path, tmp_path: Path) -> None:
    strong = weights.read(GAME, folder / "weights" / f"{TOY.iterations:06d}.npz").model
    weak = networks.make(GAME, "default", "tiny", jax.random.key(7))
    gated = replace(TOY.evaluation, gate=(0.0, 50.0), eval_games=512, eval_opening=1, eval_simulations=1)
    config = replace(TOY, evaluation=gated)
    evaluation = Evaluation(config, GAME, tmp_path)
    assert evaluation.gate(strong, weak)["verdict"] == "H1"
    assert evaluation.gate(weak, strong)["verdict"] == "H0"
    learner = loss.start(config, weak)
    assert learner.acting is weak
    assert replace(learner, average=strong).acting is weak, "weights that have not passed do not play"
    assert replace(learner, average=strong, accepted=None).acting is strong, "without a gate the newest play"


def test_eval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "weights" / f"{TOY.iterations:06d}.npz"
    options = [
        "--game",
        "tilewe",
        "--players",
        "2",
        "--set",
        "size=4",
        "pieces=I2,L3",
        "--games",
        "40",
        "--batch",
        "40",
        "--json",
    ]
    code, out, err = run(capsys, "eval", "--agents", "random", f"mine=gumbel:num_simulations=4,network={path}", *options)
    assert (code, err) == (0, "")
    rows = {row["agent"]: row for row in json.loads(out)["agents"]}
    chance, mine = rows["random"], rows["mine"]
    assert chance["games"] == mine["games"] == 40
    assert chance["wins"] + mine["wins"] + chance["ties"] == 40
    assert chance["win_rate"] + mine["win_rate"] == pytest.approx(1)
    assert mine["win_rate_ci95"][0] < mine["win_rate"] < mine["win_rate_ci95"][1]
    assert mine["win_rate"] > 0.6
    code, _, err = run(capsys, "eval", "--game", "duo", "--agents", "random", f"gumbel:network={path}")
    assert code == 2
    assert f"{path} is for tilewe (players=2, size=4, pieces=['I2', 'L3']), not for duo: the rules differ" in err
    code, _, err = run(capsys, "eval", "--agents", "random", "gumbel:network=nobody")
    assert code == 2
    assert "give a file, or module:factory; shipped are" in err


@pytest.fixture(scope="module")
def halfway(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after three iterations."""
    path: Path = tmp_path_factory.mktemp("runs") / "half"
    trained_in(path, program, SHORT)
    return path


SHORT = replace(
    TOY,
    iterations=3,
    checkpoint=replace(TOY.checkpoint, checkpoint_every=2),
    evaluation=replace(TOY.evaluation, eval_every=100),
)


def test_a_run_goes_on_bit_for_bit(program: Program, halfway: Path, tmp_path: Path) -> None:
    straight = trained_in(tmp_path / "straight", program, replace(SHORT, iterations=5))
    shutil.copytree(halfway, tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "checkpoints" / "000003")  # as if killed in the third iteration
    resumed = trained_in(tmp_path / "resumed", program, replace(SHORT, iterations=5), resume=True)
    assert_same(jax.tree.map(_raw, resumed), jax.tree.map(_raw, straight))

    def lines(name: str) -> list[dict[str, Any]]:
        rows = metrics.read(tmp_path / name / metrics.METRICS)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]

    assert lines("resumed") == lines("straight")
    seconds = [row["seconds"] for row in metrics.read(tmp_path / "resumed" / metrics.METRICS)]
    assert seconds == sorted(seconds)


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
    assert sum(sizes) < 4 * 4 * networks.num_parameters(before.learner.model) + 100_000
    going = Run(replace(config, iterations=5), tmp_path / "run", program)
    state = going.resume()
    assert_same(jax.tree.map(_raw, state.learner), jax.tree.map(_raw, before.learner))
    assert int(state.iteration) == 3
    assert int(program.rows_filled(state)) == 0 < int(program.rows_filled(before))
    # The buffer has to be filled again before the network learns: not with the first iteration of this run.
    assert TOY.replay.min_replay_size > TOY.selfplay.unroll_length
    log = Log(tmp_path / "run", config, None, 3)
    after = going.train(state, log)
    log.close()
    assert int(after.learner.steps) == int(before.learner.steps) + config.num_updates


def _raw(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def test_on_several_devices_it_plays_the_same_games(program: Program, halfway: Path) -> None:
    """What is learned differs, as each device draws from its part of the buffer; a checkpoint goes on there all the same."""
    four = Program(SHORT, 4)
    alone, divided = program.begin(0), four.begin(0)
    assert len(divided.games.ply.sharding.device_set) == 4
    alone, stats = program.play(alone)
    divided, divided_stats = four.play(divided)
    assert_same(jax.tree.map(_raw, divided.games), jax.tree.map(_raw, alone.games))
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
            replace(SHORT, replay=replace(SHORT.replay, replay_ratio=2.0)),
            1,
            None,
            "other settings: replay.replay_ratio was 4.0 and is 2.0",
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


def test_folders_that_cannot_be_used(
    program: Program, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="is not empty; go on with what is there by --resume, or choose another folder"):
        Run(TOY, folder, program).start()
    code, _, err = run(capsys, "train", "--resume", "--out", str(tmp_path))
    assert (code, err.count("there is no config.json in it")) == (1, 1)
    if os.geteuid():  # nothing is read-only to root
        (tmp_path / "locked").mkdir(mode=0o500)
        code, _, err = run(capsys, "train", "--out", str(tmp_path / "locked" / "run"), "--set", "network.size=tiny")
        assert code == 1
        assert "Permission denied" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--set", "selfplay.num_gmaes=3"],
            "there is no setting 'selfplay.num_gmaes'; there are game.id, game.options, network",
        ),
        (["--set", "selfplay.num_games=many"], "selfplay.num_games must be an integer, not 'many'"),
        (["--set", "selfplay.num_games=0"], "selfplay.num_games must be at least 1, not 0"),
        (["--set", "selfplay.full_search_prob=2"], "selfplay.full_search_prob must be between 0 and 1, not 2.0"),
        (["--set", "selfplay.search.num_simulations=x"], "selfplay.search.num_simulations must be an integer, not 'x'"),
        (["--set", "selfplay.search.num_simulations=0"], "selfplay.search.num_simulations must be at least 1, not 0"),
        (["--set", "replay.replay_size=100"], "replay.replay_size must be a multiple of selfplay.unroll_length, 32, not 100"),
        (["--set", "network.size=huge"], "network.size must be one of tiny, nano, small, wide, medium, large, not 'huge'"),
        (["--set", "network.architecture=gnn"], "network.architecture for santorini must be one of default, resnet, mlp"),
        (["--set", "selfplay.rule=alphabeta"], "selfplay.rule must be one of gumbel, puct, not 'alphabeta'"),
        (["--set", "evaluation.gate=20 0"], "the first Elo of a sequential test must be the lower one, not 20.0 and 0.0"),
        (["--set", "evaluation.gate=5"], "evaluation.gate must be {None}|{FLOAT FLOAT}, not '5'"),
        (["--set", "loss.augment=perhaps"], "loss.augment must be true or false, not 'perhaps'"),
        (["--set", "game.options.size=2"], "size must be"),
        (["--set", "game.id=chess", "game.options.size=2"], "there is no game 'chess'"),
        (["--set", "selfplay.num_games=100000000"], "GB a device are needed"),
        (["--preset", "chess"], "there is no preset 'chess'; there are classic_2_cpu, classic_cpu, "),
        (["--preset", "nothing.py"], "there is no preset nothing.py: No such file or directory"),
        (["--set", "network.init=nobody"], "network.init must be shipped weights"),
        (["--set", "network.init=santorini", "network.architecture=mlp"], "network.init has weights of resnet nano, which do"),
        (["--coordinator", "localhost:1"], "--coordinator, --num-processes and --process-id are given together"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_wrong_arguments(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "train", "--out", str(tmp_path / "run"), "--devices", "1", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "run").exists()


def test_presets_and_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train", "--list", "--json")
    listed = json.loads(out)
    assert code == 0
    assert {"santorini_cpu", "duo_official_gpu", "tilewe_cpu", "triominos_gpu"} <= set(listed["presets"])
    rows = {row["name"]: row for row in listed["settings"]}
    assert rows["selfplay.num_games"]["default"] == TrainConfig().selfplay.num_games
    assert all(row["description"][0].isupper() and row["description"].endswith(".") for row in rows.values())
    code, out, _ = run(capsys, "train", "--list")
    assert code == 0
    assert "selfplay.search.num_simulations" in out
    for name in listed["presets"]:
        config = presets.load(name)
        assert settings.from_json(TrainConfig, json.loads(json.dumps(settings.to_json(config)))) == config
        assert config.game.make().id == config.game.id


def test_games_have_weights_and_they_are_small() -> None:
    without = {"classic_2"}  # nobody has trained it yet
    assert weights.names() == sorted({*tilewe_jax.available_games()} - without)
    for name in weights.names():
        path = weights.FOLDER / f"{name}.npz"
        assert path.stat().st_size <= 4_000_000
        shipped = weights.read(tilewe_jax.make(name), path)
        assert shipped.description.game == name
        assert shipped.note is None


def test_weights_load_wherever_they_fit(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where options differ it is said in one line; where rules or arrays differ they are refused, and the difference named."""
    near = tilewe_jax.make("santorini", placement="random")
    shipped = weights.read(near, weights.FOLDER / "santorini.npz")
    games = "santorini.npz was trained for santorini, not for santorini (placement=random)"
    assert shipped.note == f"{games}: placement was default and is random"
    original = weights.read(tilewe_jax.make("santorini"), weights.FOLDER / "santorini.npz")
    assert_same(shipped.model, original.model)
    agents = ["random", "gumbel:num_simulations=2,network=santorini"]
    few = ["--games", "2", "--batch", "2", "--json"]
    code, out, err = run(capsys, "eval", "--game", "santorini", "--set", "placement=random", "--agents", *agents, *few)
    assert code == 0
    assert json.loads(out)["games"] == 2
    assert err == f"{shipped.note}\n"

    for game, message in (
        (
            tilewe_jax.make("santorini", placement="chosen"),
            r"it holds \d+ arrays, and .* has \d+ .*placement was default and is chosen",
        ),
        (tilewe_jax.make("duo"), "is for santorini, not for duo: the rules differ"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.read(game, weights.FOLDER / "santorini.npz")
    with pytest.raises(ValueError, match=r"its boards.weight has shape .* players was 4 and is 2"):
        weights.read(tilewe_jax.make("tilewe", players=2), weights.FOLDER / "tilewe.npz")
    assert weights.read(tilewe_jax.make("classic"), weights.FOLDER / "tilewe.npz", any_game=True).note

    mine = folder / "weights" / f"{TOY.iterations:06d}.npz"
    assert weights.find(str(folder)) == mine, "the newest of a run"
    assert weights.find(str(tmp_path)) is None
    about = weights.read(GAME, mine)
    assert about.description == weights.Description("tilewe", GAME.options, "resnet", "tiny", 0.0)
    assert settings.from_json(TrainConfig, about.about["config"]) == TOY
    whole = mine.read_bytes()
    flipped = whole[:150] + bytes([whole[150] ^ 255]) + whole[151:]  # in the first array
    for damaged in (b"", b"no archive", whole[:-100], flipped):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged\.npz is not a file of weights, as training writes it"):
            weights.read(GAME, tmp_path / "damaged.npz")


def test_an_ablation_of_two_architectures_is_one_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["selfplay.num_games=4", "selfplay.unroll_length=4", "selfplay.search.num_simulations=2", "replay.replay_size=4"]
    few += ["replay.min_replay_size=4", "optimizer.batch_size=4", "network.size=tiny", "game.options.size=3", "iterations=1"]
    few += ["network.architecture=mlp"]
    code, _, err = run(capsys, "train", "--out", str(tmp_path / "run"), "--devices", "1", "--set", *few, "--json")
    assert (code, err) == (0, "")
    game = tilewe_jax.make("santorini", size=3)
    assert weights.read(game, tmp_path / "run" / "weights" / "000001.npz").description.architecture == "mlp"
