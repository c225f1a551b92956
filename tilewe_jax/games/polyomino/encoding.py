"""The encoding of a position for small networks: bitboards and counts of every colour, in the order of turns.

Observations (``observation``) are binary planes of the pieces on the board, from which a deep network infers the legal
placements. A shallow network cannot, so the encoding contains them. Functions of lanes, see ``tilewe_jax.lanes``.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import popcount_sum
from tilewe_jax.games.polyomino import contacts, movegen
from tilewe_jax.games.polyomino.boards import Board, Hand, pick, planes, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, Cell
from tilewe_jax.games.polyomino.rules import State, cells_placed
from tilewe_jax.lanes import materialize


class Encoding(NamedTuple):
    """A position from the perspective of its mover: colours in the order of their turns, the colour to move first."""

    color: Int32[Array, "*lanes"]
    """The colour to move."""
    cells: UInt32[Array, "colors words *lanes"]
    """Cells of each colour."""
    free: UInt32[Array, "colors words *lanes"]
    """Cells free to each colour, see ``boards.planes``."""
    corners: UInt32[Array, "colors words *lanes"]
    """Open corners of each colour: its corners that are free to it."""
    reachable: UInt32[Array, "colors words *lanes"]
    """The union of the legal placements of each colour, as if it were to move."""
    legal: Int32[Array, "colors pieces *lanes"]
    """Number of these placements by piece."""
    hands: UInt32[Array, "colors *lanes"]
    """Pieces that are not placed."""
    out: Bool[Array, "colors *lanes"]
    """True for colours that are out, and thus without legal placements."""
    points: Int32[Array, "colors *lanes"]
    """Cells placed."""


def encode(config: Config, state: State) -> Encoding:
    """Encode positions; the colours are encoded together, each in separate lanes, so that this is compiled once."""
    size, colors, lanes = words(config), config.colors, len(state.current_color)
    color = ((state.current_color[None] + np.arange(colors, dtype=np.int32)[:, None]) % colors).ravel()
    occupied, hands, out = (jnp.tile(leaf, colors) for leaf in (state.occupied, state.hands, state.out))
    free, corners, hand = materialize(partial(planes, config), occupied, hands, color)
    cells, held, is_out = pick(list(occupied), color[None]), pick(list(hands), color), pick(list(out), color)
    reachable, legal = _legal(config, free, corners, jnp.where(is_out, np.uint32(0), hand))
    boards = cells, free[:size], (free & corners)[:size], reachable
    encoded = *boards, legal, held, is_out, cells_placed(config, held)
    by_color = [jnp.moveaxis(part.reshape(*part.shape[:-1], colors, lanes), -2, 0) for part in encoded]
    return Encoding(state.current_color, *by_color)


def _legal(config: Config, free: Board, corners: Board, hand: Hand) -> tuple[Board, Int32[Array, "pieces lanes"]]:
    """The union of the legal placements of a colour, and their number by piece."""

    def reduced(free: Board, corners: Board, hand: Hand) -> tuple[dict[Cell, Board], list[Int32[Array, "words lanes"]]]:
        legal = movegen.by_orientation(config, free, corners, hand)
        by_piece = [[anchors for i, anchors in legal.items() if ORIENTATIONS[i].piece == piece] for piece in config.pieces]
        return contacts.anchors_by_offset(legal), [popcount_sum(boards) for boards in by_piece]

    anchors, counts = materialize(reduced, free, corners, hand)
    reachable = materialize(partial(contacts.cells_at, config), anchors)
    return reachable, jnp.stack([jnp.sum(count, axis=0, dtype=jnp.int32) for count in counts])
