"""Training: a toy game learned to perfection, what a run leaves behind, and the command."""

import json
import os
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.browser import browser_page
from tests.support import batched, rows
from tests.tilewe_jax.cli.test_cli import run
from tests.toy import GAME, SHORT, TOY, trained_in
from tilewe_jax import networks, presets, settings
from tilewe_jax.networks import weights
from tilewe_jax.training import Program, Run, checkpoint, loss, metrics, report
from tilewe_jax.training import run as training
from tilewe_jax.training.config import GameConfig, TrainConfig
from tilewe_jax.training.evaluation import Evaluation


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
        parents, actions = np.nonzero(ask(functions.legal_action_mask, states))
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


def test_a_toy_game_is_learned_to_perfection(toy_run: Path) -> None:
    """The network alone, without search, never loses what it could have, whatever the other does (exhaustive max^n)."""
    model = weights.read(GAME, toy_run / "weights" / f"{TOY.iterations:06d}.npz").model

    @jax.jit
    @jax.vmap
    def choose(state: Any) -> Any:
        logits, _ = networks.predict(model, GAME.observe(state, GAME.current_player(state)))
        return jnp.argmax(jnp.where(GAME.legal_action_mask(state), logits, -jnp.inf))

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


def test_what_a_run_leaves_behind(toy_run: Path) -> None:
    lines, evaluations = metrics.read(toy_run / metrics.METRICS), metrics.read(toy_run / metrics.EVALUATIONS)
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
    assert checkpoint.numbers(toy_run / "checkpoints") == [10, 20]
    assert sorted(path.name for path in (toy_run / "weights").iterdir()) == ["000010.npz", "000020.npz"]
    assert next((toy_run / "events").iterdir()).name.startswith("events")


def test_a_report_before_any_game_has_ended(toy_run: Path, tmp_path: Path) -> None:
    shutil.copy(toy_run / "config.json", tmp_path)
    first = {**metrics.read(toy_run / metrics.METRICS)[0], "games": 0, "plies": 0, "returns": [0.0, 0.0]}
    (tmp_path / metrics.METRICS).write_text(json.dumps(first) + "\n")
    text = report.write(tmp_path).read_text()
    assert "Seats" in text
    assert "Calibration" not in text


def test_training_in_python_shows_progress_unless_it_is_quiet(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "Program", lambda config, devices: program)
    config = replace(SHORT, iterations=1)
    figures = training.train(config, tmp_path / "shown")
    assert figures["interrupted"] is False
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 iterations" in err
    training.train(config, tmp_path / "quiet", quiet=True)
    assert capsys.readouterr() == ("", "")
    # Notes on lost rows are shown in any case.
    (tmp_path / "quiet" / metrics.METRICS).write_text("")
    training.train(config, tmp_path / "quiet", resume=True, quiet=True)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "lacks the rows of iteration 1;" in err


def test_names_of_opponents_are_shown_as_they_are(tmp_path: Path) -> None:
    figures = {"win_rate": 0.5, "standard_error": 0.1, "seating": [[0, 1], [1, 0]], "results": [[1, 0], [0, 1]]}
    opponents = {r"a$\q$": figures, "_own": figures}
    row = {"iteration": 1, "seconds": 1.0, "games_before": 2, "opponents": opponents}
    (tmp_path / metrics.EVALUATIONS).write_text(json.dumps(row) + "\n")
    assert all(f"<!-- {name} -->" in report.curve(tmp_path) for name in opponents)


class _Outside(HTMLParser):
    """The addresses that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "data") and value and not value.startswith(("data:", "#")):
                self.addresses.append(value)


def test_the_report_needs_no_network(toy_run: Path) -> None:
    text = (toy_run / "report.html").read_text()
    page = _Outside()
    page.feed(text)
    assert not page.addresses
    assert "@import" not in text
    assert "Elo over hours" in text
    assert text.count('class="game"') == 3
    with pytest.raises(ValueError, match=r"config\.json"):
        report.write(toy_run.parent)


def test_the_report_in_a_browser(toy_run: Path) -> None:
    """Its games show their first position, and step on by themselves."""
    with browser_page() as page:
        page.goto(f"file://{toy_run / 'report.html'}")
        games = page.locator("tilewe-game")
        assert games.count() == 3
        assert games.locator(".caption").all_text_contents() == ["Start"] * 3
        games.nth(1).get_by_label("Next move").click()
        assert games.nth(1).locator(".caption").text_content().startswith("1. ")
        assert games.nth(0).locator(".caption").text_content() == "Start"


@pytest.mark.slow
def test_ownership_is_learned_and_leaves_no_weights(tmp_path: Path) -> None:
    targets = replace(SHORT.loss, ownership_loss_weight=1.0)
    config = replace(SHORT, iterations=4, loss=targets)
    program = Program(config, devices=1)
    state = trained_in(tmp_path / "run", program, config)
    learned = [row for row in metrics.read(tmp_path / "run" / metrics.METRICS) if "ownership_loss" in row]
    losses = [row["ownership_loss"] for row in learned]
    assert losses[-1] < losses[0] < np.log(3)
    # The head goes on from a checkpoint, and the file of weights is that of any network.
    resumed = Run(config, tmp_path / "run", program).resume()
    jax.tree.map(np.testing.assert_array_equal, resumed.learner.auxiliary, state.learner.auxiliary)
    weights.read(GAME, tmp_path / "run" / "weights" / "000004.npz")
    with pytest.raises(ValueError, match=r"loss\.ownership_loss_weight"):
        replace(config, game=GameConfig("santorini"))


def test_only_what_is_stronger_passes_the_gate(toy_run: Path, tmp_path: Path) -> None:
    strong = weights.read(GAME, toy_run / "weights" / f"{TOY.iterations:06d}.npz").model
    weak = networks.make(GAME, "default", "tiny", jax.random.key(7))
    gated = replace(TOY.evaluation, gate=(0.0, 50.0), eval_games=512, eval_opening=1, eval_simulations=1)
    config = replace(TOY, evaluation=gated)
    evaluation = Evaluation(config, GAME, tmp_path)
    assert evaluation.gate(strong, weak)["verdict"] == "H1"
    assert evaluation.gate(weak, strong)["verdict"] == "H0"
    learner = loss.start(config, config.game.make(), weak)
    assert learner.acting is weak
    assert replace(learner, average=strong).acting is weak, "weights that have not passed do not play"
    assert replace(learner, average=strong, accepted=None).acting is strong, "without a gate the newest play"


def test_eval(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = toy_run / "weights" / f"{TOY.iterations:06d}.npz"
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
    code, out, err = run(capsys, "match", "random", f"mine=gumbel:num_simulations=4,network={path}", *options)
    assert (code, err) == (0, "")
    rows = {row["agent"]: row for row in json.loads(out)["agents"]}
    chance, mine = rows["random"], rows["mine"]
    assert chance["games"] == mine["games"] == 40
    assert chance["wins"] + mine["wins"] + chance["ties"] == 40
    assert chance["win_rate"] + mine["win_rate"] == pytest.approx(1)
    assert mine["win_rate_ci95"][0] < mine["win_rate"] < mine["win_rate_ci95"][1]
    assert mine["win_rate"] > 0.6
    code, _, err = run(capsys, "match", "--game", "duo", "random", f"gumbel:network={path}")
    assert code == 2
    assert f"{path} is for tilewe (players=2, size=4, pieces=['I2', 'L3']), not for duo: the rules differ" in err
    code, _, err = run(capsys, "match", "random", "gumbel:network=nobody")
    assert code == 2
    assert "'nobody': not found; shipped are" in err


def test_folders_that_cannot_be_used(
    program: Program, toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="--resume"):
        Run(TOY, toy_run, program).start()
    code, _, err = run(capsys, "train", "--resume", "--out", str(tmp_path))
    assert (code, err.count("config.json is missing")) == (1, 1)
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
            "there is no setting 'selfplay.num_gmaes' (did you mean selfplay.num_games?)",
        ),
        (["--set", "selfplay.num_games=many"], "selfplay.num_games must be an integer, not 'many'"),
        (["--set", "selfplay.num_games=0"], "selfplay.num_games must be at least 1, not 0"),
        (["--set", "selfplay.full_search_prob=2"], "selfplay.full_search_prob must be between 0 and 1, not 2.0"),
        (["--set", "selfplay.search.num_simulations=x"], "selfplay.search.num_simulations must be an integer, not 'x'"),
        (["--set", "selfplay.search.num_simulations=0"], "selfplay.search.num_simulations must be at least 1, not 0"),
        (["--set", "replay.replay_size=100"], "replay.replay_size must be a multiple of selfplay.unroll_length, 32"),
        (["--set", "network.size=huge"], "network.size must be one of tiny, nano, small, wide, medium, large, not 'huge'"),
        (
            ["--set", "network.architecture=gnn"],
            "network.architecture 'gnn' is not registered for santorini here; registered are def",
        ),
        (["--set", "selfplay.rule=alphabeta"], "selfplay.rule must be one of gumbel, puct, not 'alphabeta'"),
        (["--set", "evaluation.gate=20 0"], "the first Elo of a sequential test must be the lower one, not 20.0 and 0.0"),
        (["--set", "evaluation.gate=5"], "evaluation.gate"),
        (["--set", "loss.augment=perhaps"], "loss.augment must be true or false, not 'perhaps'"),
        (["--set", "game.options.size=2"], "size must be"),
        (["--set", "game.id=chess", "game.options.size=2"], "there is no game 'chess'"),
        (["--set", "selfplay.num_games=100000000"], "GB per device"),
        (["--preset", "chess"], "there is no preset 'chess'; there are classic_2_cpu, classic_cpu, "),
        (["--preset", "nothing.py"], "there is no preset nothing.py: No such file or directory"),
        (["--set", "network.init=nobody"], "network.init 'nobody': not found"),
        (["--set", "network.init=santorini", "network.architecture=mlp"], "network.init has weights of reach_resnet nano"),
        (["--coordinator", "localhost:1"], "--coordinator, --num-processes and --process-id are given together"),
        (["--checkpoint", "3"], "--checkpoint needs --resume"),
        (["--join-timeout", "3"], "--join-timeout needs --coordinator or --distributed"),
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


def test_an_ablation_of_two_architectures_is_one_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["selfplay.num_games=4", "selfplay.unroll_length=4", "selfplay.search.num_simulations=2", "replay.replay_size=4"]
    few += ["replay.min_replay_size=4", "optimizer.batch_size=4", "network.size=tiny", "game.options.size=3", "iterations=1"]
    few += ["network.architecture=mlp"]
    code, _, err = run(capsys, "train", "--out", str(tmp_path / "run"), "--devices", "1", "--set", *few, "--json")
    assert (code, err) == (0, "")
    game = tilewe_jax.make("santorini", size=3)
    assert weights.read(game, tmp_path / "run" / "weights" / "000001.npz").description.architecture == "mlp"
