"""Results of matches: the games that were played, and their standings, as JSON."""

from collections.abc import Collection
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from tilewe_jax.arena.ratings import Ratings, ahead_of, pairwise, plackett_luce
from tilewe_jax.game import Game
from tilewe_jax.records import Record


@dataclass(frozen=True)
class Batch:
    """Games that were played together; arrays are ``[games, seats]``."""

    seating: np.ndarray
    """Index of the player in each seat."""
    scores: np.ndarray
    """Final scores."""
    forfeits: np.ndarray
    """Whether the player in the seat forfeited."""
    plies: np.ndarray
    """Number of actions by each seat."""
    legal: np.ndarray
    """Sum over these actions of the number of legal ones."""
    records: list[Record]
    """One record per game, where they are kept."""


@dataclass
class Results:
    """The games played so far, and what they took."""

    game: Game[Any]
    names: list[str]
    """Names of the players."""
    batches: list[Batch] = field(default_factory=list)
    """Finished batches; a batch is here whole or not at all, whenever the match is interrupted."""
    seconds: float = 0.0
    """Wall time spent playing, without compilation."""
    cpu_seconds: float = 0.0
    """CPU time spent playing."""
    compile_seconds: float = 0.0
    """Wall time spent compiling."""
    host_seconds: dict[str, float] = field(default_factory=dict)
    """Wall time that each player on the host took."""
    player_cpu_seconds: dict[str, float] = field(default_factory=dict)
    """CPU time that players took to decide: those on the host with the processes that they use, and one that is alone on the
    device."""
    decisions: dict[str, int] = field(default_factory=dict)
    """Number of actions that players decided on; those of openings, and random ones after a forfeit, are not among them."""
    sprt: dict[str, Any] | None = None
    """Result of the sequential test, where one was asked for."""
    faults: dict[str, str] = field(default_factory=dict)
    """Why each player forfeited, the last time."""
    ply: int = 0
    """Number of moves in the games of the batch under way."""
    clock: float = 0.0
    """Wall time until the last of all ``decisions``, those of the batch under way included."""
    interrupted: bool = False
    """Whether the match was interrupted before all games were played."""

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(len(batch.seating) for batch in self.batches)

    @property
    def records(self) -> list[Record]:
        """Records of all games."""
        return [record for batch in self.batches for record in batch.records]

    def all(self, name: str) -> np.ndarray:
        """An array of ``Batch``, of all games."""
        return np.concatenate([getattr(batch, name) for batch in self.batches])

    def count_decisions(self, mover: np.ndarray, on_device: Collection[int], cpu_seconds: float) -> None:
        """Count who decides in a step.

        Args:
            mover: index of the player that decides in each game, -1 for none.
            on_device: indices of the players on the device.
            cpu_seconds: CPU time that these took, all together.
        """
        counts = np.bincount(mover[mover >= 0], minlength=len(self.names)).tolist()
        for name, count in zip(self.names, counts, strict=True):
            self.decisions[name] = self.decisions.get(name, 0) + count
        if len(on_device) == 1:
            name = self.names[next(iter(on_device))]
            self.player_cpu_seconds[name] = self.player_cpu_seconds.get(name, 0.0) + cpu_seconds

    def cpu_seconds_per_move(self, name: str) -> float | None:
        """CPU time of a decision of a player; ``None`` where it is not known apart from that of others."""
        if name not in self.player_cpu_seconds or not self.decisions.get(name):
            return None
        return self.player_cpu_seconds[name] / self.decisions[name]

    def ranked_by(self) -> np.ndarray:
        """What players are ranked by, ``[games, seats]``: scores, and less than any score for those that forfeited."""
        scores = self.all("scores")
        return np.where(self.all("forfeits"), scores.min() - 1, scores).astype(float)

    def winners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether each seat came first, ``[games, seats]``; whether one did alone, ``[games, 1]``; each seat's outcome."""
        ranked_by = self.ranked_by()
        best: np.ndarray = ranked_by == ranked_by.max(axis=1, keepdims=True)
        count = best.sum(axis=1, keepdims=True)
        return best, count == 1, best / count

    def outcomes(self, player: int) -> np.ndarray:
        """Outcomes of a player, one per game in which it sat, the mean of its seats: a game is one observation."""
        mine = self.all("seating") == player
        sat = mine.any(axis=1)
        outcomes: np.ndarray = (self.winners()[2] * mine).sum(axis=1)[sat] / mine.sum(axis=1)[sat]
        return outcomes

    def shares(self, player: int = 0) -> np.ndarray:
        """What the seats of a player won of each game together: 1 for a win, a part of it where the best are equal."""
        shares: np.ndarray = (self.winners()[2] * (self.all("seating") == player)).sum(axis=1)
        return shares

    def score_margins(self, player: int = 0) -> np.ndarray:
        """The mean score of the seats of a player less that of the other seats, in each game; the player sits in all."""
        mine, scores = self.all("seating") == player, self.all("scores").astype(float)
        own, others = (scores * mine).sum(axis=1) / mine.sum(axis=1), (scores * ~mine).sum(axis=1) / (~mine).sum(axis=1)
        margins: np.ndarray = own - others
        return margins

    def by_start(self, per_game: np.ndarray) -> np.ndarray:
        """Means of a number per game over the games that begin alike, as many as there are seats: one observation each."""
        seats = self.game.num_players
        means: np.ndarray = per_game[: len(per_game) // seats * seats].reshape(-1, seats).mean(axis=1)
        return means

    def against(self, first: int = 0, second: int = 1) -> np.ndarray:
        """For every game of two players how often the first came before the second, ties half; between 0 and 1."""
        seating = self.all("seating")
        both = (seating == first)[:, :, None] & (seating == second)[:, None, :]
        met = both.sum(axis=(1, 2))
        ahead: np.ndarray = (ahead_of(self.ranked_by()) * both).sum(axis=(1, 2))[met > 0] / met[met > 0]
        return ahead

    def ratings(self) -> Ratings | None:
        """Ratings of players and seats; ``None`` where there is nothing to compare."""
        if self.game.num_players < 2:
            return None
        return plackett_luce(self.all("seating"), self.ranked_by(), len(self.names))

    def summary(self) -> dict[str, Any]:
        """Standings as JSON, the strongest agent first.

        Intervals (``ci95``) come from normal distributions with the variance of the games' results; in that of win rates half a
        win and half a loss are added, without which results that are all alike would have no variance.
        """
        base = {
            "game": self.game.id,
            "options": self.game.options,
            "games": self.games,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 1),
            "interrupted": self.interrupted,
        }
        if not self.games:
            return {**base, "agents": [], "seats": [], "pairs": {}}
        rated = self.ratings()
        rows = [self._agent(index, rated) for index in range(len(self.names))]
        rows.sort(key=lambda row: -(row["elo"] if rated else row["mean_score"] or 0.0))
        _, alone, outcome = self.winners()
        scores = self.all("scores")
        seats = [
            {
                "seat": seat + 1,
                "elo": round(float(rated.seats[seat]), 1) if rated else None,
                "elo_ci95": round(float(rated.seat_ci95[seat]), 1) if rated else None,
                "win_rate": _mean(outcome[:, seat]),
                "mean_score": _mean(scores[:, seat]),
            }
            for seat in range(self.game.num_players)
        ]
        tied = round(float(1 - alone.mean()), 4)
        summary = {**base, "tied": tied, "agents": rows, "seats": seats, "pairs": self._pairs()}
        return summary if self.sprt is None else {**summary, "sprt": self.sprt}

    def _agent(self, index: int, rated: Ratings | None) -> dict[str, Any]:
        """The row of a player."""
        name, mine = self.names[index], self.all("seating") == index
        best, alone, _ = self.winners()
        scores, plies, legal, forfeits = map(self.all, ("scores", "plies", "legal", "forfeits"))
        outcomes = self.outcomes(index)
        _, low, high = mean_interval(outcomes, bounds=(0.0, 1.0))
        row: dict[str, Any] = {
            "agent": name,
            "elo": round(float(rated.players[index]), 1) if rated else None,
            "elo_ci95": round(float(rated.player_ci95[index]), 1) if rated else None,
            "games": len(outcomes),
            "wins": int((best & alone & mine).sum()),
            "ties": int((best & ~alone & mine).any(axis=1).sum()),
            "win_rate": _mean(outcomes),
            "win_rate_ci95": [round(low, 4), round(high, 4)],
            "mean_score": _mean(scores[mine]),
            "plies": _mean(plies[mine]),
            "legal_actions": round(float(legal[mine].sum() / max(1, plies[mine].sum())), 1),
            "forfeits": int(forfeits[mine].sum()),
        }
        if name in self.host_seconds:
            row["seconds_per_move"] = self.host_seconds[name] / max(1, self.decisions.get(name, 0))
        if (cpu_seconds := self.cpu_seconds_per_move(name)) is not None:
            row["cpu_seconds_per_move"] = cpu_seconds
        if name in self.faults:
            row["last_fault"] = self.faults[name]
        return row

    def _pairs(self) -> dict[str, dict[str, float]]:
        """For each player the fraction of the games of both in which it came before each other one."""
        wins, meetings = pairwise(self.all("seating"), self.ranked_by(), len(self.names))
        return {
            name: {
                opponent: round(float(wins[i, j] / meetings[i, j]), 4)
                for j, opponent in enumerate(self.names)
                if i != j and meetings[i, j]
            }
            for i, name in enumerate(self.names)
        }


def mean_interval(values: np.ndarray, bounds: tuple[float, float] | None = None) -> tuple[float, float, float]:
    """The mean of observations and the ends of its 95 % interval.

    Where there are ``bounds``, as of win rates, the interval stays within them, and one observation at each is added to the
    variance, without which observations that are all alike would have none.
    """
    observed = values if bounds is None else np.append(values, bounds)
    mean = float(values.mean()) if values.size else 0.0
    error = NormalDist().inv_cdf(0.975) * float(observed.std()) / max(1, len(observed)) ** 0.5
    low, high = bounds or (-np.inf, np.inf)
    return mean, max(low, mean - error), min(high, mean + error)


def mean_and_ci95(name: str, values: np.ndarray, bounds: tuple[float, float] | None = None, digits: int = 4) -> dict[str, Any]:
    """The mean of observations and its 95 % interval as JSON, as ``name`` and ``name_ci95``; see ``mean_interval``."""
    mean, low, high = (round(value, digits) for value in mean_interval(values, bounds))
    return {name: mean, f"{name}_ci95": [low, high]}


def _mean(values: np.ndarray) -> float | None:
    return round(float(values.mean()), 4) if values.size else None
