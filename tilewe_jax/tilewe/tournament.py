"""Tournaments of engines in parallel processes, with results, rankings and records.

A seed makes a tournament reproducible on any number of threads, if engines use Python's global ``random`` (or NumPy's) and not
the clock: both are seeded before every game, and every game starts with fresh copies of the engines.
"""

import contextlib
import multiprocessing
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import cloudpickle

from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.constants import COLOR_COUNT
from tilewe_jax.tilewe.elo import EloEstimate, compute_elo_adjustment_n, compute_elo_error_margin
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.move import Move
from tilewe_jax.utils.schedule import balanced_schedule

ELO_MODES = ("estimated", "live", "live_initial")


@dataclass
class MatchData:
    """One game of a tournament. Lists are by seat."""

    board: Board
    """The final board, with all moves."""
    engines: list[int]
    """The engine in each seat."""
    run_time: float = 0.0
    """Duration of the game in seconds."""
    elo_start: list[float] = field(default_factory=list)
    elo_delta: list[float] = field(default_factory=list)
    elo_end: list[float] = field(default_factory=list)
    winners: list[int] = field(default_factory=list)
    """The seats that won or tied for the win; seats that forfeited never win."""
    forfeits: dict[int, str] = field(default_factory=dict)
    """Seats that forfeited, with the reason; their further moves are random."""
    seconds: list[float] = field(default_factory=list)
    """Time that the engines used."""
    branching: list[int] = field(default_factory=list)
    """Sum of the numbers of legal moves in the positions that the engines searched."""
    plies: list[int] = field(default_factory=list)
    """Moves that the engines made."""

    @property
    def player_to_engine(self) -> list[int]:
        """Alias of ``engines``."""
        return self.engines


@dataclass
class TournamentResults:
    """Results of a tournament. Lists are by engine, in the order of the tournament's engines."""

    match_data: list[MatchData]
    engine_names: list[str]
    game_counts: list[int]
    win_counts: list[int]
    draw_counts: list[int]
    """Games with the engine as one of several winners."""
    total_scores: list[int]
    elo_start: list[float]
    elo_end: list[float]
    real_time: float
    """Duration of the tournament in seconds."""
    total_time: float
    """Sum of the durations of all games in seconds."""
    seed: int = 0
    """The seed that reproduces the tournament."""

    @property
    def total_games(self) -> int:
        """Number of games."""
        return len(self.match_data)

    @property
    def total_engines(self) -> int:
        """Number of engines."""
        return len(self.engine_names)

    @property
    def win_rates(self) -> list[float]:
        """Fraction of the games won alone."""
        return self._per_game(self.win_counts)

    @property
    def draw_rates(self) -> list[float]:
        """Fraction of the games with a shared win."""
        return self._per_game(self.draw_counts)

    @property
    def win_draw_rates(self) -> list[float]:
        """Fraction of the games won alone or shared."""
        return self._per_game([wins + draws for wins, draws in zip(self.win_counts, self.draw_counts, strict=True)])

    @property
    def lose_counts(self) -> list[int]:
        """Games lost."""
        counts = zip(self.game_counts, self.win_counts, self.draw_counts, strict=True)
        return [games - wins - draws for games, wins, draws in counts]

    @property
    def lose_rates(self) -> list[float]:
        """Fraction of the games lost."""
        return self._per_game(self.lose_counts)

    @property
    def avg_scores(self) -> list[float]:
        """Mean score."""
        return self._per_game(self.total_scores)

    @property
    def elo_delta(self) -> list[float]:
        """Elo gained."""
        return [end - start for start, end in zip(self.elo_start, self.elo_end, strict=True)]

    @property
    def elo_error_margin(self) -> list[float]:
        """Half the width of the two-sided 95 % confidence interval of each Elo."""
        return [self.get_elo_error_margin(engine) for engine in range(self.total_engines)]

    @property
    def average_match_duration(self) -> float:
        """Mean duration of a game in seconds."""
        return self.total_time / max(1, self.total_games)

    @property
    def forfeit_counts(self) -> list[int]:
        """Games forfeited by an illegal move, an exception, or a timeout."""
        return self._sum(lambda match, seat: seat in match.forfeits)

    @property
    def seconds_per_move(self) -> list[float]:
        """Mean time of a move in seconds."""
        return self._per_ply(self._sum(lambda match, seat: match.seconds[seat]))

    @property
    def branching_factors(self) -> list[float]:
        """Mean number of legal moves."""
        return self._per_ply(self._sum(lambda match, seat: match.branching[seat]))

    def get_matches_by_engine(self, engine: int) -> list[MatchData]:
        """Return the games of an engine."""
        return [match for match in self.match_data if engine in match.engines]

    def get_elo_error_margin(self, engine: int, confidence: float = 0.95, C: float = 400) -> float:
        """Return half the width of the confidence interval of an Elo; confidence is clipped to [0.001, 0.999], C to 1."""
        counts = self.win_counts[engine], self.draw_counts[engine], self.lose_counts[engine]
        return compute_elo_error_margin(*counts, max(0.001, min(0.999, confidence)), max(1, C))

    def get_engine_rankings_display(self, sort_by: str = "elo_end", sort_dir: str = "desc") -> str:
        """Return a table of the engines, sorted by one of the properties; for invalid arguments, return an error message."""
        if not hasattr(self, sort_by):
            return f"Invalid sort field '{sort_by}', must specify a valid TournamentResults property"
        values = getattr(self, sort_by)
        if not isinstance(values, list) or not values:
            return f"Invalid sort field '{sort_by}', must specify a list of length >0"
        if not isinstance(values[0], int | float):
            return f"Invalid sort field '{sort_by}', must specify a numeric list"
        if sort_dir not in {"asc", "desc"}:
            return f"Invalid sort direction '{sort_dir}', try 'asc' or 'desc'"
        order = sorted(range(self.total_engines), key=lambda engine: values[engine] * (-1 if sort_dir == "desc" else 1))
        return f"Ranking by {sort_by} {sort_dir}:\n" + self._table(order)

    def write_records(self, path: str | Path) -> None:
        """Write the games to a file for ``tilewe-jax replay`` and ``show``. Raises ``OSError``; needs JAX."""
        from tilewe_jax import records  # noqa: PLC0415 - the rest of the module does not need JAX
        from tilewe_jax.registry import make  # noqa: PLC0415
        from tilewe_jax.tilewe.convert import record_of_board  # noqa: PLC0415

        if not self.match_data:
            raise ValueError("the tournament has no games")
        game = make("tilewe", players=self.match_data[0].board.n_players)
        names = self.engine_names
        games = [record_of_board(match.board, [names[engine] for engine in match.engines]) for match in self.match_data]
        records.write(path, game, games, self.seed)

    def _table(self, order: Sequence[int]) -> str:
        def width(numbers: Sequence[float], least: int) -> int:
            return max(least, *(len(f"{abs(number):.0f}") + 1 for number in numbers))

        name = max(5, min(24, max(map(len, self.engine_names)) + 1))
        score, games, elo = width(self.total_scores, 6), width(self.game_counts, 7), width(self.elo_end, 4)
        rows = [
            f"{'Rank':4} {'Name':{name}} {'Elo':^{elo + 9}} {'Score':>{score}} {'Avg Score':>10} {'Games':>{games}}"
            f" {'Wins':>{games}} {'Draws':>{games}} {'Losses':>{games}} {'Win Rate':>9}"
        ]
        for rank, engine in enumerate(order):
            played = self.game_counts[engine]
            rows.append(
                f"{rank:>4d} {self.engine_names[engine]:{name}.{name}}"
                f" {self.elo_end[engine]:>{elo}.0f} +/- {self.get_elo_error_margin(engine):<4.0f}"
                f" {self.total_scores[engine]:>{score}d} "
                + (f"{self.avg_scores[engine]:>10.2f}" if played else f"{'-':>10}")
                + f" {played:>{games}d} {self.win_counts[engine]:>{games}d} {self.draw_counts[engine]:>{games}d}"
                f" {self.lose_counts[engine]:>{games}d} "
                + (f"{self.win_rates[engine] * 100:>8.2f}%" if played else f"{'-':>9}")
            )
        return "\n".join(rows) + "\n"

    def _per_game(self, totals: Sequence[float]) -> list[float]:
        return [total / max(1, games) for total, games in zip(totals, self.game_counts, strict=True)]

    def _per_ply(self, totals: Sequence[float]) -> list[float]:
        plies = self._sum(lambda match, seat: match.plies[seat])
        return [total / max(1, count) for total, count in zip(totals, plies, strict=True)]

    def _sum(self, figure: Callable[[MatchData, int], Any]) -> list[Any]:
        """Sum a figure of a seat over the games of each engine."""
        sums: list[Any] = [0] * self.total_engines
        for match in self.match_data:
            for seat, engine in enumerate(match.engines):
                sums[engine] += figure(match, seat)
        return sums


class Tournament:
    """A tournament of engines. Raises ``ValueError`` without engines, or for a time that is not positive."""

    def __init__(self, engines: Sequence[Engine], move_seconds: float = 60) -> None:
        if not engines:
            raise ValueError("Number of engines must be greater than 0")
        self.engines = list(engines)
        self._seconds = move_seconds
        self._set_move_seconds(move_seconds)

    def play(
        self,
        n_games: int,
        n_threads: int = 1,
        players_per_game: int = 4,
        move_seconds: float | None = None,
        verbose_board: bool = False,
        verbose_rankings: bool = True,
        elo_mode: str = "estimated",
        *,
        seed: int | None = None,
        grace: float = 1.0,
        verbose_games: bool = True,
    ) -> TournamentResults:
        """Play games and print their results. Ctrl-C ends the tournament and returns the results so far.

        Engines meet equally often, and each takes every seat equally often. An engine that returns an illegal move, raises an
        exception, or exceeds the time for a move by more than ``grace`` seconds forfeits the game, loses it, and is replaced by
        random moves.

        Args:
          n_games: number of games.
          n_threads: number of processes; 1 plays in this process.
          players_per_game: 1 to 4, at most the number of engines.
          move_seconds: time for a move; by default as given to the tournament.
          verbose_board: whether to print the board after every game.
          verbose_rankings: whether to print rankings every few games and at the end.
          elo_mode: "estimated" from all games; "live", updated after each game from 0; "live_initial", from ``estimated_elo``.
          seed: makes the tournament reproducible; by default drawn from Python's global ``random``.
          grace: tolerance in seconds.
          verbose_games: whether to print a line for every game.

        Raises ``ValueError`` for invalid arguments.
        """
        if n_games <= 0:
            raise ValueError("Must play at least one game")
        if n_threads <= 0:
            raise ValueError("Must use at least one thread")
        if not 1 <= players_per_game <= COLOR_COUNT:
            raise ValueError("Must have 1 to 4 players per game")
        if players_per_game > len(self.engines):
            raise ValueError(f"Must have at least as many engines as players per game, {players_per_game}")
        if elo_mode not in ELO_MODES:
            raise ValueError("Elo mode must be 'estimated', 'live', or 'live_initial'")
        self._set_move_seconds(self._seconds if move_seconds is None else move_seconds)
        seed = random.getrandbits(63) if seed is None else seed

        start = [(engine.estimated_elo or 0.0) if elo_mode == "live_initial" else 0.0 for engine in self.engines]
        zeros = [0] * len(self.engines)
        names = [engine.name for engine in self.engines]
        results = TournamentResults(
            [], names, zeros.copy(), zeros.copy(), zeros.copy(), zeros.copy(), start, start.copy(), 0.0, 0.0, seed
        )
        tables = balanced_schedule(len(self.engines), players_per_game, n_games, random.Random(f"{seed}/schedule"))
        tasks = [_Task(table, self.move_seconds, grace, f"{seed}/{number}") for number, table in enumerate(tables)]
        estimate = EloEstimate(len(self.engines)) if elo_mode == "estimated" else None
        start_time = time.perf_counter()
        try:
            for match in _played(cloudpickle.dumps(self.engines), tasks, n_threads):
                self._add(results, match, estimate)
                if verbose_games:
                    self._print_game(results, match, n_games)
                if verbose_board:
                    print(match.board, end="\n\n")
                if verbose_rankings and results.total_games % max(10, n_threads) == 0 and results.total_games != n_games:
                    order = sorted(range(len(names)), key=lambda engine: -results.elo_end[engine])
                    print("\n" + results._table(order))
        except KeyboardInterrupt:
            print("Interrupted; these are the results so far")
        except BrokenProcessPool:
            print("A process of an engine died; these are the results so far", file=sys.stderr)
        results.real_time = time.perf_counter() - start_time
        if verbose_rankings:
            print("\n" + results.get_engine_rankings_display())
        return results

    def _set_move_seconds(self, seconds: float) -> None:
        if seconds <= 0:
            raise ValueError("Must allow greater than 0 seconds per move")
        self.move_seconds = seconds

    def _add(self, results: TournamentResults, match: MatchData, estimate: EloEstimate | None) -> None:
        """Add a game to the results."""
        results.match_data.append(match)
        results.total_time += match.run_time
        for seat, engine in enumerate(match.engines):
            results.game_counts[engine] += 1
            results.total_scores[engine] += match.board.scores[seat]
            if seat in match.winners:
                counts = results.win_counts if len(match.winners) == 1 else results.draw_counts
                counts[engine] += 1
        elos = results.elo_end
        match.elo_start = [elos[engine] for engine in match.engines]
        outcome = [float(seat in match.winners) for seat in range(len(match.engines))]
        if estimate:
            estimate.add(match.engines, outcome)
            elos[:] = estimate.ratings()
        else:
            for engine, delta in zip(match.engines, compute_elo_adjustment_n(match.elo_start, outcome, K=8), strict=True):
                elos[engine] += delta
        match.elo_end = [elos[engine] for engine in match.engines]
        match.elo_delta = [end - start for start, end in zip(match.elo_start, match.elo_end, strict=True)]

    def _print_game(self, results: TournamentResults, match: MatchData, n_games: int) -> None:
        names = [results.engine_names[engine] for engine in match.engines]
        padded = " ".join(f"{name:14.14}" for name in names)
        winners = ", ".join(names[seat] for seat in match.winners)
        number = f"{results.total_games:>{len(str(n_games))}}"
        print(f"Game {number}: {padded:{len(names) * 15}}  Scores: {match.board.scores}  Winner(s): {winners}")
        for seat, why in match.forfeits.items():
            print(f"  {names[seat]} forfeits: {why}")


@dataclass(frozen=True)
class _Task:
    """A game to play."""

    table: tuple[int, ...]
    seconds: float
    grace: float
    seed: str


class _TimeIsUp(BaseException):
    """Interrupts the search of an engine, which cannot catch it with ``except Exception``."""


def _played(engines: bytes, tasks: Sequence[_Task], threads: int) -> Iterator[MatchData]:
    """Play games and yield them in order."""
    if threads == 1:
        with _random_state_kept():
            yield from (_play(engines, task) for task in tasks)
        return
    # A fork of a process in which JAX has started threads may hang.
    forks = "fork" in multiprocessing.get_all_start_methods() and "jax" not in sys.modules
    context = multiprocessing.get_context("fork" if forks else "spawn")
    pool = ProcessPoolExecutor(threads, context, _start_worker, (engines,))
    try:
        yield from pool.map(_play_in_worker, tasks)
    finally:
        processes = list(pool._processes.values()) if pool._processes else []
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
            while process.is_alive():  # `join` can return early while the pool's thread waits for the process, too.
                process.join(0.01)


_engines = b""


def _start_worker(engines: bytes) -> None:
    global _engines  # noqa: PLW0603 - the state of a worker process
    _engines = engines
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _play_in_worker(task: _Task) -> MatchData:
    return _play(_engines, task)


def _play(pickled: bytes, task: _Task) -> MatchData:
    """Play one game."""
    engines: list[Engine] = cloudpickle.loads(pickled)
    random.seed(task.seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(random.Random(task.seed).getrandbits(32))
    stand_in = random.Random(task.seed + "/forfeit")
    seats = len(task.table)
    board = Board(seats)
    match = MatchData(board, list(task.table), seconds=[0.0] * seats, branching=[0] * seats, plies=[0] * seats)
    start_time = time.perf_counter()
    while not board.finished:
        seat = board.current_player
        if seat not in match.forfeits:
            match.branching[seat] += board.n_legal_moves()
            search_start = time.perf_counter()
            try:
                move = search(engines[task.table[seat]], board, task.seconds, task.grace)
                board.push(move)
                match.plies[seat] += 1
            except ForfeitError as forfeit:
                match.forfeits[seat] = str(forfeit)
            finally:
                match.seconds[seat] += time.perf_counter() - search_start
        if seat in match.forfeits:
            board.push(stand_in.choice(board.generate_legal_moves()))
    match.run_time = time.perf_counter() - start_time
    ranked = [-1 if seat in match.forfeits else score for seat, score in enumerate(board.scores)]
    match.winners = [seat for seat, score in enumerate(ranked) if score == max(ranked) and seat not in match.forfeits]
    return match


class ForfeitError(Exception):
    """Raised if an engine forfeits the game; the message is the reason."""


def search(engine: Engine, board: Board, seconds: float, grace: float = 1.0) -> Move:
    """Return the engine's move on a copy of the board. Raises ``ForfeitError`` if it is illegal, late, or an exception."""
    start_time = time.perf_counter()
    limit = seconds + grace
    try:
        with _time_limit(limit):
            move = engine.search(board.copy(), seconds)
        legal = board.is_legal(move)
    except _TimeIsUp:
        raise ForfeitError(f"no move within {limit:g} s") from None
    except Exception as error:
        raise ForfeitError(f"{type(error).__name__}: {error}") from error
    if time.perf_counter() - start_time > limit:
        raise ForfeitError(f"no move within {limit:g} s")
    if not legal:
        raise ForfeitError(f"{move} is illegal")
    return move


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise ``_TimeIsUp`` in the block after ``seconds``; never on platforms or threads without signals."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_: int, __: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """Restore the state of Python's and NumPy's global random numbers at the end."""
    numpy = sys.modules.get("numpy")
    states = random.getstate(), numpy and numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        if numpy:
            numpy.random.set_state(states[1])
