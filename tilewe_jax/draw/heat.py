"""Heat maps for pictures: cells with values from 0 to 1. Plain Python, without JAX."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewe_jax.host import HostPosition

Heat = list[list[Any]]
"""For each cell [x, y, value from 0 to 1], or [x, y, value, index of a colour], see ``shapes.Options``."""


def heat_of_policy(position: HostPosition, weights: Mapping[int, float]) -> Heat:
    """How much of a policy covers each cell.

    Args:
      position: the position.
      weights: the probability, or the number of visits, of each legal action.

    Raises ``IllegalActionError`` for an illegal action.
    """
    return _summed((position.action_view(action), weight) for action, weight in weights.items())


def heat_of_analysis(analysis: Mapping[str, Any] | None) -> Heat:
    """How often a search has visited the actions that cover each cell, see ``tilewe_jax.replay.frames``."""
    candidates = analysis["candidates"] if analysis else ()
    return _summed((action, action.get("visits") or action.get("prior") or 0.0) for action in candidates)


def heat_of_ownership(size: int, ownership: Sequence[Sequence[float]]) -> Heat:
    """Who will own each cell of a square board, in the colours of the owners.

    Args:
      size: cells on each side.
      ownership: for each colour the probability that it will own a cell, for all cells row by row from the bottom.

    Raises ``ValueError`` for another number of cells.
    """
    if any(len(row) != size * size for row in ownership):
        raise ValueError(f"ownership needs {size * size} cells of each colour, not {[len(row) for row in ownership]}")
    best = (max((row[cell], -color) for color, row in enumerate(ownership)) for cell in range(size * size))
    return [[cell % size, cell // size, float(value), -color] for cell, (value, color) in enumerate(best) if value > 0]


def _summed(weights: Iterable[tuple[Mapping[str, Any], float]]) -> Heat:
    heat: dict[tuple[int, int], float] = {}
    for action, weight in weights:
        for x, y in _cells(action):
            heat[x, y] = heat.get((x, y), 0.0) + float(weight)
    most = max([*heat.values(), 1e-9])
    return [[x, y, value / most] for (x, y), value in heat.items()]


def _cells(action: Mapping[str, Any]) -> Sequence[Sequence[int]]:
    """The cells by which an action is shown."""
    if "cells" in action:
        return list(action["cells"])
    if "points" in action:
        return [action["cell"]]
    return [action["to"]] if "to" in action else []
