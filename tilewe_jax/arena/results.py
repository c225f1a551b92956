"""Results of matches: games, standings and statistics."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from tilewe_jax.arena.ratings import Ratings, ahead_of, pairwise, plackett_luce
from tilewe_jax.game import Game
from tilewe_jax.records import Record, from_json, to_json

_ARRAYS = {"seating": np.int64, "scores": np.int32, "forfeits": np.bool_, "plies": np.int32, "legal": np.int32}
"""Types of the arrays of a batch."""
_SUMS = ("seconds", "cpu_seconds", "compile_seconds")
_SUMS_BY_PLAYER = ("host_seconds", "player_cpu_seconds", "decisions")


@dataclass(frozen=True)
class Batch:
    """The games of a batch; arrays are ``[games, seats]``."""

    seating: np.ndarray
    """Index of the player in each seat."""
    scores: np.ndarray
    """Final scores."""
    forfeits: np.ndarray
    """True if the player in the seat forfeited."""
    plies: np.ndarray
    """Number of actions of each seat."""
    legal: np.ndarray
    """Sum of the number of legal actions over these actions."""
    records: list[Record]
    """Records of the games, if they are kept."""


@dataclass
class Results:
    """The games of a match so far, with timings."""

    game: Game[Any]
    names: list[str]
    """Names of the players."""
    batches: list[Batch] = field(default_factory=list)
    """Finished batches."""
    seconds: float = 0.0
    """Wall time of the games in seconds, without compilation."""
    cpu_seconds: float = 0.0
    """CPU time of the games in seconds."""
    compile_seconds: float = 0.0
    """Wall time of compilation in seconds."""
    host_seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each player on the host in seconds."""
    player_cpu_seconds: dict[str, float] = field(default_factory=dict)
    """CPU time of decisions in seconds, for players on the host, including their processes, and for a single player on the
    device."""
    decisions: dict[str, int] = field(default_factory=dict)
    """Number of decisions of each player, without openings and random actions after a forfeit."""
    sprt: dict[str, Any] | None = None
    """Result of the sequential test, if any."""
    faults: dict[str, str] = field(default_factory=dict)
    """Reason of the last forfeit of each player."""
    ply: int = 0
    """Number of plies of the current batch so far."""
    clock: float = 0.0
    """Wall time of all ``decisions`` in seconds, including the current batch."""
    interrupted: bool = False
    """True if the match was interrupted before its last game."""

    @property
    def games(self) -> int:
        """Number of finished games."""
        return sum(len(batch.seating) for batch in self.batches)

    @property
    def records(self) -> list[Record]:
        """Records of all games."""
        return [record for batch in self.batches for record in batch.records]

    def to_json(self) -> dict[str, Any]:
        """Return the games and timings of a finished match as JSON; ``sprt`` is not stored."""
        stored = {name: getattr(self, name) for name in ("names", *_SUMS, *_SUMS_BY_PLAYER, "faults")}
        arrays = {name: self.all(name).tolist() for name in _ARRAYS}
        return {**stored, **arrays, "records": [to_json(record) for record in self.records]}

    @classmethod
    def from_json(cls, game: Game[Any], value: dict[str, Any]) -> "Results":
        """Restore the results of a match of a game. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for invalid JSON."""
        arrays: dict[str, Any] = {name: np.array(value[name], kind) for name, kind in _ARRAYS.items()}
        deals: set[str] = set()
        records = [from_json(game, record, deals) for record in value["records"]]
        if any(array.shape != (len(records), game.num_players) for array in arrays.values()):
            raise ValueError(f"the arrays of {len(records)} games must have {game.num_players} columns")
        names = [str(name) for name in value["names"]]
        if not all(0 <= player < len(names) for player in arrays["seating"].ravel().tolist()):
            raise ValueError(f"the players must be 0 to {len(names) - 1}")
        result = cls(game, names, [Batch(**arrays, records=records)])
        for name in _SUMS:
            setattr(result, name, float(value[name]))
        for name in _SUMS_BY_PLAYER:
            setattr(result, name, {str(player): each + 0 for player, each in value[name].items()})
        result.faults = {str(player): str(fault) for player, fault in value["faults"].items()}
        return result

    @classmethod
    def joined(cls, parts: Sequence["Results"]) -> "Results":
        """Join the consecutive parts of a match. Timings are sums."""
        result = cls(parts[0].game, parts[0].names)
        for part in parts:
            result.batches += part.batches
            result.faults |= part.faults
            for name in _SUMS:
                setattr(result, name, getattr(result, name) + getattr(part, name))
            for name in _SUMS_BY_PLAYER:
                total = getattr(result, name)
                for player, each in getattr(part, name).items():
                    total[player] = total.get(player, 0) + each
        return result

    def all(self, name: str) -> np.ndarray:
        """Return an array of ``Batch`` for all games."""
        return np.concatenate([getattr(batch, name) for batch in self.batches])

    def count_decisions(self, mover: np.ndarray, on_device: Collection[int], cpu_seconds: float) -> None:
        """Count the decisions of a ply.

        Args:
            mover: index of the player that decides in each game, -1 for none.
            on_device: indices of the players on the device.
            cpu_seconds: CPU time of all players on the device.
        """
        counts = np.bincount(mover[mover >= 0], minlength=len(self.names)).tolist()
        for name, count in zip(self.names, counts, strict=True):
            self.decisions[name] = self.decisions.get(name, 0) + count
        if len(on_device) == 1:
            name = self.names[next(iter(on_device))]
            self.player_cpu_seconds[name] = self.player_cpu_seconds.get(name, 0.0) + cpu_seconds

    def cpu_seconds_per_move(self, name: str) -> float | None:
        """Return the mean CPU time of a decision of a player; ``None`` if it was not measured separately."""
        if name not in self.player_cpu_seconds or not self.decisions.get(name):
            return None
        return self.player_cpu_seconds[name] / self.decisions[name]

    def ranked_by(self) -> np.ndarray:
        """Return the ranking criterion, ``[games, seats]``: the score, or less than any score after a forfeit."""
        scores = self.all("scores")
        return np.where(self.all("forfeits"), scores.min() - 1, scores).astype(float)

    def winners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return whether each seat came first, ``[games, seats]``, whether without a tie, ``[games, 1]``, and the outcomes."""
        ranked_by = self.ranked_by()
        best: np.ndarray = ranked_by == ranked_by.max(axis=1, keepdims=True)
        count = best.sum(axis=1, keepdims=True)
        return best, count == 1, best / count

    def outcomes(self, player: int) -> np.ndarray:
        """Return the mean outcome of the seats of a player in each game that it played: a game is one observation."""
        mine = self.all("seating") == player
        sat = mine.any(axis=1)
        outcomes: np.ndarray = (self.winners()[2] * mine).sum(axis=1)[sat] / mine.sum(axis=1)[sat]
        return outcomes

    def shares(self, player: int = 0) -> np.ndarray:
        """Return the summed outcome of the seats of a player in each game: 1 for a win, split between tied seats."""
        shares: np.ndarray = (self.winners()[2] * (self.all("seating") == player)).sum(axis=1)
        return shares

    def score_margins(self, player: int = 0) -> np.ndarray:
        """Return the mean score of a player's seats minus the mean score of the other seats, for each game."""
        mine, scores = self.all("seating") == player, self.all("scores").astype(float)
        own, others = (scores * mine).sum(axis=1) / mine.sum(axis=1), (scores * ~mine).sum(axis=1) / (~mine).sum(axis=1)
        margins: np.ndarray = own - others
        return margins

    def by_start(self, per_game: np.ndarray) -> np.ndarray:
        """Return the means of a number per game over paired games, one per seat: each pair is one observation."""
        seats = self.game.num_players
        means: np.ndarray = per_game[: len(per_game) // seats * seats].reshape(-1, seats).mean(axis=1)
        return means

    def against(self, first: int = 0, second: int = 1) -> np.ndarray:
        """Return the fraction of seat pairs in which the first player beat the second one, for every game of both."""
        seating = self.all("seating")
        both = (seating == first)[:, :, None] & (seating == second)[:, None, :]
        met = both.sum(axis=(1, 2))
        ahead: np.ndarray = (ahead_of(self.ranked_by()) * both).sum(axis=(1, 2))[met > 0] / met[met > 0]
        return ahead

    def ratings(self) -> Ratings | None:
        """Return the ratings of players and seats; ``None`` for a game of one player."""
        if self.game.num_players < 2:
            return None
        return plackett_luce(self.all("seating"), self.ranked_by(), len(self.names))

    def summary(self) -> dict[str, Any]:
        """Return the standings as JSON, the strongest agent first; intervals (``ci95``) see ``mean_interval``."""
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
        """Return the row of a player."""
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
        """Return, for each player, its win rate against each other player."""
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
    """Return the mean of observations and the ends of its normal 95 % interval.

    With ``bounds``, as for win rates, the interval is clipped to them, and an observation at each bound is added to the
    variance, so that it is never zero.
    """
    observed = values if bounds is None else np.append(values, bounds)
    mean = float(values.mean()) if values.size else 0.0
    error = NormalDist().inv_cdf(0.975) * float(observed.std()) / max(1, len(observed)) ** 0.5
    low, high = bounds or (-np.inf, np.inf)
    return mean, max(low, mean - error), min(high, mean + error)


def mean_and_ci95(name: str, values: np.ndarray, bounds: tuple[float, float] | None = None, digits: int = 4) -> dict[str, Any]:
    """Return the mean of observations and its 95 % interval as JSON, ``name`` and ``name_ci95``; see ``mean_interval``."""
    mean, low, high = (round(value, digits) for value in mean_interval(values, bounds))
    return {name: mean, f"{name}_ci95": [low, high]}


def _mean(values: np.ndarray) -> float | None:
    return round(float(values.mean()), 4) if values.size else None
