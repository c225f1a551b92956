"""Ratings from games of any number of players (Plackett-Luce), and sequential tests of two players.

A game ranks its players by their results. The model draws the first one with probabilities proportional to the players'
strengths times the strengths of their seats, the second one from the remaining players, and so on (Luce 1959, Plackett 1975).
Tied players are drawn from the same set (Breslow). Ratings use the Elo scale: 400 points are odds of ten to one.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

ELO = 400 / math.log(10)
_LARGEST_ELO = 10_000
_PRIOR = 0.01
"""Precision of a weak normal prior on the log strengths, which keeps the ratings of players with only wins or losses finite."""


@dataclass(frozen=True)
class Ratings:
    """Elo ratings with mean zero, and 95 % confidence intervals."""

    players: np.ndarray
    """Rating of each player."""
    player_ci95: np.ndarray
    """Half the width of each player's 95 % interval."""
    seats: np.ndarray
    """Rating of each seat."""
    seat_ci95: np.ndarray
    """Half the width of each seat's 95 % interval."""


def plackett_luce(seating: np.ndarray, results: np.ndarray, players: int) -> Ratings:
    """Rate players and seats.

    Args:
        seating: ``int[games, seats]``, the index of the player in each seat.
        results: ``float[games, seats]``, higher is better.
        players: number of players.

    The intervals use the sandwich estimator (Huber 1967) with games as observations, so they hold even if the model fits badly.
    Raises ``ValueError`` without games, or for games of one player.
    """
    games, seats = seating.shape
    if not games or seats < 2:
        raise ValueError("ratings need games of at least two players")
    # The log strength of each seat in a game is the sum of a player's and a seat's log strengths.
    design = np.zeros((games, seats, players + seats))
    np.put_along_axis(design[..., :players], seating[..., None], 1, axis=2)
    design[..., players:] = np.eye(seats)
    remaining = results[:, None, :] <= results[:, :, None]  # [game, drawn, remaining to draw from]
    theta = np.zeros(players + seats)
    for _ in range(100):
        strength = np.exp(design @ theta)
        chance = remaining * strength[:, None]
        chance /= chance.sum(axis=2, keepdims=True)
        drawn = 1 - chance.sum(axis=1)
        by_game = np.einsum("gs,gsp->gp", drawn, design)
        covariances = np.einsum("gs,st->gst", chance.sum(axis=1), np.eye(seats)) - np.einsum("gis,git->gst", chance, chance)
        information = np.einsum("gsp,gst,gtq->pq", design, covariances, design, optimize=True) + _PRIOR * np.eye(len(theta))
        step = np.linalg.solve(information, by_game.sum(axis=0) - _PRIOR * theta)
        theta += step
        if np.abs(step).max() < 1e-9:
            break
    inverse = np.linalg.inv(information)
    covariance = inverse @ (by_game.T @ by_game + _PRIOR * np.eye(len(theta))) @ inverse

    def scale(part: slice) -> tuple[np.ndarray, np.ndarray]:
        count = len(theta[part])
        center = np.eye(count) - 1 / count
        variance = np.diag(center @ covariance[part, part] @ center)
        return ELO * center @ theta[part], ELO * NormalDist().inv_cdf(0.975) * np.sqrt(np.maximum(variance, 0))

    return Ratings(*scale(slice(players)), *scale(slice(players, players + seats)))


def ahead_of(results: np.ndarray) -> np.ndarray:
    """Return whether each seat beat each other seat, 0.5 for a tie, ``[games, seats, seats]``."""
    mine, theirs = results[:, :, None], results[:, None, :]
    ahead: np.ndarray = (mine > theirs) + 0.5 * (mine == theirs)
    return ahead


def pairwise(seating: np.ndarray, results: np.ndarray, players: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of wins and of meetings of each pair of players, both ``[players, players]``; ties count 0.5.

    Each pair of seats in a game is one meeting.
    """
    ahead = ahead_of(results)
    wins, meetings = np.zeros((players, players)), np.zeros((players, players), int)
    first = np.broadcast_to(seating[:, :, None], ahead.shape)
    second = np.broadcast_to(seating[:, None, :], ahead.shape)
    np.add.at(wins, (first, second), ahead)
    np.add.at(meetings, (first, second), 1)
    np.fill_diagonal(wins, 0)
    np.fill_diagonal(meetings, 0)
    return wins, meetings


@dataclass(frozen=True)
class Sprt:
    """Sequential probability ratio test (Wald 1945) of the Elo difference of two players, ``elo0`` against ``elo1``.

    The likelihood ratio uses normal distributions with the empirical variance, which allows ties.
    """

    elo0: float
    """Elo difference of the hypothesis H0."""
    elo1: float
    """Elo difference of the hypothesis H1, larger than ``elo0``."""
    alpha: float = 0.05
    """Probability of accepting H1 if H0 is true."""
    beta: float = 0.05
    """Probability of accepting H0 if H1 is true."""

    def __post_init__(self) -> None:
        # For larger differences, the expected results are numerically 0 and 1.
        if not all(abs(elo) <= _LARGEST_ELO for elo in (self.elo0, self.elo1)):
            raise ValueError(f"the Elos of a sequential test must be within ±{_LARGEST_ELO}, got {self.elo0} and {self.elo1}")
        if not self.elo0 < self.elo1:
            raise ValueError(f"the first Elo of a sequential test must be the lower one, not {self.elo0} and {self.elo1}")

    def test(self, results: np.ndarray) -> dict[str, Any]:
        """Return the log likelihood ratio, and "H0", "H1" or "continue", for the results of games in [0, 1].

        Half a win and half a loss are added, so that the variance is never zero.
        """
        lower, upper = math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)
        games = len(results) + 1
        mean = (float(results.sum()) + 0.5) / games
        variance = (float(np.square(results).sum()) + 0.5) / games - mean**2
        low, high = (1 / (1 + math.exp(-elo / ELO)) for elo in (self.elo0, self.elo1))
        ratio = games * (high - low) * (2 * mean - low - high) / (2 * variance)
        verdict = "H1" if ratio >= upper else "H0" if ratio <= lower else "continue"
        return {"llr": round(ratio, 3), "bounds": [round(lower, 3), round(upper, 3)], "verdict": verdict}
