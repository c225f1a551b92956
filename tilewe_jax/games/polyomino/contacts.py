"""Placements counted by contact, as the package ``tilewe`` counts moves, and the cells that placements reach.

A move of that package names a placement by one of its *contacts*: a cell of the piece that can touch an own piece corner to
corner, and that lies on an open corner (a corner free to the colour). A placement has one name per contact on an open
corner: at least one, except near start cells inside the board. All functions take the results of ``boards.planes``, with
lanes last.
"""

from collections.abc import Iterable
from functools import reduce

import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, popcount_sum
from tilewe_jax.games.polyomino import movegen
from tilewe_jax.games.polyomino.boards import Board, Hand, window, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, Cell
from tilewe_jax.lanes import materialize


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of pairs of a legal placement and one of its contacts on an open corner, by the word that holds the anchor."""
    size = words(config)
    masks, held = [], movegen.in_hand(hand)
    for i, fit in _fits(config, free).items():
        anchors = fit & held[i][None]
        masks += [anchors & window(corners, config.bit(contact), size) for contact in ORIENTATIONS[i].contacts]
    return popcount_sum(masks[::-1])


def playable_corners(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "words lanes"]:
    """The open corners on which a contact of some legal placement lies."""

    def anchors(free: Board, hand: Hand) -> dict[Cell, Board]:
        """Anchors of all placements that fit and have a contact at an offset, by offset."""
        held = movegen.in_hand(hand)
        fits = {i: fit & held[i][None] for i, fit in _fits(config, free).items()}
        return _union_by_offset((contact, fit) for i, fit in fits.items() for contact in ORIENTATIONS[i].contacts)

    return cells_at(config, materialize(anchors, free, hand)) & corners[: words(config)]


def reachable_cells(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "words lanes"]:
    """The union of the cells of all legal placements."""

    def anchors(free: Board, corners: Board, hand: Hand) -> dict[Cell, Board]:
        return anchors_by_offset(movegen.by_orientation(config, free, corners, hand))

    return cells_at(config, materialize(anchors, free, corners, hand))


def anchors_by_offset(legal: dict[int, Board]) -> dict[Cell, Board]:
    """Convert anchors of placements by orientation into anchors of placements that have a cell at an offset, by offset."""
    return _union_by_offset((cell, anchors) for i, anchors in legal.items() for cell in ORIENTATIONS[i].cells)


def _union_by_offset(boards: Iterable[tuple[Cell, Board]]) -> dict[Cell, Board]:
    """The union of the boards of each offset."""
    united: dict[Cell, Board] = {}
    for offset, board in boards:
        united[offset] = united[offset] | board if offset in united else board
    return united


def cells_at(config: Config, anchors: dict[Cell, Board]) -> Board:
    """The union of cells at given offsets from given anchors."""
    return reduce(jnp.bitwise_or, [_shift_up(board, config.bit(offset)) for offset, board in anchors.items()])


def _fits(config: Config, free: Board) -> dict[int, Board]:
    """The anchors at which an orientation covers free cells only, for each orientation in play."""
    rooms = movegen.room(config)

    def cell(cell: Cell) -> Board:
        fit = window(free, config.bit(cell), words(config))
        return fit & rooms[cell[0]][: words(config)] if cell[0] else fit

    return movegen.grow(config.orientations, cell, jnp.bitwise_and)


def _shift_up(board: UInt32[Array, "words lanes"], bits: int) -> UInt32[Array, "words lanes"]:
    """Shift a board up by a number of bits; bits beyond the last word are lost."""
    size = board.shape[0]
    below = bits // WORD_BITS + 1
    return window(jnp.pad(board, ((below, 1), (0, 0))), below * WORD_BITS - bits, size)
