"""Ladders: statistics of games with known chances, lists of openings, CPU times, and a whole ladder."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.agents.test_gtp_player import fake, host_game
from tilewe_jax import agents, arena, records
from tilewe_jax.agents.gtp_player import GtpPlayer
from tilewe_jax.arena import ladder, openings
from tilewe_jax.arena.results import Batch, Results, mean_interval
from tilewe_jax.cli import main as cli

SANTORINI = tilewe_jax.make("santorini", size=3)
DUO = tilewe_jax.make("duo_official")


def rung_of(outcomes: np.ndarray, level: int | None = None) -> ladder.Rung:
    """Create a rung of paired games of two players from the agent's outcomes, with alternating seats."""
    games = len(outcomes)
    seating = np.array([[0, 1], [1, 0]] * (games // 2))
    scores = np.where(seating == 0, outcomes[:, None], 1 - outcomes[:, None])
    none = np.zeros((games, 2), int)
    results = Results(SANTORINI, ["agent", "opponent"], [Batch(seating, scores, none > 0, none, none, [])])
    return ladder.Rung("agent", level, False, [results])


def test_intervals_contain_the_true_value_in_95_percent() -> None:
    """Paired games share an opening that favours one seat; intervals for independent games would be too wide."""
    random, held, widths = np.random.default_rng(0), 0, []
    for _ in range(400):
        bias = random.choice([-0.35, 0.35], 50)
        chances = np.stack([0.4 + bias, 0.4 - bias], axis=1).clip(0.01, 0.99).ravel()
        summary = rung_of((random.random(100) < chances).astype(float)).summary()
        low, high = summary["win_rate_ci95"]
        held += low <= chances.mean() <= high
        widths.append(high - low)
        assert summary["wins"] + summary["losses"] == 100
    assert 0.92 < held / 400 < 0.99
    assert np.mean(widths) < 2 * 1.96 * np.sqrt(0.24 / 100)


def test_margins_draws_and_seats() -> None:
    row = rung_of(np.array([1, 0.5, 1, 0, 1, 1])).summary()
    assert (row["games"], row["wins"], row["draws"], row["losses"]) == (6, 4, 1, 1)
    assert row["win_rate"] == 0.75
    assert row["win_rate_by_seat"] == [1.0, 0.5]
    assert row["score_margin"] == 0.5
    assert row["equal_players"] == 0.5
    assert mean_interval(np.zeros(10), (0.0, 1.0))[2] > 0.1  # ten losses do not exclude wins


def test_ratings_on_a_scale_are_recovered() -> None:
    random = np.random.default_rng(1)
    ratings = {1: 1000.0, 2: 1300.0, 3: 1500.0, 4: 2500.0}
    rungs, truth = [], 1250.0
    for level, rating in ratings.items():
        chance = 1 / (1 + 10 ** ((rating - truth) / 400))
        rungs.append(rung_of((random.random(2000) < chance).astype(float), level))
    elo, interval = ladder.elo_on_scale(rungs, ratings) or (0.0, 0.0)
    assert 4 < interval < 20
    assert abs(elo - truth) < 2 * interval
    assert ladder.elo_on_scale(rungs, {}) is None
    beaten = ladder.elo_on_scale([rung_of(np.zeros(20), 1)], ratings)
    assert beaten is not None
    assert -1000 < beaten[0] < 800


def test_simulations_are_interpolated_from_measured_times() -> None:
    assert ladder._simulations_for({64: 0.064}, 0.032) == 32
    assert ladder._simulations_for({64: 0.069, 32: 0.037}, 0.021) == 16  # 5 ms, and 1 ms a simulation
    assert ladder._simulations_for({64: 0.064}, 1e-9) == 1
    assert ladder._simulations_for({64: 0.064}, 1e9) == 8 * 64


def test_openings_are_played_from_every_seat() -> None:
    """Openings of different lengths, whose moves do not count as decisions."""
    game = SANTORINI
    first = [position_actions(game, count) for count in (1, 3)]
    results = arena.play_match(
        game, [agents.agent(name, game) for name in ("random", "greedy")], 8, 8, 0, keep=True, opening=first
    )
    seating = results.all("seating")
    for index, record in enumerate(results.records):
        given = first[index // 2 % 2]
        assert list(record.actions[: len(given)]) == given
        assert seating[index].tolist() == seating[index ^ 1].tolist()[::-1]
    played = sum(len(record.actions) for record in results.records)
    assert sum(results.decisions.values()) == played - 4 * 1 - 4 * 3
    assert not results.all("forfeits").any()


def position_actions(game: Any, count: int) -> list[int]:
    """Return the first actions of a game, always the lowest id."""
    position, actions = game.host(game.init(jax.random.key(0))), []
    for _ in range(count):
        actions.append(position.legal_actions()[0])
        position = position.after(actions[-1])
    return actions


def test_cpu_time_of_engines_excludes_startup() -> None:
    player = GtpPlayer(DUO, fake("busy"))
    assert player.cpu_seconds() < 0.2, "starting Python takes longer"
    game = host_game()
    game.actions.append(player.choose(game, 10, "seed"))
    spent = player.cpu_seconds()
    assert 0.25 < spent < 2
    player.close()
    assert spent <= player.cpu_seconds() < 2


def test_files_of_openings(tmp_path: Path) -> None:
    path, rows = tmp_path / "o.json", [openings.Opening((9538, 17508), {"agent": 0.5379, "engine": 0.549})]
    openings.write(path, DUO, rows, {"seed": 0})
    assert openings.read(DUO, path) == rows
    with pytest.raises(ValueError, match=r"duo_official \{\}"):
        openings.read(tilewe_jax.make("duo"), path)
    openings.write(path, DUO, [openings.Opening((9538, 9538), {})], {})
    with pytest.raises(ValueError, match="9538"):
        openings.read(DUO, path)
    for text in ("", "[]", "{}", '{"format": "tilewe-jax-openings/1", "game": "duo_official", "options": {}, "openings": [3]}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=str(path)):
            openings.read(DUO, path)
    assert openings.find(tilewe_jax.make("duo_official", size=8)) is None


def test_finder_yields_distinct_balanced_openings(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Engines:
        def __init__(self, names: Any, command: str, processes: int) -> None:
            self.modulus = int(command)

        def __enter__(self) -> "Engines":
            return self

        def __exit__(self, *error: object) -> None: ...

        def values(self, beginnings: list[tuple[int, ...]]) -> list[float]:
            sizes.append(len(beginnings))
            return [0.5 if sum(moves) % self.modulus == 0 else 0.9 for moves in beginnings]

    monkeypatch.setattr(openings, "_Engines", Engines)
    monkeypatch.setattr(openings, "_agent_values", lambda *_: lambda rows: [moves[0] % 2 / 2 for moves in rows])
    game = tilewe_jax.make("duo_official", size=8, pieces=("O1", "I2", "L5", "W5"))
    with openings.Finder(game, ["2", "3"], "puct", 0.05) as finder:
        results = list(finder.find(20))
    assert len({opening.actions for opening in results}) == len(results) == 20
    for first, second in (opening.actions for opening in results):
        assert (first + second) % 6 == 0
        assert first % 2 == 1
        position = game.host(game.init(jax.random.key(0))).after(first).after(second)
        assert [len(position.cells(player)) for player in (0, 1)] == [5, 5]
    assert all(opening.values == {"agent": 0.5, "engine": 0.5} for opening in results)
    assert max(sizes) == openings._BATCH
    monkeypatch.undo()
    with pytest.raises(ValueError, match="cannot start 'nosuchengine'"):
        openings.Finder(game, ["nosuchengine"], "puct:num_simulations=2", 0.05)


@pytest.mark.parametrize("path", sorted(openings.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_shipped_openings_are_legal_and_balanced(path: Path) -> None:
    rows = openings.read(tilewe_jax.make(path.stem), path)
    assert len({row.actions for row in rows}) == len(rows) >= 25
    about = json.loads(path.read_text())
    assert about["tolerance"] <= 0.05
    assert len(about["equal"]) == 2
    assert all(abs(row.values[name] - equal) <= 0.05 + 1e-3 for row in rows for name, equal in about["equal"].items())


def test_a_whole_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = "puct:num_playouts=0,priors=false,num_candidates=8,max_depth=2,reuse_subtree=false,num_simulations="
    options = ["--game", "santorini", "--set", "size=3", "--agent", "greedy", "--opponent", search + "{level}"]
    more = ["--levels", "1,3", "--games", "6", "4", "--repeats", "2", "--batch", "4", "--level-elo", "100", "200", "--json"]
    cli.main(["ladder", *options, *more, "--out", str(tmp_path / "new")])
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((tmp_path / "new" / "ladder.json").read_text())
    (entry,) = summary["agents"]
    assert [(row["level"], row["games"]) for row in entry["levels"]] == [(1, 12), (3, 8)]
    assert all(len(row["win_rates_of_repeats"]) == 2 for row in entry["levels"])
    assert isinstance(entry["elo"], int)
    assert "<svg" in (tmp_path / "new" / "ladder.svg").read_text()
    _, games = records.read_on_host(tmp_path / "new" / "01-level1.jsonl")
    assert len(games) == 12
    assert {player for game in games for player in game.players} == {"agent", "opponent"}


def test_notes_on_agents_precede_errors(capsys: pytest.CaptureFixture[str]) -> None:
    agent = "puct:num_simulations=2,network=santorini"
    near = ["--game", "santorini", "--set", "placement=random", "--agent", agent, agent]
    with pytest.raises(SystemExit):
        cli.main(["ladder", *near, "--opponent", "nobody", "--random-opening", "0"])
    note, error = capsys.readouterr().err.splitlines()
    assert note.startswith("santorini.npz")
    assert "nobody" in error


@pytest.mark.slow
def test_simulations_are_chosen_for_a_cpu_time() -> None:
    game = tilewe_jax.make("santorini")
    text = ladder.at_seconds_per_move(game, "puct:num_simulations=8", 0.002, 2, 64, 0)
    settings = ladder.Settings(128, opening=2, batch=64)
    spent = ladder.climb(game, text, "random", None, settings).cpu_seconds_per_move(0)
    assert spent is not None
    assert 0.001 < spent < 0.004
    with pytest.raises(ValueError, match="'random'"):
        ladder.at_seconds_per_move(game, "random", 0.002, 2, 64, 0)
