"""One-ply search on the device: evaluate every legal placement, and choose one of the highest value.

Under ``vmap`` the placements of all games become one list of blocks, processed in parallel, so that games with few legal
placements do not wait for games with many, and finished games cost nothing. Functions of lanes, see ``tilewe_jax.lanes``; in
functions that process blocks, a lane is a block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, UInt16, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, popcount
from tilewe_jax.games.polyomino import contacts, rules
from tilewe_jax.games.polyomino.boards import Board, Hand, neighbours, pad_to_reach, pick, planes, playable, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, ORIENTATIONS
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize, where_needed
from tilewe_jax.utils.loops import fori_loop, switch, while_loop

BLOCK_SIZE = 16
"""Placements of one game that are evaluated one after another, so that its position is gathered only once."""
MAX_BLOCKS = 512
"""Blocks processed in parallel."""
OTHER_DIVISOR = 24
"""Divisor of ``where_needed`` for statistics of other colours, which about one placement in four affects."""

_CONTACT_ROWS = np.array([rules.pack_rows(orientation.contacts) for orientation in ORIENTATIONS], np.uint32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Root:
    """The position in which placements are evaluated, with values that all evaluations share."""

    color: Int32[Array, "lanes"]
    """The colour to move."""
    free: UInt32[Array, "reach colors lanes"]
    """Cells free to each colour, see ``boards.planes``."""
    corners: UInt32[Array, "reach colors lanes"]
    """Corners of each colour, see ``boards.planes``."""
    hands: UInt32[Array, "colors lanes"]
    """Pieces of each colour."""
    own: tuple[Board, Board, Hand]
    """``boards.planes`` of the colour to move."""
    reachable: UInt32[Array, "words colors lanes"]
    """Union of the cells of all legal placements of each colour; a placement elsewhere leaves them all legal. Empty if no
    preference reads it."""
    moves: Int32[Array, "colors lanes"]
    """Number of legal moves of each colour, counted by contact, see ``contacts.counts``. 0 if no preference reads it."""


Statistic = Callable[[Board, Board, Hand], Int32[Array, "lanes"]]
"""A number computed from the ``boards.planes`` of a colour."""


@partial(jax.tree_util.register_dataclass, meta_fields=["config"], data_fields=["root", "orientation", "anchor", "cells"])
@dataclass(frozen=True)
class Candidate:
    """A placement to evaluate."""

    config: Config
    root: Root
    orientation: Int32[Array, "lanes"]
    """Index into ``pieces.ORIENTATIONS``."""
    anchor: Int32[Array, "lanes"]
    """Bit of the cell at the bottom left of its bounding box."""
    cells: Board
    """The cells that it covers."""

    def own(self) -> tuple[Board, Board, Hand]:
        """The ``boards.planes`` of the mover after the placement."""
        free, corners, hand = self.root.own
        if self.config.start_piece is not None:
            hand = pick(list(self.root.hands), self.root.color)
        edges, diagonals = neighbours(self.config, self.cells)
        if not self.config.starts_stay_open:
            corners = jnp.where((hand == np.uint32(self.config.full_hand))[None], np.uint32(0), corners)
        piece = np.uint32(1) << jnp.asarray(rules.PIECES)[self.orientation].astype(jnp.uint32)
        return free & ~(pad_to_reach(self.config, self.cells) | edges), corners | diagonals, hand & ~piece

    @property
    def is_mover(self) -> Bool[Array, "colors lanes"]:
        """True for the colour to move."""
        return jnp.arange(self.config.colors, dtype=jnp.int32)[:, None] == self.root.color[None]

    @property
    def is_opponent(self) -> Bool[Array, "colors lanes"]:
        """True for the colours of opponents of the mover."""
        owner = self.config.owner
        return owner(jnp.arange(self.config.colors, dtype=jnp.int32))[:, None] != owner(self.root.color)[None]

    def other_statistic(
        self, statistic: Statistic, needed: Bool[Array, "colors lanes"], otherwise: Int32[Array, "colors lanes"]
    ) -> Int32[Array, "colors lanes"]:
        """Compute a statistic of the other colours after the placement if ``needed``, otherwise return ``otherwise``.

        Unspecified for the mover.
        """
        config, root = self.config, self.root

        def evaluate(free: Board, corners: Board, hand: Hand, cells: Board) -> Int32[Array, "lanes"]:
            return statistic(free & ~pad_to_reach(config, cells), corners, hand)

        cells = jnp.tile(self.cells, (1, config.colors))
        boards = (board.reshape(board.shape[0], -1) for board in (root.free, root.corners))
        values = where_needed(
            (needed & ~self.is_mover).ravel(),
            evaluate,
            (*boards, playable(config, root.hands).ravel(), cells),
            otherwise.ravel(),
            OTHER_DIVISOR,
        )
        return values.reshape(config.colors, -1)


Value = Callable[[Candidate], Float32[Array, "lanes"]]
"""Evaluates placements by integers below 2**24 in magnitude, which float32 represents exactly, so that ties are exact."""

Best = tuple[Float32[Array, "lanes"], Float32[Array, "lanes"], Int32[Array, "lanes"]]
"""The highest value; the highest rank among placements of that value; the placement that has both, initially -1."""


@dataclass(frozen=True)
class Preference:
    """A rule that chooses a legal placement."""

    value: Value
    """Evaluates placements; a placement of the highest value is chosen."""
    in_listed_order: bool = False
    """The rule for ties. True: the first placement in the order of moves of the package ``tilewe``. False: at random, with
    probabilities proportional to the number of moves that name the placement (see ``contacts``)."""
    reads_moves: bool = False
    """Whether ``value`` reads ``Root.reachable`` and ``Root.moves``, which take half of the compiled program."""


def best_placement(
    config: Config,
    preferences: Sequence[Preference],
    state: State,
    bits: UInt32[Array, "lanes"],
    index: Int32[Array, "lanes"] | None = None,
) -> Int32[Array, "lanes"]:
    """Return the preferred legal placement; -1 at the end of a game.

    Args:
      config: the variant.
      preferences: the preferences, which share the program that lists and compares placements.
      state: positions without deferred passes.
      bits: a random word per lane.
      index: index of the preference of each lane; ``None`` if there is one preference.
    """
    lanes = state.current_color.shape[0]
    totals = jnp.sum(state.legal_counts.astype(jnp.int32), axis=0, dtype=jnp.int32)
    root = _root(config, state, totals, any(preference.reads_moves for preference in preferences))
    lowest = jnp.full(lanes, -jnp.inf, jnp.float32)
    none = lowest, lowest, jnp.full(lanes, -1, jnp.int32)
    if index is None:
        return _best_of_all(config, preferences, jnp.int32(0), root, state.legal_counts, totals, bits, none)[2]

    def apply_preference(number: Int32[Array, ""], best: Best) -> Best:
        mine = jnp.where(index == number, totals, 0)
        return _best_of_all(config, preferences, number, root, state.legal_counts, mine, bits, best)

    best: Best = fori_loop(0, len(preferences), apply_preference, none)
    return best[2]


def _best_of_all(
    config: Config,
    preferences: Sequence[Preference],
    number: Int32[Array, ""],
    root: Root,
    legal_counts: UInt16[Array, "words lanes"],
    totals: Int32[Array, "lanes"],
    bits: UInt32[Array, "lanes"],
    best: Best,
) -> Best:
    """Update the best placement of the lanes whose ``totals`` are positive, by preference ``number``."""
    lanes = totals.shape[0]
    blocks = -(-totals // BLOCK_SIZE)
    ends = jnp.cumsum(blocks, dtype=jnp.int32)
    size = min(MAX_BLOCKS, lanes + 64)

    def process_blocks(carry: tuple[Int32[Array, ""], Best]) -> tuple[Int32[Array, ""], Best]:
        start, best = carry
        block = start + jnp.arange(size, dtype=jnp.int32)
        lane = jnp.searchsorted(ends, block, side="right").astype(jnp.int32)
        gathered = jax.tree.map(
            lambda leaf: jnp.take(leaf, lane, axis=-1, mode="clip"), (root, legal_counts, totals, bits, ends - blocks)
        )
        block_root, counts, total, seed, first_block = gathered
        first = (block - first_block) * BLOCK_SIZE
        total = jnp.where(lane < lanes, total, 0)
        block_best = _best_of_block(config, preferences, number, block_root, counts, total, seed, first)
        return start + size, _merge(best, block_best, lane)

    after: Best = while_loop(lambda carry: carry[0] < ends[-1], process_blocks, (jnp.int32(0), best))[1]
    return after


def count_moves(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "lanes"]:
    """Number of legal moves, counted by contact."""
    counts = materialize(lambda *args: contacts.counts(config, *args).astype(jnp.uint16), free, corners, hand)
    return jnp.sum(counts.astype(jnp.int32), axis=0, dtype=jnp.int32)


def count_playable_corners(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "lanes"]:
    """Number of open corners on which a contact of a legal placement lies."""
    return jnp.sum(
        popcount(materialize(partial(contacts.playable_corners, config), free, corners, hand)), axis=0, dtype=jnp.int32
    )


def lowest_cell(board: Board) -> Board:
    """Keep only the lowest set bit of a board; an empty board stays empty."""
    is_later, rows = jnp.zeros(board.shape[1], jnp.bool_), []
    for word in board:
        rows.append(jnp.where(is_later, np.uint32(0), word & (~word + np.uint32(1))))
        is_later = is_later | (word != 0)
    return jnp.stack(rows)


def _root(config: Config, state: State, totals: Int32[Array, "lanes"], with_moves: bool) -> Root:
    lanes = state.current_color.shape[0]
    colors = [jnp.full(lanes, color, jnp.int32) for color in range(config.colors)]
    boards = [materialize(partial(planes, config), state.occupied, state.hands, color) for color in colors]
    free, corners, hands = (jnp.stack(parts, axis=-2) for parts in zip(*boards, strict=True))
    mover = state.current_color[None]
    own_free, own_corners = (pick(list(jnp.moveaxis(plane, 1, 0)), mover) for plane in (free, corners))
    active = jnp.tile(totals > 0, config.colors)
    reachable, moves = jnp.zeros((words(config), active.shape[0]), jnp.uint32), jnp.zeros_like(active, jnp.int32)
    if with_moves:
        flat = free.reshape(free.shape[0], -1), corners.reshape(corners.shape[0], -1), hands.ravel()
        reachable = materialize(partial(contacts.reachable_cells, config), *flat)
        moves = where_needed(active, partial(count_moves, config), flat, moves)
    return Root(
        color=state.current_color,
        free=free,
        corners=corners,
        hands=state.hands,
        own=(own_free, own_corners, pick(list(hands), state.current_color)),
        reachable=reachable.reshape(-1, config.colors, lanes),
        moves=moves.reshape(config.colors, lanes),
    )


def _best_of_block(
    config: Config,
    preferences: Sequence[Preference],
    preference: Int32[Array, ""],
    root: Root,
    counts: UInt16[Array, "words lanes"],
    total: Int32[Array, "lanes"],
    seed: UInt32[Array, "lanes"],
    first: Int32[Array, "lanes"],
) -> Best:
    """Find the best of ``BLOCK_SIZE`` placements, from rank ``first`` of ``rules.nth_placement`` on."""
    values = [item.value for item in preferences]
    in_listed_order = [item.in_listed_order for item in preferences]

    def evaluate(i: Int32[Array, ""], best: Best) -> Best:
        number = first + i
        action = materialize(lambda *args: rules.nth_placement(config, counts, args, number), *root.own)
        orientation, anchor = action // config.cells, action % config.cells
        cells, on_corners = materialize(partial(_cells, config), root.own[1], orientation, anchor)
        candidate = Candidate(config, root, orientation, anchor, cells)
        score = switch(preference, values, candidate) if len(values) > 1 else values[0](candidate)
        if all(in_listed_order):
            rank = _listed_rank(config, orientation, anchor, on_corners)
        else:
            names = jnp.sum(popcount(on_corners), axis=0, dtype=jnp.int32)
            rank = random_rank(seed, number, names)
            if any(in_listed_order):
                listed = _listed_rank(config, orientation, anchor, on_corners)
                rank = jnp.where(jnp.asarray(np.array(in_listed_order))[preference], listed, rank)
        better = (number < total) & ((score > best[0]) | ((score == best[0]) & (rank > best[1])))
        return (
            jnp.where(better, score, best[0]),
            jnp.where(better, rank, best[1]),
            jnp.where(better, action, best[2]),
        )

    lanes = total.shape[0]
    lowest = jnp.full(lanes, -jnp.inf, jnp.float32)
    none = lowest, lowest, jnp.full(lanes, -1, jnp.int32)
    best: Best = fori_loop(0, BLOCK_SIZE, evaluate, none)
    return best


def _cells(
    config: Config, corners: Board, orientation: Int32[Array, "lanes"], anchor: Int32[Array, "lanes"]
) -> tuple[Board, Board]:
    """Return the cells of a placement, and the corners on which its contacts lie."""
    cells = rules.cover(config, anchor, jnp.asarray(rules.CELL_ROWS)[orientation])
    contact_cells = rules.cover(config, anchor, jnp.asarray(_CONTACT_ROWS)[orientation])
    return cells, contact_cells & corners[: words(config)]


def random_rank(
    seed: UInt32[Array, "*#lanes"], number: Int32[Array, "*lanes"], names: Int32[Array, "*lanes"]
) -> Float32[Array, "*lanes"]:
    """Draw a rank whose probability to be the highest is proportional to a number of names, at least 1.

    Weighted random sampling by ``log(uniform) / weight`` (Efraimidis and Spirakis 2006).
    """
    uniform = ((hash32(seed, number) >> np.uint32(8)).astype(jnp.float32) + 0.5) / 2**24
    return jnp.log(uniform) / jnp.maximum(names, 1).astype(jnp.float32)


def _listed_rank(
    config: Config, orientation: Int32[Array, "lanes"], anchor: Int32[Array, "lanes"], on_corners: Board
) -> Float32[Array, "lanes"]:
    """Rank placements in reverse order of the package ``tilewe``, which sorts by cell, piece, rotation and contact."""
    lowest = lowest_cell(on_corners)
    base = WORD_BITS * np.arange(words(config), dtype=np.int32)[:, None]
    cell = jnp.sum(jnp.where(lowest != 0, base + popcount(lowest - np.uint32(1)), 0), axis=0, dtype=jnp.int32)
    offset = cell - anchor
    return -((cell * len(ORIENTATIONS) + orientation) * (MAX_PIECE_SIZE * config.size) + offset).astype(jnp.float32)


BlockBest = tuple[Float32[Array, "blocks"], Float32[Array, "blocks"], Int32[Array, "blocks"]]


def _merge(best: Best, block_best: BlockBest, lane: Int32[Array, "blocks"]) -> Best:
    """Update the best placements of lanes from blocks in any order; ``lane`` maps blocks to lanes."""
    lanes = best[0].shape[0]
    value = best[0].at[lane].max(block_best[0], mode="drop")
    rank = jnp.where(value > best[0], -jnp.inf, best[1])
    has_value = block_best[0] == jnp.take(value, lane, mode="clip")
    rank = rank.at[jnp.where(has_value, lane, lanes)].max(block_best[1], mode="drop")
    wins = has_value & (block_best[1] == jnp.take(rank, lane, mode="clip"))
    action = jnp.where((value == best[0]) & (rank == best[1]), best[2], -1)
    return value, rank, action.at[jnp.where(wins, lane, lanes)].max(block_best[2], mode="drop")
