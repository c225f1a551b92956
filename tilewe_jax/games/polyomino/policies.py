"""The sample engines of the package ``tilewe`` as policies for thousands of games: every move of every game looked at.

A policy is a function of one state and a key. Under ``vmap`` the candidate moves of all games become one list, worked off in
blocks, so that games with few moves do not wait for games with many, and games that are over cost nothing.

Engines count moves by name, see ``names``; among moves of equal value they choose one name uniformly, except
``simple_search``, which takes the first as ``generate_legal_moves`` lists them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt16, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, popcount
from tilewe_jax.game import Policy
from tilewe_jax.games.polyomino import names, rules
from tilewe_jax.games.polyomino.boards import Board, Hand, around, pick, planes, reach, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, MONOMINO, ORIENTATIONS
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize, per_lane, where_needed

BLOCK = 16
"""Candidates of one game that are looked at one after another, for one fetching of the game."""
MAX_BLOCKS = 512
"""Blocks worked on side by side."""
OTHERS_SHARE = 24
"""Of the other players, this share is asked at a time what a move has done to them; it concerns about one in four."""

_CELL_ROWS = np.array([rules.pack_rows(orientation.cells) for orientation in ORIENTATIONS], np.uint32)
_CONTACT_ROWS = np.array([rules.pack_rows(orientation.contacts) for orientation in ORIENTATIONS], np.uint32)
_PIECES = np.array([orientation.piece for orientation in ORIENTATIONS], np.int32)
_SIZES = np.array([len(orientation.cells) for orientation in ORIENTATIONS], np.int32)
# What a cell is worth by its distance from the edge: the lesser one of the two, the greater one.
_WALL = (100, 90, 75, 60, 50, 40, 30, 25, 10, 0)
_TURTLE = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
_FAR = 2.0**22


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Before:
    """The position in which a move is looked at."""

    player: Int32[Array, "lanes"]
    free: UInt32[Array, "words players lanes"]
    """Each player's ``boards.planes``."""
    corners: UInt32[Array, "words players lanes"]
    hands: UInt32[Array, "players lanes"]
    own: tuple[Board, Board, Hand]
    """Those of the mover."""
    reach: UInt32[Array, "words players lanes"]
    """All cells that some legal placement of a player covers; a move elsewhere leaves the player's moves as they are."""
    moves: Int32[Array, "players lanes"]
    """Number of legal moves of each player."""


Figure = Callable[[Board, Board, Hand], Int32[Array, "lanes"]]
"""Something about a player's ``boards.planes``."""


@partial(jax.tree_util.register_dataclass, meta_fields=["config"], data_fields=["before", "orientation", "anchor", "cells"])
@dataclass(frozen=True)
class Candidate:
    """A move in each lane."""

    config: Config
    before: Before
    orientation: Int32[Array, "lanes"]
    anchor: Int32[Array, "lanes"]
    cells: Board
    """What the move covers."""

    def own(self) -> tuple[Board, Board, Hand]:
        """The ``boards.planes`` of the mover after the move."""
        free, corners, hand = self.before.own
        edges, diagonals = around(self.config, self.cells)
        if not self.config.starts_stay_open:
            corners = jnp.where((hand == np.uint32(self.config.full_hand))[None], np.uint32(0), corners)
        piece = np.uint32(1) << jnp.asarray(_PIECES)[self.orientation].astype(jnp.uint32)
        return free & ~(_longer(self.config, self.cells) | edges), corners | diagonals, hand & ~piece

    @property
    def mine(self) -> Bool[Array, "players lanes"]:
        """Which of the players is the mover."""
        return jnp.arange(self.config.players)[:, None] == self.before.player[None]

    def others(
        self, figure: Figure, needed: Bool[Array, "players lanes"], otherwise: Int32[Array, "players lanes"]
    ) -> Int32[Array, "players lanes"]:
        """A figure of the others after the move, where it is needed; the mover's is worthless."""
        config, before = self.config, self.before

        def ask(free: Board, corners: Board, hand: Hand, cells: Board) -> Int32[Array, "lanes"]:
            return figure(free & ~_longer(config, cells), corners, hand)

        cells = jnp.tile(self.cells, (1, config.players))
        boards = (board.reshape(board.shape[0], -1) for board in (before.free, before.corners))
        asked = where_needed(
            (needed & ~self.mine).ravel(), ask, (*boards, before.hands.ravel(), cells), otherwise.ravel(), OTHERS_SHARE
        )
        return asked.reshape(config.players, -1)


Value = Callable[[Candidate], Float32[Array, "lanes"]]
"""How good a move is; a whole number of magnitude below 2**24, or ties may be lost to rounding."""


def piece_size(candidate: Candidate) -> Float32[Array, "lanes"]:
    """100 a cell of the piece, 10 a corner that it makes on an empty board, 1 a contact."""
    worth = [100 * len(o.cells) + 10 * len(o.corners) + len(o.contacts) for o in ORIENTATIONS]
    return jnp.asarray(np.array(worth, np.float32))[candidate.orientation]


def open_corners(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Corners on which the mover can lay a piece after the move."""
    return _own_corners(candidate).astype(jnp.float32)


def move_difference(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Legal moves of the mover after the move, less those of all others."""
    config, before = candidate.config, candidate.before
    own = _moves(config, *materialize(Candidate.own, candidate))
    in_reach = jnp.any(before.reach & candidate.cells[:, None] != 0, axis=0)
    others = candidate.others(partial(_moves, config), in_reach, before.moves)
    return (own - jnp.sum(jnp.where(candidate.mine, 0, others), axis=0)).astype(jnp.float32)


def simple_search(candidate: Candidate) -> Float32[Array, "lanes"]:
    """50 times the default evaluation of the engine of that name, as far as the move decides it."""
    config, before, mine = candidate.config, candidate.before, candidate.mine
    size = words(config)
    open_after = before.free[:size] & before.corners[:size] & ~candidate.cells[:, None]
    has_monomino = _has_monomino(before.hands)
    others = candidate.others(partial(_playable, config), ~has_monomino, jnp.sum(popcount(open_after), axis=0))
    corners = jnp.where(mine, _own_corners(candidate)[None], others)
    sizes = jnp.asarray(_SIZES)[candidate.orientation]
    scores = rules.cells_placed(config, before.hands) + jnp.where(mine, sizes[None], 0)
    own_score = jnp.sum(jnp.where(mine, scores, 0), axis=0)
    finished = jnp.all(corners == 0, axis=0)
    won = finished & (own_score == jnp.max(scores, axis=0))
    stuck = ((corners == 0) & ~finished[None]).astype(jnp.int32)
    by_player = jnp.where(mine, 10 * corners - 50_000 * stuck, 150 * stuck - 2 * corners)
    return (jnp.sum(by_player, axis=0) + 25 * sizes + 50_000 * won.astype(jnp.int32)).astype(jnp.float32)


def tile_weight(weights: Sequence[float], candidate: Candidate) -> Float32[Array, "lanes"]:
    """Sum of the weights, one a cell of the board, of what the move covers; the first piece goes to the lowest corner."""
    config = candidate.config
    table = jnp.asarray(np.append(np.array(weights, np.float32), np.float32(0)))
    # The bits of the cells of each orientation from its anchor, and for pieces of fewer cells the bit beyond the last.
    offsets = np.full((len(ORIENTATIONS), MAX_PIECE_SIZE), config.cells, np.int32)
    for row, orientation in zip(offsets, ORIENTATIONS, strict=True):
        row[: len(orientation.cells)] = [config.bit(cell) for cell in orientation.cells]
    bits = jnp.asarray(offsets)[candidate.orientation] + candidate.anchor[:, None]
    total = jnp.sum(table[jnp.minimum(bits, config.cells)], axis=1)

    plies = jnp.sum(popcount(np.uint32(config.full_hand) & ~candidate.before.hands), axis=0)
    free, corners, _ = candidate.before.own
    lowest = _lowest((free & corners)[: words(config)])
    elsewhere = jnp.all(lowest & candidate.cells == 0, axis=0)
    return jnp.where((plies < config.players) & elsewhere, total - _FAR, total)


def _moves(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "lanes"]:
    """Number of legal moves."""
    counts = materialize(lambda *args: names.counts(config, *args).astype(jnp.uint16), free, corners, hand)
    return jnp.sum(counts.astype(jnp.int32), axis=0)


def _playable(config: Config, free: Board, corners: Board, hand: Hand) -> Int32[Array, "lanes"]:
    """Number of corners on which a piece can be laid."""
    return jnp.sum(popcount(materialize(partial(names.playable_corners, config), free, corners, hand)), axis=0)


def _own_corners(candidate: Candidate) -> Int32[Array, "lanes"]:
    """Those of the mover after the move. For who still has the single cell they are all that are open, which is cheap."""
    free, corners, hand = materialize(Candidate.own, candidate)
    is_open = jnp.sum(popcount(free & corners), axis=0)
    return where_needed(~_has_monomino(hand), partial(_playable, candidate.config), (free, corners, hand), is_open)


def _has_monomino(hands: UInt32[Array, "*shape"]) -> Bool[Array, "*shape"]:
    return (hands >> np.uint32(MONOMINO)) & np.uint32(1) != 0


def _longer(config: Config, board: Board) -> Board:
    """A board of ``words`` as one of ``reach`` words."""
    return jnp.pad(board, ((0, reach(config) - words(config)), (0, 0)))


def _lowest(board: Board) -> Board:
    """The lowest set bit of a board, alone."""
    earlier, rows = jnp.zeros(board.shape[1], jnp.bool_), []
    for word in board:
        rows.append(jnp.where(earlier, np.uint32(0), word & (~word + np.uint32(1))))
        earlier = earlier | (word != 0)
    return jnp.stack(rows)


Best = tuple[Float32[Array, "lanes"], Float32[Array, "lanes"], Int32[Array, "lanes"]]
"""Highest value; among moves of that value the highest rank; and the move that has it, -1 before there is one."""


def choose(config: Config, value: Value, ordered: bool, state: State, bits: UInt32[Array, "lanes"]) -> Int32[Array, "lanes"]:
    """The legal placement of most value in each lane; -1 where there is none.

    Among equals the first by name where ``ordered``, else one by chance.
    """
    lanes = state.current_player.shape[0]
    totals = jnp.sum(state.legal_counts.astype(jnp.int32), axis=0)
    blocks = -(-totals // BLOCK)
    ends = jnp.cumsum(blocks)
    size = min(MAX_BLOCKS, lanes + 64)

    everyone = [jnp.full(lanes, player, jnp.int32) for player in range(config.players)]
    boards = [materialize(partial(planes, config), state.occupied, state.hands, player) for player in everyone]
    free, corners, hands = (jnp.stack(parts, axis=-2) for parts in zip(*boards, strict=True))
    mover = state.current_player[None]
    own_free, own_corners = (pick(list(jnp.moveaxis(plane, 1, 0)), mover) for plane in (free, corners))
    flat = free.reshape(free.shape[0], -1), corners.reshape(corners.shape[0], -1), hands.ravel()
    active = jnp.tile(totals > 0, config.players)
    moves = where_needed(active, partial(_moves, config), flat, jnp.zeros_like(active, jnp.int32))
    before = Before(
        player=state.current_player,
        free=free,
        corners=corners,
        hands=hands,
        own=(own_free, own_corners, pick(list(hands), state.current_player)),
        reach=materialize(partial(names.reached, config), *flat).reshape(-1, config.players, lanes),
        moves=moves.reshape(config.players, lanes),
    )

    def some_blocks(carry: tuple[Int32[Array, ""], Best]) -> tuple[Int32[Array, ""], Best]:
        start, best = carry
        block = start + jnp.arange(size)
        lane = jnp.searchsorted(ends, block, side="right").astype(jnp.int32)
        fetched = jax.tree.map(
            lambda leaf: jnp.take(leaf, lane, axis=-1, mode="clip"), (before, state.legal_counts, totals, bits, ends - blocks)
        )
        position, counts, total, seed, first_block = fetched
        first = (block - first_block) * BLOCK
        found = _look_through(config, value, ordered, position, counts, jnp.where(lane < lanes, total, 0), seed, first)
        return start + size, _better(best, found, lane)

    none = jnp.full(lanes, -jnp.inf), jnp.full(lanes, -jnp.inf), jnp.full(lanes, -1, jnp.int32)
    _, (_, _, action) = lax.while_loop(lambda carry: carry[0] < ends[-1], some_blocks, (jnp.int32(0), none))
    return action


def _look_through(
    config: Config,
    value: Value,
    ordered: bool,
    before: Before,
    counts: UInt16[Array, "words lanes"],
    total: Int32[Array, "lanes"],
    seed: UInt32[Array, "lanes"],
    first: Int32[Array, "lanes"],
) -> Best:
    """The best of the ``BLOCK`` placements from the ``first`` on."""
    by_word = [count.astype(jnp.int32) for count in counts]

    def one(i: Int32[Array, ""], best: Best) -> Best:
        number = first + i
        action = materialize(lambda *args: rules.nth_placement(config, by_word, args, number), *before.own)
        orientation, anchor = action // config.cells, action % config.cells
        candidate, contacts = materialize(partial(_candidate, config), before, orientation, anchor)
        worth = value(candidate)
        rank = _order(config, orientation, anchor, contacts) if ordered else _chance(seed, number, contacts)
        better = (number < total) & ((worth > best[0]) | ((worth == best[0]) & (rank > best[1])))
        return (
            jnp.where(better, worth, best[0]),
            jnp.where(better, rank, best[1]),
            jnp.where(better, action, best[2]),
        )

    lanes = total.shape[0]
    none = jnp.full(lanes, -jnp.inf), jnp.full(lanes, -jnp.inf), jnp.full(lanes, -1, jnp.int32)
    best: Best = lax.fori_loop(0, BLOCK, one, none)
    return best


def _candidate(
    config: Config, before: Before, orientation: Int32[Array, "lanes"], anchor: Int32[Array, "lanes"]
) -> tuple[Candidate, Board]:
    """A placement, and those of its contacts that lie on open corners."""
    cells = rules.cover(config, anchor, jnp.asarray(_CELL_ROWS)[orientation])
    contacts = rules.cover(config, anchor, jnp.asarray(_CONTACT_ROWS)[orientation])
    return Candidate(config, before, orientation, anchor, cells), contacts & before.own[1][: words(config)]


def _chance(seed: UInt32[Array, "lanes"], number: Int32[Array, "lanes"], contacts: Board) -> Float32[Array, "lanes"]:
    """A random rank: how often a move's is the highest is in proportion to its names (Efraimidis and Spirakis 2006)."""
    uniform = ((hash32(seed, number) >> np.uint32(8)).astype(jnp.float32) + 0.5) / 2**24
    names = jnp.maximum(jnp.sum(popcount(contacts), axis=0), 1)
    return jnp.log(uniform) / names.astype(jnp.float32)


def _order(
    config: Config, orientation: Int32[Array, "lanes"], anchor: Int32[Array, "lanes"], contacts: Board
) -> Float32[Array, "lanes"]:
    """A rank that is the higher, the earlier the first name of a move is: by tile, then piece, rotation, contact."""
    lowest = _lowest(contacts)
    base = WORD_BITS * np.arange(words(config), dtype=np.int32)[:, None]
    tile = jnp.sum(jnp.where(lowest != 0, base + popcount(lowest - np.uint32(1)), 0), axis=0)
    offset = tile - anchor
    return -((tile * len(ORIENTATIONS) + orientation) * (MAX_PIECE_SIZE * config.size) + offset).astype(jnp.float32)


def _better(best: Best, found: Best, lane: Int32[Array, "blocks"]) -> Best:
    """The best of each lane, now that blocks of moves have been looked through; in any order, the same."""
    lanes = best[0].shape[0]
    worth = best[0].at[lane].max(found[0], mode="drop")
    rank = jnp.where(worth > best[0], -jnp.inf, best[1])
    leads = found[0] == jnp.take(worth, lane, mode="clip")
    rank = rank.at[jnp.where(leads, lane, lanes)].max(found[1], mode="drop")
    wins = leads & (found[1] == jnp.take(rank, lane, mode="clip"))
    action = jnp.where((worth == best[0]) & (rank == best[1]), best[2], -1)
    return worth, rank, action.at[jnp.where(wins, lane, lanes)].max(found[2], mode="drop")


def policy(config: Config, value: Value, ordered: bool = False) -> Policy:
    """The policy that plays the legal placement of most value, as ``choose`` finds it; -1 at the end."""

    def play(state: State, key: PRNGKeyArray) -> Int32[Array, ""]:
        return per_lane(partial(choose, config, value, ordered))(state, jax.random.bits(key))

    return play


def engines(config: Config) -> dict[str, Policy]:
    """The engines by name."""

    def signed(value: Value, sign: int) -> Value:
        return lambda candidate: sign * value(candidate)

    middle = [[min(i, config.size - 1 - i) for i in (x, y)] for y in range(config.size) for x in range(config.size)]
    values: dict[str, Value] = {
        "random": lambda candidate: jnp.zeros_like(candidate.anchor, jnp.float32),
        "largest_piece": signed(piece_size, 1),
        "smallest_piece": signed(piece_size, -1),
        "most_open_corners": signed(open_corners, 1),
        "least_open_corners": signed(open_corners, -1),
        "max_move_diff": signed(move_difference, 1),
        "min_move_diff": signed(move_difference, -1),
        "wall_crawler": partial(tile_weight, [_WALL[min(*distances, len(_WALL) - 1)] for distances in middle]),
        "turtle": partial(tile_weight, [_TURTLE[min(max(distances), len(_TURTLE) - 1)] for distances in middle]),
    }
    return {
        **{name: policy(config, value) for name, value in values.items()},
        "simple_search": policy(config, simple_search, ordered=True),
    }
