"""Facts that explain moves of Triominos, without information hidden from the mover. Imports no JAX."""

from typing import Any

from tilewe_jax.games.triominos.config import DRAW_SCORE
from tilewe_jax.games.triominos.figure import Figure
from tilewe_jax.games.triominos.host import Position
from tilewe_jax.games.triominos.tiles import ORIENTATIONS, Cell, Tile
from tilewe_jax.host import Facts
from tilewe_jax.utils.words import differences

_DIFFERENCES = (
    (-8.0, "hexagon_cells", "cells", "It leaves {p} where a tile completes a hexagon; the better move leaves {b}."),
    (-1.5, "bridge_cells", "cells", "It leaves {p} where a tile makes a bridge; the better move leaves {b}."),
    (4.0, "playable", "own tiles", "After it {p} can be placed; after the better move {b}."),
    (-0.5, "tray_points", "points", "It keeps {p} on the tray, for the winner of the round; the better move keeps {b}."),
)
_HEXAGONS = {0: "no hexagon", 1: "a hexagon", 2: "two hexagons", 3: "three hexagons"}


def facts(position: Position, action: int) -> dict[str, Any]:
    """Return the facts of a legal action.

    Returns:
      ``kind``, ``place``, ``draw`` or ``pass``; ``gain``, its points without the end of a round; ``hexagons`` and ``bridge``
      that it completes; ``largest_gain``, the most points of a legal placement, or ``None`` without one;
      ``tray``, the number of own tiles left, with a drawn tile, and ``tray_points``, the sum of the numbers on the known ones;
      ``playable``, the own known tiles left that fit somewhere;
      ``hexagon_cells`` and ``bridge_cells``, the free cells where a tile would complete a hexagon or, without one, a bridge.
    """
    view = position.action_view(action)
    kind, figure, tray = view["kind"], position.figure, list(position.trays[position.current_player])
    hexagons, bridge = 0, False
    if kind == "place":
        tile, orientation, cell = position._placed(action)
        if position.placements:
            _, hexagons, bridge = figure.score(tile, cell, position.config.hex_scores)
        figure = figure.copy()
        figure.place(tile, orientation, cell)
        tray.remove(tile)
    placements = [each for each in position.legal_actions() if each < position.config.draw]
    frontier = sorted(figure.frontier)
    hexagon_cells = [cell for cell in frontier if figure.hexagons(cell)]
    return {
        "kind": kind,
        "gain": view["gain"],
        "hexagons": hexagons,
        "bridge": bridge and not hexagons,
        "largest_gain": max((position.action_view(each)["gain"] for each in placements), default=None),
        "tray": len(tray) + (kind == "draw"),
        "tray_points": sum(map(sum, tray)),
        "playable": sum(_fits(figure, tile, frontier) for tile in tray),
        "hexagon_cells": len(hexagon_cells),
        "bridge_cells": sum(figure.bridge(cell) for cell in frontier if cell not in hexagon_cells),
    }


def _fits(figure: Figure, tile: Tile, cells: list[Cell]) -> bool:
    """Return whether a tile can be placed on one of some cells; any tile can start a figure."""
    if not figure.tiles:
        return True
    return any(figure.broken_rule(tile, turn, cell) is None for cell in cells for turn in range(len(ORIENTATIONS)))


def reasons(played: Facts, better: Facts) -> list[tuple[float, str]]:
    """Return the differences of two moves as sentences with weights, see ``tilewe_jax.host.Coach``."""
    found: list[tuple[float, str]] = []
    points = f"{better['gain']} points instead of {played['gain']}"
    gain = better["gain"] - played["gain"]
    if better["hexagons"] > played["hexagons"]:
        found.append((100.0 + gain, f"It misses {_HEXAGONS[better['hexagons']]}: {points}."))
    elif better["bridge"] and not (played["bridge"] or played["hexagons"]):
        found.append((90.0 + gain, f"It misses a bridge: {points}."))
    elif played["kind"] != "place" and better["kind"] == "place":
        verb = {"draw": f"draws for {DRAW_SCORE:+} points", "pass": "passes"}[played["kind"]]
        found.append((80.0 + gain, f"It {verb}, although the better tile scores {better['gain']}."))
    else:
        found.append((float(gain), f"It leaves points on the tray: {points}."))
    return found + differences(played, better, _DIFFERENCES)
