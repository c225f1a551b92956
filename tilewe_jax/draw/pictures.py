"""Draws views of one or several positions as SVG text. Plain Python, without JAX."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from tilewe_jax.draw.shapes import Options, Scene, Svg, View, document, el, number, printable, short, text


@dataclass(frozen=True)
class Drawing:
    """The functions that draw views of a kind; games declare theirs with ``register``."""

    board: Callable[[View, Options], Scene]
    """Draws the board."""
    legend: Callable[[View, Options, float, Sequence[str]], Scene]
    """Draws the part below the board with a given width and the names of the players by seat, which may be empty."""
    summary: Callable[[View], str]
    """Describes the view in words."""
    bounds: Callable[[View], list[float]] | None = None
    """Returns left, top, right and bottom of the used part of an unbounded plane; ``None`` for boards of a fixed size."""


_DRAWINGS: dict[str, Drawing] = {}
_MIN_WIDTH = 480
"""Minimum width of a picture with a legend."""
_CAPTION = 34
"""Height of a line of text above a board."""


def register(kind: str, drawing: Drawing) -> None:
    """Register the drawing of a kind of views. Views of other kinds are shown by their ``text``."""
    _DRAWINGS[kind] = drawing


def drawing_of(view: View) -> Drawing | None:
    """Return the drawing of a view, or ``None`` to show its text. Raises ``ValueError`` for a view that has neither."""
    drawing = _DRAWINGS.get(view["kind"])
    if drawing is None and "text" not in view:
        raise ValueError(f"no drawing is registered for views of the kind {view['kind']!r}; import tilewe_jax.host_games")
    return drawing


def draw(
    view: View, options: Options | None = None, *, legend: bool = True, names: Sequence[str] = (), caption: str | None = None
) -> Svg:
    """Draw a position as SVG text, which notebooks show as a picture.

    Args:
      view: the position, from ``HostPosition.view``.
      options: marks and colours.
      legend: whether to show players, points, and remaining pieces or tiles below the board.
      names: the names of the players, by seat.
      caption: a line above the board.
    """
    options = options or Options()
    return document(scene(view, options, legend=legend, names=names, caption=caption), summary(view), options.theme)


def scene(view: View, options: Options, *, legend: bool = True, names: Sequence[str] = (), caption: str | None = None) -> Scene:
    """Draw a position like ``draw``, without the enclosing SVG document."""
    kind = drawing_of(view)
    board = kind.board(view, options) if kind else _text_board(view, options)
    rows = [board]
    if kind and legend:
        rows.append(kind.legend(view, options, max(board.width, _MIN_WIDTH), names))
    if caption is not None:
        caption = short(caption, 120)
        size = min(16, 1.8 * max(board.width, _MIN_WIDTH * (len(rows) > 1)) / max(len(caption), 1))
        rows.insert(0, Scene(0, _CAPTION, [text(0, _CAPTION / 2 + 2, size, options.ink("ink"), caption)]))
    if len(rows) == 1:
        return board
    width = max(row.width for row in rows)
    parts: list[str] = []
    y = 0.0
    for row in rows:
        parts += _moved(row, (width - row.width) / 2, y)
        y += row.height
    return Scene(width, y, parts)


def draw_grid(
    views: Sequence[View],
    options: Options | Sequence[Options] | None = None,
    *,
    columns: int | None = None,
    side: float = 180,
    captions: Sequence[str] = (),
) -> Svg:
    """Draw a grid of positions, without names of columns and rows.

    Args:
      views: the positions, at least one.
      options: marks and colours, for all positions or for each.
      columns: positions in a row; by default the grid is about square.
      side: width and height of each board.
      captions: a line below each position; by default none.

    Raises ``ValueError`` without positions, or for a wrong number of options or captions.
    """
    if not views:
        raise ValueError("views must have at least one position")
    each = list(options) if isinstance(options, Sequence) else [options or Options()] * len(views)
    if len(each) != len(views) or len(captions) not in (0, len(views)):
        raise ValueError(f"options and captions must have a length of {len(views)}, got {len(each)} and {len(captions)}")
    columns = min(len(views), columns or math.ceil(math.sqrt(len(views))))
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    gap, below = side / 12, 22 * bool(captions)
    parts = []
    for index, (view, look) in enumerate(zip(views, each, strict=True)):
        row, place = divmod(index, columns)
        x, y = gap + place * (side + gap), gap + row * (side + gap + below)
        board = scene(view, replace(look, coordinates=False), legend=False)
        box = {"x": x, "y": y, "width": side, "height": side, "viewBox": f"0 0 {number(board.width)} {number(board.height)}"}
        parts.append(el("svg", box, *board.parts))
        if captions:
            parts.append(text(x + side / 2, y + side + 13, 13, look.ink("muted"), captions[index]))
    rows = math.ceil(len(views) / columns)
    size = (gap + columns * (side + gap), gap + rows * (side + gap + below))
    return document(Scene(*size, parts), f"{len(views)} positions", each[0].theme)


def summary(view: View) -> str:
    """Describe a position in one sentence."""
    drawing = drawing_of(view)
    if drawing is None:
        return "Position"
    state = "game over" if view["terminal"] else f"player {view['current_player'] + 1} to move"
    return f"{drawing.summary(view)}; {state}"


def points(view: View) -> str:
    """List the points of all seats, for a ``summary``."""
    return "points " + " to ".join(map(str, view["scores"])).replace("-", "\N{MINUS SIGN}")


def _moved(row: Scene, x: float, y: float) -> list[str]:
    """Translate the parts of a drawing."""
    if not x and not y:
        return row.parts
    return [el("g", {"transform": f"translate({number(x)} {number(y)})"}, part) for part in row.parts]


def _text_board(view: View, options: Options) -> Scene:
    """Draw the text of a view without a drawing."""
    lines = view["text"].split("\n")
    style = {"font-size": 15, "font-family": "ui-monospace,monospace", "xml:space": "preserve"}
    parts = [
        el("text", {"x": 12, "y": 18 * i + 26, **style, "fill": options.ink("ink")}, escape(printable(line)))
        for i, line in enumerate(lines)
    ]
    return Scene(9 * max(map(len, lines)) + 24, 18 * len(lines) + 24, parts)
