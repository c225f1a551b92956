"""Recorded games as JSON values, a view a position: what the element ``<tilewe-game>`` shows. Plain Python, without JAX.

A replay has ``game`` and ``options``; ``names`` by seat, empty where unknown; ``frames``, the views of all positions; ``moves``,
for each the ``player`` and the fields of its ``action_view``; ``result``, the final ``scores`` and ``returns``, or ``None``; and
``analyses``, for each frame an analysis or ``None``. An analysis has ``value``, the expected outcome by seat; ``score_lead`` by
seat or ``None``; and ``candidates``, the fields of their ``action_view`` with ``visits``, ``prior``, ``value`` and ``variation``,
the names of the moves that would follow.
"""

from collections.abc import Sequence
from typing import Any

from tilewe_jax.host import HostGame
from tilewe_jax.records import Record, RecordError


def replay(
    game: HostGame,
    deal: Any,
    actions: Sequence[int],
    *,
    names: Sequence[str] = (),
    result: dict[str, Any] | None = None,
    analyses: Sequence[dict[str, Any] | None] = (),
    seat: int | None = None,
    open: bool = True,
) -> dict[str, Any]:
    """The replay of a game, possibly one that is not over.

    Args:
      game: the game.
      deal: what chance decided at the start, see ``Game.deal``.
      actions: the ids of the actions so far.
      names: the names of the players by seat; none where they are unknown.
      result: the final ``scores`` and ``returns``; ``None`` for a game that is not over.
      analyses: an analysis or ``None`` for each position; none where there are none.
      seat: the player who looks, see ``HostPosition.view``.
      open: whether hidden information is shown, as after the end of a game.

    Raises ``RecordError`` for an illegal action, ``ValueError`` for what is no deal, or for another number of analyses.
    """
    if analyses and len(analyses) != len(actions) + 1:
        raise ValueError(f"there are {len(actions) + 1} positions, and so many analyses are needed, not {len(analyses)}")
    position = game.init_from_deal(deal)
    frames, moves = [position.view(seat=seat, open=open)], []
    for ply, action in enumerate(actions, 1):
        try:
            moves.append({"player": position.current_player, **position.action_view(action)})
            position = position.after(action)
        except ValueError as error:
            raise RecordError(f"move {ply}: {error}") from None
        frames.append(position.view(seat=seat, open=open))
    return {
        "game": game.id,
        "options": game.options,
        "names": list(names),
        "frames": frames,
        "moves": moves,
        "result": result,
        "analyses": list(analyses) or [None] * len(frames),
    }


def replay_of_record(game: HostGame, record: Record, analyses: Sequence[dict[str, Any] | None] = ()) -> dict[str, Any]:
    """The replay of a recorded game, with all that was hidden in it. Raises as ``replay`` does."""
    result = {"scores": list(record.scores), "returns": list(record.returns)}
    return replay(game, record.deal, record.actions, names=record.players, result=result, analyses=analyses)
