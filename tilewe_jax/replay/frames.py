"""Recorded games as JSON values, a view a position: what the element ``<tilewe-game>`` shows. Plain Python, without JAX.

A replay has ``game`` and ``options``; ``names`` by seat, empty where unknown; ``frames``, the views of all positions;
``moves``, for each the ``player`` and the fields of its ``action_view``; ``result``, the final ``scores`` and ``returns``, or
``None``; and ``analyses``, for each frame an analysis or ``None``. An analysis has ``value``, the expected outcome by seat;
``score_lead`` by seat or ``None``; and ``candidates``, the fields of their ``action_view`` with ``visits``, ``prior``,
``value`` and ``variation``, the names of the moves that would follow. ``terminal`` is true in the last frame of a game
that has a result, however it has ended.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewe_jax.draw.pictures import drawing_of
from tilewe_jax.host import HostGame
from tilewe_jax.records import RecordError

Analysis = dict[str, Any]
"""What a search says of a position, see above."""


def replay(
    game: HostGame,
    deal: Any,
    actions: Sequence[int],
    *,
    names: Sequence[str] = (),
    result: dict[str, Any] | None = None,
    analyses: Sequence[Analysis | None] = (),
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
        player, points = position.current_player, position.scores()
        try:
            move = {"player": player, **position.action_view(action)}
            position = position.after(action)
        except ValueError as error:
            raise RecordError(f"move {ply}: {error}") from None
        if "gain" in move and (bonus := position.scores()[player] - points[player] - move["gain"]):
            reasons = [move.get("reason"), f"end of the round +{bonus}"]
            move |= {"gain": move["gain"] + bonus, "reason": ", ".join(filter(None, reasons))}
        moves.append(move)
        frames.append(position.view(seat=seat, open=open))
    if result is not None:
        frames[-1] = ended(frames[-1], result["returns"])
    return {
        "game": game.id,
        "options": game.options,
        "names": list(names),
        "frames": frames,
        "moves": moves,
        "result": result,
        "analyses": list(analyses) or [None] * len(frames),
    }


def ended(view: Mapping[str, Any], returns: Sequence[float]) -> dict[str, Any]:
    """Return the view of the last position of a game that is over, however it has ended.

    After a resignation or a loss on time the rules would go on: nobody is to move there, and who has won is not who leads.
    """
    winner = {"winner": list(returns).index(1.0) if 1.0 in returns else None} if "winner" in view else {}
    return {**view, "terminal": True, **winner}


def analyses_of_answers(
    game: HostGame, deal: Any, actions: Sequence[int], answers: Iterable[Mapping[str, Any]]
) -> list[Analysis | None]:
    """The analyses of a game, for ``replay``, of what ``tilewe-jax analyze`` answers and ``rate --out`` writes.

    Args:
      game: the game.
      deal: what chance decided at the start.
      actions: the ids of the actions.
      answers: JSON objects, each of one position, in any order.

    Raises ``ValueError`` where they are no analyses of positions of this game.
    """
    position = game.init_from_deal(deal)
    positions = [position, *(position := position.after(action) for action in actions)]
    analyses: list[Analysis | None] = [None] * len(positions)
    for answer in answers:
        turn = answer.get("turn")
        if type(turn) is not int or not 0 <= turn < len(positions):
            raise ValueError(f"turn must be 0 to {len(positions) - 1}, the moves before a position, not {turn!r}")
        try:
            lead = answer["score_lead"]
            analyses[turn] = {
                "value": [_finite(value) for value in answer["value"]],
                "score_lead": None if lead is None else [_finite(value) for value in lead],
                "candidates": [
                    positions[turn].action_view(candidate["action"])
                    | {
                        "visits": int(candidate["visits"]),
                        "prior": _finite(candidate["prior"]),
                        "value": None if candidate["value"] is None else [_finite(value) for value in candidate["value"]],
                        "variation": [str(name) for name in candidate["principal_variation"]],
                    }
                    for candidate in answer["candidates"]
                ],
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"turn {turn} has no analysis of this game: {type(error).__name__}: {error}") from None
    return analyses


def _finite(value: Any) -> float:
    """A number of a file. Raises ``ValueError`` for what is none."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def caption_of(replay: Mapping[str, Any], move: int) -> str:
    """The last move in words, after so many moves."""
    if not move:
        return "Start"
    action = replay["moves"][move - 1]
    seat = action["player"]
    name = replay["names"][seat] if replay["names"] else f"Player {seat + 1}"
    gain = f", {action['gain']} points".replace("-", "\N{MINUS SIGN}") if "gain" in action else ""
    reason = f" ({action['reason']})" if action.get("reason") else ""
    return f"{move}. {name}: {action['name']}{gain}{reason}"


def numbers_of(replay: Mapping[str, Any], move: int) -> dict[str, int]:
    """The number of the move on each piece or tile, by "x,y", after so many moves; in Santorini that of the last building."""
    numbers: dict[str, int] = {}
    for index, action in enumerate(replay["moves"][:move]):
        if action["kind"] == "turn":
            numbers[_name(action["build"])] = index + 1
        elif action["kind"] == "place" and "points" in action:
            if not replay["frames"][index]["tiles"]:  # a new round
                numbers = {}
            numbers[_name(action["cell"])] = index + 1
        elif action["kind"] == "place" and "cells" in action:
            numbers[_name(middle(action["cells"]))] = index + 1
    return numbers


def middle(cells: Sequence[Sequence[int]]) -> Sequence[int]:
    """The cell that is nearest to the middle of a piece."""
    sums = [sum(cell[axis] for cell in cells) for axis in (0, 1)]
    return min(cells, key=lambda cell: sum((len(cells) * cell[axis] - sums[axis]) ** 2 for axis in (0, 1)))


def bounds_of_rounds(frames: Sequence[Mapping[str, Any]]) -> list[list[float] | None]:
    """For each view of a plane the bounds that fit all views of its round, so that the table stands still; else ``None``."""
    drawing = drawing_of(frames[0])
    if drawing is None or drawing.bounds is None:
        return [None] * len(frames)
    bounds: list[list[float] | None] = []
    for index, view in enumerate(frames):
        ends = index + 1 == len(frames) or bool(view["tiles"] and not frames[index + 1]["tiles"])
        if ends:
            bounds += [drawing.bounds(view)] * (index + 1 - len(bounds))
    return bounds


def _name(cell: Sequence[int]) -> str:
    return f"{cell[0]},{cell[1]}"
