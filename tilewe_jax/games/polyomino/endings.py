"""Endings of the polyomino games for exhaustive search: a game on a list of placements.

In an ending few placements are left. Each colour may only ever use placements that fit on its free cells and that its pieces
can still reach corner to corner. They are listed once. A position is then two sets of placements: the *open* ones, which fit
and whose piece is in the hand, and the *touched* ones, which cover a corner. A placement is legal if it is in both. To place a
piece removes a set of open placements and adds a set of touched ones; both sets are tables.
"""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import pack_words, popcount_sum, unpack_words
from tilewe_jax.endings import MAX_PRIORITY, Endings, Start, hashed
from tilewe_jax.games.polyomino import movegen, rules
from tilewe_jax.games.polyomino.boards import Board, neighbours, pack, pad_to_reach, planes, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MONOMINO, PIECE_SIZES
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.utils.loops import while_loop

NUM_PIECES = len(PIECE_SIZES)
_SIZES = np.array(PIECE_SIZES, np.int32)
_WINDOW = 64
"""Number of listed placements around a placement that ``dominated`` compares."""
Set = UInt32[Array, "words"]
"""A set of moves, packed."""


class Tables(NamedTuple):
    """The listed placements of an ending, for M moves in W words and C colours."""

    closes: UInt32[Array, "M W"]
    """Placements that a placement removes: they overlap it, or share its colour and touch its edges or have its piece."""
    touches: UInt32[Array, "M W"]
    """Placements of the same colour that touch a placement corner to corner."""
    closes_by_word: UInt32[Array, "W M"]
    """``closes`` transposed; and ``touches_by_word``."""
    touches_by_word: UInt32[Array, "W M"]
    of_color: UInt32[Array, "C W"]
    """The placements of each colour."""
    of_piece: UInt32[Array, "W C 21"]
    """The placements of each piece of each colour. Words come first, so that XLA reduces over them in vectors."""
    pieces: Int32[Array, "M"]
    """The piece of each placement."""
    actions: Int32[Array, "M"]
    """The action id of each placement."""


class Position(NamedTuple):
    """A position of an ending."""

    open: Set
    """Placements of pieces in the hand that fit and can be reached; none for a blocked colour."""
    touched: Set
    """Placements that cover a corner."""
    hands: UInt32[Array, "C"]
    monomino_last: Bool[Array, "C"]
    color: Int32[Array, ""]


@dataclass(frozen=True)
class PolyominoEndings(Endings[Tables, Position]):
    """The endings of a variant for two players, with a list of the placements that fit on the free cells of their colour."""

    config: Config
    capacity: int
    """Maximum number of placements in the list."""

    @property
    def num_moves(self) -> int:
        """The capacity of the list."""
        return self.capacity

    @property
    def max_plies(self) -> int:
        """The largest number of moves of a game."""
        return self.config.max_steps

    def start(self, state: State) -> Start:
        """List the placements that fit on the free cells of a colour with a piece in its hand."""
        config, size = self.config, self.num_moves
        colors = jnp.arange(config.colors, dtype=jnp.int32)
        occupied = jnp.broadcast_to(state.occupied[..., None], (*state.occupied.shape, config.colors))
        hands = jnp.broadcast_to(state.hands[:, None], (config.colors, config.colors))
        free, corners, hand = planes(config, occupied, hands, colors)
        free = _near(config, free, corners)
        hand = jnp.where(state.out, np.uint32(0), hand)
        fits = movegen.placements(config, free, jnp.full_like(corners, 0xFFFFFFFF), jnp.where(state.out, 0, state.hands))
        touched = movegen.placements(config, free, corners, hand)

        def flags(masks: UInt32[Array, "orientations words colors"]) -> Bool[Array, "all"]:
            boards = jnp.moveaxis(masks, 2, 0).reshape(-1, words(config))
            return jax.vmap(lambda board: unpack_words(board, config.cells))(boards).ravel()

        is_open = flags(fits)
        (index,) = jnp.nonzero(is_open, size=size, fill_value=-1)
        index = index.astype(jnp.int32)
        is_listed, is_touched = index >= 0, (index >= 0) & flags(touched)[index]
        color, action = index // config.num_placements, index % config.num_placements
        pieces = jnp.asarray(rules.PIECES)[action // config.cells]
        closes, touches = self._relations(is_listed, color, action, pieces)
        reached = _reachable(pack_words(is_touched), touches)
        of_color = jax.vmap(pack_words)((color[None] == colors[:, None]) & is_listed[None])
        by_piece = jax.vmap(pack_words)(pieces[None] == jnp.arange(NUM_PIECES, dtype=jnp.int32)[:, None])
        of_piece = jnp.moveaxis(of_color[:, None] & by_piece[None], 2, 0)
        tables = Tables(closes, touches, closes.T, touches.T, of_color, of_piece, pieces, action)
        position = Position(reached, pack_words(is_touched), state.hands, state.monomino_last, state.current_color)
        num_open = jnp.sum(is_open, dtype=jnp.int32)
        return Start(tables, self._without_blocked(tables, position), num_open <= size)

    def moves(self, tables: Tables, position: Position) -> Set:
        """The legal placements. A pass never gains: a player who passes is out, and points are never lost."""
        return position.open & position.touched & tables.of_color[position.color]

    def priorities(self, tables: Tables, position: Position) -> Int32[Array, "M"]:
        """Large pieces first, then placements after which the mover has many legal placements and the opponents few."""
        own = tables.of_color[position.color]
        legal = position.open & position.touched

        def own_after(word: int) -> UInt32[Array, "M"]:
            touched = position.touched[word] | tables.touches_by_word[word]
            return (position.open & own)[word] & touched & ~tables.closes_by_word[word]

        def others_after(word: int) -> UInt32[Array, "M"]:
            return (legal & ~own)[word] & ~tables.closes_by_word[word]

        indices = range(self.num_words)
        mobility = popcount_sum(list(map(own_after, indices))) - 4 * popcount_sum(list(map(others_after, indices)))
        priority = MAX_PRIORITY // 2 + 16 * jnp.asarray(_SIZES)[tables.pieces] + mobility
        return jnp.clip(priority, 0, MAX_PRIORITY)

    def dominated(self, tables: Tables, position: Position, move: Int32[Array, ""]) -> Set:
        """Placements of the same piece that leave no more to the mover, and no less to the opponent.

        After ``move`` the mover has the same open placements and perhaps more, and the opponents have the same or fewer.
        Additional placements never harm a player with one colour: a player who is forced to use one would otherwise be out.
        A player with two colours may be forced to harm the other colour, so there the set is empty. Only placements near
        ``move`` in the list are compared, because placements of the same piece are neighbours there.
        """
        size, near = self.num_moves, min(_WINDOW, self.num_moves)
        if self.config.colors_per_player > 1:
            return jnp.zeros(self.num_words, jnp.uint32)
        start = jnp.clip(move - near // 2, 0, size - near)
        closes, touches = (lax.dynamic_slice_in_dim(table, start, near) for table in (tables.closes, tables.touches))
        pieces = lax.dynamic_slice_in_dim(tables.pieces, start, near)
        own = tables.of_color[position.color]
        more, less = position.open & own, position.open & ~own
        worse = (
            (tables.closes[move] & more)[None] & ~closes
            | closes & (less & ~tables.closes[move])[None]
            | touches & ~closes & (more & ~self._kept(tables, position) & ~tables.touches[move])[None]
        )
        is_own = unpack_words(own, size)
        flags = jnp.all(worse == 0, axis=1) & (pieces == tables.pieces[move]) & lax.dynamic_slice_in_dim(is_own, start, near)
        return pack_words(lax.dynamic_update_slice_in_dim(jnp.zeros(size, jnp.bool_), flags, start, 0))

    def play(self, tables: Tables, position: Position, move: Int32[Array, ""]) -> Position:
        """Place a piece, and go to the next colour with a legal placement."""
        config, color, piece = self.config, position.color, tables.pieces[move]
        mover = jnp.arange(config.colors, dtype=jnp.int32) == color
        after = Position(
            position.open & ~tables.closes[move],
            self._kept(tables, position) | tables.touches[move],
            position.hands & ~jnp.where(mover, np.uint32(1) << piece.astype(jnp.uint32), np.uint32(0)),
            jnp.where(mover, piece == MONOMINO, position.monomino_last),
            color,
        )
        after = self._without_blocked(tables, after)
        blocked = self._blocked(tables, after)
        return after._replace(color=rules.next_color(color, list(blocked)))

    def player(self, tables: Tables, position: Position) -> Int32[Array, ""]:
        """The owner of the colour to move."""
        return self.config.owner(position.color)

    def bounds(self, tables: Tables, position: Position) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """The margin if only one player placed all pieces that still have an open placement, after the next piece."""
        config = self.config
        margin = self._margin(position)
        can_place = _pieces(tables, position.open)
        points = jnp.sum(jnp.where(can_place, _SIZES[None], 0), axis=1, dtype=jnp.int32)
        if config.bonus_all:
            bonus = config.bonus_all + config.bonus_monomino_last * self._in_hand(position)[:, MONOMINO].astype(jnp.int32)
            points = points + jnp.where(self._may_complete(position, can_place), bonus, 0)
        gains = rules.by_player(config, points)
        mover = jnp.arange(config.colors, dtype=jnp.int32) == position.color
        may_place = _pieces(tables, position.open & position.touched) & mover[:, None]
        largest = jnp.max(jnp.where(may_place, _SIZES[None], 0))
        is_first = self.player(tables, position) == 0
        low = margin - gains[1] + jnp.where(is_first, largest, 0)
        return low, margin + gains[0] - jnp.where(is_first, 0, largest)

    def key(self, tables: Tables, position: Position) -> tuple[UInt32[Array, "3"], Int32[Array, ""]]:
        """A hash of the open and the legal placements, the colour to move and the first moves; and the current margin."""
        is_fresh = (position.hands == np.uint32(self.config.full_hand)).astype(jnp.uint32)
        parts = [position.open, position.open & position.touched, position.color[None].astype(jnp.uint32), is_fresh]
        if self.config.bonus_all:
            parts.append(self._may_complete(position, _pieces(tables, position.open)).astype(jnp.uint32))
        return hashed(jnp.concatenate(parts)), self._margin(position)

    def action(self, tables: Tables, move: Int32[Array, ""]) -> Int32[Array, ""]:
        """The placement."""
        return tables.actions[move]

    def _margin(self, position: Position) -> Int32[Array, ""]:
        scores = rules.by_player(self.config, rules.points(self.config, position.hands, position.monomino_last))
        return scores[0] - scores[1]

    def _in_hand(self, position: Position) -> Bool[Array, "C 21"]:
        return (position.hands[:, None] >> np.arange(NUM_PIECES, dtype=np.uint32)[None]) & np.uint32(1) != 0

    def _may_complete(self, position: Position, can_place: Bool[Array, "C 21"]) -> Bool[Array, "C"]:
        """Return whether all pieces in the hand of a colour have an open placement, and it has some."""
        in_hand = self._in_hand(position)
        return jnp.any(in_hand, axis=1) & ~jnp.any(in_hand & ~can_place, axis=1)

    def _kept(self, tables: Tables, position: Position) -> Set:
        """The touched placements that a move does not change: the first piece of a colour closes its start cells."""
        is_first = position.hands[position.color] == np.uint32(self.config.full_hand)
        return position.touched & ~jnp.where(is_first, tables.of_color[position.color], np.uint32(0))

    def _blocked(self, tables: Tables, position: Position) -> Bool[Array, "C"]:
        legal = position.open & position.touched
        return jnp.all((legal[None] & tables.of_color) == 0, axis=1)

    def _without_blocked(self, tables: Tables, position: Position) -> Position:
        """Close the placements of blocked colours, which stay blocked."""
        blocked = self._blocked(tables, position)
        lost = jnp.where(blocked[:, None], tables.of_color, np.uint32(0))
        return position._replace(open=position.open & ~jnp.bitwise_or.reduce(lost, axis=0))

    def _relations(
        self, is_listed: Bool[Array, "M"], color: Int32[Array, "M"], action: Int32[Array, "M"], pieces: Int32[Array, "M"]
    ) -> tuple[UInt32[Array, "M W"], UInt32[Array, "M W"]]:
        config = self.config
        cells = rules.cover(config, action, jnp.asarray(rules.CELL_ROWS)[action // config.cells])
        cells = jnp.where(is_listed[None], cells, np.uint32(0))
        edges, diagonals = (board[: words(config)] for board in neighbours(config, pad_to_reach(config, cells)))
        if config.starts_stay_open:
            starts = jnp.asarray(np.stack([pack(config, cells)[: words(config)] for cells in config.start_cells], axis=1))
            diagonals = diagonals | starts[:, color]

        def meets(a: UInt32[Array, "words M"], b: UInt32[Array, "words M"]) -> Bool[Array, "M M"]:
            common: Array = reduce(jnp.bitwise_or, [x[:, None] & y[None, :] for x, y in zip(a, b, strict=True)])
            return common != 0

        same = color[:, None] == color[None]
        overlap = meets(cells, cells)
        closes = overlap | (same & (meets(edges, cells) | (pieces[:, None] == pieces[None])))
        touches = same & meets(diagonals, cells)
        listed = is_listed[:, None] & is_listed[None]
        return jax.vmap(pack_words)(closes & listed), jax.vmap(pack_words)(touches & listed)


def _near(config: Config, free: Board, corners: Board) -> Board:
    """Return the free cells that can be reached from a corner by steps like a king's, as placements of one colour connect."""

    def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        near, _ = carry
        edges, diagonals = neighbours(config, near)
        return free & (near | edges | diagonals), near

    start = free & corners, jnp.zeros_like(free)
    near: Array = while_loop(lambda carry: jnp.any(carry[0] != carry[1]), spread, start)[0]
    return near


def _pieces(tables: Tables, placements: Set) -> Bool[Array, "C 21"]:
    """Return the pieces of each colour that have a placement in a set."""
    words: Array = jnp.bitwise_or.reduce(placements[:, None, None] & tables.of_piece, axis=0)
    return words != 0


def _reachable(touched: Set, touches: UInt32[Array, "M W"]) -> Set:
    """Return the placements that can be touched after any others, ignoring those that they close."""

    def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        flags = unpack_words(reached, touches.shape[0])
        more = reached | jnp.bitwise_or.reduce(jnp.where(flags[:, None], touches, np.uint32(0)), axis=0)
        return more, reached

    start = touched, jnp.zeros_like(touched)
    reached: Array = while_loop(lambda carry: jnp.any(carry[0] != carry[1]), spread, start)[0]
    return reached
