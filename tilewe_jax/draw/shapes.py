"""The elements of pictures: SVG elements as text, and the outlines of pieces and tiles. Plain Python.

The functions here and in ``drawing.py`` of each game mirror ``static/tilewe-game.js``, which draws in browsers. Change both
together: a test compares them, element by element.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tilewe_jax.draw.theme import COLORS, PALETTE, check_theme

Cell = tuple[int, int]
"""(x, y)."""
Point = tuple[float, float]
"""(x, y) in units of the picture, y downwards."""
View = Mapping[str, Any]
"""A position or an action as JSON values, see ``tilewe_jax.draw``."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONT = "system-ui,sans-serif"


@dataclass(frozen=True)
class Options:
    """Marks and colours of a picture. Cells are the cells of the view."""

    theme: str = "light"
    """The colours, "light" or "dark"."""
    coordinates: bool = True
    """Show the names of columns and rows."""
    last: View | None = None
    """The last action, to mark it: its view, or ``cells``, or ``from``, ``to`` and ``build``, or ``points``."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """A number on the piece or tile at a cell, by "x,y", see ``replay.frames.numbers_of``."""
    legal: Collection[Sequence[int]] = ()
    """Cells [x, y] to mark as legal targets."""
    heat: Collection[Sequence[Any]] = ()
    """A heat map: [x, y, value from 0 to 1] for each cell, or [x, y, value, index of a colour]."""
    frontier: bool = False
    """Show the free cells beside tiles."""
    bounds: Sequence[float] | None = None
    """Left, top, right and bottom of the shown part of an unbounded plane; by default the part that the tiles fill."""

    def __post_init__(self) -> None:
        check_theme(self.theme)

    def ink(self, name: str) -> str:
        """Return the colour of a name, see ``theme``."""
        return PALETTE[self.theme][name]


@dataclass(frozen=True)
class Scene:
    """A drawing: its size, and its elements from the back to the front."""

    width: float
    height: float
    parts: list[str]


class Svg(str):
    """The text of an SVG file, which notebooks show as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def number(value: float) -> str:
    """Format a number rounded to a tenth, half upwards, like JavaScript."""
    return f"{math.floor(value * 10 + 0.5) / 10 + 0.0:.10g}"


def el(tag: str, attributes: Mapping[str, Any], *children: str) -> str:
    """Format an SVG element. Attributes are strings, numbers, or ``None``, which is omitted."""
    texts = [
        f" {name}={quoteattr(printable(value) if isinstance(value, str) else number(value))}"
        for name, value in attributes.items()
        if value is not None
    ]
    inside = "".join(children)
    return f"<{tag}{''.join(texts)}>{inside}</{tag}>" if inside else f"<{tag}{''.join(texts)}/>"


def printable(content: str) -> str:
    """Replace characters that XML does not allow, which names in files may contain."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", content)


def short(name: str, limit: int) -> str:
    """Shorten a name to at most ``limit`` characters."""
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def text(x: float, y: float, size: float, fill: str, content: object, more: Mapping[str, Any] | None = None) -> str:
    """Format a text centred at a point; a negative number has a minus sign, not a hyphen."""
    if isinstance(content, int):
        content = str(content).replace("-", "\N{MINUS SIGN}")
    place = {"x": x, "y": y + 0.35 * size, "font-size": size, "text-anchor": "middle", "fill": fill}
    return el("text", {**place, **(more or {})}, escape(printable(str(content))))


def document(scene: Scene, label: str, theme: str) -> Svg:
    """Format a scene as an SVG file."""
    width, height = number(scene.width), number(scene.height)
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {width} {height}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-label": label,
        "font-family": _FONT,
    }
    paper = el("rect", {"width": width, "height": height, "fill": PALETTE[theme]["paper"]})
    return Svg(el("svg", attributes, "\n", paper, "\n", "\n".join(scene.parts), "\n") + "\n")


def column(x: int) -> str:
    """Name a column: a to z, then aa, ab, and so on."""
    return "a" * (x // 26) + chr(ord("a") + x % 26)


def outline(cells: Iterable[Cell], side: float, left: float, top: float, inset: float, radius: float) -> str:
    """Return the closed path around cells, moved inwards and with round corners.

    Args:
      cells: (x, y), y downwards.
      side: side of a cell.
      left: x of the column 0.
      top: y of the row 0.
      inset: distance from the edge of the cells.
      radius: size of the corners.
    """
    ordered = sorted(set(cells), key=lambda cell: (cell[1], cell[0]))
    taken = set(ordered)
    steps: dict[Cell, list[Cell]] = {}
    for x, y in ordered:
        for beside, start, step in (
            ((x, y - 1), (x, y), (1, 0)),
            ((x + 1, y), (x + 1, y), (0, 1)),
            ((x, y + 1), (x + 1, y + 1), (-1, 0)),
            ((x - 1, y), (x, y + 1), (0, -1)),
        ):
            if beside not in taken:
                steps.setdefault(start, []).append(step)

    def take(at: Cell, wanted: Cell) -> Cell:
        return steps[at].pop(steps[at].index(wanted) if wanted in steps[at] else 0)

    path = ""
    for x, y in ordered:
        if (1, 0) not in steps.get((x, y), ()):
            continue
        # Clockwise from the top left corner of a cell. If two cells touch corner to corner, the path stays with the first.
        corners = []
        dx, dy = take((x, y), (1, 0))
        px, py = x + dx, y + dy
        while (px, py) != (x, y):
            ex, ey = take((px, py), (-dy, dx))
            if ex != dx:
                corners.append((px, py, dx, dy, ex, ey))
            dx, dy = ex, ey
            px, py = px + dx, py + dy
        if dx != 1:
            corners.append((x, y, dx, dy, 1, 0))
        for i, (qx, qy, ax, ay, bx, by) in enumerate(corners):
            cx = left + qx * side - inset * (ay + by)
            cy = top + qy * side + inset * (ax + bx)
            before = f"{number(cx - radius * ax)} {number(cy - radius * ay)}"
            after = f"{number(cx + radius * bx)} {number(cy + radius * by)}"
            path += f"{'L' if i else 'M'}{before}Q{number(cx)} {number(cy)} {after}"
        path += "Z"
    return path


def disc(x: float, y: float, radius: float) -> str:
    """Return the path of a circle."""
    turn = f"{number(radius)} {number(radius)} 0 1 0 "
    return f"M{number(x - radius)} {number(y)}a{turn}{number(2 * radius)} 0a{turn}{number(-2 * radius)} 0Z"


def mark(color: str, x: float, y: float, side: float) -> str:
    """Return the path of the mark that identifies a colour without its hue: disc, bar, diamond or cross."""
    if color == "blue":
        return disc(x, y, 0.1 * side)
    if color == "red":
        reach = 0.14 * side
        return (
            f"M{number(x)} {number(y - reach)}L{number(x + reach)} {number(y)}"
            f"L{number(x)} {number(y + reach)}L{number(x - reach)} {number(y)}Z"
        )
    if color == "yellow":
        along, across = number(0.34 * side), number(0.1 * side)
        return f"M{number(x - 0.17 * side)} {number(y - 0.05 * side)}h{along}v{across}h{number(-0.34 * side)}Z"
    a, b = math.floor(0.045 * side * 10 + 0.5) / 10, math.floor(0.1 * side * 10 + 0.5) / 10
    across, arm = number(2 * a), number(b)
    back, down = number(-2 * a), number(-b)
    return f"M{number(x - a)} {number(y - a - b)}h{across}v{arm}h{arm}v{across}h{down}v{arm}h{back}v{down}h{down}v{back}h{arm}Z"


def piece(
    cells: Sequence[Cell],
    color: str,
    side: float,
    left: float,
    top: float,
    options: Options,
    numbers: Mapping[Cell, int] | None = None,
) -> str:
    """Draw a piece of cells (x, y), y downwards, with numbers on some cells and the mark of its colour on the others."""
    numbers = numbers or {}

    def center(cell: Cell) -> Point:
        return left + (cell[0] + 0.5) * side, top + (cell[1] + 0.48) * side

    marks = "".join(mark(color, *center(cell), side) for cell in cells if cell not in numbers)
    return el(
        "g",
        {"class": f"tilewe-piece tilewe-{color}"},
        el("path", {"d": outline(cells, side, left, top, 0.03 * side, 0.2 * side), "fill": options.ink(f"{color}-edge")}),
        el(
            "path", {"d": outline(cells, side, left, top - 0.025 * side, 0.075 * side, 0.16 * side), "fill": options.ink(color)}
        ),
        el("path", {"d": marks, "fill": options.ink(f"{color}-mark")}) if marks else "",
        *(
            text(*center(cell), 0.46 * side, options.ink(f"{color}-ink"), numbers[cell], {"font-weight": "600"})
            for cell in cells
            if cell in numbers
        ),
    )


def chip(color: str, x: float, y: float, options: Options) -> str:
    """Draw a small square of a colour, centred at a point, to stand beside a name."""
    parts = [el("rect", {"x": x - 6.5, "y": y - 6.5, "width": 13, "height": 13, "rx": 4, "fill": options.ink(color)})]
    if color in COLORS:
        parts.append(el("path", {"d": mark(color, x, y, 24), "fill": options.ink(f"{color}-mark")}))
    return "".join(parts)


@dataclass(frozen=True)
class Board:
    """A square board: its geometry, and the elements drawn so far."""

    size: int
    side: int
    """Side of a cell."""
    left: int
    top: int
    width: float
    height: float
    parts: list[str]

    def corner(self, cell: Sequence[int]) -> Point:
        """Return the top left corner of a cell."""
        return self.left + cell[0] * self.side, self.top + (self.size - 1 - cell[1]) * self.side

    def center(self, cell: Sequence[int]) -> Point:
        """Return the middle of a cell."""
        x, y = self.corner(cell)
        return x + self.side / 2, y + self.side / 2


def square(size: int, options: Options, ground: str, line: str) -> Board:
    """Draw an empty square board with lines and the names of columns and rows."""
    ink = options.ink
    side = 600 // size
    left, top, edge = 28 if options.coordinates else 8, 8, size * side
    frame = {"x": left - 3, "y": top - 3, "width": edge + 6, "height": edge + 6, "rx": 8}
    lines = "".join(f"M{left + i * side} {top}v{edge}M{left} {top + i * side}h{edge}" for i in range(1, size))
    parts = [
        el("rect", {"class": "tilewe-ground", **frame, "fill": ink(ground), "stroke": ink("frame"), "stroke-width": 1.5}),
        el("path", {"class": "tilewe-grid", "d": lines, "stroke": ink(line), "stroke-width": 1, "fill": "none"}),
    ]
    if options.coordinates:
        named = {"class": "tilewe-coordinate"}
        for i in range(size):
            parts.append(text(left + (i + 0.5) * side, top + edge + 14, 13, ink("muted"), column(i), named))
            parts.append(text(12, top + (size - 1 - i + 0.5) * side, 13, ink("muted"), i + 1, named))
    return Board(size, side, left, top, left + edge + 8, top + edge + (26 if options.coordinates else 8), parts)


def heat_opacity(value: float) -> str:
    """Return the opacity of a cell of a heat map."""
    return f"{math.floor(80 * value + 0.5) / 100:g}"


def heat_cells(board: Board, options: Options) -> list[str]:
    """Draw the cells of a heat map on a square board."""
    parts = []
    for x, y, value, *color in options.heat:
        left, top = board.corner((x, y))
        box = {"x": left + 0.5, "y": top + 0.5, "width": board.side - 1, "height": board.side - 1, "rx": 0.14 * board.side}
        fill = options.ink(COLORS[color[0]] if color else "heat")
        parts.append(el("rect", {"class": "tilewe-heat", **box, "fill": fill, "fill-opacity": heat_opacity(value)}))
    return parts
