"""Heuristics in plain Python, for players on host positions, without information hidden from the mover. Needs no JAX."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tilewe_jax.games.triominos.host import DRAW, Position
from tilewe_jax.games.triominos.tiles import tile_id
from tilewe_jax.host import softmax

POINTS_PER_LOGIT = 60.0
"""Lead in points that counts as one logit of the outcome."""
_POINTS_PER_ACTION_LOGIT = 5.0
_DRAW_POINTS = -15
"""Points that drawing a tile is worth: it costs 5, and more while a tile can be placed."""


def heuristic_logits(position: Position, actions: Sequence[int]) -> list[float]:
    """Return the logits of legal actions: the points that they gain, and fewer for draws and passes."""
    logits = []
    for action in actions:
        view = position.action_view(action)
        points = view["gain"] if view["kind"] != DRAW else _DRAW_POINTS
        logits.append(points / _POINTS_PER_ACTION_LOGIT)
    return logits


def heuristic_value(position: Position) -> list[float]:
    """Estimate the outcome by seat: the softmax of the points, as ``heuristics.heuristic_value`` on the device."""
    return softmax([points / POINTS_PER_LOGIT for points in position.points])


def determinize(position: Position, chance: Random) -> Position:
    """Return the position with the pile and the trays of the other players dealt again from the tiles that are not seen."""
    mover = position.current_player
    held = [tile for seat, tray in enumerate(position.trays) if seat != mover for tile in tray]
    unseen = sorted([*position.pile, *held], key=tile_id)  # so that the result is independent of hidden information
    chance.shuffle(unseen)
    trays = []
    for seat, tray in enumerate(position.trays):
        if seat == mover:
            trays.append(tray)
        else:
            trays.append(tuple(sorted(unseen[: len(tray)], key=tile_id)))
            del unseen[: len(tray)]
    # The seed of the deals of later rounds is hidden too.
    seed = chance.getrandbits(32), chance.getrandbits(32)
    return replace(position, trays=tuple(trays), pile=tuple(unseen), seed=seed)
