"""Boards of polyomino games as pictures. Plain Python."""

from collections.abc import Sequence

from tilewe_jax.draw.pictures import Drawing, points
from tilewe_jax.draw.shapes import Cell, Options, Scene, View, chip, el, heat_cells, outline, piece, short, square, text
from tilewe_jax.games.polyomino.pieces import PIECE_CELLS, PIECE_NAMES

_TRAY_SIDE = 7
"""Side of a cell of the remaining pieces."""
_ROW = 40
"""Height of the row of a colour below the board."""


def board(view: View, options: Options) -> Scene:
    """Draw the board of a view."""
    ink, size = options.ink, view["size"]
    board = square(size, options, "board", "grid")
    side, left, top, parts = board.side, board.left, board.top, board.parts

    def down(cell: Sequence[int]) -> Cell:
        return cell[0], size - 1 - cell[1]

    for cell in view["start_cells"]:
        cx, cy = board.center(cell)
        ring = {"cx": cx, "cy": cy, "r": 0.2 * side, "fill": "none", "stroke-width": 0.09 * side}
        parts.append(
            el("circle", {"class": "tilewe-start", **ring, "stroke": ink(view["colors"][view["current_color"]]["name"])})
        )
    parts += heat_cells(board, options)
    numbers = {down([int(part) for part in cell.split(",")]): number for cell, number in options.numbers.items()}
    for index, color in enumerate(view["colors"]):
        for cells in components(view["cells"], size, str(index)):
            parts.append(piece([down(cell) for cell in cells], color["name"], side, left, top, options, numbers))
    if options.last and options.last.get("cells"):
        unit = min(side, 60)  # The line gets no thicker on small boards.
        path = outline(map(down, options.last["cells"]), side, left, top, 0.03 * side + 0.015 * unit, 0.18 * side)
        line = {"stroke": ink("last"), "stroke-width": 0.11 * unit, "stroke-linejoin": "round"}
        parts.append(el("path", {"class": "tilewe-last", "d": path, "fill": "none", **line}))
    for cell in options.legal:
        cx, cy = board.center(cell)
        dot = {"cx": cx, "cy": cy, "r": 0.11 * side, "fill": ink("legal"), "fill-opacity": "0.6"}
        parts.append(el("circle", {"class": "tilewe-legal", **dot}))
    return Scene(board.width, board.height, parts)


def components(marks: str, size: int, mark: str) -> list[list[Cell]]:
    """Return the pieces of a colour as lists of (x, y), row by row.

    Pieces of one colour share no edge, so the pieces are the connected components of the cells with its mark.
    """
    left = {index for index, letter in enumerate(marks) if letter == mark}
    parts = []
    for first in sorted(left):
        if first not in left:
            continue
        left.remove(first)
        part = [first]
        for index in part:
            x, y = index % size, index // size
            for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if 0 <= nx < size and 0 <= ny < size and ny * size + nx in left:
                    left.remove(ny * size + nx)
                    part.append(ny * size + nx)
        parts.append([(index % size, index // size) for index in sorted(part)])
    return parts


def legend(view: View, options: Options, width: float, names: Sequence[str]) -> Scene:
    """Draw a row for each colour: its player or name, its points, and its remaining pieces."""
    ink = options.ink
    parts = []
    for row, color in enumerate(view["colors"]):
        y = _ROW * (row + 0.5)
        name = names[color["player"]] if names else color["name"].capitalize()
        is_to_move = not view["terminal"] and row == view["current_color"]
        weight = "600" if is_to_move else "400"
        parts.append(chip(color["name"], 20, y, options))
        parts.append(text(36, y, 15, ink("ink"), short(name, 17), {"text-anchor": "start", "font-weight": weight}))
        parts.append(text(215, y, 15, ink("ink"), color["score"], {"text-anchor": "end", "font-weight": "600"}))
        x, path = 236.0, ""
        for piece_name in color["pieces"]:
            cells = PIECE_CELLS[PIECE_NAMES.index(piece_name)]
            columns, rows = (max(cell[axis] for cell in cells) + 1 for axis in (0, 1))
            if x + columns * _TRAY_SIDE > width - 8:
                parts.append(text(x + 4, y, 13, ink("muted"), "…"))
                break
            flipped = [(cx, rows - 1 - cy) for cx, cy in cells]
            path += outline(flipped, _TRAY_SIDE, x, y - rows * _TRAY_SIDE / 2, 0.3, 1.5)
            x += columns * _TRAY_SIDE + 5
        line = {"stroke": ink(f"{color['name']}-edge"), "stroke-width": 0.8}
        parts.append(el("path", {"class": "tilewe-tray", "d": path, "fill": ink(color["name"]), **line}))
    return Scene(width, _ROW * len(view["colors"]) + 4, parts)


def summary(view: View) -> str:
    """Describe a view in words."""
    return f"Board of {view['size']} by {view['size']} cells; {points(view)}"


DRAWING = Drawing(board, legend, summary)
