"""Positions of recorded games, such as games against other programs or between people, for training beside self-play."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax import records
from tilewe_jax.game import Game
from tilewe_jax.records import Record
from tilewe_jax.replay import recorded
from tilewe_jax.training.replay import UNKNOWN, Positions

State = TypeVar("State")

_BATCH = 64
"""Number of games replayed in parallel."""


def read(game: Game[State], path: Path, limit: int, num_candidates: int, final_states: bool = False) -> Positions[State]:
    """Read the positions of recorded games before each move, ``[N, ...]``, on the host.

    Only the outcomes of the games are targets: the move that was played is the only candidate, which makes the policy loss 0.

    Args:
        game: the game.
        path: a file of games, or a folder of files ``*.jsonl``, ``*.blksgf`` or ``*.sgf``, which is searched recursively.
        limit: maximum number of positions.
        num_candidates: size of the axis of candidates.
        final_states: whether positions have the last state of their game.

    Raises ``OSError`` for files that cannot be read, and ``ValueError`` for damaged or unfinished games, games with other rules
    or options, no positions, or more positions than the limit.
    """
    games: list[Record] = []
    places: list[str] = []
    for file in _files(path):
        content = recorded.read(file)
        for note in content.notes:
            print(f"{file}: {note}", file=sys.stderr)
        for number, (played, record) in enumerate(((each.game, each.record) for each in content.games), 1):
            place = f"{file}, game {number}"
            if (played.id, played.options) != (game.id, game.options):
                raise ValueError(
                    f"{file} has games of {played.id} {dict(played.options)}, not of {game.id} {dict(game.options)}"
                )
            if not record.is_finished:
                raise ValueError(f"{place}: the game is unfinished after its {len(record.actions)} actions")
            games.append(record)
            places.append(place)
    count = sum(len(record.actions) for record in games)
    if not count:
        raise ValueError(f"{path} has no positions of games")
    if count > limit:
        raise ValueError(f"{path} has {count:,} positions, and the replay buffer holds {limit:,}")
    for place, verdict in zip(places, records.replay(game, games, _BATCH), strict=True):
        if verdict:
            raise ValueError(f"{place}: {verdict}")
    parts = list(_positions(game, games, num_candidates))
    joined: Positions[Any] = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return joined if final_states else replace(joined, final=None)


def _files(path: Path) -> list[Path]:
    """Return the files of games in a folder, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix == ".jsonl" or recorded.has_sgf_name(file))


def _positions(game: Game[Any], games: list[Record], num_candidates: int) -> Iterator[Positions[Any]]:
    """Yield the positions of games with legal actions, a batch of games at a time."""

    @jax.jit
    def run(state: Any, actions: jax.Array) -> tuple[Any, Any, jax.Array]:
        def step(state: Any, action: jax.Array) -> tuple[Any, Any]:
            return jax.vmap(game.apply)(state, action), state

        final, states = jax.lax.scan(step, state, actions)
        return states, final, jax.vmap(game.heuristic_value)(final)

    for part, initial, actions in records.batches(game, games, _BATCH):
        states, final, score_value = jax.device_get(run(initial, jnp.asarray(actions)))
        ply, which = np.nonzero(actions >= 0)
        returns = np.array([record.returns for record in part], np.float32)[which]
        candidates = np.full((len(ply), num_candidates), -1, np.int32)
        candidates[:, 0] = actions[ply, which]
        yield Positions(
            state=jax.tree.map(lambda leaf, ply=ply, which=which: leaf[ply, which], states),
            candidates=candidates,  # type: ignore[arg-type]
            policy=(candidates >= 0).astype(np.float32),  # type: ignore[arg-type]
            root_value=np.full_like(returns, UNKNOWN),  # type: ignore[arg-type]
            surprise=np.zeros(len(ply), np.float32),  # type: ignore[arg-type]
            game_index=np.zeros(len(ply), np.int32),  # type: ignore[arg-type]
            returns=returns,  # type: ignore[arg-type]
            outcome_target=returns,  # type: ignore[arg-type]
            score_value=score_value[which],
            final=jax.tree.map(lambda leaf, which=which: leaf[which], final),
        )
