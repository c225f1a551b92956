"""The rules of Santorini, on bitboards.

Batching (see ``tilewe_jax.lanes``): unbatched. Every function takes and gives the arrays of one game. Those whose annotations
say ``*lanes`` are elementwise besides, so that ``game.py`` can also call them for many games at once, lanes last.

The legal turns of a worker depend on the five by five cells around it alone (``bitboard.window``). In such a window the same
masks serve every cell of every board: the 64 turns of a worker are bits of the window moved to other positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import WORD_BITS, kth_set_bit, move_bits, popcount, systematic_sample, uniform_below, unpack_words
from tilewe_jax.games.santorini.bitboard import (
    CENTRE,
    WINDOW,
    Bitboard,
    BitIndex,
    Word,
    bit_of,
    cell_of,
    full_board,
    pack,
    singleton,
    unpack,
    window,
)
from tilewe_jax.games.santorini.config import DIRECTIONS, NUM_TURNS, Config
from tilewe_jax.games.santorini.host import PIECES
from tilewe_jax.lanes import random_words

Levels = tuple[Bitboard, Bitboard, Bitboard, Bitboard]
Workers = tuple[BitIndex, BitIndex, BitIndex, BitIndex]
Turns = tuple[Word, Word, Word, Word]
"""A set of turns, 128 bits: turn ``a`` is bit ``a % 32`` of word ``a // 32``. The first two words are worker 0's."""

_NEIGHBOUR_BITS = [CENTRE + WINDOW * row + column for row, column in DIRECTIONS]
"""For each direction, the bit of a window that holds the neighbour of the centre in that direction."""
_HALVES = range(4), range(4, 8)
"""The directions of moves whose turns share a word."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position of one game; all leaves are scalars. 52 bytes up to 5 x 5, 100 bytes at 10 x 10."""

    levels: Levels
    """Bitboards, ``uint32`` each word: the cells that are at least 1, 2, 3 and 4 high."""
    workers: Workers
    """``int32`` each: bits of the two workers of the player to move, then of the opponent's; -1 for a worker not yet placed."""
    turns: Turns
    """``uint32`` each: the legal turns of the player to move. Derived from the rest; kept, because a game ends where there are
    none, so that every position needs them."""
    current_player: Int32[Array, ""]
    """``int32``, the player to move: 0 (who moved first) or 1. At the end, the player who has lost."""


def init(config: Config, key: PRNGKeyArray) -> State:
    """The initial state of a new game; ``key`` decides the cells of the workers where the placement is random."""
    if config.placement == "random":
        cells = _sample_distinct(random_words(key, 4), config.size**2)
        workers = [bit_of(config, cell) for cell in cells]
    else:
        workers = [jnp.int32(config.bit(cell) if config.placement == "default" else -1) for cell in config.start]
    empty = full_board(config) & jnp.uint32(0)
    return make_state(config, (empty, empty, empty, empty), (workers[0], workers[1], workers[2], workers[3]), jnp.int32(0))


def make_state(config: Config, levels: Levels, workers: Workers, player: Int32[Array, "*lanes"]) -> State:
    """The state in which these workers stand on these levels and ``player`` is to move."""
    return State(levels, workers, legal_turns(config, levels, workers), player)


def legal_turns(config: Config, levels: Levels, workers: Workers) -> Turns:
    """The legal turns of the player whose workers come first; none where the opponent has won or a worker is not placed."""
    cells = [singleton(config, worker) for worker in workers]
    free = full_board(config) & ~(cells[0] | cells[1] | cells[2] | cells[3] | levels[3])
    in_play = ~((cells[2] | cells[3]) & levels[2]).any() & (workers[1] >= 0)
    words: list[Word] = []
    for worker, cell in zip(workers[:2], cells[:2], strict=True):
        on_1, on_2 = (mask_where((cell & level).any()) for level in levels[:2])
        targets = free & (~levels[1] | (~levels[2] & on_1) | on_2) & mask_where(in_play)
        buildable = window(config, free | cell, worker)
        for moves, half in zip(_HALVES, _turns_to(config, targets, worker), strict=True):
            builds = [
                (_NEIGHBOUR_BITS[move] + _NEIGHBOUR_BITS[build] - CENTRE, 8 * (move % 4) + build)
                for move in moves
                for build in range(8)
            ]
            words.append(move_bits(buildable, builds) & half)
    return (words[0], words[1], words[2], words[3])


def winning_turns(config: Config, state: State) -> Turns:
    """The legal turns that move a worker to level 3."""
    first, second = (_turns_to(config, state.levels[2], worker) for worker in state.workers[:2])
    a, b, c, d = (legal & climbs for legal, climbs in zip(state.turns, first + second, strict=True))
    return a, b, c, d


def apply(config: Config, state: State, action: Int32[Array, "*lanes"]) -> State:
    """The state after ``action``, which is trusted to be legal; after -1, the same state."""
    after = make_state(config, *moved(config, state, action), 1 - state.current_player)
    result: State = jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), after, state)
    return result


def moved(config: Config, state: State, action: Int32[Array, "*lanes"]) -> tuple[Levels, Workers]:
    """The levels and the workers after a legal action; the workers of the opponent, to move then, come first."""
    first, second, third, fourth = state.workers
    is_first = (action >> 6) == 0
    target = jnp.where(is_first, first, second) + _bit_offset(config, action >> 3)
    built = singleton(config, target + _bit_offset(config, action))
    if config.placement == "chosen":
        cell = action - NUM_TURNS
        places = cell >= 0
        built = built & mask_where(~places)
        is_first = jnp.where(places, first < 0, is_first)
        target = jnp.where(places, bit_of(config, cell), target)
    level_1, level_2, level_3, level_4 = state.levels
    levels = (level_1 | built, level_2 | (built & level_1), level_3 | (built & level_2), level_4 | (built & level_3))
    return levels, (third, fourth, jnp.where(is_first, target, first), jnp.where(is_first, second, target))


def is_terminal(config: Config, state: State) -> Bool[Array, "*lanes"]:
    """Whether the player to move has lost: the opponent stands on level 3, or no turn is legal."""
    return (reduce(jnp.bitwise_or, state.turns) == 0) & ~is_placing(config, state)


def is_placing(config: Config, state: State) -> Bool[Array, "*lanes"]:
    """Whether the player to move has a worker to place."""
    return jnp.asarray(config.placement == "chosen") & (state.workers[1] < 0)


def placement_cells(config: Config, state: State) -> Bitboard:
    """The cells on which the player to move may place a worker; none unless ``is_placing``."""
    occupied = reduce(Bitboard.__or__, (singleton(config, worker) for worker in state.workers))
    return full_board(config) & ~occupied & mask_where(is_placing(config, state))


def is_legal(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Bool[Array, "*lanes"]:
    """Whether ``action``, any integer, is legal."""
    word = reduce(lambda word, i: jnp.where(action >> 5 == i, state.turns[i], word), range(4), jnp.uint32(0))
    legal: Array = (word >> (action & (WORD_BITS - 1)).astype(jnp.uint32)) & np.uint32(1) != 0
    if config.placement == "chosen":
        cell = action - NUM_TURNS
        is_cell = (cell >= 0) & (cell < config.size**2)
        index = jnp.where(is_cell, bit_of(config, cell), -1)
        legal = legal | (placement_cells(config, state) & singleton(config, index)).any()
    return legal


def legal_action_mask(config: Config, state: State) -> Bool[Array, "num_actions"]:
    """Mask of the legal actions."""
    legal = unpack_words(jnp.stack(state.turns), NUM_TURNS)
    if config.placement == "chosen":
        legal = jnp.concatenate([legal, unpack(config, placement_cells(config, state)).ravel()])
    return legal


def sample_action(config: Config, state: State, bits: UInt32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """A legal action drawn uniformly by 32 random bits; -1 at the end."""
    return sample_actions(config, state, bits, 1)[0]


def sample_actions(config: Config, state: State, bits: UInt32[Array, "*lanes"], count: int) -> Int32[Array, "count *lanes"]:
    """``count`` different legal actions, each equally likely, by 32 random bits; all of them where they fit, then -1."""
    turns = _sample_set_bits(state.turns, bits, count)
    if config.placement != "chosen":
        return turns
    indices = _sample_set_bits(placement_cells(config, state).words, bits, count)
    placements = jnp.where(indices >= 0, NUM_TURNS + cell_of(config, indices), -1)
    return jnp.where(jnp.broadcast_to(is_placing(config, state), placements.shape), placements, turns)


def board_of(config: Config, state: State) -> Int8[Array, "2 size size"]:
    """Pieces and heights; the pieces of the player to move are 1 and 2, the opponent's -1 and -2, empty cells 0."""
    pieces = [
        jnp.where(unpack(config, singleton(config, worker)), np.int8(piece), np.int8(0))
        for worker, piece in zip(state.workers, PIECES, strict=True)
    ]
    heights = [unpack(config, level).astype(jnp.int8) for level in state.levels]
    return jnp.stack([reduce(jnp.add, pieces), reduce(jnp.add, heights)])


def state_of(config: Config, board: Int8[Array, "2 size size"], player: Int32[Array, ""]) -> State:
    """The inverse of ``board_of``, with ``player`` to move. The board is trusted to be a position."""
    pieces, heights = board[0], board[1]
    level_1, level_2, level_3, level_4 = (pack(config, heights >= height) for height in range(1, 5))
    first, second, third, fourth = (
        jnp.where(jnp.any(pieces == piece), bit_of(config, jnp.argmax(pieces == piece).astype(jnp.int32)), -1)
        for piece in PIECES
    )
    return make_state(config, (level_1, level_2, level_3, level_4), (first, second, third, fourth), player)


def _turns_to(config: Config, cells: Bitboard, worker: BitIndex) -> tuple[Word, Word]:
    """All turns of a worker that move to one of ``cells``, legal or not: two words, by the halves of the directions."""
    targets = window(config, cells, worker)
    moves = (move_bits(targets, [(_NEIGHBOUR_BITS[move], 8 * (move % 4)) for move in half]) for half in _HALVES)
    # The lowest bit of a byte, one for each move, becomes all eight, one for each build.
    first, second = ((bits << np.uint32(8)) - bits for bits in moves)
    return first, second


def mask_where(flag: Bool[Array, "*lanes"]) -> Word:
    """All bits set where the flag is, none elsewhere."""
    return jnp.where(flag, ~np.uint32(0), np.uint32(0))


def _bit_offset(config: Config, direction: Int32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """The difference of bits between a cell and its neighbour in the direction given by the lowest three bits."""
    direction = direction & 7
    ninth = direction + (direction > 3).astype(jnp.int32)  # among nine cells, row by row, the middle one included
    row = (ninth > 2).astype(jnp.int32) + (ninth > 5).astype(jnp.int32)
    return row * (config.stride - 3) + ninth - (config.stride + 1)


def _sample_set_bits(words: Sequence[Word], bits: Word, count: int) -> Int32[Array, "count *lanes"]:
    """Indices of ``count`` different set bits, by 32 random bits; then -1. Bit ``i`` of word ``w`` has index ``32 * w + i``."""
    counts = [popcount(word) for word in words]
    rank = systematic_sample(bits, sum(counts[1:], start=counts[0]), count)
    index, word = jnp.zeros_like(rank), jnp.broadcast_to(words[0], rank.shape)
    start = end = jnp.zeros_like(rank)  # ranks of the word so far, and of the next one
    for i in range(1, len(words)):
        end = end + jnp.broadcast_to(counts[i - 1], rank.shape)
        is_later = rank >= end
        word = jnp.where(is_later, jnp.broadcast_to(words[i], rank.shape), word)
        index, start = jnp.where(is_later, i, index), jnp.where(is_later, end, start)
    return jnp.where(rank >= 0, index * WORD_BITS + kth_set_bit(word, rank - start), -1)


def _sample_distinct(bits: UInt32[Array, "count"], bound: int) -> list[Int32[Array, ""]]:
    """``count`` different numbers in ``[0, bound)``, by a random word each."""
    drawn: list[Int32[Array, ""]] = []
    ascending: list[Int32[Array, ""]] = []
    for i in range(bits.shape[0]):
        number = uniform_below(bits[i], jnp.uint32(bound - i))
        for earlier in ascending:  # the number-th of the numbers that are left
            number = number + (number >= earlier).astype(jnp.int32)
        drawn.append(number)
        ascending.append(number)
        for j in range(i, 0, -1):
            low, high = ascending[j - 1], ascending[j]
            ascending[j - 1], ascending[j] = jnp.minimum(low, high), jnp.maximum(low, high)
    return drawn
