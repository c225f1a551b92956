"""Ratings from games of any number of players, in any seats: a Plackett-Luce model with ties, and tests of two players.

In a game the players are ranked by their results. The model takes it that the first is drawn with chances in proportion to
the players' strengths (times that of the seat), the second likewise from those left, and so on (Luce 1959, Plackett 1975);
players with equal results are drawn from the same ones (Breslow's treatment of ties). Ratings are on the scale of Elo: 400
points are odds of ten to one.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

ELO = 400 / math.log(10)
_PRIOR = 0.01
"""Precision of a normal prior on the log strengths; next to nothing, but it keeps a player finite who won or lost all."""


@dataclass(frozen=True)
class Ratings:
    """Ratings, and half the widths of their two-sided 95 % intervals, in Elo; their mean is zero."""

    players: np.ndarray
    player_margins: np.ndarray
    seats: np.ndarray
    seat_margins: np.ndarray


def plackett_luce(tables: np.ndarray, results: np.ndarray, players: int) -> Ratings:
    """Rate players and seats.

    Args:
        tables: ``int[games, seats]``, who sat where.
        results: ``float[games, seats]``, the higher the better.
        players: number of players.

    The intervals hold even where the model does not describe the games well, as they rest on how the games differ (the
    sandwich of Huber 1967), and take the places in one game as one observation. Raises ``ValueError`` without games, or for
    games of one player.
    """
    games, seats = tables.shape
    if not games or seats < 2:
        raise ValueError("ratings need games of at least two players")
    # What each seat of each game is made of: a player and a seat.
    design = np.zeros((games, seats, players + seats))
    np.put_along_axis(design[..., :players], tables[..., None], 1, axis=2)
    design[..., players:] = np.eye(seats)
    left = results[:, None, :] <= results[:, :, None]  # [game, drawn, left to draw from]
    theta = np.zeros(players + seats)
    for _ in range(100):
        strength = np.exp(design @ theta)
        chance = left * strength[:, None]
        chance /= chance.sum(axis=2, keepdims=True)
        drawn = 1 - chance.sum(axis=1)
        by_game = np.einsum("gs,gsp->gp", drawn, design)
        spread = np.einsum("gs,st->gst", chance.sum(axis=1), np.eye(seats)) - np.einsum("gis,git->gst", chance, chance)
        information = np.einsum("gsp,gst,gtq->pq", design, spread, design, optimize=True) + _PRIOR * np.eye(len(theta))
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
    """For each game whether each seat was ahead of each other, half where they tied; ``[games, seats, seats]``."""
    one, other = results[:, :, None], results[:, None, :]
    ahead: np.ndarray = (one > other) + 0.5 * (one == other)
    return ahead


def pairwise(tables: np.ndarray, results: np.ndarray, players: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each player was ahead of each other, ties half, and how often they met; both ``[players, players]``.

    A player that sits in several seats meets another as often.
    """
    ahead = ahead_of(results)
    wins, meetings = np.zeros((players, players)), np.zeros((players, players), int)
    one = np.broadcast_to(tables[:, :, None], ahead.shape)
    other = np.broadcast_to(tables[:, None, :], ahead.shape)
    np.add.at(wins, (one, other), ahead)
    np.add.at(meetings, (one, other), 1)
    np.fill_diagonal(wins, 0)
    np.fill_diagonal(meetings, 0)
    return wins, meetings


@dataclass(frozen=True)
class Sprt:
    """A sequential test whether one player is ``elo0`` or ``elo1`` stronger than another (Wald 1945).

    The likelihood ratio is that of normal distributions with the variance of the results, as is usual for results with ties.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    """Chance of taking the first for the second; ``beta`` that of the other error."""
    beta: float = 0.05

    def __post_init__(self) -> None:
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
