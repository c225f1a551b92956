"""Random games in batches, with statistics and records."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from tilewe_jax import batching
from tilewe_jax.game import Game
from tilewe_jax.records import Record
from tilewe_jax.search import memory


@dataclass
class RandomGames:
    """The finished batches of random games."""

    game: Game[Any]
    """The game that was played."""
    rollouts: list[batching.Rollout[Any]] = field(default_factory=list)
    """Finished batches as NumPy arrays; an interrupted batch is dropped."""
    records: list[Record] = field(default_factory=list)
    """One record per game; empty unless records are kept."""
    seconds: float = 0.0
    """Wall time spent playing, without compilation."""
    interrupted: bool = False
    """Play was interrupted before all games were played."""

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(len(rollout.lengths) for rollout in self.rollouts)

    @property
    def moves(self) -> int:
        """Number of actions."""
        return sum(int(rollout.lengths.sum()) for rollout in self.rollouts)

    @property
    def example(self) -> Any:
        """Final state of one game; ``None`` before the first batch."""
        return jax.tree.map(lambda leaf: leaf[-1], self.rollouts[-1].state) if self.rollouts else None

    def summary(self) -> dict[str, Any]:
        """Return means and standard errors by seat, as JSON."""
        players = self.game.num_players
        scores = np.concatenate([np.zeros((0, players)), *(rollout.scores for rollout in self.rollouts)])
        returns = np.concatenate([np.zeros((0, players)), *(rollout.returns for rollout in self.rollouts)])

        def mean_and_error(values: np.ndarray) -> tuple[list[float], list[float]]:
            if not self.games:
                return [0.0] * players, [0.0] * players
            error = values.std(axis=0, ddof=min(1, self.games - 1)) / self.games**0.5
            return values.mean(axis=0).round(4).tolist(), error.round(4).tolist()

        mean_score, score_error = mean_and_error(scores)
        win_rate, win_rate_error = mean_and_error(returns)
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
            "win_rate": win_rate,
            "win_rate_error": win_rate_error,
            "ties": int(np.sum(np.sum(returns > 0, axis=1) > 1)) if players > 1 else 0,
            "interrupted": self.interrupted,
        }


def play_games(
    game: Game[Any],
    games: int,
    batch: int,
    seed: int,
    devices: int,
    keep: bool,
    progress: Callable[[RandomGames], None] = lambda result: None,
) -> RandomGames:
    """Play random games. After Ctrl-C the result has the finished batches.

    Args:
        game: the game.
        games: number of games.
        batch: number of games in parallel.
        seed: seed; the games depend on ``batch`` and ``devices`` too.
        devices: number of devices that share a batch.
        keep: whether to keep a record of every game.
        progress: called with the games so far, after compilation and after each batch.

    Raises ``MemoryError`` if a batch does not fit into memory.
    """
    per_device = -(-min(batch, games) // devices)

    def play(key: jax.Array) -> tuple[Any, Any]:
        if not keep:
            return batching.rollout(game, key, per_device), None
        trajectory = batching.trajectories(game, key, per_device)
        return trajectory.rollout, (trajectory.initial, trajectory.actions)

    def keys(index: int) -> jax.Array:
        return jax.random.split(jax.random.fold_in(jax.random.key(seed), index), devices)

    memory.check_batch(game, devices * per_device, keep, devices)
    result = RandomGames(game)
    try:
        compiled = jax.jit(batching.over_devices(play, devices)).lower(keys(0)).compile()
        memory.check_compiled(devices * per_device, compiled, devices=devices)
        progress(result)
        started = time.perf_counter()
        remaining = games
        while remaining:
            played = jax.device_get(compiled(keys(len(result.rollouts))))
            rollout, recorded = jax.tree.map(lambda leaf, count=remaining: leaf.reshape(-1, *leaf.shape[2:])[:count], played)
            records = _records(game, rollout, *recorded) if keep else []
            last = jax.tree.map(lambda leaf: leaf[-1:].copy(), rollout.state)  # frees the other states
            result.records += records
            result.rollouts.append(replace(rollout, state=last))
            result.seconds = time.perf_counter() - started
            remaining -= len(rollout.lengths)
            progress(result)
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _records(game: Game[Any], rollout: batching.Rollout[Any], first: Any, actions: np.ndarray) -> list[Record]:
    return [
        Record(
            game.deal(jax.tree.map(lambda leaf, i=i: leaf[i], first)),
            tuple(row[row >= 0].tolist()),
            tuple(rollout.scores[i].tolist()),
            tuple(rollout.returns[i].tolist()),
        )
        for i, row in enumerate(actions)
    ]
