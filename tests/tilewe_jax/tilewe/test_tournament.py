"""Engines, Elo and tournaments of the drop-in."""

import contextlib
import math
import multiprocessing
import random
import time
from functools import partial

import pytest

from tilewe_jax import records
from tilewe_jax.tilewe import Board, Move, elo
from tilewe_jax.tilewe import engine as engines
from tilewe_jax.tilewe.tournament import Tournament, TournamentResults
from tilewe_jax.utils.schedule import balanced_schedule

RANDOM = [engines.RandomEngine(f"Random {i}") for i in range(4)]
quiet = partial(dict, verbose_games=False, verbose_rankings=False)


class Illegal(engines.Engine):
    def on_search(self, board: Board, seconds: float) -> Move:
        return Move.from_str("O1n-a1j10")


class Failing(engines.Engine):
    def on_search(self, board: Board, seconds: float) -> Move:
        raise ZeroDivisionError("oops")


class Slow(engines.Engine):
    def on_search(self, board: Board, seconds: float) -> Move:
        while True:
            pass


class Nothing(engines.Engine):
    def on_search(self, board: Board, seconds: float) -> Move:
        return None


@pytest.mark.parametrize(
    ("engine", "name", "own"),
    [
        (engines.RandomEngine(), "Random", -100),
        (engines.OpenCornersEngine(), "MostOpenCorners", 15),
        (engines.OpenCornersEngine(style="min"), "LeastOpenCorners", -250),
        (engines.LargestPieceEngine(), "LargestPiece", 30),
        (engines.PieceSizeEngine(style="min"), "SmallestPiece", -150),
        (engines.MaximizeMoveDifferenceEngine(), "MaxMoveDiff", 50),
        (engines.MoveDifferenceEngine(style="min"), "MinMoveDiff", -200),
        (engines.TileWeightEngine(), "WallCrawler", -10),
        (engines.TileWeightEngine("T", "turtle", estimated_elo=7), "T", 7),
        (engines.TileWeightEngine(weight_map="turtle"), "Turtle", -40),
        (engines.TileWeightEngine(custom_weights=range(400)), "CustomTileWeights", 0),
        (engines.SimpleSearchEngine(), "SimpleSearch", 75),
        (engines.SimpleSearchEngine(eval_board=lambda board, player: 0), "SimpleSearch", 0),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_engines_play_legal_moves(engine: engines.Engine, name: str, own: float) -> None:
    assert (engine.name, engine.estimated_elo) == (name, own)
    random.seed(1)
    board = Board()
    for _ in range(6):
        board.push(engine.search(board.copy(), 60))
    assert board.ply == 6


def test_invalid_options_of_engines_are_rejected() -> None:
    with pytest.raises(ValueError, match="style"):
        engines.OpenCornersEngine(style="most")
    with pytest.raises(ValueError, match="style"):
        engines.TileWeightEngine(style="middle")
    with pytest.raises(ValueError, match="400"):
        engines.TileWeightEngine(custom_weights=[1, 2])
    with pytest.raises(NotImplementedError):
        engines.Engine("none").search(Board())


def test_move_executors_take_back_their_move() -> None:
    board = Board()
    with contextlib.suppress(KeyError), engines.MoveExecutor(board, board.gen_moves()[0]):
        assert board.ply == 1
        raise KeyError
    assert board.ply == 0


def test_searches_stop_when_their_time_is_over() -> None:
    evaluated = []
    slow = engines.SimpleSearchEngine(eval_board=lambda board, player: evaluated.append(player) or time.sleep(0.001) or 0)
    assert Board().is_legal(slow.search(Board(), 0.05))
    assert len(evaluated) < 232


def test_elo_formulas() -> None:
    assert elo.elo_win_probability(2000, 1500) == pytest.approx(0.9468, abs=1e-4)
    assert elo.elo_win_probability(-1e9, 1e9) == pytest.approx(0)
    assert elo.compute_elo_adjustment_2(1500, 1600, 1) == pytest.approx(20.4821, abs=1e-4)
    assert elo.compute_elo_adjustment_n([0, 0, 0, 0], [9, 9, 1, 1], 30) == pytest.approx([10, 10, -10, -10])
    assert elo.compute_elo_adjustment_n([100], [9]) == [0]
    for x in (-0.999, -0.3, 0.0, 0.5, 0.99999):
        assert math.erf(elo.erfinv(x)) == pytest.approx(x, abs=1e-12)
    assert math.isnan(elo.erfinv(1))
    assert elo.c_k(2) == pytest.approx(7 / 6)
    assert elo.compute_inverse_error(0.975) == pytest.approx(1.959964, abs=1e-6)


def test_margins_have_the_nominal_coverage() -> None:
    """Intervals of 95 % of many samples of 40 games contain the known expectation."""
    rng = random.Random(0)
    inside = 0
    for _ in range(2000):
        results = rng.choices((1, 0.5, 0), (0.2, 0.2, 0.6), k=40)
        wins, draws, losses = (results.count(result) for result in (1, 0.5, 0))
        mean = (wins + draws / 2 + 0.5) / 41
        estimate = 400 * math.log10(mean / (1 - mean))
        inside += abs(estimate - 400 * math.log10(0.3 / 0.7)) < elo.compute_elo_error_margin(wins, draws, losses)
    assert inside / 2000 == pytest.approx(0.95, abs=0.02)
    assert elo.compute_elo_error_margin(0, 0, 0) == math.inf
    assert math.isfinite(elo.compute_elo_error_margin(0, 0, 5))
    for name, value in (("confidence", 1), ("C", 0)):
        with pytest.raises(ValueError, match=name):
            elo.compute_elo_error_margin(1, 1, 1, **{name: value})


def test_estimates_recover_the_strengths() -> None:
    rng = random.Random(0)
    true = [300, 100, 0, -100, -300]
    tables, results = [], []
    for _ in range(3000):
        table = rng.sample(range(5), 4)
        winner = rng.choices(table, [10 ** (true[player] / 400) for player in table])[0]
        tables.append(table)
        results.append([float(player == winner) for player in table])
    assert elo.compute_estimated_elo(5, tables, results) == pytest.approx(true, abs=35)
    assert sum(elo.compute_estimated_elo(3, [[0, 1]], [[1, 0]], mean=50)) == pytest.approx(150)


@pytest.mark.parametrize(("count", "seats", "games"), [(6, 4, 60), (10, 4, 100), (5, 2, 40), (3, 1, 9)])
def test_schedules_are_balanced(count: int, seats: int, games: int) -> None:
    schedule = balanced_schedule(count, seats, games, random.Random(0))
    assert len(schedule) == games
    assert all(len(set(table)) == seats for table in schedule)
    for seat in range(seats):
        taken = [sum(table[seat] == engine for table in schedule) for engine in range(count)]
        assert max(taken) - min(taken) <= 1
    meetings = [sum(a in table and b in table for table in schedule) for a in range(count) for b in range(a)]
    assert max(meetings) - min(meetings) <= 2 * seats
    with pytest.raises(ValueError, match=str(count + 1)):
        balanced_schedule(count, count + 1, 1, random.Random(0))


def play(*args, **kwargs) -> TournamentResults:
    return Tournament(RANDOM).play(*args, **{**quiet(), **kwargs})


def test_seeds_reproduce_tournaments_on_any_number_of_threads(capsys) -> None:
    state = random.getstate()
    single, double, reseeded = play(3, seed=3), play(3, seed=3, n_threads=2), play(3, seed=4)
    assert random.getstate() == state
    games = [[match.board.moves for match in results.match_data] for results in (single, double, reseeded)]
    assert games[0] == games[1] != games[2]
    assert single.elo_end == double.elo_end
    random.seed(5)
    drawn = play(1)
    random.seed(5)
    assert play(1).seed == drawn.seed
    assert capsys.readouterr().out == ""


def test_results_add_up(tmp_path) -> None:
    results = play(4, seed=0, elo_mode="live", players_per_game=3)
    assert results.total_games == 4
    assert sum(results.game_counts) == 12
    outcomes = zip(results.win_counts, results.draw_counts, results.lose_counts, strict=True)
    assert list(map(sum, outcomes)) == results.game_counts
    assert sum(results.total_scores) == sum(sum(match.board.scores) for match in results.match_data)
    assert sum(results.elo_end) == pytest.approx(0)
    for match in results.match_data:
        assert match.board.finished
        assert match.winners == match.board.winners
        assert sum(match.plies) == match.board.ply
    assert all(branching > 50 for branching in results.branching_factors)
    assert all(seconds > 0 for seconds in results.seconds_per_move)
    assert results.get_matches_by_engine(0) == [match for match in results.match_data if 0 in match.engines]
    results.write_records(tmp_path / "games.jsonl")
    game, games = records.read(tmp_path / "games.jsonl")
    assert game.num_players == 3
    assert set(games[0].players) <= {engine.name for engine in RANDOM}
    assert records.replay(game, games) == [None] * 4


def test_tournaments_print_games_and_rankings(capsys) -> None:
    results = Tournament(RANDOM).play(12, seed=0)
    text = capsys.readouterr().out
    assert "Game  1: " in text
    assert text.count("Rank Name") == 2
    lines = results.get_engine_rankings_display("win_counts", "asc").split("\n")
    assert "win_counts asc" in lines[0]
    assert lines[1].split()[:4] == ["Rank", "Name", "Elo", "Score"]
    assert len(lines) == 2 + 4 + 1
    for name in ("nothing", "total_games", "engine_names"):
        assert results.get_engine_rankings_display(name).startswith(f"Invalid sort field '{name}'")
    assert results.get_engine_rankings_display(sort_dir="up").startswith("Invalid sort direction 'up'")


@pytest.mark.parametrize("threads", [1, 2])
def test_failing_engines_forfeit_and_the_game_continues(threads: int) -> None:
    bad = [Illegal("Illegal"), Failing("Failing"), Slow("Slow"), Nothing("Nothing")]
    results = Tournament([*bad, engines.RandomEngine()]).play(
        5, n_threads=threads, move_seconds=0.05, grace=0.1, seed=0, **quiet()
    )
    for match in results.match_data:
        assert match.board.finished
        reasons = {results.engine_names[match.engines[seat]]: reason for seat, reason in match.forfeits.items()}
        assert set(reasons) == {results.engine_names[engine] for engine in match.engines} - {"Random"}
        expected = {"Illegal": "O1n-a1j10", "Failing": "oops", "Slow": "0.15 s", "Nothing": "AttributeError"}
        assert all(expected[name] in reason for name, reason in reasons.items())
        assert [results.engine_names[match.engines[seat]] for seat in match.winners] in ([], ["Random"])
    assert results.forfeit_counts == [*results.game_counts[:4], 0]
    assert not multiprocessing.active_children()


def test_engines_with_closures_are_pickled() -> None:
    local = engines.SimpleSearchEngine("Local", eval_board=lambda board, player: board.scores[player])
    results = [
        Tournament([local, *RANDOM[:1]]).play(2, n_threads=threads, players_per_game=2, seed=0, **quiet()) for threads in (1, 2)
    ]
    assert results[0].total_scores == results[1].total_scores
    assert results[1].forfeit_counts == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_games": 0}, "game"),
        ({"n_games": 1, "n_threads": 0}, "thread"),
        ({"n_games": 1, "players_per_game": 5}, "1 to 4"),
        ({"n_games": 1, "elo_mode": "best"}, "Elo"),
        ({"n_games": 1, "move_seconds": 0}, "seconds"),
    ],
)
def test_invalid_tournaments_are_rejected(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tournament(RANDOM).play(**arguments)
    with pytest.raises(ValueError, match="engines"):
        Tournament([])
    with pytest.raises(ValueError, match="engines"):
        Tournament(RANDOM[:2]).play(1)
