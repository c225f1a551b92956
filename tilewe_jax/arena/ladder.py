"""Ladders: an agent against the levels of an opponent, from balanced openings, with intervals and CPU times.

Each opening is played once from every seat; these games are one observation, because they all depend on the opening.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from tilewe_jax.agents import Agent
from tilewe_jax.agents import agent as make_agent
from tilewe_jax.arena.match import Match, Opening, batch_of, play_match
from tilewe_jax.arena.ratings import ELO
from tilewe_jax.arena.results import Results, mean_and_ci95, mean_interval
from tilewe_jax.arena.shards import WHOLE, Shard
from tilewe_jax.game import Game

_PENTOBI_20X20 = (1000, 1142, 1283, 1425, 1567, 1708, 1850, 1951, 2030)
PENTOBI_ELO = {
    "duo_official": (1000, 1189, 1378, 1567, 1755, 1945, 2134, 2185, 2209),
    "classic": _PENTOBI_20X20,
    "classic_2": _PENTOBI_20X20,
}
"""Ratings of the levels of Pentobi by game, from its source code."""
_TIME_TOLERANCE = 0.1
_CALIBRATIONS = 5


@dataclass(frozen=True)
class Settings:
    """Settings of the matches of a ladder."""

    games: int
    """Maximum number of games of a match."""
    own_seats: int = 1
    """Number of seats of the agent; the opponent takes the others."""
    opening: Opening = 0
    """Opening of the games, see ``Match``."""
    precision: float | None = None
    """Stop a match once half the width of the win rate's 95 % interval is at most this."""
    repeats: int = 1
    """Number of repetitions of every match, with different seeds."""
    batch: int = 32
    seed: int = 0
    move_seconds: float = 600.0
    shard: Shard = WHOLE
    """Play only this part of the games of every match."""


@dataclass
class Rung:
    """The match of an agent against one level of the opponent."""

    agent: str
    """Text of the agent, including its number of simulations."""
    level: int | None
    is_equal_time: bool
    """True if the number of simulations was chosen to match the opponent's CPU time."""
    repeats: list[Results] = field(default_factory=list)
    """Results with different seeds; the agent is player 0, the opponent player 1."""

    def observations(self, per_game: Callable[[Results], np.ndarray]) -> np.ndarray:
        """Return the means of a number per game over the games of each opening, in all repetitions."""
        return np.concatenate([results.by_start(per_game(results)) for results in self.repeats if results.games])

    def summary(self) -> dict[str, Any]:
        """Return the standing as JSON; 95 % intervals take openings as observations."""
        first = self.repeats[0]
        seats = first.game.num_players
        counts = np.sum([_counts(results) for results in self.repeats], axis=0)
        own_seats = int((first.all("seating")[0] == 0).sum())
        result: dict[str, Any] = {
            "agent": self.agent,
            "level": self.level,
            "equal_time": self.is_equal_time,
            "games": sum(results.games for results in self.repeats),
            **dict(zip(("wins", "draws", "losses"), counts.tolist(), strict=True)),
            **mean_and_ci95("win_rate", self.observations(Results.shares), bounds=(0.0, 1.0)),
            "equal_players": round(own_seats / seats, 4),
            **mean_and_ci95("score_margin", self.observations(Results.score_margins), digits=2),
            "win_rate_by_seat": [_seat_rate(self.repeats, seat) for seat in range(seats)],
            "cpu_seconds_per_move": self.cpu_seconds_per_move(0),
            "opponent_cpu_seconds_per_move": self.cpu_seconds_per_move(1),
            "forfeits": [self._forfeits(0), self._forfeits(1)],
            "seconds": round(sum(results.seconds for results in self.repeats), 1),
            "cpu_seconds": round(sum(sum(results.player_cpu_seconds.values()) for results in self.repeats), 1),
        }
        if len(self.repeats) > 1:
            rates = [round(float(results.shares().mean()), 4) for results in self.repeats if results.games]
            result["win_rates_of_repeats"] = rates
        if first.faults:
            result["faults"] = first.faults
        return result

    @property
    def is_interrupted(self) -> bool:
        """True if the match was interrupted by Ctrl-C."""
        return any(results.interrupted for results in self.repeats)

    def _forfeits(self, index: int) -> int:
        return sum(int(results.all("forfeits")[results.all("seating") == index].sum()) for results in self.repeats)

    def cpu_seconds_per_move(self, index: int) -> float | None:
        """Return the mean CPU time of a decision of the agent (0) or its opponent (1), in seconds."""
        each = [results.cpu_seconds_per_move(results.names[index]) for results in self.repeats]
        known = [seconds for seconds in each if seconds is not None]
        return round(sum(known) / len(known), 6) if known else None


def checked_opponent(game: Game[Any], opponent: str, level: int | None) -> Agent:
    """Return the opponent, with its processes ended.

    Raises ``ValueError`` if the opponent does not have this level or does not play the game.
    """
    rival = _opponent(game, opponent, level)
    _close(rival)
    return rival


def _opponent(game: Game[Any], opponent: str, level: int | None) -> Agent:
    return make_agent(opponent.replace("{level}", str(level)), game, name="opponent")


def _close(rival: Agent) -> None:
    """Kill the processes of a player, if any."""
    getattr(rival.player, "close", lambda: None)()


def climb(
    game: Game[Any],
    agent: str,
    opponent: str,
    level: int | None,
    settings: Settings,
    progress: Callable[[Results], None] = lambda results: None,
    is_equal_time: bool = False,
) -> Rung:
    """Play an agent against one level of an opponent.

    Args:
        game: the game, with at least two players.
        agent: text of the agent.
        opponent: text of the opponent, in which ``{level}`` is replaced by the level.
        level: the level; ``None`` for an opponent without levels.
        settings: settings of the match.
        progress: called with the results so far.
        is_equal_time: copied to the result.

    Returns:
        The match; after Ctrl-C, its finished games.

    Raises ``ValueError`` if one of them does not play the game, ``MemoryError``, or ``KeyboardInterrupt`` without any game.
    """
    rival = _opponent(game, opponent, level)
    try:
        own = make_agent(agent, game, name="agent")
        seats = game.num_players
        players = [own] * settings.own_seats + [rival] * (seats - settings.own_seats)
        rung = Rung(agent, level, is_equal_time)
        # Complete openings, because an opening is one observation.
        games = -(-settings.games // seats) * seats
        played = len(settings.shard.games(games, seats))
        batch = batch_of(played, max(seats, settings.batch // seats * seats))

        def enough(results: Results) -> bool:
            _, low, high = mean_interval(results.by_start(results.shares()), bounds=(0.0, 1.0))
            return settings.precision is not None and (high - low) / 2 <= settings.precision

        match = Match(game, players, batch, settings.seed, settings.move_seconds, opening=settings.opening)
        for repeat in range(settings.repeats):
            match.seed = settings.seed + repeat
            results = match.play(games, progress, keep=True, enough=enough, shard=settings.shard)
            if results.games:
                rung.repeats.append(results)
            if results.interrupted:
                if not rung.repeats:
                    raise KeyboardInterrupt
                break
        return rung
    finally:
        _close(rival)


def elo_on_scale(rungs: Sequence[Rung], ratings: dict[int, float]) -> tuple[float, float] | None:
    """Return the rating of an agent on the scale of the levels' ratings, and half the width of its 95 % interval.

    The rating makes the expected number of wins against the levels equal to the actual number; the interval takes openings as
    observations. Returns ``None`` if no level has a rating.

    Args:
        rungs: the matches of one agent.
        ratings: ratings of the levels.
    """
    rated = [rung for rung in rungs if rung.level in ratings and rung.repeats]
    if not rated:
        return None
    # One win and one loss are added, so that the rating is finite.
    observations = [np.append(rung.observations(Results.against), [0.0, 1.0]) for rung in rated]
    counts, sums = np.array([len(each) for each in observations]), np.array([each.sum() for each in observations])
    anchors = np.array([ratings[rung.level] for rung in rated if rung.level is not None])
    low, high = anchors.min() - 4000, anchors.max() + 4000
    for _ in range(60):
        middle = (low + high) / 2
        expected = 1 / (1 + np.exp((anchors - middle) / ELO))
        low, high = (middle, high) if (counts * expected).sum() < sums.sum() else (low, middle)
    slope = (counts * expected * (1 - expected)).sum() / ELO
    variance = sum(len(each) * float(each.var()) for each in observations)
    return float(middle), NormalDist().inv_cdf(0.975) * math.sqrt(variance) / max(slope, 1e-9)


def at_seconds_per_move(game: Game[Any], agent: str, seconds: float, opening: Opening, batch: int, seed: int) -> str:
    """Return the agent with the number of simulations that takes a given CPU time per move, measured in self-play.

    Args:
        game: the game.
        agent: text of a search.
        seconds: CPU seconds per move on all cores.
        opening: opening of the games.
        batch: number of games in a batch, as in the match.
        seed: seed of the games.

    Raises ``ValueError`` for an agent that does not search.
    """
    searcher = make_agent(agent, game)
    spec = searcher.spec
    if spec is None or not searcher.is_search:
        raise ValueError(f"agent {agent!r} is not a search; only searches can be limited to a CPU time per move")
    measured: dict[int, float] = {}
    simulations = spec.search.num_simulations
    for _ in range(_CALIBRATIONS):
        search = replace(spec, search=replace(spec.search, num_simulations=simulations))
        players = [make_agent(search, game, name="agent")] * game.num_players
        results = play_match(game, players, batch, batch, seed, opening=opening)
        measured[simulations] = results.cpu_seconds_per_move("agent") or 0.0
        if abs(measured[simulations] / seconds - 1) <= _TIME_TOLERANCE or (simulations == 1 and measured[1] > seconds):
            break
        estimate = _simulations_for(measured, seconds)
        if estimate in measured:
            break
        simulations = estimate
    best = min(measured, key=lambda count: abs(math.log(measured[count] / seconds)))
    text = str(replace(spec, search=replace(spec.search, num_simulations=best)))
    return text if searcher.name == agent else f"{searcher.name}={text}"


def _simulations_for(measured: dict[int, float], seconds: float) -> int:
    """Estimate the number of simulations that takes a time, on the line through the two nearest measurements."""
    nearest = sorted(measured, key=lambda count: abs(math.log(measured[count] / seconds)))[:2]
    first = nearest[0]
    slope, offset = measured[first] / first, 0.0
    if len(nearest) == 2:
        between = (measured[first] - measured[nearest[1]]) / (first - nearest[1])
        if between > 0:
            slope, offset = between, measured[first] - between * first
    return max(1, min(round((seconds - offset) / slope), 8 * first))


def _counts(results: Results) -> np.ndarray:
    """Return the numbers of wins, draws and losses of the agent."""
    shares = results.shares()
    wins, losses = int((shares > 1 - 1e-6).sum()), int((shares < 1e-6).sum())
    return np.array([wins, len(shares) - wins - losses, losses])


def _seat_rate(repeats: Sequence[Results], seat: int) -> float | None:
    """Return the win rate of the agent in the games in which it had a seat; ``None`` without games."""
    rates = [results.shares()[results.all("seating")[:, seat] == 0] for results in repeats]
    joined = np.concatenate(rates)
    return round(float(joined.mean()), 4) if joined.size else None
