"""Replays: recorded games as JSON values, the input of the element ``<tilewe-game>``. Plain Python, without JAX.

A replay has ``game`` and ``options``; ``names`` by seat, empty if unknown; ``frames``, the views of all positions; ``moves``, a
list of ``action_view`` with the ``player``; ``result``, the final ``scores`` and ``returns``, or ``None``; and ``analyses``, an
analysis or ``None`` for each frame. An analysis has ``value``, the expected outcome by seat; ``score_lead``, by seat or
``None``; and ``candidates``, a list of ``action_view`` with ``visits``, ``prior``, ``value`` and ``variation``, the names of
the expected further moves. ``terminal`` is true in the last frame of a game with a result, even if the game ended early.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tilewe_jax.draw.pictures import drawing_of
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.records import RecordError

Analysis = dict[str, Any]
"""The result of a search of a position, see above."""


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
    """Build the replay of a finished or unfinished game.

    Args:
      game: the game.
      deal: the decisions of chance before the first move, see ``Game.deal``.
      actions: the ids of the actions so far.
      names: the names of the players by seat; empty if unknown.
      result: the final ``scores`` and ``returns``; ``None`` for an unfinished game.
      analyses: an analysis or ``None`` for each position; may be empty.
      seat: the player whose view is shown, see ``HostPosition.view``.
      open: whether to show hidden information, as after the end of a game.

    Raises ``RecordError`` for an illegal action, and ``ValueError`` for an invalid deal or a wrong number of analyses.
    """
    if analyses and len(analyses) != len(actions) + 1:
        raise ValueError(f"analyses must have an item for each of {len(actions) + 1} positions, got {len(analyses)}")
    position = game.init_from_deal(deal)
    frames, moves = [position.view(seat=seat, open=open)], []
    for after, move in followed(position, actions):
        frames.append(after.view(seat=seat, open=open))
        moves.append(move)
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


def followed(position: HostPosition, actions: Iterable[int], first: int = 1) -> Iterator[tuple[HostPosition, dict[str, Any]]]:
    """Yield the position after each action, and the action as a JSON value with its ``player``.

    Args:
      position: the position before the actions.
      actions: the ids of the actions.
      first: the number of the first action, for errors.

    Raises ``RecordError`` for an illegal action.
    """
    for ply, action in enumerate(actions, first):
        player, points = position.current_player, position.scores()
        try:
            move = {"player": player, **position.action_view(action)}
            position = position.after(action)
        except ValueError as error:
            raise RecordError(f"move {ply}: {error}") from None
        if "gain" in move and (bonus := position.scores()[player] - points[player] - move["gain"]):
            reasons = [move.get("reason"), f"end of the round +{bonus}"]
            move |= {"gain": move["gain"] + bonus, "reason": ", ".join(filter(None, reasons))}
        yield position, move


def ended(view: Mapping[str, Any], returns: Sequence[float]) -> dict[str, Any]:
    """Mark the view of the last position of a game as terminal, with the winner by ``returns``.

    After a resignation or a loss on time, the position itself is not terminal, and the leader may have lost.
    """
    winner = {"winner": list(returns).index(1.0) if 1.0 in returns else None} if "winner" in view else {}
    return {**view, "terminal": True, **winner}


def analyses_of_answers(
    game: HostGame, deal: Any, actions: Sequence[int], answers: Iterable[Mapping[str, Any]]
) -> list[Analysis | None]:
    """Convert answers of ``tilewe-jax analyze`` or ``rate --out`` to the analyses of a ``replay``.

    Args:
      game: the game.
      deal: the decisions of chance before the first move.
      actions: the ids of the actions.
      answers: JSON objects, each for one position, in any order.

    Raises ``ValueError`` for an answer that is not an analysis of a position of this game.
    """
    position = game.init_from_deal(deal)
    positions = [position, *(position := position.after(action) for action in actions)]
    analyses: list[Analysis | None] = [None] * len(positions)
    for answer in answers:
        turn = answer.get("turn")
        if type(turn) is not int or not 0 <= turn < len(positions):
            raise ValueError(f"turn must be 0 to {len(positions) - 1}, the number of moves before the position, got {turn!r}")
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
            raise ValueError(f"turn {turn} is not an analysis of this game: {type(error).__name__}: {error}") from None
    return analyses


def _finite(value: Any) -> float:
    """Return a number of a file as a float. Raises ``ValueError`` if it is not a finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def caption_of(replay: Mapping[str, Any], move: int) -> str:
    """Describe the last of the first ``move`` moves in words."""
    if not move:
        return "Start"
    action = replay["moves"][move - 1]
    seat = action["player"]
    name = replay["names"][seat] if replay["names"] else f"Player {seat + 1}"
    gain = f", {action['gain']} points".replace("-", "\N{MINUS SIGN}") if "gain" in action else ""
    reason = f" ({action['reason']})" if action.get("reason") else ""
    return f"{move}. {name}: {action['name']}{gain}{reason}"


def numbers_of(replay: Mapping[str, Any], move: int) -> dict[str, int]:
    """Number the pieces, tiles or buildings of the first ``move`` moves by the latest move there; keys are "x,y"."""
    numbers: dict[str, int] = {}
    for index, action in enumerate(replay["moves"][:move]):
        if action["kind"] == "turn":
            numbers[_name(action["build"])] = index + 1
        elif action["kind"] == "place" and "points" in action:
            if not replay["frames"][index]["tiles"]:  # A new round starts.
                numbers = {}
            numbers[_name(action["cell"])] = index + 1
        elif action["kind"] == "place" and "cells" in action:
            numbers[_name(middle(action["cells"]))] = index + 1
    return numbers


def middle(cells: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the cell that is nearest to the middle of a piece."""
    sums = [sum(cell[axis] for cell in cells) for axis in (0, 1)]
    return min(cells, key=lambda cell: sum((len(cells) * cell[axis] - sums[axis]) ** 2 for axis in (0, 1)))


def bounds_of_rounds(frames: Sequence[Mapping[str, Any]]) -> list[list[float] | None]:
    """Return bounds of each view of an unbounded plane that are constant within a round; ``None`` for each view of a board."""
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
