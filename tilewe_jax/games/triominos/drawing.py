"""Drawing of Triominos tables. Plain Python."""

import math
from collections.abc import Sequence

from tilewe_jax.draw import pictures
from tilewe_jax.draw.shapes import Options, Point, Scene, View, chip, el, heat_opacity, number, short, text
from tilewe_jax.draw.theme import SEATS

_SIDE = 72
"""Side of a tile."""
_MARGIN = 20
_KINDS = {1: "tile-triple", 2: "tile-double", 3: "tile"}
"""Colour of a tile by its number of different numbers."""
_TRAY_SIDE = 48
"""Side of a tile in a tray."""
_ROW = 52
"""Height of a row of tiles in a tray."""


def bounds_of(view: View, with_frontier: bool = False) -> list[float]:
    """Bounding box of a view in the plane: left, top, right, bottom."""
    shapes = [*view["tiles"], *(view["frontier"] if with_frontier or not view["tiles"] else ())]
    xs, ys = ([point[axis] for shape in shapes for point in shape["points"]] for axis in (0, 1))
    return [min(xs), min(ys), max(xs), max(ys)] if shapes else [0, 0, 1, 1]


def board(view: View, options: Options) -> Scene:
    """Draw the table of a view."""
    ink = options.ink
    x0, y0, x1, y1 = options.bounds or bounds_of(view, options.frontier or bool(options.legal))
    width, height = max((x1 - x0) * _SIDE, 280), max((y1 - y0) * _SIDE, 160)
    left = _MARGIN + (width - (x1 - x0) * _SIDE) / 2 - x0 * _SIDE
    top = _MARGIN + (height - (y1 - y0) * _SIDE) / 2 - y0 * _SIDE

    def place(points: Sequence[Sequence[float]]) -> list[Point]:
        return [(left + x * _SIDE, top + y * _SIDE) for x, y in points]

    total = {"width": width + 2 * _MARGIN - 6, "height": height + 2 * _MARGIN - 6}
    frame = {"x": 3, "y": 3, **total, "rx": 10}
    parts = [el("rect", {"class": "tilewe-ground", **frame, "fill": ink("board"), "stroke": ink("frame"), "stroke-width": 1.5})]
    legal = {tuple(cell) for cell in options.legal}
    heat = {(x, y): value for x, y, value, *_ in options.heat}
    for free in view["frontier"]:
        cell = tuple(free["cell"])
        points = place(free["points"])
        if cell in heat:
            fill = {"fill": ink("heat"), "fill-opacity": heat_opacity(heat[cell])}
            parts.append(el("path", {"class": "tilewe-heat", "d": triangle(points, 0.03 * _SIDE, 0.1 * _SIDE), **fill}))
        is_legal = cell in legal
        if is_legal or options.frontier:
            attributes = {
                "class": "tilewe-legal" if is_legal else "tilewe-frontier",
                "data-cell": ",".join(map(str, cell)),
                "d": triangle(points, 0.05 * _SIDE, 0.1 * _SIDE),
                "fill": ink("legal"),
                "fill-opacity": "0.18" if is_legal else "0",
                "stroke": ink("legal" if is_legal else "frame"),
                "stroke-width": 2 if is_legal else 1.2,
                "stroke-dasharray": None if is_legal else "4 4",
            }
            parts.append(el("path", attributes))
    for placed in view["tiles"]:
        name = ",".join(map(str, placed["cell"]))
        order = options.numbers.get(name)
        parts.append(tile(place(placed["points"]), placed["numbers"], _SIDE, options, order, name))
    if options.last and options.last.get("points"):
        path = triangle(place(options.last["points"]), 0.02 * _SIDE, 0.12 * _SIDE)
        line = {"stroke": ink("last"), "stroke-width": 0.055 * _SIDE, "stroke-linejoin": "round"}
        parts.append(el("path", {"class": "tilewe-last", "d": path, "fill": "none", **line}))
    return Scene(width + 2 * _MARGIN, height + 2 * _MARGIN, parts)


def triangle(points: Sequence[Point], inset: float, radius: float) -> str:
    """Path of an equilateral triangle with round corners, moved inwards by ``inset``."""
    cx, cy = (points[0][0] + points[1][0] + points[2][0]) / 3, (points[0][1] + points[1][1] + points[2][1]) / 3
    side = math.hypot(points[1][0] - points[0][0], points[1][1] - points[0][1])
    scale = 1 - (inset * 2 * math.sqrt(3)) / side
    moved = [(cx + scale * (x - cx), cy + scale * (y - cy)) for x, y in points]
    length = side * scale
    path = ""
    for i, (x, y) in enumerate(moved):
        (bx, by), (ax, ay) = moved[(i + 2) % 3], moved[(i + 1) % 3]
        before = f"{number(x + (radius * (bx - x)) / length)} {number(y + (radius * (by - y)) / length)}"
        after = f"{number(x + (radius * (ax - x)) / length)} {number(y + (radius * (ay - y)) / length)}"
        path += f"{'L' if i else 'M'}{before}Q{number(x)} {number(y)} {after}"
    return path + "Z"


def tile(
    points: Sequence[Point],
    numbers: Sequence[int] | None,
    side: float,
    options: Options,
    order: int | None = None,
    cell: str | None = None,
) -> str:
    """Draw a tile with numbers at its corners; ``numbers=None`` draws the back of a tile."""
    ink = options.ink
    cx, cy = (points[0][0] + points[1][0] + points[2][0]) / 3, (points[0][1] + points[1][1] + points[2][1]) / 3
    kind = "tile-back" if numbers is None else _KINDS[len(set(numbers))]
    raised = [(x, y - 0.008 * side) for x, y in points]
    parts = [
        el("path", {"d": triangle(points, 0.012 * side, 0.12 * side), "fill": ink("tile-edge")}),
        el("path", {"d": triangle(raised, 0.032 * side, 0.1 * side), "fill": ink(kind)}),
    ]
    for (px, py), digit in zip(points, numbers or (), strict=numbers is not None):
        x, y = px + 0.49 * (cx - px), py + 0.49 * (cy - py)
        parts.append(text(x, y, 0.18 * side, ink("tile-ink"), digit, {"font-weight": "600"}))
    if order is not None:
        parts.append(text(cx, cy, 0.12 * side, ink("tile-mark"), order, {"class": "tilewe-number"}))
    return el("g", {"class": f"tilewe-tile tilewe-{kind}", "data-cell": cell}, *parts)


def legend(view: View, options: Options, width: float, names: Sequence[str]) -> Scene:
    """Draw the points and the tray of each player, and the size of the pile."""
    ink = options.ink
    parts, y = [], 0.0
    a_row = max(1, int((width - 226) // (_TRAY_SIDE * 0.62)))
    height = _TRAY_SIDE * math.sqrt(3) / 2
    for seat, tray in enumerate(view["trays"]):
        middle = y + _ROW / 2
        is_to_move = not view["terminal"] and view["current_player"] == seat
        name = names[seat] if names else f"Player {seat + 1}"
        weight = "600" if is_to_move else "400"
        parts.append(chip(SEATS["triominos"][seat], 20, middle, options))
        parts.append(text(36, middle, 15, ink("ink"), short(name, 15), {"text-anchor": "start", "font-weight": weight}))
        parts.append(text(196, middle, 15, ink("ink"), view["scores"][seat], {"text-anchor": "end", "font-weight": "600"}))
        tiles: list[list[int] | None] = (
            [None] * tray if isinstance(tray, int) else [[int(digit) for digit in held] for held in tray]
        )
        for index, numbers in enumerate(tiles):
            row, place = divmod(index, a_row)
            left, top = 212 + place * _TRAY_SIDE * 0.62, y + row * _ROW + (_ROW - height) / 2
            up = place % 2 == 0
            base, apex = (top + height, top) if up else (top, top + height)
            points = [(left, base), (left + _TRAY_SIDE / 2, apex), (left + _TRAY_SIDE, base)]
            # On a tile that faces down, left, middle and right are counterclockwise.
            held = numbers if numbers is None or up else [numbers[0], numbers[2], numbers[1]]
            parts.append(tile(points, held, _TRAY_SIDE, options))
        y += _ROW * max(1, -(-len(tiles) // a_row))
    parts.append(text(width - 12, y + 10, 13, ink("muted"), f"{view['pile']} tiles in the pile", {"text-anchor": "end"}))
    return Scene(width, y + 24, parts)


def summary(view: View) -> str:
    """Describe a view in words."""
    return f"Triominos, {len(view['tiles'])} tiles placed, {view['pile']} in the pile; {pictures.points(view)}"


DRAWING = pictures.Drawing(board, legend, summary, bounds_of)
