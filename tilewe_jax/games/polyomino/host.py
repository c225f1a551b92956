"""The rules of every polyomino variant on plain Python integers: the engine of the host, and a second implementation.

A board is one integer. Cell (x, y) is bit ``y * stride + x``. Rows are separated by guard columns that are never free, as many
as the largest piece has cells, so that no piece and no cell that it can block wraps around the end of a row.

Legal placements are maintained incrementally. A *fit* is a way to cover a given cell: an orientation, and one of its cells,
which lies there. For each colour a dictionary maps each open corner to the set of fits that are legal there, an integer with
one bit per fit, numbered as in ``FITS``. A placement clears the fits that it blocks, by a table lookup for each corner, and
adds the corners that it opens.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from itertools import compress, pairwise, product
from operator import and_, or_
from typing import Any, NamedTuple

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.notation import cell_name
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, MONOMINO, ORIENTATIONS, PIECE_NAMES, Cell

Placement = tuple[int, int]
"""Index of an orientation, and the bit of the cell that holds the bottom left of its bounding box."""

# One neighbour of an open corner in its row and one in its column are nearly always blocked, which leaves 127 of the 414 fits.
# Each of these pairs of neighbours has its own numbers for the fits, so that their sets are short integers.
BLOCKS = [(1, 1), (1, -1), (-1, 1), (-1, -1), (0, 0)]
"""Five blocks of numbers of fits. Block (x, y) omits the fits that cover the cell at distance (x, 0) or (0, y) from the corner,
and serves corners where both cells are blocked when the corner opens. Block (0, 0) has all fits, for other corners."""
FITS: list[tuple[int, Cell]] = []
"""The fits of all blocks: index of an orientation, and the cell of it that lies on the corner. In a block the contacts come
first; the others are legal only on start cells inside the board."""
BLOCK_STARTS = [0]
"""Number of the first fit of each block, followed by the total number of fits."""
for _x, _y in BLOCKS:
    _block = [
        (i, (x, y))
        for i, orientation in enumerate(ORIENTATIONS)
        for x, y in orientation.cells
        if not (_x and {(x + _x, y), (x, y + _y)} & set(orientation.cells))
    ]
    FITS += sorted(_block, key=lambda fit: fit[1] not in ORIENTATIONS[fit[0]].contacts)
    BLOCK_STARTS.append(len(FITS))
BLOCK_OF = [max(0, bisect_left(BLOCK_STARTS, length) - 1) for length in range(len(FITS) + 1)]
"""The index of the block of a set of fits, by the bit length of the set."""
PIECE_FITS = [0] * len(PIECE_NAMES)
"""The fits of each piece as a bit set over all blocks."""
for _fit, (_i, _) in enumerate(FITS):
    PIECE_FITS[ORIENTATIONS[_i].piece] |= 1 << _fit
ALL_FITS = (1 << len(FITS)) - 1

MAX_NAMED = 4
"""Maximum number of start cells that ``explain_placement`` names."""
_REACH = MAX_PIECE_SIZE - 1
"""Largest distance, along rows plus along columns, between two cells of a piece."""


@lru_cache(maxsize=1)
def _not_covering() -> dict[Cell, int]:
    """Map each distance (x, y) from a corner to the set of fits that do not cover the cell at that distance."""
    fits: dict[Cell, int] = {}
    for fit, (i, (x0, y0)) in enumerate(FITS):
        for x, y in ORIENTATIONS[i].cells:
            fits[x - x0, y - y0] = fits.get((x - x0, y - y0), ALL_FITS) ^ 1 << fit
    return fits


class Shape(NamedTuple):
    """Bit boards and tables of an orientation."""

    piece: int
    cells: int
    """Its cells, the bounding box starting at bit 0."""
    beside: int
    """Cells that share an edge with it, shifted up and right by one cell, so that no bit is negative."""
    diagonal: int
    """Cells diagonal to one of its cells, shifted likewise."""
    reach: int
    """Corners at which it may block a fit, shifted up and right by ``Geometry.center`` bits."""
    allowed: list[int]
    """The fits that opponents keep at a corner; index ``Geometry.origin`` + corner - anchor."""
    allowed_own: list[int]
    """The fits that its owner keeps, who must not touch its edges and no longer has the piece."""


class Geometry(dict[int, Shape]):
    """Tables for a size of the board: the shapes by orientation, computed on first access, and constants."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        stride = self.stride = size + MAX_PIECE_SIZE
        self.margin = stride + 1
        """Bits by which the surroundings of a shape are shifted."""
        self.board = sum(((1 << size) - 1) << y * stride for y in range(size))
        self.anchors = [self.bit(cell) for _, cell in FITS]
        """Distance in bits from the anchor to the corner, for each fit."""
        ids = [i * size * size - (y * size + x) for i, (x, y) in FITS]
        self.ids = [ids[start:end] for start, end in pairwise(BLOCK_STARTS)]
        """The id of the placement minus the number of the cell at the corner, for each fit of each block."""
        self.center = self.bit((_REACH, _REACH))
        """Bits by which the surroundings of a corner are shifted."""
        not_covering = {self.center + self.bit(cell): fits for cell, fits in _not_covering().items()}
        beside = [1 << self.center + self.bit(cell) for cell in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        self.beside = sum(beside)
        """The four cells beside a corner."""
        blocks = [_Window(not_covering, start, end) for start, end in pairwise(BLOCK_STARTS)]
        self.windows: dict[int, _Window] = {}
        """The block of a corner, by the set of blocked cells beside it."""
        for blocked in product((0, 1), repeat=4):
            right, left, above, below = blocked
            block = (right or -left, above or -below)
            self.windows[sum(compress(beside, blocked))] = blocks[BLOCKS.index(block if all(block) else (0, 0))]
        self.origin = self.board.bit_length() + 10 * stride
        """More than the distance in bits between a cell of the board and any cell within reach of a piece."""
        self.everything = (1 << self.board.bit_length() + 2 * self.center) - 1
        """The board and all cells within reach of a piece on it, shifted up and right by ``center`` bits."""

    def __missing__(self, orientation: int) -> Shape:
        piece = ORIENTATIONS[orientation].piece
        cells = self.mask(ORIENTATIONS[orientation].cells)
        beside, diagonal = self.around(cells << self.margin)
        allowed = self._allowed(cells, 0, ALL_FITS)
        allowed_own = self._allowed(cells << self.margin | beside, self.margin, ALL_FITS & ~PIECE_FITS[piece])
        reach = reduce(or_, (cells << self.center - self.bit(cell) for cell in _not_covering()))
        shape = self[orientation] = Shape(piece, cells, beside, diagonal, reach, allowed, allowed_own)
        return shape

    def _allowed(self, blocked: int, shift: int, fits: int) -> list[int]:
        """Return the subset of fits that cover no blocked cell, by the distance of the corner plus ``origin``."""
        allowed = [fits] * (2 * self.origin)
        for bit in bits(blocked):
            for (x, y), not_covering in _not_covering().items():
                allowed[self.origin + bit - shift - y * self.stride - x] &= not_covering
        return allowed

    def around(self, cells: int) -> tuple[int, int]:
        """Return the cells that share an edge with a set of cells, and the cells diagonal to it, on the board or not."""
        beside = cells << 1 | cells >> 1 | cells << self.stride | cells >> self.stride
        above, below = cells << self.stride, cells >> self.stride
        return beside, above << 1 | above >> 1 | below << 1 | below >> 1

    def fits_at(self, corners: int, free: int, fits: int) -> dict[int, int]:
        """Map each corner to the subset of ``fits`` that covers free cells only, in one block; without empty subsets."""
        windows, beside = self.windows, self.beside
        blocked = self.everything ^ free << self.center
        result = {}
        while corners:
            corner = corners.bit_length() - 1
            corners ^= 1 << corner
            near = blocked >> corner
            window = windows[near & beside]
            low, middle, high = window.parts
            if left := fits & window[near & low] & window[near & middle] & window[near & high]:
                result[corner] = left
        return result

    def bit(self, cell: Cell) -> int:
        """Index of the bit of a cell."""
        return cell[1] * self.stride + cell[0]

    def cell(self, bit: int) -> Cell:
        """The cell of a bit."""
        return bit % self.stride, bit // self.stride

    def mask(self, cells: Iterable[Cell]) -> int:
        """Cells as a board."""
        return reduce(or_, (1 << self.bit(cell) for cell in cells), 0)


class _Window(dict[int, int]):
    """The fits of a block that cover no blocked cell, by the blocked cells around the corner; computed on first access.

    Lookups are split into three parts of the surroundings, which keeps the table small: at most 2**10 + 2**10 + 2**8 entries
    if two cells beside the corner are blocked.
    """

    def __init__(self, not_covering: dict[int, int], start: int, end: int) -> None:
        super().__init__()
        self._fits = (1 << end) - (1 << start)
        self._not_covering = not_covering
        cells = sorted(bit for bit, fits in not_covering.items() if self._fits & fits not in {0, self._fits})
        third = -(-len(cells) // 3)
        self.parts = [sum(1 << bit for bit in cells[first : first + third]) for first in (0, third, 2 * third)]
        """The cells that the fits can cover, except the corner."""

    def __missing__(self, blocked: int) -> int:
        allowed = self[blocked] = reduce(and_, (self._not_covering[bit] for bit in bits(blocked)), self._fits)
        return allowed


@lru_cache(maxsize=30)
def geometry(size: int) -> Geometry:
    """Return the geometry of boards of this size."""
    return Geometry(size)


def fits_of(hand: int) -> int:
    """Return the fits of a set of pieces."""
    first, second, third = _FITS_OF
    return first[hand & 127] | second[hand >> 7 & 127] | third[hand >> 14]


def bits(mask: int) -> Iterator[int]:
    """Iterate over the indices of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def flags(mask: int) -> bytes:
    """Return a byte for each bit up to the highest set one, ascending: 1 if it is set, otherwise 0."""
    return bin(mask)[:1:-1].encode().translate(_FLAGS)


_FLAGS = bytes(code == ord("1") for code in range(256))
_FITS_OF = [
    [reduce(or_, (PIECE_FITS[first + piece] for piece in bits(hand)), 0) for hand in range(1 << 7)] for first in (0, 7, 14)
]
"""The fits of all sets of the pieces 0 to 6, 7 to 13 and 14 to 20."""


class Position:
    """A mutable position of a polyomino game with its history. ``place`` and ``leave`` do not check legality."""

    __slots__ = (
        "beside",
        "color",
        "config",
        "corners",
        "finished",
        "geometry",
        "hands",
        "history",
        "legal",
        "monomino_last",
        "occupied",
        "out",
        "taken",
    )

    def __init__(self, config: Config) -> None:
        colors = config.colors
        self.config = config
        self.geometry = geometry(config.size)
        self.color = 0
        """The colour to move; at the end the last colour that passed or was blocked."""
        self.finished = False
        self.out = 0
        """Colours that have passed or are blocked, for the rest of the game; bit ``p`` for colour ``p``."""
        self.taken = 0
        """Cells of all colours."""
        self.occupied = [0] * colors
        """Cells of each colour."""
        self.beside = [0] * colors
        """Cells that share an edge with an own cell, on the board or not."""
        corners, legal = _at_start(config)
        self.corners = corners.copy()
        """Cells of which a placement must cover one, on the board or not, free or not: diagonal to an own cell, or start cells
        while they are open."""
        self.hands = [config.full_hand] * colors
        """Pieces that are not placed, bit ``p`` for piece ``p``."""
        self.monomino_last = [False] * colors
        """True for colours whose latest piece was the single cell."""
        self.legal = legal
        """The legal fits of each colour, as if it were to move: a set of fits by the bit of each open corner that has any.
        Copies share the list and the dictionaries, which are replaced, never changed."""
        self.history: list[tuple[Placement | None, int, int, int, int, int, bool, int, list[dict[int, int]]]] = []
        """The placements so far, ``None`` for a pass, each with the previous values of the fields that it changed."""

    @classmethod
    def of(
        cls, config: Config, occupied: Iterable[int], hands: Iterable[int], out: int, monomino_last: Iterable[bool], color: int
    ) -> "Position":
        """Construct a position from its fields, with an empty history."""
        position = object.__new__(cls)
        position.config, position.geometry = config, geometry(config.size)
        position.color, position.out, position.finished = color, out, out == (1 << config.colors) - 1
        position.occupied, position.hands, position.monomino_last = list(occupied), list(hands), list(monomino_last)
        position.taken = reduce(or_, position.occupied)
        position.beside, position.corners = [], []
        for cells, starts in zip(position.occupied, config.start_cells, strict=True):
            beside, diagonal = position.geometry.around(cells)
            position.beside.append(beside)
            closed = cells and not config.starts_stay_open
            position.corners.append(diagonal if closed else diagonal | position.geometry.mask(starts))
        position.legal = [position._legal(color) for color in range(config.colors)]
        position.history = []
        return position

    def copy(self) -> "Position":
        """Return an independent copy."""
        twin = object.__new__(Position)
        twin.config, twin.geometry, twin.color, twin.finished = self.config, self.geometry, self.color, self.finished
        twin.out, twin.taken, twin.legal = self.out, self.taken, self.legal
        twin.occupied, twin.beside, twin.corners = self.occupied.copy(), self.beside.copy(), self.corners.copy()
        twin.hands, twin.monomino_last, twin.history = self.hands.copy(), self.monomino_last.copy(), self.history.copy()
        return twin

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the first position and the moves."""
        start = self.copy()
        while start.history:
            start.undo()
        fields = start.config, start.occupied, start.hands, start.out, start.monomino_last, start.color
        return _replay, (fields, [entry[0] for entry in self.history])

    def playable(self, color: int) -> int:
        """Return the pieces that the colour may place next: only the start piece of a full hand, if the variant has one."""
        hand = self.hands[color]
        return self.config.first_hand if hand == self.config.full_hand else hand

    def free(self, color: int) -> int:
        """Return the cells that the colour may cover."""
        return self.geometry.board & ~(self.taken | self.beside[color])

    def placements(self, color: int) -> set[Placement]:
        """Return the legal placements of the colour, as if it were to move."""
        if self.finished:
            return set()
        anchors = self.geometry.anchors
        return {(FITS[fit][0], corner - anchors[fit]) for corner, fits in self.legal[color].items() for fit in bits(fits)}

    def can_place(self, color: int) -> bool:
        """Return whether the colour can place a piece, as if it were to move."""
        return not self.finished and bool(self.legal[color])

    def is_legal(self, placement: Placement, color: int) -> bool:
        """Return whether a placement is legal for the colour, as if it were to move."""
        orientation, anchor = placement
        cells = self.geometry[orientation].cells << anchor
        return bool(
            not self.finished
            and self.playable(color) >> ORIENTATIONS[orientation].piece & 1
            and not cells & ~self.free(color)
            and cells & self.corners[color]
        )

    def place(self, placement: Placement) -> None:
        """Place a piece of the colour to move, and pass the turn on."""
        self._remember(placement)
        mover, geometry, corners = self.color, self.geometry, self.corners
        orientation, anchor = placement
        piece, cells, beside, diagonal, reach, allowed, allowed_own = geometry[orientation]
        origin = geometry.origin - anchor
        legal = self.legal = self.legal.copy()

        # Opponents lose the fits that cover a cell of the piece.
        reach = (reach << anchor >> geometry.center) & ~self.taken
        for color, fits_at in enumerate(legal):
            if color != mover and (near := corners[color] & reach & ~self.beside[color]):
                left = fits_at.copy()
                while near:
                    corner = near.bit_length() - 1
                    near ^= 1 << corner
                    if corner in fits_at:
                        if fits := fits_at[corner] & allowed[origin + corner]:
                            left[corner] = fits
                        else:
                            del left[corner]
                legal[color] = left

        cells <<= anchor
        known = corners[mover]  # Corners whose legal fits are known, except fits that the piece blocks.
        if not self.occupied[mover]:
            if not self.config.starts_stay_open:
                known = corners[mover] = 0
            elif self.config.start_piece is not None:
                known = 0
        self.taken |= cells
        self.occupied[mover] |= cells
        self.beside[mover] |= beside << anchor >> geometry.margin
        corners[mover] |= diagonal << anchor >> geometry.margin
        self.hands[mover] ^= 1 << piece
        self.monomino_last[mover] = piece == MONOMINO

        # The colour gains corners, and loses the fits that share an edge with the piece, and all fits of the piece itself.
        free = self.free(mover)
        left = geometry.fits_at(corners[mover] & free & ~known, free, fits_of(self.hands[mover]))
        if known:
            for corner, fits in legal[mover].items():
                if fits := fits & allowed_own[origin + corner]:
                    left[corner] = fits
        legal[mover] = left
        self._hand_on()

    def leave(self) -> None:
        """Pass with the colour to move, for the rest of the game."""
        self._remember(None)
        self.out |= 1 << self.color
        self._hand_on()

    def undo(self) -> None:
        """Take back the last placement or pass."""
        _, color, occupied, beside, corners, hand, monomino_last, out, legal = self.history.pop()
        self.taken ^= self.occupied[color] ^ occupied
        self.occupied[color], self.beside[color], self.corners[color] = occupied, beside, corners
        self.hands[color], self.monomino_last[color], self.legal = hand, monomino_last, legal
        self.color, self.out, self.finished = color, out, False

    def score(self, color: int) -> int:
        """Return the points of a colour: cells placed, plus the bonuses of the variant."""
        cells = self.occupied[color].bit_count()
        if self.hands[color]:
            return cells
        return cells + self.config.bonus_all + self.config.bonus_monomino_last * self.monomino_last[color]

    def actions(self, color: int) -> list[int]:
        """Return the ids of the legal placements of the colour, ascending, as if it were to move."""
        if self.finished:
            return []
        config, geometry = self.config, self.geometry
        found: set[int] = set()
        for corner, fits in self.legal[color].items():
            block, cell = BLOCK_OF[fits.bit_length()], config.bit(geometry.cell(corner))
            found.update([cell + number for number in compress(geometry.ids[block], flags(fits >> BLOCK_STARTS[block]))])
        return sorted(found)

    def placement(self, action: int) -> Placement:
        """Return the placement of an action id."""
        orientation, cell = divmod(action, self.config.cells)
        return orientation, self.geometry.bit((cell % self.config.size, cell // self.config.size))

    def _legal(self, color: int) -> dict[int, int]:
        """Compute ``legal`` of a colour from scratch."""
        free = self.free(color)
        return self.geometry.fits_at(free & self.corners[color], free, fits_of(self.playable(color)))

    def _remember(self, placement: Placement | None) -> None:
        p = self.color
        own = self.occupied[p], self.beside[p], self.corners[p], self.hands[p], self.monomino_last[p]
        self.history.append((placement, p, *own, self.out, self.legal))

    def resolve_passes(self) -> None:
        """Pass with the colour to move if it is out or blocked, until a colour can move or the game is over."""
        if not self.finished and (self.out >> self.color & 1 or not self.legal[self.color]):
            self.out |= 1 << self.color
            self._hand_on()

    def _hand_on(self) -> None:
        colors = self.config.colors
        last = self.color
        for distance in range(1, colors + 1):
            color = (last + distance) % colors
            if not self.out >> color & 1:
                self.color = color
                if self.legal[color]:
                    return
                self.out |= 1 << color
        self.finished = True


def explain_placement(position: Position, orientation: int, anchor: Cell) -> str | None:
    """Return the rule that a placement by the colour to move breaks; ``None`` if it is legal.

    Args:
      position: the position.
      orientation: index into ``pieces.ORIENTATIONS``.
      anchor: bottom left of the bounding box of the piece, on the board or not.
    """
    config, color, shape = position.config, position.color, ORIENTATIONS[orientation]
    if position.finished:
        return "the game is over"
    if not position.hands[color] >> shape.piece & 1:
        name = PIECE_NAMES[shape.piece]
        return f"{name} is already placed" if shape.piece in config.pieces else f"{name} is not among the pieces in play"
    if not position.playable(color) >> shape.piece & 1:
        return f"the first piece must be {config.start_piece}"
    if not config.fits(shape, anchor):
        return "it extends beyond the board"
    cells = position.geometry.mask((anchor[0] + x, anchor[1] + y) for x, y in shape.cells)
    cells_to_start = config.start_cells[color]
    starts = f"a start cell, {' or '.join(map(cell_name, cells_to_start))}"
    if len(cells_to_start) > MAX_NAMED:
        starts = f"one of the {len(cells_to_start)} start cells"
    rules = [
        (not cells & position.taken, "it covers a cell that is taken"),
        (not cells & position.beside[color], "it shares an edge with a piece of the same colour"),
        (
            cells & position.corners[color],
            f"the first piece must cover {starts}"
            if position.hands[color] == config.full_hand
            else "it touches no piece of the same colour corner to corner",
        ),
    ]
    return next((rule for is_kept, rule in rules if not is_kept), None)


@lru_cache(maxsize=64)
def _at_start(config: Config) -> tuple[list[int], list[dict[int, int]]]:
    """Return ``Position.corners`` and ``Position.legal`` of the initial position."""
    no_cells = [0] * config.colors
    start = Position.of(config, no_cells, [config.full_hand] * config.colors, 0, [False] * config.colors, 0)
    return start.corners, start.legal


def _replay(fields: tuple[Any, ...], placements: Iterable[Placement | None]) -> Position:
    """Return the position after placements and passes from an initial position."""
    position = Position.of(*fields)
    for placement in placements:
        position.leave() if placement is None else position.place(placement)
    return position
