"""The rules of every polyomino variant on plain Python integers: the readable second implementation, and the host's board.

A board is one integer. Cell (x, y) is bit ``y * (size + 1) + x``: a guard column that is never free follows the last one, so
that no shape reaches around the end of a row unnoticed. Pieces are moved by shifting, all anchors at once: bit ``a`` of
``fits`` says that a shape laid with the bottom left of its bounding box on cell ``a`` covers free cells only.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from operator import or_

from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MONOMINO, ORIENTATION_OF_CELLS, ORIENTATIONS, Cell, normalize

Placement = tuple[int, int]
"""Index of an orientation, and the bit of the cell that holds the bottom left of its bounding box."""


class Geometry:
    """What follows from the size of the board and the pieces in play; one for all positions of a variant."""

    def __init__(self, config: Config) -> None:
        size = self.size = config.size
        stride = self.stride = size + 1
        self.board = sum(((1 << size) - 1) << y * stride for y in range(size))
        self.starts = [self.mask(cells) for cells in config.start_cells]
        self.full_hand = config.full_hand

        self.offsets = [0]
        """Distances in bits from the anchor of a shape to its cells."""
        self.growth = [
            self._grown(i, config) for i in sorted(range(len(ORIENTATIONS)), key=lambda i: len(ORIENTATIONS[i].cells))
        ]
        """How each orientation arises from a smaller one plus a cell, smaller ones first: its index; that of the smaller one,
        and how many bits that lies off; index of the cell's offset; and the piece as a set, none if it is not in play."""
        self.cells = [self.mask(orientation.cells) for orientation in ORIENTATIONS]
        # What surrounds a piece, moved up and right by one cell, so that nothing is lost at the bottom or the left.
        surroundings = [self.around(cells << stride + 1) for cells in self.cells]
        self.beside = [beside for beside, _ in surroundings]
        self.diagonal = [diagonal for _, diagonal in surroundings]

    def _grown(self, i: int, config: Config) -> tuple[int, int, int, int, int]:
        orientation = ORIENTATIONS[i]
        piece = 1 << orientation.piece if i in config.orientations else 0
        if len(orientation.cells) == 1:
            return i, i, 0, 0, piece
        rests = [(cell, tuple(other for other in orientation.cells if other != cell)) for cell in orientation.cells]
        shapes = [(cell, rest) for cell, rest in rests if normalize(rest) in ORIENTATION_OF_CELLS]
        cell, rest = min(shapes, key=lambda item: self.bit(_corner(item[1])))
        return i, ORIENTATION_OF_CELLS[normalize(rest)], self.bit(_corner(rest)), self._offset(self.bit(cell)), piece

    def _offset(self, bits: int) -> int:
        """Index of a distance among those that occur."""
        if bits not in self.offsets:
            self.offsets.append(bits)
        return self.offsets.index(bits)

    def around(self, cells: int) -> tuple[int, int]:
        """The cells with an edge in common with one of a board, and those diagonal to one; also such as lie off the board."""
        beside = cells << 1 | cells >> 1 | cells << self.stride | cells >> self.stride
        above, below = cells << self.stride, cells >> self.stride
        return beside, above << 1 | above >> 1 | below << 1 | below >> 1

    def bit(self, cell: Cell) -> int:
        """Index of the bit of a cell."""
        return cell[1] * self.stride + cell[0]

    def cell(self, bit: int) -> Cell:
        """The cell of a bit."""
        return bit % self.stride, bit // self.stride

    def mask(self, cells: Iterable[Cell]) -> int:
        """Cells as a board."""
        return reduce(or_, (1 << self.bit(cell) for cell in cells), 0)


@lru_cache(maxsize=64)
def geometry(config: Config) -> Geometry:
    """The geometry of a variant."""
    return Geometry(config)


def bits(mask: int) -> Iterator[int]:
    """Indices of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Position:
    """A position of a polyomino game, with the moves that led there; mutable.

    ``place`` and ``leave`` trust their caller; ask ``is_legal`` first.
    """

    __slots__ = (
        "beside",
        "config",
        "diagonal",
        "finished",
        "geometry",
        "hands",
        "history",
        "monomino_last",
        "occupied",
        "out",
        "player",
        "taken",
        "witness",
    )

    def __init__(self, config: Config) -> None:
        players = config.players
        self.config = config
        self.geometry = geometry(config)
        self.player = 0
        """Whose turn it is; at the end who was asked last."""
        self.finished = False
        self.out = 0
        """Who passed or was found unable to move, bit ``p`` for player ``p``; never asked again."""
        self.taken = 0
        """Everybody's cells."""
        self.occupied = [0] * players
        """Each player's cells."""
        self.beside = [0] * players
        """Cells with an edge in common with an own one, on the board or not."""
        self.diagonal = [0] * players
        """Cells diagonal to an own one, on the board or not."""
        self.hands = [config.full_hand] * players
        """Pieces left, bit ``p`` for piece ``p``."""
        self.monomino_last = [False] * players
        """Whose latest piece was the single cell."""
        self.witness = [0] * players
        """Cells of a placement that was legal when the player last was asked; it is as long as they are empty."""
        self.history: list[tuple[Placement | None, int, int, int, int, int, bool, int, int]] = []

    def copy(self) -> "Position":
        """The same position, independent of this one."""
        twin = object.__new__(Position)
        for name in Position.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, list) else value)
        return twin

    def __getstate__(self) -> dict[str, object]:
        """All but what follows from the variant."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "geometry"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """The inverse of ``__getstate__``."""
        for name, value in state.items():
            setattr(self, name, value)
        self.geometry = geometry(self.config)

    def free(self, player: int) -> int:
        """Cells that the player may cover."""
        return self.geometry.board & ~(self.taken | self.beside[player])

    def corners(self, player: int) -> int:
        """Cells of which a placement must cover one; free or not."""
        starts = self.geometry.starts[player]
        if self.config.starts_stay_open:
            return self.diagonal[player] | starts
        return starts if self.hands[player] == self.geometry.full_hand else self.diagonal[player]

    def placements(self, player: int) -> Iterator[tuple[int, int]]:
        """Every orientation that the player can place somewhere, with the bits of its anchors; as if it were his turn.

        Small pieces come first.
        """
        free = self.free(player)
        corners = free & self.corners(player)
        hand = self.hands[player]
        if self.finished or not corners:
            return
        frees = [free >> offset for offset in self.geometry.offsets]
        touching = [corners >> offset for offset in self.geometry.offsets]
        fits, touches = frees[:1] * len(ORIENTATIONS), touching[:1] * len(ORIENTATIONS)
        for i, part, shift, cell, piece in self.geometry.growth:
            if shift:
                fit, touch = (fits[part] >> shift) & frees[cell], touches[part] >> shift | touching[cell]
            else:
                fit, touch = fits[part] & frees[cell], touches[part] | touching[cell]
            fits[i], touches[i] = fit, touch
            if hand & piece and (anchors := fit & touch):
                yield i, anchors

    def can_place(self, player: int) -> bool:
        """Whether the player can place a piece; as if it were his turn."""
        witness = self.witness[player]
        if witness and not witness & self.taken:
            return not self.finished
        for i, anchors in self.placements(player):
            self.witness[player] = self.geometry.cells[i] << (anchors & -anchors).bit_length() - 1
            return True
        return False

    def is_legal(self, placement: Placement, player: int) -> bool:
        """Whether the player may make this placement; as if it were his turn."""
        orientation, anchor = placement
        cells = self.geometry.cells[orientation] << anchor
        return bool(
            not self.finished
            and self.hands[player] >> ORIENTATIONS[orientation].piece & 1
            and not cells & ~self.free(player)
            and cells & self.corners(player)
        )

    def place(self, placement: Placement) -> None:
        """Place a piece of the player whose turn it is, and hand the turn on."""
        player, geometry = self.player, self.geometry
        orientation, anchor = placement
        piece = ORIENTATIONS[orientation].piece
        self._remember(placement)
        cells = geometry.cells[orientation] << anchor
        self.taken |= cells
        self.occupied[player] |= cells
        self.beside[player] |= geometry.beside[orientation] << anchor >> geometry.stride + 1
        self.diagonal[player] |= geometry.diagonal[orientation] << anchor >> geometry.stride + 1
        self.hands[player] ^= 1 << piece
        self.monomino_last[player] = piece == MONOMINO
        self.witness[player] = 0
        self._hand_on()

    def leave(self) -> None:
        """Have the player whose turn it is pass, for the rest of the game."""
        self._remember(None)
        self.out |= 1 << self.player
        self._hand_on()

    def undo(self) -> None:
        """Take the last placement or pass back."""
        _, player, occupied, beside, diagonal, hand, monomino_last, witness, out = self.history.pop()
        self.taken ^= self.occupied[player] ^ occupied
        self.occupied[player], self.beside[player], self.diagonal[player] = occupied, beside, diagonal
        self.hands[player], self.monomino_last[player], self.witness[player] = hand, monomino_last, witness
        self.player, self.out, self.finished = player, out, False

    def score(self, player: int) -> int:
        """Cells placed, and the bonuses where the variant has them."""
        cells = self.occupied[player].bit_count()
        if self.hands[player]:
            return cells
        return cells + self.config.bonus_all + self.config.bonus_monomino_last * self.monomino_last[player]

    def actions(self, player: int) -> list[int]:
        """The ids of the placements that the player can make, ascending; as if it were his turn."""
        size, cells = self.config.size, self.config.cells
        rows = [bit // self.geometry.stride for bit in range(self.geometry.board.bit_length())]
        return sorted(
            orientation * cells + bit - rows[bit] * (self.geometry.stride - size)
            for orientation, anchors in self.placements(player)
            for bit in bits(anchors)
        )

    def placement(self, action: int) -> Placement:
        """The placement of this id."""
        orientation, cell = divmod(action, self.config.cells)
        return orientation, self.geometry.bit((cell % self.config.size, cell // self.config.size))

    def _remember(self, placement: Placement | None) -> None:
        p = self.player
        own = self.occupied[p], self.beside[p], self.diagonal[p], self.hands[p], self.monomino_last[p], self.witness[p]
        self.history.append((placement, p, *own, self.out))

    def _hand_on(self) -> None:
        players = self.config.players
        last = self.player
        for distance in range(1, players + 1):
            player = (last + distance) % players
            if not self.out >> player & 1:
                self.player = player
                if self.can_place(player):
                    return
                self.out |= 1 << player
        self.finished = True


def _corner(cells: tuple[Cell, ...]) -> Cell:
    """The bottom left of the bounding box."""
    return min(x for x, _ in cells), min(y for _, y in cells)
