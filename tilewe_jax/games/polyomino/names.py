"""Placements by name, as the package ``tilewe`` counts moves: once for each of their contacts that lies on an open corner.

Contacts are the cells of a piece that can touch an own piece corner to corner, so every placement has at least one name;
only around start cells inside the board there are placements without. All functions take boards of ``boards.reach`` words as
``boards.planes`` gives them.
"""

from collections.abc import Iterable
from functools import reduce

import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from tilewe_jax.bits import popcount_sum
from tilewe_jax.games.polyomino import movegen
from tilewe_jax.games.polyomino.boards import Board, Hand, window, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, Cell
from tilewe_jax.lanes import materialize


def counts(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "words lanes"]:
    """Number of names of legal placements anchored in each word of the board."""
    size = words(config)
    masks = []
    for i, fit in _fits(config, free).items():
        held = fit & movegen.in_hand(hand, i)[None]
        masks += [held & window(corners, config.bit(contact), size) for contact in ORIENTATIONS[i].contacts]
    return popcount_sum(masks[::-1])


def playable_corners(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "words lanes"]:
    """The open corners on which a contact of some piece can be laid."""

    def anchors(free: Board, hand: Hand) -> dict[Cell, Board]:
        """For each offset of a contact the anchors of all fitting pieces that have one there."""
        fits = {i: fit & movegen.in_hand(hand, i)[None] for i, fit in _fits(config, free).items()}
        return _by_offset((contact, fit) for i, fit in fits.items() for contact in ORIENTATIONS[i].contacts)

    return _laid(config, materialize(anchors, free, hand)) & corners[: words(config)]


def reached(config: Config, free: Board, corners: Board, hand: Hand) -> UInt32[Array, "words lanes"]:
    """The cells that some legal placement covers."""

    def anchors(free: Board, corners: Board, hand: Hand) -> dict[Cell, Board]:
        legal = movegen.by_orientation(config, free, corners, hand)
        return _by_offset((cell, anchors) for i, anchors in legal.items() for cell in ORIENTATIONS[i].cells)

    return _laid(config, materialize(anchors, free, corners, hand))


def _by_offset(boards: Iterable[tuple[Cell, Board]]) -> dict[Cell, Board]:
    """The union of the boards of each offset."""
    united: dict[Cell, Board] = {}
    for offset, board in boards:
        united[offset] = united[offset] | board if offset in united else board
    return united


def _laid(config: Config, anchors: dict[Cell, Board]) -> Board:
    """The cells that lie at these offsets from their anchors."""
    return reduce(jnp.bitwise_or, [_up(board, config.bit(offset)) for offset, board in anchors.items()])


def _fits(config: Config, free: Board) -> dict[int, Board]:
    """The anchors at which each orientation covers free cells only."""
    rooms = movegen.room(config)

    def cell(cell: Cell) -> Board:
        fit = window(free, config.bit(cell), words(config))
        return fit & rooms[cell[0]][: words(config)] if cell[0] else fit

    return movegen.grow(config, cell, jnp.bitwise_and)


def _up(board: UInt32[Array, "words lanes"], bits: int) -> UInt32[Array, "words lanes"]:
    """A board moved up by so many bits."""
    size = board.shape[0]
    below = bits // 32 + 1
    return window(jnp.pad(board, ((below, 1), (0, 0))), below * 32 - bits, size)
