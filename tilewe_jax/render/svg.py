"""Boards and charts as SVG text. Plain Python, without a library."""

import math
from collections.abc import Mapping, Sequence
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
)


def grid(
    size: int,
    cells: Mapping[Cell, str],
    columns: Sequence[str],
    legend: Sequence[tuple[str, str]] = (),
    discs: Mapping[Cell, tuple[str, str]] | None = None,
) -> str:
    """A square board of cells. Adjacent cells of one colour are drawn without a line between them, as one area.

    Args:
      size: cells on each side.
      cells: colour of each cell that is filled.
      columns: names of the columns, written below them; rows are numbered from 1 at the bottom.
      legend: (colour, text) of each line below the board.
      discs: (colour, text) of round pieces by their cell.

    Returns:
      The text of an SVG file.
    """
    board = size * _SIDE
    width, height = max(board + 2 * _MARGIN, 160), board + 2 * _MARGIN + 20 * len(legend)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>',
        f'<rect x="{_MARGIN}" y="{_MARGIN}" width="{board}" height="{board}" fill="#f4f2ee"/>',
    ]
    for line in range(size + 1):
        at = _MARGIN + line * _SIDE
        parts.append(f'<path d="M{_MARGIN} {at}h{board}M{at} {_MARGIN}v{board}" stroke="#ddd9d2"/>')
    for index in range(size):
        at = _MARGIN + index * _SIDE + _SIDE // 2
        parts.append(f'<text x="{at}" y="{board + _MARGIN + 11}">{columns[index]}</text>')
        parts.append(f'<text x="{_MARGIN // 2}" y="{at}">{size - index}</text>')
    for (x, y), color in cells.items():
        left, top = _MARGIN + x * _SIDE, _MARGIN + (size - 1 - y) * _SIDE
        parts.append(f'<rect x="{left}" y="{top}" width="{_SIDE}" height="{_SIDE}" fill="{color}"/>')
    for (x, y), color in cells.items():
        left, top = _MARGIN + x * _SIDE, _MARGIN + (size - 1 - y) * _SIDE
        edges = {
            (x, y + 1): f"M{left} {top}h{_SIDE}",
            (x, y - 1): f"M{left} {top + _SIDE}h{_SIDE}",
            (x - 1, y): f"M{left} {top}v{_SIDE}",
            (x + 1, y): f"M{left + _SIDE} {top}v{_SIDE}",
        }
        outline = "".join(path for neighbour, path in edges.items() if cells.get(neighbour) != color)
        parts.append(f'<path d="{outline}" stroke="#222" stroke-width="1.5" stroke-linecap="square" fill="none"/>')
    for (x, y), (color, text) in (discs or {}).items():
        at_x, at_y = _MARGIN + x * _SIDE + _SIDE // 2, _MARGIN + (size - 1 - y) * _SIDE + _SIDE // 2
        parts.append(f'<circle cx="{at_x}" cy="{at_y}" r="{_SIDE // 2 - 3}" fill="{color}" stroke="#222"/>')
        parts.append(f'<text x="{at_x}" y="{at_y}" style="fill:#222">{text}</text>')
    for row, (color, text) in enumerate(legend):
        y = board + 2 * _MARGIN + 20 * row + 6
        parts.append(f'<rect x="{_MARGIN}" y="{y - 7}" width="14" height="14" fill="{color}" stroke="#222"/>')
        parts.append(f'<text class="name" x="{_MARGIN + 22}" y="{y}">{escape(text)}</text>')
    return "".join(parts) + "</svg>\n"


def polygons(
    shapes: Sequence[tuple[Sequence[tuple[float, float]], str, Sequence[str]]],
    legend: Sequence[tuple[str, str]] = (),
    lines: Sequence[str] = (),
) -> str:
    """Polygons with a text in each corner.

    Args:
      shapes: for each polygon its corners (x, y), with y downwards, in units of 48 pixels; its colour; a text for each corner.
      legend: (colour, text) of each line below the polygons.
      lines: lines of text below the legend.

    Returns:
      The text of an SVG file.
    """
    side = 2 * _SIDE
    points = [point for corners, *_ in shapes for point in corners] or [(0.0, 0.0)]
    left, top = min(x for x, _ in points), min(y for _, y in points)
    width = max(round(side * (max(x for x, _ in points) - left)) + 2 * _MARGIN, 200)
    board = round(side * (max(y for _, y in points) - top))
    height = board + 2 * _MARGIN + 20 * (len(legend) + len(lines))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for corners, color, texts in shapes:
        at = [(_MARGIN + side * (x - left), _MARGIN + side * (y - top)) for x, y in corners]
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polygon points="{outline}" fill="{color}" stroke="#222" stroke-linejoin="round"/>')
        middle = sum(x for x, _ in at) / len(at), sum(y for _, y in at) / len(at)
        for (x, y), text in zip(at, texts, strict=True):
            inside = (x + 0.55 * (middle[0] - x), y + 0.55 * (middle[1] - y))
            parts.append(f'<text x="{inside[0]:.1f}" y="{inside[1]:.1f}" style="fill:#222">{text}</text>')
    for row, (color, text) in enumerate([*legend, *(("", line) for line in lines)]):
        y = board + 2 * _MARGIN + 20 * row + 6
        if color:
            parts.append(f'<rect x="{_MARGIN}" y="{y - 7}" width="14" height="14" fill="{color}" stroke="#222"/>')
        parts.append(f'<text class="name" x="{_MARGIN + 22 * bool(color)}" y="{y}">{escape(text)}</text>')
    return "".join(parts) + "</svg>\n"


def intervals(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """A chart of numbers with error bars, one below the other.

    Args:
      title: text above the chart.
      rows: name, number, and half the width of its interval, of each row; at least one.

    Returns:
      The text of an SVG file.
    """
    low = min(0.0, *(value - margin for _, value, margin in rows))
    high = max(0.0, *(value + margin for _, value, margin in rows))
    left, width, step = 170, 420, 28
    height = 56 + step * len(rows) + 24

    def at(value: float) -> float:
        return round(left + width * (value - low) / ((high - low) or 1.0), 1)

    bottom = height - 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 90} {height}"'
        f' width="{left + width + 90}" height="{height}">',
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>',
        f'<text class="name" x="14" y="22">{escape(title)}</text>',
    ]
    power = 10.0 ** math.floor(math.log10(max(high - low, 1e-6) / 2))
    grid_step = next(power * round_number for round_number in (1, 2, 5, 10) if (high - low) / (power * round_number) <= 6)
    for line in range(math.ceil(low / grid_step), math.floor(high / grid_step) + 1):
        x = at(line * grid_step)
        parts.append(f'<path d="M{x} 40V{bottom}" stroke="{"#999" if line == 0 else "#ddd"}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}">{line * grid_step:g}</text>')
    for row, (name, value, margin) in enumerate(rows):
        y = 54 + step * row
        parts.append(f'<text class="name" x="14" y="{y}">{escape(name)}</text>')
        ends = f"M{at(value - margin)} {y - 5}v10M{at(value + margin)} {y - 5}v10"
        parts.append(f'<path d="M{at(value - margin)} {y}H{at(value + margin)}{ends}" stroke="#3f6fb5" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{at(value)}" cy="{y}" r="3" fill="#3f6fb5"/>')
        parts.append(f'<text class="name" x="{left + width + 14}" y="{y}">{value:.0f} ± {margin:.0f}</text>')
    return "".join(parts) + "</svg>\n"
