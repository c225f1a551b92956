"""Training: a toy game is learned perfectly, the files of a run, its report, and wrong arguments."""

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

from tests.browser import browser_page
from tests.support import batched, rows
from tests.tilewe_jax.cli.test_cli import run
from tests.toy import GAME, SHORT, TOY, trained_in
from tilewe_jax import arena, networks, presets, records, settings
from tilewe_jax.agents import agent
from tilewe_jax.networks import weights
from tilewe_jax.search.exported import network_interface
from tilewe_jax.training import Program, Run, checkpoint, loss, metrics, report
from tilewe_jax.training import run as training
from tilewe_jax.training.config import GameConfig, TrainConfig
from tilewe_jax.training.evaluation import Evaluation, value_sample


def levels_of(game: Any) -> list[tuple[Any, tuple[np.ndarray, ...]]]:
    """Enumerate a game: for each ply its positions, and the moves as (position, action, position in the next ply)."""
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


def test_toy_game_is_learned_perfectly(toy_run: Path) -> None:
    """The policy without search achieves the max^n value of the game against every opponent (exhaustive)."""
    model = weights.read(GAME, toy_run / "weights" / f"{TOY.iterations:06d}.npz").model

    @jax.jit
    @jax.vmap
    def choose(state: Any) -> Any:
        logits, _ = networks.predict(model, GAME.observe(state, GAME.current_player(state)))
        return jnp.argmax(jnp.where(GAME.legal_action_mask(state), logits, -jnp.inf))

    levels = levels_of(GAME)
    assert sum(len(level[3]) for _, level in levels) > 1000
    # For each position: its max^n value, and the return of each player who follows the policy against the worst opponent.
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


def test_files_of_a_run(toy_run: Path) -> None:
    lines, evaluations = metrics.read(toy_run / metrics.METRICS), metrics.read(toy_run / metrics.EVALUATIONS)
    assert [row["iteration"] for row in lines] == list(range(1, TOY.iterations + 1))
    assert all(row["moves"] == TOY.selfplay.num_games * TOY.selfplay.unroll_length for row in lines)
    assert sum(row["games"] for row in lines) > 3000
    assert lines[-1]["policy_loss"] < lines[1]["policy_loss"]
    assert lines[-1]["agreement"] > 0.5
    assert [list(row["opponents"]) for row in evaluations] == [["random"]] * 2
    assert evaluations[-1]["opponents"]["random"]["win_rate"] > 0.5
    ratings = {name: (rating, ci95) for name, rating, ci95 in report.elo(evaluations)}
    assert set(ratings) == {"10", "20", "random"}
    assert ratings["20"][0] > ratings["random"][0]
    assert checkpoint.numbers(toy_run / "checkpoints") == [10, 20]
    assert sorted(path.name for path in (toy_run / "weights").iterdir()) == ["000010.npz", "000020.npz"]
    saved = weights.read(GAME, toy_run / "weights" / "000020.npz")
    assert saved.description == weights.Description("tilewe", GAME.options, "resnet", "tiny", 0.0)
    assert settings.from_json(TrainConfig, saved.about["config"]) == TOY
    assert next((toy_run / "events").iterdir()).name.startswith("events")


def test_report_before_any_game_has_ended(toy_run: Path, tmp_path: Path) -> None:
    shutil.copy(toy_run / "config.json", tmp_path)
    first = {**metrics.read(toy_run / metrics.METRICS)[0], "games": 0, "plies": 0, "returns": [0.0, 0.0]}
    (tmp_path / metrics.METRICS).write_text(json.dumps(first) + "\n")
    text = report.write(tmp_path).read_text()
    assert "Seats" in text
    assert "Calibration" not in text


def test_the_same_command_starts_and_resumes(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "Program", lambda config, devices: program)
    preset, folder = tmp_path / "preset.py", tmp_path / "run"
    preset.write_text("from tests.toy import SHORT as CONFIG")
    job = ["train", "--preset", str(preset), "--out", str(folder), "--resume-or-start", "--json"]
    for iterations in (1, 2):
        code, out, err = run(capsys, *job, "--set", f"iterations={iterations}")
        assert code == 0, err
        assert json.loads(out)["iterations"] == iterations
    assert [row["iteration"] for row in metrics.read(folder / metrics.METRICS)] == [1, 2]
    code, out, err = run(capsys, "train", "--preset", "santorini_cpu", *job[3:], "--set", "iterations=3")
    assert code == 0, err
    assert json.loads(out)["iterations"] == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for arguments, expected in ((("--out", str(tmp_path / "other")), 1), (("--out", str(folder), "--resume"), 2)):
        code, out, err = run(capsys, "train", "--resume-or-start", *arguments)
        assert (code, out) == (expected, "")


def test_train_shows_progress_unless_quiet(
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
    # Notes on lost rows are always shown.
    (tmp_path / "quiet" / metrics.METRICS).write_text("")
    training.train(config, tmp_path / "quiet", resume=True, quiet=True)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "lacks the rows of iteration 1;" in err


def test_names_of_opponents_are_not_interpreted(tmp_path: Path) -> None:
    figures = {"win_rate": 0.5, "standard_error": 0.1, "seating": [[0, 1], [1, 0]], "results": [[1, 0], [0, 1]]}
    opponents = {r"a$\q$": figures, "_own": figures}
    row = {"iteration": 1, "seconds": 1.0, "games_before": 2, "opponents": opponents}
    (tmp_path / metrics.EVALUATIONS).write_text(json.dumps(row) + "\n")
    assert all(f"<!-- {name} -->" in report.curve(tmp_path) for name in opponents)


class _Outside(HTMLParser):
    """Collects the addresses that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "data") and value and not value.startswith(("data:", "#")):
                self.addresses.append(value)


def test_report_is_self_contained(toy_run: Path) -> None:
    text = (toy_run / "report.html").read_text()
    page = _Outside()
    page.feed(text)
    assert not page.addresses
    assert "@import" not in text
    assert "Elo over hours" in text
    assert text.count('class="game"') == 2
    with pytest.raises(ValueError, match=r"config\.json"):
        report.write(toy_run.parent)


def test_report_in_a_browser(toy_run: Path) -> None:
    """Games show their first position, and are stepped independently."""
    with browser_page() as page:
        page.goto(f"file://{toy_run / 'report.html'}")
        games = page.locator("tilewe-game")
        assert games.count() == 2
        assert games.locator(".caption").all_text_contents() == ["Start"] * 2
        games.nth(1).get_by_label("Next move").click()
        assert games.nth(1).locator(".caption").text_content().startswith("1. ")
        assert games.nth(0).locator(".caption").text_content() == "Start"


@pytest.mark.slow
def test_ownership_is_learned_and_not_saved(tmp_path: Path) -> None:
    targets = replace(SHORT.loss, ownership_loss_weight=1.0)
    config = replace(SHORT, iterations=4, loss=targets)
    program = Program(config, devices=1)
    state = trained_in(tmp_path / "run", program, config)
    learned = [row for row in metrics.read(tmp_path / "run" / metrics.METRICS) if "ownership_loss" in row]
    losses = [row["ownership_loss"] for row in learned]
    assert losses[-1] < losses[0] < np.log(3)
    # Checkpoints contain the head, files of weights do not.
    resumed = Run(config, tmp_path / "run", program).resume()
    jax.tree.map(np.testing.assert_array_equal, resumed.learner.auxiliary, state.learner.auxiliary)
    weights.read(GAME, tmp_path / "run" / "weights" / "000004.npz")
    with pytest.raises(ValueError, match=r"loss\.ownership_loss_weight"):
        replace(config, game=GameConfig("santorini"))


def by_preference(preferences: Any, observation: Any) -> networks.Outputs:
    """A network for tic-tac-toe with constant logits."""
    del observation
    return networks.Outputs(preferences, jnp.zeros(2), jnp.zeros(2))


def test_gate_accepts_only_stronger_weights(tmp_path: Path) -> None:
    centre_first = jnp.asarray([1.0, 0, 1, 0, 2, 0, 1, 0, 1])
    strong, weak = (jax.tree_util.Partial(by_preference, preferences) for preferences in (centre_first, -centre_first))
    settings_of_gate = replace(TOY.evaluation, gate=(0.0, 50.0), eval_games=512, eval_opening=1, eval_simulations=1)
    search = replace(TOY.selfplay.search, num_candidates=9, candidate_pool=9)
    config = replace(
        TOY,
        game=GameConfig("tests.search.tictactoe:TicTacToe"),
        selfplay=replace(TOY.selfplay, search=search),
        evaluation=settings_of_gate,
    )
    game = config.game.make()
    evaluation = Evaluation(config, game, tmp_path)
    assert evaluation.gate(strong, weak)["verdict"] == "H1"
    assert evaluation.gate(weak, strong)["verdict"] == "H0"
    few = replace(config, evaluation=replace(settings_of_gate, gate=None, eval_games=32, opponents=("last",)))
    evaluation = Evaluation(few, game, tmp_path)
    assert evaluation.run(1, weak)["opponents"] == {}
    assert evaluation.run(2, strong)["opponents"]["last"]["win_rate"] > 0.5
    learner = loss.start(config, game, weak)
    assert learner.acting is weak
    assert replace(learner, average=strong).acting is weak
    assert replace(learner, average=strong, accepted=None).acting is strong


def test_values_are_tested_on_games_of_others(program: Program, toy_run: Path, tmp_path: Path) -> None:
    players = [agent("random", GAME)] * 2
    games = arena.play_match(GAME, players, 60, 60, seed=1, opening=0, keep=True).records
    records.write(tmp_path / "games.jsonl", GAME, games)
    given = replace(SHORT.evaluation, eval_every=1, opponents=(), value_games=str(tmp_path / "games.jsonl"))
    config = replace(SHORT, iterations=2, evaluation=given)
    trained_in(tmp_path / "run", program, config)
    evaluations = metrics.read(tmp_path / "run" / metrics.EVALUATIONS)
    assert [row["iteration"] for row in evaluations] == [1, 2]
    for row in evaluations:
        assert row["opponents"] == {}
        assert row["values"][-1]["positions"] == sum(len(record.actions) for record in games)
        assert row["values"][-1]["games"] == 60
    text = report.write(tmp_path / "run").read_text()
    assert text.count("Values on games of others") == 1
    assert all(f"<td>{row['first_ply']}-{row['last_ply']}<td>" in text for row in evaluations[-1]["values"])
    # The values are those of the given network for the player to move.
    sample = value_sample(config, GAME)
    assert sample
    trained = weights.read(GAME, toy_run / "weights" / f"{TOY.iterations:06d}.npz").model
    (*_, total) = Evaluation(config, GAME, tmp_path, sample=sample).run(3, trained)["values"]
    observe = network_interface(GAME, trained).observe
    predict = jax.jit(jax.vmap(lambda state, player: networks.base.predict(trained, observe(state, player))))
    _, values = predict(sample.state, jnp.asarray(sample.player))
    assert total["brier"] == pytest.approx(float(np.mean((values[:, 0] - sample.actual) ** 2)), abs=1e-4)
    assert total["brier"] != pytest.approx(evaluations[0]["values"][-1]["brier"], abs=1e-3)
    # The games are checked before anything is written.
    (tmp_path / "games.jsonl").unlink()
    with pytest.raises(ValueError, match=r"^evaluation\.value_games: .*games\.jsonl: No such file"):
        Run(config, tmp_path / "other", program)
    assert not (tmp_path / "other").exists()


def test_unusable_folders(program: Program, toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="--resume"):
        Run(TOY, toy_run, program).start()
    code, _, err = run(capsys, "train", "--resume", "--out", str(tmp_path))
    assert (code, err.count("config.json")) == (1, 1)
    if os.geteuid():  # nothing is read-only to root
        (tmp_path / "locked").mkdir(mode=0o500)
        code, _, err = run(capsys, "train", "--out", str(tmp_path / "locked" / "run"), "--set", "network.size=tiny")
        assert code == 1
        assert "Permission denied" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "selfplay.num_gmaes=3"], "did you mean selfplay.num_games?"),
        (["--set", "selfplay.num_games=many"], "selfplay.num_games must be an integer"),
        (["--set", "selfplay.num_games=0"], "selfplay.num_games must be at least 1"),
        (["--set", "selfplay.full_search_prob=2"], "selfplay.full_search_prob must be between 0 and 1"),
        (["--set", "selfplay.search.num_simulations=x"], "selfplay.search.num_simulations must be an integer"),
        (["--set", "selfplay.search.num_simulations=0"], "selfplay.search.num_simulations must be at least 1"),
        (["--set", "replay.replay_size=100"], "replay.replay_size must be a multiple of selfplay.unroll_length, 32"),
        (["--set", "network.size=huge"], "network.size must be one of tiny"),
        (["--set", "network.architecture=gnn"], "network.architecture 'gnn'"),
        (["--set", "selfplay.rule=alphabeta"], "selfplay.rule must be one of gumbel, puct"),
        (["--set", "evaluation.gate=20 0"], "20.0 and 0.0"),
        (["--set", "evaluation.gate=5"], "evaluation.gate"),
        (["--set", "loss.augment=perhaps"], "loss.augment"),
        (["--set", "game.options.size=2"], "size must be"),
        (["--set", "game.id=chess", "game.options.size=2"], "chess"),
        (["--set", "selfplay.num_games=100000000"], "GB per device"),
        (["--preset", "chess"], "chess"),
        (["--preset", "nothing.py"], "nothing.py: No such file"),
        (["--set", "network.init=nobody"], "network.init 'nobody': not found"),
        (["--set", "network.init=santorini", "network.architecture=mlp"], "reach_resnet nano"),
        (["--coordinator", "localhost:1"], "--num-processes"),
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
    code, out, _ = run(capsys, "train", "--list", "all")
    assert code == 0
    assert "selfplay.search.num_simulations" in out
    for name in listed["presets"]:
        config = presets.load(name)
        assert settings.from_json(TrainConfig, json.loads(json.dumps(settings.to_json(config)))) == config
        assert config.game.make().id == config.game.id
