"""Training: a toy game learned to perfection, runs that go on bit for bit, and files that are whole or not there."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from experiments import networks
from experiments.config import Config
from experiments.networks import weights as trained
from experiments.training import checkpoint, metrics, report
from experiments.training import evaluation as testing
from experiments.training import loss as learning
from experiments.training.checkpoint import CheckpointError
from experiments.training.loop import Program, Run, State
from experiments.training.metrics import Log
from tests.experiments.test_cli import run
from tests.support import assert_same, batched, rows
from tilewe_jax.registry import games

TOY = Config(
    game="tilewe",
    options=(("players", 2), ("size", 4), ("pieces", ("I2", "L3"))),
    network="tiny",
    lanes=64,
    steps=16,
    simulations=16,
    candidates=24,
    pool=64,
    depth=6,
    buffer=128,
    fill=32,
    batch=128,
    learning_rate=5e-3,
    warmup=20,
    ema=0.98,
    temperature_plies=1,
    root_share=0.0,
    rounds=20,
    checkpoint_every=10,
    test_every=10,
    test_games=16,
    test_simulations=4,
    opponents=("random", "last"),
)
GAME = TOY.make()


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(TOY, 1)


def trained_in(folder: Path, program: Program, config: Config, resume: bool = False) -> State:
    """A run to its end."""
    going = Run(config, folder, program)
    state = going.resume() if resume else going.start()
    log = Log(folder, config, None, int(state.round))
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
            found = function(rows(states, index), *(arg[index] for arg in args))
            parts.append(jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[: count - start], found))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init(jax.random.key(0)))
    levels: list[tuple[Any, tuple[np.ndarray, ...]]] = []
    while True:
        parents, actions = np.nonzero(ask(functions.legal_actions, states))
        told = ask(functions.returns, states), ask(functions.current_player, states)
        if not len(parents):
            return [*levels, (states, (parents, actions, parents, *told))]
        after = ask(functions.step, rows(states, parents), actions.astype(np.int32))
        numbers: dict[bytes, int] = {}
        codes = [b"".join(leaf[i].tobytes() for leaf in jax.tree.leaves(after)) for i in range(len(parents))]
        child = np.array([numbers.setdefault(code, len(numbers)) for code in codes])
        _, first = np.unique(child, return_index=True)
        levels.append((states, (parents, actions, child, *told)))
        states = rows(after, first)


def test_a_toy_game_is_learned_to_perfection(folder: Path) -> None:
    """The network alone, without search, never loses what it could have, whatever the other does (exhaustive max^n)."""
    model = trained.read(GAME, folder / "weights" / f"{TOY.rounds:06d}.npz").model

    @jax.jit
    @jax.vmap
    def choose(state: Any) -> Any:
        logits, _ = networks.predict(model, GAME.observe(state, GAME.current_player(state)))
        return jnp.argmax(jnp.where(GAME.legal_actions(state), logits, -jnp.inf))

    levels = levels_of(GAME)
    assert sum(len(told[3]) for _, told in levels) > 1000
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
    lines, tests = metrics.read(folder / metrics.LINES), metrics.read(folder / metrics.TESTS)
    assert [row["round"] for row in lines] == list(range(1, TOY.rounds + 1))
    assert all(row["moves"] == TOY.lanes * TOY.steps for row in lines)
    assert sum(row["games"] for row in lines) > 3000
    assert lines[-1]["policy"] < lines[1]["policy"]
    assert lines[-1]["agreement"] > 0.5
    assert [list(test["opponents"]) for test in tests] == [["random"], ["random", "last"]]
    assert tests[-1]["opponents"]["random"]["win_share"] > 0.5
    ratings = {name: (rating, margin) for name, rating, margin in report.elo(tests)}
    assert set(ratings) == {"10", "20", "random"}
    assert ratings["20"][0] > ratings["random"][0]
    assert checkpoint.numbers(folder / "checkpoints") == [10, 20]
    assert sorted(path.name for path in (folder / "weights").iterdir()) == ["000010.npz", "000020.npz"]
    assert next((folder / "events").iterdir()).name.startswith("events")


def test_a_report_before_any_game_has_ended(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "config.json", tmp_path)
    first = {**metrics.read(folder / metrics.LINES)[0], "games": 0, "plies": 0, "returns": [0.0, 0.0]}
    (tmp_path / metrics.LINES).write_text(json.dumps(first) + "\n")
    assert "Length of games" in report.write(tmp_path).read_text()


class _Outside(HTMLParser):
    """Whatever a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "data") and value and not value.startswith(("data:", "#")):
                self.found.append(value)


def test_the_report_needs_no_network(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    page = _Outside()
    page.feed(text)
    assert not page.found
    assert "@import" not in text
    assert "Elo over hours" in text
    assert text.count('class="game"') == 3
    with pytest.raises(ValueError, match=r"has no run: there is no config\.json in it"):
        report.write(folder.parent)


def test_the_report_in_a_browser(folder: Path) -> None:
    """Its games show their first position, and only that, before anybody steps on."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("needs Chromium")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{folder / 'report.html'}"]
    page = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    shown = re.findall(r'<img alt="([^"]*)"[^>]*class="now"', page)
    assert shown == ["start"] * 3


def test_only_what_is_stronger_passes_the_gate(folder: Path, tmp_path: Path) -> None:
    strong = trained.read(GAME, folder / "weights" / f"{TOY.rounds:06d}.npz").model
    weak = networks.make(GAME, TOY.network, jax.random.key(7))
    config = replace(TOY, gate=(0.0, 50.0), test_games=512, test_opening=1, test_simulations=1)
    tests = testing.Tests(config, GAME, tmp_path)
    assert tests.gate(strong, weak)["verdict"] == "H1"
    assert tests.gate(weak, strong)["verdict"] == "H0"
    learner = learning.start(config, weak)
    assert learner.plays is weak
    assert replace(learner, average=strong).plays is weak, "weights that have not passed do not play"
    assert replace(learner, average=strong, passed=None).plays is strong, "without a gate the newest play"


def test_eval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = folder / "weights" / f"{TOY.rounds:06d}.npz"
    options = [
        "--game",
        "tilewe",
        "--seats",
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
    code, out, err = run(capsys, "eval", "--players", "random", f"mine=gumbel:num_simulations=4,network={weights}", *options)
    assert (code, err) == (0, "")
    one, other = json.loads(out)["agents"]
    assert [one["agent"], other["agent"]] == ["random", "mine"]
    assert one["games"] == other["games"] == 40
    assert one["wins"] + other["wins"] + one["ties"] == 40
    assert one["win_share"] + other["win_share"] == pytest.approx(1)
    assert other["interval"][0] < other["win_share"] < other["interval"][1]
    assert other["win_share"] > 0.6
    code, _, err = run(capsys, "eval", "--game", "duo", "--players", "random", f"gumbel:network={weights}")
    assert code == 2
    assert f"{weights} is for tilewe (players=2, size=4, pieces=['I2', 'L3']), not for duo" in err
    code, _, err = run(capsys, "eval", "--players", "random", "gumbel:network=nobody")
    assert code == 2
    assert "give a file, or module:factory; shipped are" in err


@pytest.fixture(scope="module")
def halfway(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after two rounds."""
    path: Path = tmp_path_factory.mktemp("runs") / "half"
    trained_in(path, program, SHORT)
    return path


SHORT = replace(TOY, rounds=3, checkpoint_every=2, test_every=100)


def test_a_run_goes_on_bit_for_bit(program: Program, halfway: Path, tmp_path: Path) -> None:
    straight = trained_in(tmp_path / "straight", program, replace(SHORT, rounds=5))
    shutil.copytree(halfway, tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / "checkpoints" / "000003")  # as if killed in the third round
    resumed = trained_in(tmp_path / "resumed", program, replace(SHORT, rounds=5), resume=True)
    assert_same(jax.tree.map(_raw, resumed), jax.tree.map(_raw, straight))

    def lines(name: str) -> list[dict[str, Any]]:
        found = metrics.read(tmp_path / name / metrics.LINES)
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in found]

    assert lines("resumed") == lines("straight")
    seconds = [row["seconds"] for row in metrics.read(tmp_path / "resumed" / metrics.LINES)]
    assert seconds == sorted(seconds)


def _raw(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def test_on_several_devices_it_plays_the_same_games(program: Program, halfway: Path) -> None:
    """What is learned differs, as each device draws from its part of the buffer; a checkpoint goes on there all the same."""
    four = Program(SHORT, 4)
    alone, divided = program.begin(0), four.begin(0)
    assert len(divided.games.ply.sharding.device_set) == 4
    alone, one = program.play(alone)
    divided, other = four.play(divided)
    assert_same(jax.tree.map(_raw, divided.games), jax.tree.map(_raw, alone.games))
    assert int(one.games) == int(other.games) > 0
    state = Run(SHORT, halfway, four).resume()
    assert int(state.round) == 3
    state, losses = four.learn(state)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(losses))
    assert len(state.replay.positions.known.sharding.device_set) == 4
    with pytest.raises(ValueError, match="lanes must be a multiple of the number of devices, 3, not 64"):
        Program(SHORT, 3)


def damage(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def inside(folder: Path) -> None:
        for path in (folder / "checkpoints" / "000003" / "state").rglob("*"):
            if path.is_file() and path.stat().st_size > 10_000:
                change(path)

    return inside


@pytest.mark.parametrize(
    ("config", "version", "harm", "message"),
    [
        (replace(SHORT, reuse=2.0), 1, None, r"other settings: reuse was 4.0 and is 2.0"),
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
    config: Config,
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
        checkpoint.save(tmp_path, number, state, TOY, 1, keep=2)
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
        code, _, err = run(capsys, "train", "--out", str(tmp_path / "locked" / "run"), "--set", "network=tiny")
        assert code == 1
        assert "Permission denied" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "lanse=3"], "there is no setting 'lanse'; there are game, options, seed"),
        (["--set", "lanes=many"], "lanes must be a int, not 'many'"),
        (["--set", "lanes=0"], "lanes must be positive, not 0"),
        (["--set", "full_share=2"], "full_share must be between 0 and 1, not 2.0"),
        (["--set", "buffer=100"], "buffer must be a multiple of steps, 32, not 100"),
        (["--set", "network=huge"], "network must be one of tiny, nano, small, medium, large, not 'huge'"),
        (["--set", "search=alphabeta"], "search must be one of gumbel, puct, not 'alphabeta'"),
        (["--set", "gate=20,0"], "the first Elo of a sequential test must be the lower one, not 20.0 and 0.0"),
        (["--set", "gate=5"], "gate must be two Elo, like 0,20, not '5'"),
        (["--set", "options.size=2"], "size must be"),
        (["--set", "lanes=100000000"], "GB a device are needed"),
        (["--preset", "chess"], "there is no preset 'chess'; there are classic_cpu, "),
        (["--preset", "nothing.py"], "preset nothing.py: No such file or directory"),
        (["--set", "init=nobody"], "init must be shipped weights"),
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
    assert listed["settings"]["lanes"] == Config().lanes
    from experiments.config import from_json, preset

    for name in listed["presets"]:
        config = preset(name)
        assert from_json(json.loads(json.dumps(config.json()))) == config
        assert config.make().id == config.game


def test_every_game_has_weights_and_they_are_small() -> None:
    assert trained.names() == sorted(games())
    for name in trained.names():
        path = trained.FOLDER / f"{name}.npz"
        assert path.stat().st_size <= 4_000_000
        assert trained.read(tilewe_jax.make(name), path).config.game == name
