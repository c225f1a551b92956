"""Positions of recorded games, such as games against other programs or between people, for training beside self-play."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from tilewe_jax import records
from tilewe_jax.game import Game
from tilewe_jax.records import Record
from tilewe_jax.replay import recorded
from tilewe_jax.training.replay import UNKNOWN, Positions

State = TypeVar("State")


def read(game: Game[State], path: Path, limit: int, num_candidates: int, final_states: bool = False) -> Positions[State]:
    """Read the positions of recorded games before each move, ``[N, ...]``, on the host.

    The targets are the outcomes of the games and, if a record has the field ``values``, its values: for each action the
    expected returns by seat before it, or ``null``. The move that was played is the only candidate,
    which makes the policy loss 0.

    Args:
        game: the game.
        path: a file or folder of games, see ``recorded.finished_games``.
        limit: maximum number of positions.
        num_candidates: size of the axis of candidates.
        final_states: whether positions have the last state of their game.

    Raises ``OSError`` for files that cannot be read, and ``ValueError`` for games that ``recorded.finished_games`` rejects,
    values of another form, or more positions than the limit.
    """
    games = recorded.finished_games(game, path)
    count = sum(len(record.actions) for record in games)
    if count > limit:
        raise ValueError(f"{path} has {count:,} positions, and the replay buffer holds {limit:,}")
    parts = list(_positions(game, games, num_candidates))
    joined: Positions[Any] = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return joined if final_states else replace(joined, final=None)


def _positions(game: Game[Any], games: list[Record], num_candidates: int) -> Iterator[Positions[Any]]:
    """Yield the positions of games with legal actions, a batch of games at a time."""
    score_value = jax.jit(jax.vmap(game.heuristic_value))
    for part, positions in records.positions(game, games):
        which = positions.record
        values = np.full((len(part), max(len(record.actions) for record in part), game.num_players), UNKNOWN, np.float32)
        for index, record in enumerate(part):
            values[index, : len(record.actions)] = _values(record, game.num_players)
        returns = np.array([record.returns for record in part], np.float32)[which]
        candidates = np.full((len(which), num_candidates), -1, np.int32)
        candidates[:, 0] = positions.action
        yield Positions(
            state=positions.state,
            candidates=candidates,  # type: ignore[arg-type]
            policy=(candidates >= 0).astype(np.float32),  # type: ignore[arg-type]
            root_value=values[which, positions.ply],
            surprise=np.zeros(len(which), np.float32),  # type: ignore[arg-type]
            game_index=np.zeros(len(which), np.int32),  # type: ignore[arg-type]
            returns=returns,
            outcome_target=returns,
            score_value=np.asarray(score_value(positions.final))[which],
            final=jax.tree.map(lambda leaf, which=which: leaf[which], positions.final),
        )


def _values(record: Record, players: int) -> np.ndarray:
    """Return the values of a record, ``float32[actions, P]``; a missing value is ``UNKNOWN``. Raises ``ValueError``."""
    given = record.extra.get(records.VALUES, [None] * len(record.actions))
    try:
        values = np.array([[UNKNOWN] * players if row is None else row for row in given], np.float32)
    except (TypeError, ValueError):  # not a list of lists of numbers
        values = np.empty(0, np.float32)
    in_range = np.all((values == UNKNOWN) | ((values >= 0) & (values <= 1)))
    if values.shape != (len(record.actions), players) or not in_range:
        raise ValueError(
            f"values of a record must be null or {players} numbers from 0 to 1 for each of its actions, not {given}"
        )
    return values
