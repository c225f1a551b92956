"""Boards and charts as SVG text. Plain Python, without a library."""

import math
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from xml.sax.saxutils import escape

Cell = tuple[int, int]
"""(x, y), with (0, 0) at the bottom left."""

_SIDE = 24
"""Side of a cell in pixels."""
_MARGIN = 22
"""Margin around a board in pixels."""
_STYLE = (
    "text{font:11px sans-serif;fill:#777;text-anchor:middle;dominant-baseline:central}"
    ".name{font-size:13px;fill:#444;text-anchor:start}"
    ".height{fill:#222;text-anchor:end;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}"
)
_NAME_WIDTH = 7.2
"""Width of a character of class ``name`` in pixels, about: SVG text does not wrap, and what draws it has its own fonts."""
_LINE = 20
"""Height of a line of class ``name`` in pixels."""


def grid(
    size: int,
    cells: Mapping[Cell, str],
    columns: Sequence[str],
    legend: Sequence[tuple[str, str]] = (),
    discs: Mapping[Cell, tuple[str, str]] | None = None,
    labels: Mapping[Cell, str] | None = None,
    marked: Collection[Cell] = (),
    merge: bool = True,
    side: int = _SIDE,
) -> str:
    """A square board of cells.

    Args:
      size: cells on each side.
      cells: colour of each cell that is filled.
      columns: names of the columns, written below them; rows are numbered from 1 at the bottom.
      legend: (colour, text) of each entry below the board.
      discs: (colour, text) of round pieces by their cell.
      labels: text in the corner of a cell.
      marked: cells of the last move: a dot where cells are merged, else a frame.
      merge: whether adjacent cells of one colour are drawn as one area, without a line between them.
      side: side of a cell in pixels.

    Returns:
      The text of an SVG file.
    """
    board = size * side
    width = max(board + 2 * _MARGIN, 200)
    entries, below = _legend(legend, board + 2 * _MARGIN, width)
    parts = [
        _svg(width, board + 2 * _MARGIN + below),
        f'<rect x="{_MARGIN}" y="{_MARGIN}" width="{board}" height="{board}" fill="#f4f2ee"/>',
    ]
    for line in range(size + 1):
        at = _MARGIN + line * side
        parts.append(f'<path d="M{_MARGIN} {at}h{board}M{at} {_MARGIN}v{board}" stroke="#ddd9d2"/>')
    for index in range(size):
        at = _MARGIN + index * side + side // 2
        parts.append(f'<text x="{at}" y="{board + _MARGIN + 11}">{columns[index]}</text>')
        parts.append(f'<text x="{_MARGIN // 2}" y="{at}">{size - index}</text>')
    for (x, y), color in cells.items():
        left, top = _MARGIN + x * side, _MARGIN + (size - 1 - y) * side
        parts.append(f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="{color}"/>')
    for (x, y), color in cells.items():
        left, top = _MARGIN + x * side, _MARGIN + (size - 1 - y) * side
        edges = {
            (x, y + 1): f"M{left} {top}h{side}",
            (x, y - 1): f"M{left} {top + side}h{side}",
            (x - 1, y): f"M{left} {top}v{side}",
            (x + 1, y): f"M{left + side} {top}v{side}",
        }
        outline = "".join(path for neighbour, path in edges.items() if not merge or cells.get(neighbour) != color)
        parts.append(f'<path d="{outline}" stroke="#222" stroke-width="1.5" stroke-linecap="square" fill="none"/>')
    for x, y in marked:
        left, top = _MARGIN + x * side, _MARGIN + (size - 1 - y) * side
        if merge:
            parts.append(f'<circle cx="{left + side // 2}" cy="{top + side // 2}" r="4" fill="#fff" stroke="#222"/>')
        else:
            frame = f'<rect x="{left + 3}" y="{top + 3}" width="{side - 6}" height="{side - 6}" fill="none"'
            parts.append(f'{frame} stroke="#b3261e" stroke-width="4"/>')
    for (x, y), (color, text) in (discs or {}).items():
        at_x, at_y = _MARGIN + x * side + side // 2, _MARGIN + (size - 1 - y) * side + side // 2
        parts.append(f'<circle cx="{at_x}" cy="{at_y}" r="{side * 5 // 16}" fill="{color}" stroke="#222"/>')
        parts.append(f'<text x="{at_x}" y="{at_y}" style="fill:#222">{text}</text>')
    for (x, y), text in (labels or {}).items():
        at_x, at_y = _MARGIN + (x + 1) * side - 7, _MARGIN + (size - 1 - y) * side + 12
        parts.append(f'<text class="height" x="{at_x}" y="{at_y}">{escape(text)}</text>')
    return "".join([*parts, *entries]) + "</svg>\n"


def _svg(width: int, height: int) -> str:
    """The beginning of a picture of this size, with its style and a white ground."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>'
    )


def _legend(entries: Sequence[tuple[str, str]], top: int, width: int) -> tuple[list[str], int]:
    """Entries of a legend one below the other, each a colour, or none, and a text that is wrapped; and their height."""
    parts = []
    y = top + 6
    for color, text in entries:
        left = _MARGIN + 22 * bool(color)
        if color:
            parts.append(f'<rect x="{_MARGIN}" y="{y - 7}" width="14" height="14" fill="{color}" stroke="#222"/>')
        for line in textwrap.wrap(text, max(16, int((width - left - 8) / _NAME_WIDTH))) or [""]:
            parts.append(f'<text class="name" x="{left}" y="{y}">{escape(line)}</text>')
            y += _LINE
    return parts, y - top - 6


def polygons(
    shapes: Sequence[tuple[Sequence[tuple[float, float]], str, Sequence[str], bool]],
    legend: Sequence[tuple[str, str]] = (),
    lines: Sequence[str] = (),
) -> str:
    """Polygons with a text in each corner.

    Args:
      shapes: for each polygon its corners (x, y), with y downwards, in units of 48 pixels; its colour; a text for each corner;
        whether it is of the last move, and has a frame.
      legend: (colour, text) of each entry below the polygons.
      lines: lines of text below the legend.

    Returns:
      The text of an SVG file.
    """
    side = 2 * _SIDE
    points = [point for corners, *_ in shapes for point in corners] or [(0.0, 0.0)]
    left, top = min(x for x, _ in points), min(y for _, y in points)
    width = max(round(side * (max(x for x, _ in points) - left)) + 2 * _MARGIN, 200)
    board = round(side * (max(y for _, y in points) - top))
    entries, below = _legend([*legend, *(("", line) for line in lines)], board + 2 * _MARGIN, width)
    parts = [_svg(width, board + 2 * _MARGIN + below)]
    for corners, color, texts, is_marked in sorted(shapes, key=lambda shape: shape[3]):
        at = [(_MARGIN + side * (x - left), _MARGIN + side * (y - top)) for x, y in corners]
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        line = 'stroke="#b3261e" stroke-width="4"' if is_marked else 'stroke="#222"'
        parts.append(f'<polygon points="{outline}" fill="{color}" {line} stroke-linejoin="round"/>')
        middle = sum(x for x, _ in at) / len(at), sum(y for _, y in at) / len(at)
        for (x, y), text in zip(at, texts, strict=True):
            inside = (x + 0.55 * (middle[0] - x), y + 0.55 * (middle[1] - y))
            parts.append(f'<text x="{inside[0]:.1f}" y="{inside[1]:.1f}" style="fill:#222">{text}</text>')
    return "".join([*parts, *entries]) + "</svg>\n"


def intervals(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """A chart of numbers with error bars, one below the other.

    Args:
      title: text above the chart.
      rows: name, number, and half the width of its interval, of each row; at least one. Long names are wrapped.

    Returns:
      The text of an SVG file.
    """
    low = min(0.0, *(value - margin for _, value, margin in rows))
    high = max(0.0, *(value + margin for _, value, margin in rows))
    names = [_wrapped(name, 40) for name, *_ in rows]
    left = max(170, 32 + math.ceil(_NAME_WIDTH * max(len(line) for lines in names for line in lines)))
    plot = 420
    width = left + plot + 110
    heading = textwrap.wrap(title, int((width - 28) / _NAME_WIDTH))
    top = 18 + _LINE * len(heading)
    bottom = top + sum(8 + _LINE * len(lines) for lines in names) + 6

    def at(value: float) -> float:
        return round(left + plot * (value - low) / ((high - low) or 1.0), 1)

    parts = [_svg(width, bottom + 34)]
    parts += [f'<text class="name" x="14" y="{22 + _LINE * row}">{escape(line)}</text>' for row, line in enumerate(heading)]
    power = 10.0 ** math.floor(math.log10(max(high - low, 1e-6) / 2))
    grid_step = next(power * round_number for round_number in (1, 2, 5, 10) if (high - low) / (power * round_number) <= 6)
    for line in range(math.ceil(low / grid_step), math.floor(high / grid_step) + 1):
        x = at(line * grid_step)
        parts.append(f'<path d="M{x} {top}V{bottom}" stroke="{"#999" if line == 0 else "#ddd"}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}">{line * grid_step:g}</text>')
    y = top + 8.0
    for lines, (_, value, margin) in zip(names, rows, strict=True):
        for row, text in enumerate(lines):
            parts.append(f'<text class="name" x="14" y="{y + _LINE * (row + 0.5):g}">{escape(text)}</text>')
        middle = y + _LINE * len(lines) / 2
        y += 8 + _LINE * len(lines)
        ends = f"M{at(value - margin)} {middle - 5:g}v10M{at(value + margin)} {middle - 5:g}v10"
        bar = f"M{at(value - margin)} {middle:g}H{at(value + margin)}{ends}"
        parts.append(f'<path d="{bar}" stroke="#3f6fb5" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{at(value)}" cy="{middle:g}" r="3" fill="#3f6fb5"/>')
        parts.append(f'<text class="name" x="{left + plot + 14}" y="{middle:g}">{value:.0f} ± {margin:.0f}</text>')
    return "".join(parts) + "</svg>\n"


def _wrapped(name: str, width: int) -> list[str]:
    """The name of an agent in lines: broken after commas and the like, where it has some."""
    lines = [""]
    for word in re.findall(r"[^,:;/ ]*[,:;/ ]*", name):
        for part in [word[i : i + width] for i in range(0, len(word), width)]:
            if len(lines[-1]) + len(part) > width:
                lines.append("")
            lines[-1] += part
    return lines
