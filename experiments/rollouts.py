"""A given number of random games, with statistics and records."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from tilewe_jax import env
from tilewe_jax.game import Game
from tilewe_jax.records import Record


@dataclass
class Tally:
    """The games played so far."""

    game: Game[Any]
    games: int = 0
    moves: int = 0
    seconds: float = 0.0
    """Time spent playing, without compilation."""
    scores: list[np.ndarray] = field(default_factory=list)
    """``[games, players]`` for each batch."""
    returns: list[np.ndarray] = field(default_factory=list)
    """``[games, players]`` for each batch."""
    records: list[Record] = field(default_factory=list)
    example: Any = None
    """Final state of one game."""
    interrupted: bool = False

    def summary(self) -> dict[str, Any]:
        """Figures of these games, as JSON: means and standard errors by seat."""
        players = self.game.num_players
        scores = np.concatenate([np.zeros((0, players)), *self.scores])
        returns = np.concatenate([np.zeros((0, players)), *self.returns])

        def mean_and_error(values: np.ndarray) -> tuple[list[float], list[float]]:
            if not self.games:
                return [0.0] * players, [0.0] * players
            error = values.std(axis=0, ddof=min(1, self.games - 1)) / self.games**0.5
            return values.mean(axis=0).round(4).tolist(), error.round(4).tolist()

        mean_score, score_error = mean_and_error(scores)
        win_share, win_share_error = mean_and_error(returns)
        return {
            "game": self.game.id,
            "options": self.game.options,
            "players": players,
            "games": self.games,
            "moves": self.moves,
            "seconds": round(self.seconds, 4),
            "moves_per_second": round(self.moves / self.seconds) if self.seconds else 0,
            "mean_score": mean_score,
            "score_error": score_error,
            "win_share": win_share,
            "win_share_error": win_share_error,
            "ties": int(np.sum(np.sum(returns > 0, axis=1) > 1)) if players > 1 else 0,
            "interrupted": self.interrupted,
        }


def play_games(
    game: Game[Any], games: int, batch: int, seed: int, devices: int, keep: bool, progress: Callable[[int], None]
) -> Tally:
    """Play ``games`` random games, ``batch`` at a time over ``devices``; Ctrl-C ends early with what was finished.

    ``keep`` keeps a record of every game; ``progress`` is told the number of games in each finished batch. The games
    follow from ``seed``, ``batch`` and ``devices``.
    """
    lanes = -(-min(batch, games) // devices)

    def play(key: jax.Array) -> tuple[Any, Any]:
        if not keep:
            return env.rollout(game, key, lanes), None
        trajectory = env.trajectories(game, key, lanes)
        return trajectory.rollout, (trajectory.first, trajectory.actions)

    def keys(index: int) -> jax.Array:
        return jax.random.split(jax.random.fold_in(jax.random.key(seed), index), devices)

    tally = Tally(game)
    try:
        compiled = jax.jit(env.over_devices(play, devices)).lower(keys(0)).compile()
        begun = time.perf_counter()
        while tally.games < games:
            finished = jax.device_get(compiled(keys(len(tally.scores))))
            _add(tally, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: games - tally.games], finished))
            tally.seconds = time.perf_counter() - begun
            progress(len(tally.scores[-1]))
    except KeyboardInterrupt:
        tally.interrupted = True
    return tally


def _add(tally: Tally, finished: tuple[Any, Any]) -> None:
    rollout, recorded = finished
    if recorded:
        first, actions = recorded
        for i, row in enumerate(actions):
            deal = tally.game.deal(jax.tree.map(lambda leaf, i=i: leaf[i], first))
            scores, returns = rollout.scores[i].tolist(), rollout.returns[i].tolist()
            tally.records.append(Record(deal, tuple(row[row >= 0].tolist()), tuple(scores), tuple(returns)))
    tally.games += len(rollout.lengths)
    tally.moves += int(rollout.lengths.sum())
    tally.scores.append(rollout.scores)
    tally.returns.append(rollout.returns)
    tally.example = jax.tree.map(lambda leaf: leaf[-1], rollout.state)
