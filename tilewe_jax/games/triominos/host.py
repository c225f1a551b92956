"""A position on the host, in the coordinates of the rules: names of actions, and why one is illegal. Pure Python."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from tilewe_jax.games.triominos.config import MAX_DRAWS, Config
from tilewe_jax.games.triominos.figure import Figure, Placement, name_of, read_placement
from tilewe_jax.games.triominos.tiles import ORIENTATIONS, Cell, Tile, corners, digits, neighbours, rank, tile_id, vertices

DRAW, PASS = "draw", "pass"


class IllegalActionError(ValueError):
    """What was asked for is against the rules; the message says against which."""


@dataclass(frozen=True)
class Position:
    """A position with everything that is hidden in it."""

    config: Config
    placements: tuple[tuple[Tile, int, Cell], ...]
    """What lies: tile, orientation, cell."""
    trays: tuple[tuple[Tile, ...], ...]
    pile: tuple[Tile, ...]
    """The next one to be drawn first."""
    scores: tuple[int, ...]
    player: int
    draws: int
    """Tiles drawn in this turn."""
    over: bool

    @cached_property
    def figure(self) -> Figure:
        """The tiles that lie."""
        figure = Figure()
        for placement in self.placements:
            figure.place(*placement)
        return figure

    def cell_of(self, number: int) -> Cell:
        """The cell with this number on the torus: one where a tile lies, or beside one."""
        return unwrapped(self.config, number, [self.config.wrapped(cell) for *_, cell in self.placements])

    def describe(self, action: int) -> Placement | str:
        """A legal action as tile, orientation and location, or as a word."""
        if action >= self.config.draw:
            return DRAW if action == self.config.draw else PASS
        if action >= self.config.first:
            return digits(self.config.tile_list[action - self.config.first]), ORIENTATIONS[0], (0, 0)
        cell = self.cell_of(action // self.config.numbers)
        numbers = [self.figure.numbers.get(vertex, -1) for vertex in vertices(cell)]
        numbers[self._free_corner(cell)] = action % self.config.numbers
        a, b, c = sorted(numbers)
        orientation = next(o for o in range(sum(cell) % 2, 6, 2) if list(corners((a, b, c), o)) == numbers)
        return digits((a, b, c)), ORIENTATIONS[orientation], cell

    def action(self, what: Placement | str) -> int:
        """The action of a placement or a word. Raises ``IllegalActionError``, or ``ValueError`` where it is neither."""
        if isinstance(what, str):
            return self._word(what)
        tile, orientation, cell = read_placement(what)
        name, figure = name_of(tile), self.figure
        if self.over:
            raise IllegalActionError("the game is over")
        if tile not in self.config.tile_list:
            raise IllegalActionError(f"the tile {name} is not among the {self.config.tiles} of this game")
        if why := figure.why_not(tile, orientation, cell):
            raise IllegalActionError(why)
        if tile not in self.trays[self.player]:
            raise IllegalActionError(f"the tile {name} is not on the tray of player {self.player + 1}")
        if not self.placements:
            return self._first(tile, orientation, cell)
        third = corners(tile, orientation)[self._free_corner(cell)]
        return self.config.wrapped(cell) * self.config.numbers + third

    def forced(self) -> list[Tile]:
        """The tiles of which one must begin, where the highest does."""
        tray = self.trays[self.player]
        best = max(rank(tile) for tile in tray)
        return [tile for tile in tray if rank(tile) == best or tile == (0, 0, 0)]

    def text(self, color: bool = False) -> str:
        """The tiles that lie, with a dot in each; scores, trays and the size of the pile."""
        lines = _draw([cell for *_, cell in self.placements], self.figure.numbers, color)
        for player, (score, tray) in enumerate(zip(self.scores, self.trays, strict=True)):
            turn = "" if self.over or player != self.player else f" to move, {self.draws} drawn" if self.draws else " to move"
            lines.append(f"player {player + 1}: {score} points, {' '.join(map(digits, tray)) or 'no tiles'}{turn}")
        end = ", everybody has passed" if all(self.trays) else ", a tray is empty"
        return "\n".join([*lines, f"pile: {len(self.pile)} tiles{end if self.over else ''}"])

    def _word(self, word: str) -> int:
        if word not in (DRAW, PASS):
            raise ValueError(f"{word!r} is no action; actions are {DRAW}, {PASS}, or a tile, an orientation and a location")
        if self.over:
            raise IllegalActionError("the game is over")
        if not self.placements and self.config.start == "highest":
            tiles = " or ".join(map(name_of, self.forced()))
            raise IllegalActionError(f"the round begins with the highest tile, {tiles}, and nobody draws or passes before")
        why = f"{MAX_DRAWS} tiles were drawn in this turn" if self.draws == MAX_DRAWS else "the pile is empty"
        may_draw = bool(self.pile) and self.draws < MAX_DRAWS
        if word == DRAW and not may_draw:
            raise IllegalActionError(f"{why}, so no other may be drawn")
        if word == PASS and may_draw:
            raise IllegalActionError(
                f"nobody passes who can draw: {self.draws} of {MAX_DRAWS} tiles were drawn in this turn, and the pile has"
                f" {len(self.pile)}"
            )
        return self.config.draw if word == DRAW else self.config.pass_

    def _first(self, tile: Tile, orientation: int, cell: Cell) -> int:
        if cell != (0, 0) or corners(tile, orientation) != corners(tile, 0):
            raise IllegalActionError(
                f"the first tile lies on (0, 0) as {ORIENTATIONS[0]} here; the five other ways are the same table, turned"
            )
        if self.config.start == "highest" and tile not in self.forced():
            raise IllegalActionError(f"the round begins with the highest tile, {' or '.join(map(name_of, self.forced()))}")
        return self.config.first + tile_id(tile)

    def _free_corner(self, cell: Cell) -> int:
        right, _, left = (neighbour in self.figure.tiles for neighbour in neighbours(cell))
        return 2 if left else 0 if right else 1


def unwrapped(config: Config, number: int, taken: Collection[int]) -> Cell:
    """The cell with this number on the torus, where tiles lie on those in ``taken``, and on it or beside it."""
    # On the torus the figure has no gap and does not close, and it has cell (0, 0): follow it from there to the left and up.
    place = []
    for length, line_of in (
        (config.columns, lambda cell: cell % config.columns),
        (config.rows, lambda cell: cell // config.columns),
    ):
        lines = {line_of(cell) for cell in taken}
        begin = -1
        while begin % length in lines:
            begin -= 1
        place.append(begin + (line_of(number) - begin) % length)
    return place[0], place[1]


def _draw(cells: list[Cell], numbers: dict[Cell, int], color: bool) -> list[str]:
    """Triangles on lines of text: a half of a tile's width is two characters, a row of cells two lines."""
    if not cells:
        return ["(nothing lies)"]
    left, top = min(x for x, _ in numbers), min(y for _, y in numbers)
    canvas: dict[tuple[int, int], str] = {}
    for cell in cells:
        line = 2 * (cell[1] - top) + 1
        (x, base), (_, apex), _ = vertices(cell)
        at = 2 * (x - left)
        up = base > apex
        canvas.update({(line, at + 1): "/" if up else "\\", (line, at + 3): "\\" if up else "/", (line, at + 2): "."})
        canvas.update({(2 * (base - top), at + i): "-" for i in range(1, 4)})
    for (x, y), number in numbers.items():
        canvas[2 * (y - top), 2 * (x - left)] = f"\x1b[1m{number}\x1b[0m" if color else str(number)
    height, width = max(line for line, _ in canvas) + 1, max(at for _, at in canvas) + 1
    return ["".join(canvas.get((line, at), " ") for at in range(width)).rstrip() for line in range(height)]
