"""Matches, ratings and sequential tests, and batched engines against host engines."""

import json
import math
import random
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tilewe_jax import agents, arena, batching, records
from tilewe_jax.arena import deciders, ratings
from tilewe_jax.arena.match import batch_of
from tilewe_jax.arena.results import Batch
from tilewe_jax.cli import main as cli
from tilewe_jax.tilewe import Board, Move, engine, piece_tiles
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action, state_of_board

GAME = tilewe_jax.make("tilewe")
HOST = {
    "simple_search": engine.SimpleSearchEngine(),
    "max_move_diff": engine.MoveDifferenceEngine(),
    "min_move_diff": engine.MoveDifferenceEngine(style="min"),
    "most_open_corners": engine.OpenCornersEngine(),
    "least_open_corners": engine.OpenCornersEngine(style="min"),
    "largest_piece": engine.PieceSizeEngine(),
    "smallest_piece": engine.PieceSizeEngine(style="min"),
    "wall_crawler": engine.TileWeightEngine(),
    "turtle": engine.TileWeightEngine(style="turtle"),
    "random": engine.RandomEngine(),
}
# Elo of the package's own engines and one-sided 95 % margin, by its formula, from 300 games of ten engines.
PACKAGE = {
    "simple_search": (237, 60),
    "max_move_diff": (162, 52),
    "largest_piece": (101, 53),
    "wall_crawler": (71, 54),
    "most_open_corners": (54, 60),
    "turtle": (19, 64),
    "random": (-102, 119),
}


@cache
def tournament() -> arena.Results:
    """Play a match of all ten engines."""
    players = [agents.agent(name, GAME) for name in HOST]
    return arena.play_match(GAME, players, 300, 300, 0, keep=True)


@pytest.mark.slow
@pytest.mark.optimized
def test_batched_engines_agree_with_host_engines() -> None:
    """Up to ties, for every fifth move of each engine in games between all of them."""
    checked: Counter[str] = Counter()
    for record in tournament().records[:30]:
        board = Board()
        for action in record.actions:
            name = record.players[board.current_player]
            named = moves_of_action(action, board)
            assert named, f"{name} chose an illegal move"
            checked[name] += 1
            if checked[name] % 5 == 0:
                check_choice(name, board, named)
            board.push(named[0])
        assert board.finished
        assert tuple(board.scores) == record.scores
    assert all(checked[name] > 100 for name in HOST)


def check_choice(name: str, board: Board, named: list[Move]) -> None:
    host = HOST[name]
    moves = board.generate_legal_moves()
    if isinstance(host, engine.SimpleSearchEngine):
        assert host.search(board, 60) in named
    elif isinstance(host, engine.TileWeightEngine):
        if board.ply < board.n_players:
            corner = board.player_corners()[0]
            moves, named = ([move for move in some if move.to_tile == corner] for some in (moves, named))
        assert weight(host, named[0]) == max(weight(host, move) for move in moves)
    elif not isinstance(host, engine.RandomEngine):
        best = (max if host.style == "max" else min)(host.score(board, move) for move in moves)
        assert host.score(board, named[0]) == best


def weight(host: engine.TileWeightEngine, move: Move) -> float:
    return sum(host.weights[tile + move.to_tile - move.contact] for tile in piece_tiles(move.piece, move.rotation))


@pytest.mark.slow
@pytest.mark.optimized
def test_batched_engines_are_as_strong_as_the_packages_engines() -> None:
    """By the package's formula, except for its mean, which includes engines with hardly any wins."""
    rows = {row["agent"]: row for row in tournament().summary()["agents"]}
    rates = {name: (rows[name]["wins"] + rows[name]["ties"] / 2) / rows[name]["games"] for name in HOST}
    measured = {name: -200 * math.log10(1 / rates[name] - 1) for name in PACKAGE}
    shift = sum(measured[name] - elo for name, (elo, _) in PACKAGE.items()) / len(PACKAGE)
    for name, (elo, margin) in PACKAGE.items():
        assert measured[name] - shift == pytest.approx(elo, abs=margin), name
    for name in ("smallest_piece", "min_move_diff", "least_open_corners"):
        assert rates[name] < rates["random"]


def test_summary_of_a_match() -> None:
    random = np.random.default_rng(0)
    tables = np.stack([random.permutation(10)[:4] for _ in range(30)])
    seating = (tables[:, None] + np.arange(10)[None, :, None]).reshape(300, 4) % 10  # the same number of games for all
    scores = np.round(60 + 3.0 * seating + random.normal(0, 8, seating.shape))
    none = np.zeros_like(seating)
    results = arena.Results(GAME, list(map(str, range(10))), [Batch(seating, scores, none > 0, none, none, [])])
    summary = results.summary()
    assert summary["games"] == 300
    assert {row["games"] for row in summary["agents"]} == {120}
    assert sum(row["elo"] for row in summary["agents"]) == pytest.approx(0, abs=1)
    assert [row["elo"] for row in summary["agents"]] == sorted((row["elo"] for row in summary["agents"]), reverse=True)
    assert sum(row["win_rate"] for row in summary["agents"]) * 120 == pytest.approx(300, abs=0.1)
    assert sum(row["elo"] for row in summary["seats"]) == pytest.approx(0, abs=1)
    assert summary["pairs"]["9"]["0"] > 0.9
    for agent, opponents in summary["pairs"].items():
        for opponent, fraction in opponents.items():
            assert fraction + summary["pairs"][opponent][agent] == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
@pytest.mark.optimized
def test_random_play_matches_the_package() -> None:
    """Means of the package's random games, within four standard errors."""
    games = 4000
    policy = GAME.policies()["random"]
    played = jax.device_get(jax.jit(lambda key: batching.rollout(GAME, key, games, policy))(jax.random.key(0)))
    scores, best = played.scores, played.scores == played.scores.max(axis=1, keepdims=True)
    tied = best.sum(axis=1) > 1
    assert not played.illegal_actions.any()
    figures = [
        (played.lengths, 58.72),
        *zip(scores.T, (60.85, 60.03, 58.97, 58.14), strict=True),
        *zip((best / best.sum(axis=1, keepdims=True)).T, (0.304, 0.265, 0.227, 0.204), strict=True),
        (tied, 0.077),
    ]
    for values, expected in figures:
        assert values.mean() == pytest.approx(expected, abs=4 * values.std() / games**0.5)
    assert played.lengths.std() == pytest.approx(2.83, abs=0.15)


def test_ties_are_broken_by_names() -> None:
    """The random policy plays each placement in proportion to its number of names."""
    board = Board.from_moves(["W5n-a1a1"], 1)
    state, keys = state_of_board(board), jax.random.split(jax.random.key(0), 20_000)
    game = tilewe_jax.make("tilewe", players=1)
    chosen = np.asarray(jax.jit(jax.vmap(game.policies()["random"], in_axes=(None, 0)))(state, keys))
    counts = Counter(chosen.tolist())
    weights = {action: len(moves_of_action(action, board)) for action in placements(board)}
    assert sum(weights.values()) == board.n_legal_moves()
    assert set(counts) == set(weights)
    assert max(weights.values()) > 1
    expected = {action: 20_000 * count / sum(weights.values()) for action, count in weights.items()}
    chi_square = sum((counts[action] - mean) ** 2 / mean for action, mean in expected.items())
    assert chi_square == pytest.approx(len(weights) - 1, abs=5 * (2 * len(weights)) ** 0.5)


def placements(board: Board) -> set[int]:
    return {action_of_move(move) for move in board.generate_legal_moves()}


class Illegal(engine.Engine):
    def __init__(self) -> None:
        super().__init__("Illegal")

    def on_search(self, board: Board, seconds: float) -> Move:
        assert len(board.moves) == board.ply
        return Move.from_str("O1n-a1j10")


class First(engine.Engine):
    def __init__(self) -> None:
        super().__init__("First")

    def on_search(self, board: Board, seconds: float) -> Move:
        return board.generate_legal_moves()[0]


def not_an_engine() -> int:
    return 3


def bad_policy():
    return lambda state, key: jnp.int32(5)


SMALL = tilewe_jax.make("tilewe", players=2)


@pytest.mark.untyped  # beartype draws random numbers
def test_host_engines_policies_and_forfeits() -> None:
    texts = ["random", f"{__name__}:First", f"{__name__}:Illegal", f"{__name__}:bad_policy"]
    players = [agents.agent(text, SMALL) for text in texts]
    before = random.getstate()
    results = arena.play_match(SMALL, players, 12, 12, 0, keep=True)
    assert random.getstate() == before, "the global random numbers are restored"
    rows = {row["agent"]: row for row in results.summary()["agents"]}
    assert set(rows) == {"random", "First", "Illegal", "bad_policy"}
    assert rows["Illegal"]["forfeits"] == rows["Illegal"]["games"] == 6
    assert rows["bad_policy"]["forfeits"] == 6
    assert rows["First"]["forfeits"] == rows["random"]["forfeits"] == 0
    assert "illegal" in rows["Illegal"]["last_fault"]
    assert rows["First"]["seconds_per_move"] > 0
    assert min(rows["First"]["elo"], rows["random"]["elo"]) > max(rows["Illegal"]["elo"], rows["bad_policy"]["elo"])
    for record in results.records:
        board = Board(2)
        for action in record.actions:
            mover = record.players[board.current_player]
            if mover == "First":
                assert board.generate_legal_moves()[0] in moves_of_action(action, board)
            board.push(moves_of_action(action, board)[0])


class Lowest:
    """A player on the host for any game that plays the lowest action."""

    name = "lowest"

    def choose(self, game: agents.OngoingGame, seconds: float, seed: str) -> int:
        assert seconds == 60
        if game.actions[:1] == [8]:
            raise agents.ForfeitError(f"corner {seed}")
        return game.position.legal_actions()[0]


def test_host_players_of_any_game() -> None:
    game = TicTacToe()
    players = [agents.agent(Lowest(), game), agents.agent("random", game)]
    results = arena.play_match(game, players, 48, 16, 0, keep=True)
    rows = {row["agent"]: row for row in results.summary()["agents"]}
    cornered = [record for record in results.records if record.actions[0] == 8]
    assert rows["lowest"]["forfeits"] == len(cornered) > 0
    assert "corner 0/" in rows["lowest"]["last_fault"]
    for record in results.records:
        position = game.host(game.init(jax.random.key(0)))
        for action in record.actions:
            if record.players[position.current_player] == "lowest" and record not in cornered:
                assert action == position.legal_actions()[0]
            position = position.after(action)
        assert position.is_terminal


def test_games_depend_on_the_seed_and_not_on_the_batch() -> None:
    game = TicTacToe()
    players = [agents.agent(game.sample_action, game, name=name) for name in ("first", "second")]

    def games(batch: int, seed: int) -> list[tuple[int, ...]]:
        return [record.actions for record in arena.play_match(game, players, 8, batch, seed, keep=True).records]

    assert games(3, 0) == games(8, 0) != games(8, 1)


def test_fewer_games_than_a_batch_are_padded() -> None:
    """The padding changes no game, lasts no longer than the games, and asks no player."""
    asked: list[int] = []

    class Host:
        name = "host"

        def choose(self, game: agents.OngoingGame, seconds: float, seed: str) -> int:
            asked.append(len(game.actions))
            return min(set(range(9)) - set(game.actions))

    game = TicTacToe()
    players = [agents.agent(game.sample_action, game, name="device"), agents.agent(Host(), game)]
    played = {batch: arena.play_match(game, players, 5, batch, 0, keep=True) for batch in (5, 8)}
    assert [batch_of(5, batch) for batch in played] == [5, 8]
    assert [record.actions for record in played[5].records] == [record.actions for record in played[8].records]
    assert played[8].games == len(played[8].records) == 5
    assert played[8].decisions == played[5].decisions
    assert len(asked) == 2 * played[8].all("plies")[played[8].all("seating") == 1].sum()


def test_searches_depend_on_neither_the_batch_nor_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    game = TicTacToe()
    players = [
        agents.agent("puct:num_simulations=6,num_playouts=0", game),
        agents.agent(game.sample_action, game, name="random"),
    ]

    def games(batch: int, together: int) -> list[tuple[int, ...]]:
        monkeypatch.setattr(deciders, "SEARCHED_TOGETHER", together)
        return [record.actions for record in arena.play_match(game, players, 8, batch, 0, keep=True).records]

    assert deciders.games_together(50, 2) == 13
    assert games(8, 16) == games(8, 3) == games(5, 16)


def test_invalid_players() -> None:
    duo = tilewe_jax.make("duo")
    for game, text, message in [
        (SMALL, "nobody", "'nobody'"),
        (SMALL, "no_such_module:player", "'no_such_module'"),
        (SMALL, f"{__name__}:nothing", "nothing"),
        (SMALL, f"{__name__}:not_an_engine", "not_an_engine.*3"),
        (duo, f"{__name__}:First", "cannot play duo"),
    ]:
        with pytest.raises(ValueError, match=message):
            agents.agent(text, game)
    assert agents.agent("mine=largest_piece", SMALL).name == "mine"
    with pytest.raises(ValueError, match="2 here, got 1 agent"):
        arena.play_match(SMALL, [agents.agent("random", SMALL)], 1, 1, 0)


def test_ratings_recover_the_strengths_of_simulated_games() -> None:
    rng = np.random.default_rng(0)
    true, seat = np.array([250.0, 100, 0, -100, -250]), np.array([40.0, 10, -10, -40])
    inside = []
    for _ in range(40):
        seating = np.array([rng.permutation(5)[:4] for _ in range(400)])
        # Log strengths with Gumbel noise have the order of a Plackett-Luce draw.
        results = (true[seating] + seat) / ratings.ELO + rng.gumbel(size=seating.shape)
        rated = ratings.plackett_luce(seating, results, 5)
        inside += [abs(rated.players - true) < rated.player_ci95, abs(rated.seats - seat)[:4] < rated.seat_ci95]
    assert np.concatenate(inside).mean() == pytest.approx(0.95, abs=0.04)
    np.testing.assert_allclose(rated.players, true, atol=60)


def test_ratings_of_ties_and_of_a_player_that_always_wins() -> None:
    seating = np.array([[0, 1], [1, 0]] * 50)
    ties = ratings.plackett_luce(seating, np.zeros((100, 2)), 2)
    np.testing.assert_allclose(ties.players, 0, atol=1e-6)
    always = ratings.plackett_luce(seating, (seating == 0).astype(float), 2)
    assert np.isfinite(always.players).all()
    assert always.players[0] > 400
    with pytest.raises(ValueError, match="two players"):
        ratings.plackett_luce(seating[:, :1], np.zeros((100, 1)), 2)


def test_sequential_tests_decide() -> None:
    rng = np.random.default_rng(0)
    test = ratings.Sprt(0, 50)
    strong = rng.choice([1, 0.5, 0], 2000, p=[0.55, 0.1, 0.35])
    assert test.test(strong)["verdict"] == "H1"
    assert test.test(rng.choice([1, 0.5, 0], 2000, p=[0.45, 0.1, 0.45]))["verdict"] == "H0"
    assert test.test(strong[:3])["verdict"] == test.test(np.array([]))["verdict"] == "continue"


def test_arena_command(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tilewe-jax"])
    plot, out = tmp_path / "ratings.svg", tmp_path / "games.jsonl"
    agents = ["greedy", "random", "again=random"]
    common = ["match", *agents, "--game", "santorini", "--batch", "20", "--set", "size=3"]
    cli.main([*common, "--games", "400", "--sprt", "0", "100", "--json", "--plot", str(plot), "--out", str(out)])
    summary = json.loads(capsys.readouterr().out)
    assert summary["sprt"]["verdict"] == "H1"
    assert summary["games"] < 400
    assert summary["agents"][0]["agent"] == "greedy"
    assert plot.read_text().count("<circle") == 3
    game, games = records.read(out)
    assert records.replay(game, games) == [None] * summary["games"]
    cli.main(["match", "--list"])
    assert {"simple_search", "best", "level:1"} <= set(capsys.readouterr().out.split())
    for arguments, message in [
        ([*common, "--sprt", "1", "0"], "1.0 and 0.0"),
        ([*common, "--plot", str(tmp_path)], str(tmp_path)),
        (["match", "nobody"], "'nobody'"),
    ]:
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_paired_games_share_deal_and_opening() -> None:
    game = tilewe_jax.make("santorini", size=3, placement="random")
    players = [agents.agent(name, game) for name in ("random", "greedy")]
    results = arena.play_match(game, players, 12, 12, 0, keep=True, opening=3)
    records, seating = results.records, results.all("seating")
    for first, second in zip(range(0, 12, 2), range(1, 12, 2), strict=True):
        assert seating[first].tolist() == seating[second].tolist()[::-1]
        assert records[first].deal == records[second].deal
        assert records[first].actions[:3] == records[second].actions[:3]
    assert len({record.actions[:3] for record in records}) == 6
    summary = results.summary()
    assert [row["agent"] for row in summary["agents"]] == ["greedy", "random"]
    assert [row["games"] for row in summary["agents"]] == [12, 12]
    assert sum(row["win_rate"] for row in summary["agents"]) == pytest.approx(1, abs=1e-3)
    low, high = summary["agents"][0]["win_rate_ci95"]
    assert low < summary["agents"][0]["win_rate"] <= high


def test_matches_reuse_trees_like_agents() -> None:
    """Moves in a match equal the moves of ``Agent.play`` and ``Agent.advance``."""
    game, seed = TicTacToe(), 3
    text = "gumbel:num_simulations=24,num_candidates=9,num_playouts=0,gumbel_scale=1"
    players = agents.agent(text, game), agents.agent("random", game)
    assert players[0].keeps_tree
    records = arena.play_match(game, players, 4, 4, seed, keep=True).records
    tree_player = players[0]
    play, advance, step = jax.jit(tree_player.play), jax.jit(tree_player.advance), jax.jit(game.step)
    reused = 0
    for number, record in enumerate(records):
        key = jax.random.fold_in(jax.random.key(seed), number)
        state = game.init(key)
        memory = tree_player.init(state)
        for ply, action in enumerate(record.actions):
            if record.players[int(game.current_player(state))] == text:
                reused += int(memory.visits[0]) > 0
                chosen, memory = play(memory, state, jax.random.split(jax.random.fold_in(key, ply))[0])
                assert int(chosen) == action
            memory = advance(memory, jnp.int32(action))
            state = step(state, jnp.int32(action))
        assert bool(game.is_terminal(state))
    assert reused > 4
    assert not players[0].without_tree().keeps_tree


def preference(logits: jax.Array, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A network with the same logits in all positions."""
    return logits, jnp.full(2, 0.5)


def test_networks_share_a_program_on_several_devices() -> None:
    game = TicTacToe()
    players = []
    for name, logits in (("first", -jnp.arange(9.0)), ("last", jnp.arange(9.0))):
        spec = agents.AgentSpec.parse(f"puct:num_simulations=1,num_candidates=9,num_playouts=0,network={name}")
        network = jax.tree_util.Partial(preference, logits)
        players.append(agents.agent(spec, game, name=name, network=network))
    match = arena.Match(game, players, 4, 0, devices=2)
    assert len({decider.program_key for decider in match._deciders}) == 1
    for record in match.play(4, keep=True).records:
        free = set(range(9))
        for ply, action in enumerate(record.actions):
            assert action == (min if record.players[ply % 2] == "first" else max)(free)
            free.remove(action)
