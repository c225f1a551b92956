"""Drawing of Santorini boards: towers from above, and workers. Plain Python."""

import math
from collections.abc import Sequence

from tilewe_jax.draw.pictures import Drawing
from tilewe_jax.draw.shapes import Options, Scene, View, chip, el, heat_cells, mark, number, short, square, text
from tilewe_jax.draw.theme import SEATS

_ROW = 30
"""Height of the row of a player below the board."""


def board(view: View, options: Options) -> Scene:
    """Draw the board of a view."""
    ink, size, last = options.ink, view["size"], options.last or {}
    board = square(size, options, "ground", "ground-line")
    side, parts = board.side, board.parts
    parts += heat_cells(board, options)
    for index, height in enumerate(view["heights"]):
        if height != "0":
            parts.append(_tower(int(height), *board.corner((index % size, index // size)), side, options))
    for cell in options.legal:
        x, y = board.corner(cell)
        box = {"x": x + 0.04 * side, "y": y + 0.04 * side, "width": 0.92 * side, "height": 0.92 * side, "rx": 0.08 * side}
        fill = {"fill": ink("legal"), "fill-opacity": "0.18", "stroke": ink("legal"), "stroke-width": 0.02 * side}
        parts.append(el("rect", {"class": "tilewe-legal", **box, **fill}))
    # A wider line in the colour of the paper below each line keeps it visible on light and dark storeys.
    lines = [
        {"fill": "none", "stroke": ink(color), "stroke-width": width * side}
        for color, width in (("paper", 0.064), ("last", 0.03))
    ]
    if last.get("build"):
        x, y = board.corner(last["build"])
        box = {"x": x + 0.012 * side, "y": y + 0.012 * side, "width": 0.976 * side, "height": 0.976 * side, "rx": 0.06 * side}
        parts.append(el("rect", {"class": "tilewe-last", **box, **lines[1]}))
    if last.get("from"):
        (ax, ay), (bx, by) = board.center(last["from"]), board.center(last["to"])
        length = math.hypot(bx - ax, by - ay)
        dx, dy = (bx - ax) / length, (by - ay) / length
        start = f"{number(ax + 0.1 * side * dx)} {number(ay + 0.1 * side * dy)}"
        path = f"M{start}L{number(bx - 0.24 * side * dx)} {number(by - 0.24 * side * dy)}"
        for line in lines:
            parts.append(el("path", {"class": "tilewe-last", "d": path, **line, "stroke-linecap": "round"}))
            parts.append(el("circle", {"class": "tilewe-last", "cx": ax, "cy": ay, "r": 0.07 * side, **line}))
    for index, cell in enumerate(view["workers"]):
        if cell:
            parts.append(_worker(index, *board.center(cell), side, options))
    if last.get("to"):
        cx, cy = board.center(last["to"])
        for line in lines:
            parts.append(el("circle", {"class": "tilewe-last", "cx": cx, "cy": cy, "r": 0.215 * side, **line}))
    for name, value in options.numbers.items():
        x, y = board.corner([int(part) for part in name.split(",")])
        at = (x + 0.925 * side, y + 0.935 * side, 0.1 * side)
        parts.append(text(*at, ink("ink"), value, {"class": "tilewe-number"}))
    return Scene(board.width, board.height, parts)


def legend(view: View, options: Options, width: float, names: Sequence[str]) -> Scene:
    """Draw a row for each player with the colour of the workers and the status."""
    ink = options.ink
    parts = []
    for seat in range(view["num_players"]):
        y = _ROW * (seat + 0.5)
        is_to_move = not view["terminal"] and view["current_player"] == seat
        state = "wins" if view["winner"] == seat else ("to place" if view["placing"] else "to move") if is_to_move else ""
        weight = "600" if state else "400"
        parts.append(chip(SEATS["santorini"][seat], 20, y, options))
        name = short(names[seat], 50) if names else f"Player {seat + 1}"
        parts.append(text(36, y, 15, ink("ink"), name, {"text-anchor": "start", "font-weight": weight}))
        if state:
            parts.append(text(width - 12, y, 15, ink("muted"), state, {"text-anchor": "end"}))
    return Scene(width, _ROW * view["num_players"] + 4, parts)


def _tower(height: int, x: float, y: float, side: float, options: Options) -> str:
    """Draw a tower as nested squares with an optional dome. (x, y) is the top left corner of the cell."""
    ink, parts = options.ink, []
    for level in range(1, min(height, 3) + 1):
        inset = side * (0.055 + 0.06 * level)
        box = {"width": side - 2 * inset, "height": side - 2 * inset, "rx": 0.05 * side}
        under = {"fill": ink("storey-edge"), "fill-opacity": "0.55"}
        parts.append(el("rect", {"x": x + inset, "y": y + inset + 0.015 * side, **box, **under}))
        fill = {"fill": ink(f"storey{level}"), "stroke": ink("storey-edge"), "stroke-width": 0.012 * side}
        parts.append(el("rect", {"x": x + inset, "y": y + inset, **box, **fill}))
    if height == 4:
        cx, cy = x + 0.5 * side, y + 0.5 * side
        shade = {"cy": cy + 0.015 * side, "r": 0.235 * side, "fill": ink("storey-edge"), "fill-opacity": "0.55"}
        parts.append(el("circle", {"cx": cx, **shade}))
        parts.append(el("circle", {"cx": cx, "cy": cy, "r": 0.23 * side, "fill": ink("dome")}))
        shine = (
            f"M{number(cx - 0.13 * side)} {number(cy - 0.02 * side)}"
            f"Q{number(cx - 0.11 * side)} {number(cy - 0.13 * side)} {number(cx + 0.02 * side)} {number(cy - 0.14 * side)}"
        )
        line = {"stroke": ink("dome-light"), "stroke-width": 0.035 * side, "stroke-linecap": "round"}
        parts.append(el("path", {"d": shine, "fill": "none", **line}))
    at = (x + 0.065 * side, y + 0.07 * side, 0.1 * side)
    parts.append(text(*at, ink("muted"), height, {"class": "tilewe-level"}))
    return el("g", {"class": f"tilewe-tower tilewe-height-{height}"}, *parts)


def _worker(index: int, x: float, y: float, side: float, options: Options) -> str:
    """Draw a worker with the centre (x, y)."""
    ink, color = options.ink, SEATS["santorini"][index // 2]
    rim = {"stroke": ink(f"{color}-edge"), "stroke-width": 0.016 * side}
    ring = {"stroke": ink(f"{color}-mark"), "stroke-width": 0.016 * side}
    return el(
        "g",
        {"class": f"tilewe-worker tilewe-{color}"},
        el("circle", {"cx": x, "cy": y + 0.02 * side, "r": 0.185 * side, "fill": ink(f"{color}-edge")}),
        el("circle", {"cx": x, "cy": y, "r": 0.18 * side, "fill": ink(color), **rim}),
        el("circle", {"cx": x, "cy": y, "r": 0.125 * side, "fill": "none", **ring}),
        el("path", {"d": mark(color, x, y, 0.5 * side), "fill": ink(f"{color}-ink")}),
    )


def summary(view: View) -> str:
    """Describe a view in words."""
    return f"Santorini, {view['size']} by {view['size']} cells"


DRAWING = Drawing(board, legend, summary)
