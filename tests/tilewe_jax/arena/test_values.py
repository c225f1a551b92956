"""Tests of values on recorded games: the table against NumPy and a bootstrap, positions, sources, and the command."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import agents, arena, records
from tilewe_jax.arena import values
from tilewe_jax.replay import recorded
from tilewe_jax.search.exported import network_interface

ROOT = Path(__file__).parents[3]
GAME = tilewe_jax.make("santorini", size=3)
COMMAND = ("value-test", "--game", "santorini", "--set", "size=3", "--json")
PLAYERS = ("a", "b")
PLAYED = 12


@pytest.fixture(scope="module")
def games() -> list[records.Record]:
    """Random games between two players who change seats."""
    players = [agents.agent("random", GAME, name=name) for name in PLAYERS]
    played = arena.play_match(GAME, players, PLAYED, PLAYED, seed=1, opening=0, keep=True).records
    assert {record.players for record in played} == {PLAYERS, PLAYERS[::-1]}
    return played


@pytest.fixture
def file(games: list[records.Record], tmp_path: Path) -> Path:
    records.write(tmp_path / "games.jsonl", GAME, games)
    return tmp_path / "games.jsonl"


# ---- The table


def simulated(num_games: int, length: int, seed: int) -> tuple[np.ndarray, ...]:
    """Games with results 0, 0.5 and 1, and values whose error is the same in all positions of a game."""
    random = np.random.default_rng(seed)
    game, ply = np.divmod(np.arange(num_games * length), length)
    actual = random.choice([0, 0.5, 1], num_games)[game]
    predicted = np.clip(0.4 * actual + random.normal(0.3, 0.2, num_games)[game] + random.normal(0, 0.02, len(game)), 0, 1)
    order = random.permutation(len(game))
    return game[order], ply[order], actual[order], predicted[order]


def test_the_table_agrees_with_numpy() -> None:
    game, ply, actual, predicted = simulated(30, 10, seed=0)
    chance = np.random.default_rng(1).random(len(game))
    rows = values.table(game, ply, actual, {"good": predicted, "chance": chance})
    assert [(row.source, row.first_ply, row.last_ply) for row in rows] == [
        (source, *plies) for plies in ((0, 3), (4, 7), (8, 11), (0, 9)) for source in ("good", "chance")
    ]
    for row in rows:
        chosen = (ply >= row.first_ply) & (ply <= row.last_ply)
        value, result = {"good": predicted, "chance": chance}[row.source][chosen], actual[chosen]
        assert (row.positions, row.games) == (chosen.sum(), 30)
        assert row.predicted == pytest.approx(value.mean())
        assert row.actual == pytest.approx(result.mean())
        assert row.correlation == pytest.approx(np.corrcoef(value, result)[0, 1])
        assert row.brier == pytest.approx(np.mean((value - result) ** 2))
        assert row.constant == pytest.approx(result.var())
        assert row.gain == pytest.approx(row.constant - row.brier)
        first = np.mean((predicted[chosen] - result) ** 2)
        assert row.difference == (None if row.source == "good" else pytest.approx(row.brier - first))
    one_by_one = values.table(game, ply, actual, {"good": predicted}, width=1)
    assert [row.first_ply for row in one_by_one] == [*range(10), 0]


def test_intervals_agree_with_a_bootstrap_over_games() -> None:
    game, ply, actual, predicted = simulated(60, 8, seed=2)
    second = predicted**2
    (_, row) = values.table(game, ply, actual, {"first": predicted, "second": second}, width=8)[:2]
    random, drawn = np.random.default_rng(3), []
    for _ in range(2_000):
        index = np.concatenate([np.flatnonzero(game == number) for number in random.integers(0, 60, 60)])
        value, result = second[index], actual[index]
        error = (value - result) ** 2
        drawn.append(
            (
                np.corrcoef(value, result)[0, 1],
                error.mean(),
                ((result - result.mean()) ** 2 - error).mean(),
                (error - (predicted[index] - result) ** 2).mean(),
            )
        )
    widths = 1.96 * np.std(drawn, axis=0)
    got = row.correlation_ci95, row.brier_ci95, row.gain_ci95, row.difference_ci95
    assert got == pytest.approx(tuple(widths), rel=0.1)
    # Positions as observations would give intervals that are far too narrow.
    (of_positions, *_) = values.table(np.arange(len(game)), ply, actual, {"second": second}, width=8)
    assert row.brier_ci95 is not None
    assert of_positions.brier_ci95 is not None
    assert of_positions.brier_ci95 < 0.5 * row.brier_ci95


@pytest.mark.parametrize(
    ("predicted", "actual", "correlation"),
    [
        ([0.3, 0.3, 0.3, 0.3], [0, 1, 0, 1], None),
        ([0.1, 0.7, 0.3, 0.3], [0.5, 0.5, 0.5, 0.5], None),
        ([0.5], [1], None),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1], 1.0),
        ([0.9, 0.1, 0.9, 0.1], [0, 1, 0, 1], -1.0),
    ],
)
def test_constant_values_and_results_have_no_correlation(
    predicted: list[float], actual: list[float], correlation: float | None
) -> None:
    game = np.arange(len(predicted)) // 2
    row = values.table(game, np.zeros_like(game), np.array(actual), {"a": np.array(predicted, np.float32)})[0]
    assert row.correlation == (None if correlation is None else pytest.approx(correlation))
    assert (row.correlation_ci95 is None) == (correlation is None)
    assert row.brier == pytest.approx(np.mean((np.array(predicted) - actual) ** 2))
    assert (row.brier_ci95 is None) == (len(actual) == 1)  # a single game
    assert json.loads(json.dumps(row.json()))["correlation"] == row.correlation


def test_wrong_arrays_are_rejected() -> None:
    game, ply, actual, predicted = simulated(3, 2, seed=0)
    with pytest.raises(ValueError, match=r"^a must be an array .*\(6,\).*\(5,\)"):
        values.table(game, ply, actual, {"a": predicted[1:]})
    with pytest.raises(ValueError, match=r"^a must be finite"):
        values.table(game, ply, actual, {"a": np.where(game == 1, np.nan, predicted)})
    with pytest.raises(ValueError, match="at least one position"):
        values.table(game[:0], ply[:0], actual[:0], {"a": predicted[:0]})
    with pytest.raises(ValueError, match=r"^width must be at least 1, got 0"):
        values.table(game, ply, actual, {"a": predicted}, width=0)


# ---- Positions and sources


def test_positions_agree_with_the_games(games: list[records.Record]) -> None:
    sample = values.sample(GAME, games)
    assert len(sample.ply) == sum(len(record.actions) for record in games)
    keys = jax.vmap(GAME.current_player)(sample.state)
    np.testing.assert_array_equal(keys, sample.player)
    for game, ply, player, actual in zip(sample.game, sample.ply, sample.player, sample.actual, strict=True):
        position = GAME.host(GAME.init_from_deal(games[game].deal))
        for action in games[game].actions[:ply]:
            position = position.after(action)
        assert position.current_player == player
        assert games[game].returns[player] == actual
    legal = np.asarray(jax.vmap(GAME.legal_action_mask)(sample.state))
    played = [games[game].actions[ply] for game, ply in zip(sample.game, sample.ply, strict=True)]
    assert legal[np.arange(len(played)), played].all()


def test_positions_are_selected(games: list[records.Record]) -> None:
    everything = values.sample(GAME, games)
    named = values.sample(GAME, games, name="a")
    assert 0 < len(named.ply) < len(everything.ply)
    assert {games[game].players[player] for game, player in zip(named.game, named.player, strict=True)} == {"a"}
    second = values.sample(GAME, games, seat=1)
    assert set(second.player.tolist()) == {1}
    some = values.sample(GAME, games, limit=9, seed=3)
    assert len(some.ply) == 9
    assert sorted(zip(some.game, some.ply, strict=True)) == list(zip(some.game, some.ply, strict=True))
    assert len(set(zip(some.game, some.ply, strict=True))) == 9
    other = values.sample(GAME, games, limit=9, seed=4)
    assert (some.game.tolist(), some.ply.tolist()) != (other.game.tolist(), other.ply.tolist())
    with pytest.raises(ValueError, match="player 'c'; the players are a, b"):
        values.sample(GAME, games, name="c")
    with pytest.raises(ValueError, match="no names of players"):
        values.sample(GAME, [replace(record, players=()) for record in games], name="a")


def test_sources_return_the_values_of_the_player_to_move(games: list[records.Record]) -> None:
    sample = values.sample(GAME, games, limit=11)
    text = "puct:num_simulations=4,network=santorini"
    agent = agents.agent(text, GAME)
    alone = values.source_without_search(GAME, "santorini").predict(sample, batch=4)
    searched = values.source(GAME, text).predict(sample, batch=4)
    state, player = jax.tree.map(jnp.asarray, (sample.state, sample.player))
    observe = network_interface(GAME, agent.weights).observe
    outputs = jax.jit(jax.vmap(lambda state, player: agent.weights(observe(state, player))))
    _, expected = outputs(state, player)  # the player to move comes first
    np.testing.assert_allclose(alone, expected[:, 0], atol=1e-5)
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(0), jnp.arange(11))
    output: Any = jax.jit(jax.vmap(agent.search))(state, keys)
    np.testing.assert_allclose(searched, output.value[np.arange(11), sample.player], atol=1e-5)
    # The evaluator of an agent: one playout of each position ends in a win or a loss.
    playouts = values.source_without_search(GAME, "p=puct:num_playouts=1,score_weight=0")
    assert (playouts.name, set(playouts.predict(sample, batch=4).tolist())) == ("p", {0.0, 1.0})


def test_the_score_is_no_part_of_the_value_of_a_network() -> None:
    duo = tilewe_jax.make("duo")
    source = values.source_without_search(duo, "n=duo")
    assert (source.name, source.agent.weights.score_weight) == ("n", 0.0)
    assert agents.agent("puct:network=duo", duo).weights.score_weight > 0


def test_hidden_information_is_resampled() -> None:
    game = tilewe_jax.make("triominos", tiles=10, tray=3)
    source = values.source_without_search(game, "puct:num_playouts=2,num_determinizations=3")
    start = jax.device_get(game.init(jax.random.key(0)))
    state = jax.tree.map(lambda leaf: np.stack([leaf] * 4), start)
    zeros = np.zeros(4, np.int32)
    sample = values.Sample([], np.arange(4), zeros, zeros, zeros, state)
    predicted = source.predict(sample, batch=4)
    assert len(set(predicted.tolist())) > 1  # the same position, other tiles of the opponent
    assert ((predicted >= 0) & (predicted <= 1)).all()


def test_values_of_an_engine(games: list[records.Record], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    duo = tilewe_jax.make("duo_official")
    module = [sys.executable, "-m", "tests.tilewe_jax.agents.fake_gtp_engine"]
    position, actions = duo.host(duo.init(jax.random.key(0))), []
    for _ in range(6):
        actions.append(position.legal_actions()[-1])
        position = position.after(actions[-1])
    record = records.Record(None, tuple(actions), (1, 0), (1.0, 0.0))
    game, ply = np.repeat(np.arange(3), 4), np.tile([0, 2, 3, 5], 3)
    sample = values.Sample([record] * 3, game, ply, ply % 2, 1.0 - ply % 2, None)
    source = values.source(duo, f'e=gtp:command="{shlex.join(module)}"')
    assert source.name == "e"
    assert source.predict(sample).tolist() == [0, 0.5, 1, 1] * 3  # clipped to [0, 1]
    refusing = values.source(duo, f'gtp:command="{shlex.join([*module, "refuses_values"])}"')
    with pytest.raises(agents.ForfeitError, match="no idea"):
        refusing.predict(sample)


@pytest.mark.parametrize(
    ("text", "message"),
    [("random", "random has no values"), ("puct:seconds=1", "seconds"), ("nobody", "'nobody'")],
)
def test_agents_without_values_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        values.source(GAME, text)


# ---- The command


def test_command(file: Path, games: list[records.Record], capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["--network", "s=santorini", "--agents", "puct:num_simulations=2,num_playouts=0"]
    code, out, _ = run(capsys, *COMMAND, "--games", str(file), *sources, "--plies", "6")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row["source"] for row in rows[:2]] == ["s", "puct:num_simulations=2,num_playouts=0"]
    assert [row["first_ply"] for row in rows[:-2:2]] == list(range(0, 6 * (len(rows) // 2 - 1), 6))
    assert rows[-1]["positions"] == sum(len(record.actions) for record in games) == sum(row["positions"] for row in rows[:-2:2])
    assert rows[-1]["games"] == PLAYED
    code, out, _ = run(
        capsys, *COMMAND[:-1], "--games", str(file), *sources, "--player", "a", "--seat", "1", "--positions", "8"
    )
    assert code == 0
    assert all(name in out for name in ("correlation", "constant", "difference"))


def test_the_default_is_the_network_of_best(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *COMMAND, "--games", str(file))
    assert (code, {row["source"] for row in json.loads(out)["rows"]}) == (0, {"santorini"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": None, "returns": None}, "game 2: the game is unfinished"),
        ({"returns": [0.5, 0.5]}, "game 2: the returns must be"),
        ({"actions": []}, "game 2: the game is not over"),
    ],
)
def test_wrong_games_are_rejected(change: dict[str, Any], message: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = file.read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **change})
    file.write_text("\n".join(lines))
    code, out, err = run(capsys, *COMMAND, "--games", str(file))
    assert (code, out) == (1, "")
    assert message in err.splitlines()[-1]


def test_files_are_read_from_folders(file: Path, games: list[records.Record], tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    records.write(tmp_path / "more" / "b.jsonl", GAME, games[:3])
    assert recorded.finished_games(GAME, tmp_path) == [*games, *games[:3]]
    assert recorded.finished_games(GAME, file, file) == [*games, *games]
