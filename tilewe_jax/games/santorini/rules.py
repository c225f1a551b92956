"""The rules of Santorini, on bitboards.

Batching (see ``tilewe_jax.lanes``): unbatched; every function takes and returns the arrays of one game. Functions annotated
with ``*lanes`` are also elementwise, so that ``game.py`` can call them for many games, lanes last.

The legal turns of a worker depend only on the five by five cells around it (``bitboard.window``). The same masks serve every
cell of every board: the 64 turns of a worker are a permutation of bits of its window.
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
"""A set of turns, 128 bits: turn ``a`` is bit ``a % 32`` of word ``a // 32``. The first two words belong to worker 0."""

_NEIGHBOUR_BITS = [CENTRE + WINDOW * row + column for row, column in DIRECTIONS]
"""For each direction, the window bit of the neighbour of the centre."""
_HALVES = range(4), range(4, 8)
"""Directions of moves whose turns share a word."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position of one game; all leaves are scalars. 52 bytes up to 5 x 5, 100 bytes at 10 x 10."""

    levels: Levels
    """Bitboards, ``uint32`` words: the cells that are at least 1, 2, 3 and 4 high."""
    workers: Workers
    """``int32`` each: bits of the two workers of the player to move, then of the opponent; -1 for a worker not yet placed."""
    turns: Turns
    """``uint32`` each: the legal turns of the player to move. Derived from the other fields, but stored, because every position
    needs them: a game ends if there are none."""
    current_player: Int32[Array, ""]
    """``int32``: the player to move, 0 (who moved first) or 1. At the end, the loser."""


def init(config: Config, key: PRNGKeyArray) -> State:
    """The initial state of a new game. ``key`` is only used for a random placement of the workers."""
    if config.placement == "random":
        cells = _sample_distinct(random_words(key, 4), config.size**2)
        workers = [bit_of(config, cell) for cell in cells]
    else:
        workers = [jnp.int32(config.bit(cell) if config.placement == "default" else -1) for cell in config.start]
    empty = full_board(config) & jnp.uint32(0)
    return make_state(config, (empty, empty, empty, empty), (workers[0], workers[1], workers[2], workers[3]), jnp.int32(0))


def make_state(config: Config, levels: Levels, workers: Workers, player: Int32[Array, "*lanes"]) -> State:
    """Make the state with these levels and workers and with ``player`` to move."""
    return State(levels, workers, legal_turns(config, levels, workers), player)


def legal_turns(config: Config, levels: Levels, workers: Workers) -> Turns:
    """The legal turns of the player with the first two workers; empty if the opponent has won or a worker is not placed."""
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
    """The state after a legal ``action``, which is not checked; -1 returns the state unchanged."""
    after = make_state(config, *moved(config, state, action), 1 - state.current_player)
    result: State = jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), after, state)
    return result


def moved(config: Config, state: State, action: Int32[Array, "*lanes"]) -> tuple[Levels, Workers]:
    """The levels and workers after a legal action. The workers of the next player to move, the opponent, come first."""
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
    """Return whether the player to move has lost: the opponent stands on level 3, or no turn is legal."""
    return (reduce(jnp.bitwise_or, state.turns) == 0) & ~is_placing(config, state)


def is_placing(config: Config, state: State) -> Bool[Array, "*lanes"]:
    """Return whether the player to move must place a worker."""
    return jnp.asarray(config.placement == "chosen") & (state.workers[1] < 0)


def placement_cells(config: Config, state: State) -> Bitboard:
    """The cells on which the player to move may place a worker; empty unless ``is_placing``."""
    occupied = reduce(Bitboard.__or__, (singleton(config, worker) for worker in state.workers))
    return full_board(config) & ~occupied & mask_where(is_placing(config, state))


def is_legal(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Bool[Array, "*lanes"]:
    """Return whether ``action``, any integer, is legal."""
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
    """Draw a legal action uniformly with 32 random bits; -1 at the end."""
    return sample_actions(config, state, bits, 1)[0]


def sample_actions(config: Config, state: State, bits: UInt32[Array, "*lanes"], count: int) -> Int32[Array, "count *lanes"]:
    """Draw ``count`` different legal actions with 32 random bits; if there are fewer, return all of them, then -1."""
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
    """The inverse of ``board_of``, with ``player`` to move. The board is not validated."""
    pieces, heights = board[0], board[1]
    level_1, level_2, level_3, level_4 = (pack(config, heights >= height) for height in range(1, 5))
    first, second, third, fourth = (
        jnp.where(jnp.any(pieces == piece), bit_of(config, jnp.argmax(pieces == piece).astype(jnp.int32)), -1)
        for piece in PIECES
    )
    return make_state(config, (level_1, level_2, level_3, level_4), (first, second, third, fourth), player)


def _turns_to(config: Config, cells: Bitboard, worker: BitIndex) -> tuple[Word, Word]:
    """All turns of a worker that move to one of ``cells``, legal or not: one word for each half of the directions."""
    targets = window(config, cells, worker)
    moves = (move_bits(targets, [(_NEIGHBOUR_BITS[move], 8 * (move % 4)) for move in half]) for half in _HALVES)
    # Each move is the lowest bit of a byte; spread it to all eight bits, one for each build.
    first, second = ((bits << np.uint32(8)) - bits for bits in moves)
    return first, second


def mask_where(flag: Bool[Array, "*lanes"]) -> Word:
    """A word with all bits set if the flag is true, otherwise 0."""
    return jnp.where(flag, ~np.uint32(0), np.uint32(0))


def _bit_offset(config: Config, direction: Int32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """Bit offset from a cell to its neighbour in the direction given by the lowest three bits."""
    direction = direction & 7
    ninth = direction + (direction > 3).astype(jnp.int32)  # index among nine cells, row by row, including the middle
    row = (ninth > 2).astype(jnp.int32) + (ninth > 5).astype(jnp.int32)
    return row * (config.stride - 3) + ninth - (config.stride + 1)


def _sample_set_bits(words: Sequence[Word], bits: Word, count: int) -> Int32[Array, "count *lanes"]:
    """Draw ``count`` different set bits with 32 random bits, then -1. Bit ``i`` of word ``w`` has the index ``32 * w + i``."""
    counts = [popcount(word) for word in words]
    rank = systematic_sample(bits, sum(counts[1:], start=counts[0]), count)
    index, word = jnp.zeros_like(rank), jnp.broadcast_to(words[0], rank.shape)
    start = end = jnp.zeros_like(rank)  # first rank of the selected word, and of the next word
    for i in range(1, len(words)):
        end = end + jnp.broadcast_to(counts[i - 1], rank.shape)
        is_later = rank >= end
        word = jnp.where(is_later, jnp.broadcast_to(words[i], rank.shape), word)
        index, start = jnp.where(is_later, i, index), jnp.where(is_later, end, start)
    return jnp.where(rank >= 0, index * WORD_BITS + kth_set_bit(word, rank - start), -1)


def _sample_distinct(bits: UInt32[Array, "count"], bound: int) -> list[Int32[Array, ""]]:
    """Draw different numbers in ``[0, bound)``, each with one random word."""
    drawn: list[Int32[Array, ""]] = []
    ascending: list[Int32[Array, ""]] = []
    for i in range(bits.shape[0]):
        number = uniform_below(bits[i], jnp.uint32(bound - i))
        for earlier in ascending:  # select the number-th of the remaining numbers
            number = number + (number >= earlier).astype(jnp.int32)
        drawn.append(number)
        ascending.append(number)
        for j in range(i, 0, -1):
            low, high = ascending[j - 1], ascending[j]
            ascending[j - 1], ascending[j] = jnp.minimum(low, high), jnp.maximum(low, high)
    return drawn
