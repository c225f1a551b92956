"""Ratings from games of any number of players, in any seats: a Plackett-Luce model with ties, and tests of two players.

In a game the players are ranked by their results. In the model the first is drawn with probabilities in proportion to the
players' strengths (times that of the seat), the second likewise from the remaining ones, and so on (Luce 1959, Plackett 1975);
players with equal results are drawn from the same set (Breslow's treatment of ties). Ratings are on the scale of Elo: 400
points are odds of ten to one.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

ELO = 400 / math.log(10)
_LARGEST_ELO = 10_000
_PRIOR = 0.01
"""Precision of a normal prior on the log strengths; next to nothing, but it keeps ratings finite of players that won or lost
every game."""


@dataclass(frozen=True)
class Ratings:
    """Ratings in Elo, of mean zero, with 95 % confidence intervals."""

    players: np.ndarray
    """Rating of each player."""
    player_ci95: np.ndarray
    """Half the width of the two-sided 95 % interval of each player's rating."""
    seats: np.ndarray
    """Rating of each seat."""
    seat_ci95: np.ndarray
    """Half the width of the two-sided 95 % interval of each seat's rating."""


def plackett_luce(seating: np.ndarray, results: np.ndarray, players: int) -> Ratings:
    """Rate players and seats.

    Args:
        seating: ``int[games, seats]``, the index of the player in each seat.
        results: ``float[games, seats]``, the higher the better.
        players: number of players.

    The intervals hold even where the model does not describe the games well, as they rest on how the games differ (the
    sandwich of Huber 1967), and take the places in one game as one observation. Raises ``ValueError`` without games, or for
    games of one player.
    """
    games, seats = seating.shape
    if not games or seats < 2:
        raise ValueError("ratings need games of at least two players")
    # The strength of each place of each game is made of a player's and a seat's.
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
    """Whether each seat was ahead of each other one, half where they tied; ``[games, seats, seats]``."""
    mine, theirs = results[:, :, None], results[:, None, :]
    ahead: np.ndarray = (mine > theirs) + 0.5 * (mine == theirs)
    return ahead


def pairwise(seating: np.ndarray, results: np.ndarray, players: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of times that each player was ahead of each other one, ties half, and that they met; both ``[players, players]``.

    A player that sits in several seats meets another as often.
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
    """Sequential probability ratio test whether one player is ``elo0`` or ``elo1`` stronger than another (Wald 1945).

    The likelihood ratio is that of normal distributions with the variance of the results, as is usual for results with ties.
    """

    elo0: float
    """Elo difference of the hypothesis H0."""
    elo1: float
    """Elo difference of the hypothesis H1; the larger one."""
    alpha: float = 0.05
    """Probability of deciding for H1 where H0 holds."""
    beta: float = 0.05
    """Probability of deciding for H0 where H1 holds."""

    def __post_init__(self) -> None:
        # Beyond some thousands the expected results are 0 and 1, which no number of games can tell apart.
        if not all(abs(elo) <= _LARGEST_ELO for elo in (self.elo0, self.elo1)):
            raise ValueError(f"the Elos of a sequential test lie between ±{_LARGEST_ELO}, not {self.elo0} and {self.elo1}")
        if not self.elo0 < self.elo1:
            raise ValueError(f"the first Elo of a sequential test must be the lower one, not {self.elo0} and {self.elo1}")

    def test(self, results: np.ndarray) -> dict[str, Any]:
        """The log likelihood ratio, and "H0", "H1" or "continue", by results of 0 to 1, one a game.

        Half a win and half a loss are added, without which results that are all alike would have no variance.
        """
        lower, upper = math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)
        games = len(results) + 1
        mean = (float(results.sum()) + 0.5) / games
        variance = (float(np.square(results).sum()) + 0.5) / games - mean**2
        low, high = (1 / (1 + math.exp(-elo / ELO)) for elo in (self.elo0, self.elo1))
        ratio = games * (high - low) * (2 * mean - low - high) / (2 * variance)
        verdict = "H1" if ratio >= upper else "H0" if ratio <= lower else "continue"
        return {"llr": round(ratio, 3), "bounds": [round(lower, 3), round(upper, 3)], "verdict": verdict}
