"""Elo: expected results, updates after a game, margins of error, and ratings estimated from many games.

The README in this folder lists the corrections of version 0.0.3 of the package.
"""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist

_PRIOR = 0.5
_MAX_ROUNDS = 1000
_PRECISION = 0.001


def elo_win_probability(elo1: float, elo2: float, C: float = 400) -> float:
    """Return the expected result of a player against another, 0 to 1; ``C`` points mean odds of 10 to 1 (Elo 1978)."""
    difference = max(-300.0, min(300.0, (elo2 - elo1) / C))
    return 1.0 / (1.0 + math.pow(10.0, difference))


def compute_elo_adjustment_2(elo1: float, elo2: float, outcome: float, K: float = 32) -> float:
    """Return the gain of the first player by a game with this outcome: 1 for a win, 0.5 for a draw, 0 for a loss."""
    return K * (outcome - elo_win_probability(elo1, elo2))


def compute_elo_adjustment_n(elos: Sequence[float], scores: Sequence[float], K: float = 32) -> list[float]:
    """Return the gain of each player by a game of n: the mean gain of games against each of the others.

    Players with the highest score beat the others, and draw among themselves, as do the losers. A single player gains 0.
    """
    won = [score == max(scores) for score in scores]
    pairs = max(1, len(elos) - 1)
    return [
        sum(
            compute_elo_adjustment_2(elos[i], elos[j], 0.5 + 0.5 * (won[i] - won[j]), K / pairs)
            for j in range(len(elos))
            if j != i
        )
        for i in range(len(elos))
    ]


def c_k(k: int) -> float:
    """Return the k-th coefficient of the Maclaurin series of the inverse error function. Raises ``ValueError`` for k < 0."""
    if k < 0:
        raise ValueError(f"k must be at least 0, got {k}")
    coefficients = [1.0]
    for n in range(1, k + 1):
        coefficients.append(sum(coefficients[m] * coefficients[n - 1 - m] / ((m + 1) * (2 * m + 1)) for m in range(n)))
    return coefficients[k]


def erfinv(x: float) -> float:
    """Return the inverse error function, to machine precision; NaN outside of -1 < x < 1."""
    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2) if -1 < x < 1 else math.nan


def compute_inverse_error(e: float) -> float:
    """Return the quantile ``e`` of the standard normal distribution; NaN outside of 0 < e < 1."""
    return math.sqrt(2) * erfinv(2 * e - 1)


def compute_elo_error_margin(wins: int, draws: int, losses: int, confidence: float = 0.95, C: float = 400) -> float:
    """Return half the width of the two-sided confidence interval of an Elo estimated from these results.

    Computed on the logistic scale, with half a win and half a loss added (Jeffreys' prior), so that it is finite even if a
    player won or lost every game. Infinite without games. Raises ``ValueError`` for a confidence not between 0 and 1, or C
    below 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1 (exclusive), got {confidence}")
    if C < 1:
        raise ValueError(f"C must be greater than or equal to 1, got {C}")
    if wins + draws + losses == 0:
        return math.inf
    results = ((1.0, wins + _PRIOR), (0.5, float(draws)), (0.0, losses + _PRIOR))
    games = sum(count for _, count in results)
    mean = sum(result * count for result, count in results) / games
    deviation = math.sqrt(sum(count * (result - mean) ** 2 for result, count in results)) / games
    return compute_inverse_error((1 + confidence) / 2) * C / math.log(10) * deviation / (mean * (1 - mean))


class EloEstimate:
    """Maximum-likelihood Elo of ``n`` players with a given mean, updated after each game.

    A player wins a game with probability proportional to ``10^(elo / 400)`` (Bradley and Terry 1952, Luce 1959); a tie counts
    as fractions of a win. Half a win and half a loss against an average player are added to each player's results, so that all
    ratings are finite.
    """

    def __init__(self, n: int, mean: float = 0) -> None:
        self._mean = mean
        self._won = [0.0] * n
        self._strength = [1.0] * n
        self._tables: Counter[tuple[int, ...]] = Counter()

    def add(self, players: Sequence[int], results: Sequence[float]) -> None:
        """Add a game: results are 0 for a loss, positive for a win or a tie. Games without opponents or winner do not count."""
        total = sum(results)
        if total > 0 and len(players) > 1:
            self._tables[tuple(sorted(players))] += 1
            for player, result in zip(players, results, strict=True):
                self._won[player] += result / total

    def ratings(self) -> list[float]:
        """Return the ratings, by minorization-maximization (Hunter 2004), starting from the result of the last call."""
        for _ in range(_MAX_ROUNDS):
            # Half a win and half a loss against an average player.
            expected = [2 * _PRIOR / (own + 1) for own in self._strength]
            for players, games in self._tables.items():
                share = games / sum(self._strength[player] for player in players)
                for player in players:
                    expected[player] += share
            updated = [(wins + _PRIOR) / rate for wins, rate in zip(self._won, expected, strict=True)]
            moved = max(abs(math.log10(new / old)) for new, old in zip(updated, self._strength, strict=True))
            self._strength = updated
            if 400 * moved < _PRECISION:
                break
        elos = [400 * math.log10(own) for own in self._strength]
        return [elo + self._mean - sum(elos) / len(elos) for elo in elos]


def compute_estimated_elo(n: int, ppg: Sequence[Sequence[int]], rpg: Sequence[Sequence[float]], mean: float = 0) -> list[float]:
    """Estimate the Elo of ``n`` players with ``EloEstimate``, from the players of each game and their results."""
    estimate = EloEstimate(n, mean)
    for players, results in zip(ppg, rpg, strict=True):
        estimate.add(players, results)
    return estimate.ratings()
