"""Boards as SVG text, on the host and without a library."""

from collections.abc import Mapping, Sequence

Cell = tuple[int, int]

_SIDE = 24
_MARGIN = 22
_STYLE = (
    "text{font:11px sans-serif;fill:#777;text-anchor:middle;dominant-baseline:central}"
    ".name{font-size:13px;fill:#444;text-anchor:start}"
)


def grid(size: int, cells: Mapping[Cell, str], columns: Sequence[str], legend: Sequence[tuple[str, str]] = ()) -> str:
    """A square board with coloured cells, (0, 0) at the bottom left; cells of one colour that touch look like one piece.

    ``columns`` are the names under the columns; ``legend`` is a list of (colour, text) below the board.
    """
    board = size * _SIDE
    width, height = board + 2 * _MARGIN, board + 2 * _MARGIN + 20 * len(legend)
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
    for row, (color, text) in enumerate(legend):
        y = board + 2 * _MARGIN + 20 * row + 6
        parts.append(f'<rect x="{_MARGIN}" y="{y - 7}" width="14" height="14" fill="{color}" stroke="#222"/>')
        parts.append(f'<text class="name" x="{_MARGIN + 22}" y="{y}">{text}</text>')
    return "".join(parts) + "</svg>\n"
