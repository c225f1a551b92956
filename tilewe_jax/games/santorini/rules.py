"""The rules of Santorini for one game, on bitboards.

All that the legal turns of a worker depend on lies in the window around it (``bitboard.window``). There the same masks serve
every cell of every board, and the 128 turns are bits of the window moved to other places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import WORD_BITS, kth_set_bit, move_bits, popcount, systematic_sample, uniform_below, unpack_words
from tilewe_jax.game import Action
from tilewe_jax.games.santorini.bitboard import (
    CENTRE,
    WINDOW,
    Bitboard,
    Position,
    Word,
    bit_of,
    cell_of,
    dense,
    every,
    pack,
    single,
    window,
)
from tilewe_jax.games.santorini.config import DIRECTIONS, NUM_TURNS, Config
from tilewe_jax.games.santorini.host import PIECES
from tilewe_jax.lanes import random_words

Levels = tuple[Bitboard, Bitboard, Bitboard, Bitboard]
Workers = tuple[Position, Position, Position, Position]
Turns = tuple[Word, Word, Word, Word]
"""A set of turns: turn ``a`` is bit ``a % 32`` of word ``a // 32``. The first two words are worker 1's."""

_AROUND = [CENTRE + WINDOW * row + column for row, column in DIRECTIONS]
_HALVES = range(4), range(4, 8)
"""The directions of moves whose turns share a word."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position. All leaves are scalars."""

    levels: Levels
    """The cells at least 1, 2, 3 and 4 high."""
    workers: Workers
    """Bits of the workers 1 and 2 of the player to move, then of the other; -1 where not placed yet."""
    turns: Turns
    """The legal turns. That there is none ends a game, so whoever makes a position needs them anyway."""
    current_player: Int32[Array, ""]
    """0 moved first."""


def position(config: Config, levels: Levels, workers: Workers, player: Int32[Array, ""]) -> State:
    """The state in which these workers stand on these levels and ``player`` is to move."""
    return State(levels, workers, turns(config, levels, workers), player)


def turns(config: Config, levels: Levels, workers: Workers) -> Turns:
    """The legal turns of the player whose workers come first."""
    own = [single(config, worker) for worker in workers]
    free = every(config) & ~(own[0] | own[1] | own[2] | own[3] | levels[3])
    going = ~((own[2] | own[3]) & levels[2]).any() & (workers[1] >= 0)  # the other has not won, and all are placed
    words: list[Word] = []
    for worker, cell in zip(workers[:2], own[:2], strict=True):
        on_1, on_2 = (_all_or_none((cell & level).any()) for level in levels[:2])
        steps = free & (~levels[1] | (~levels[2] & on_1) | on_2) & _all_or_none(going)
        near = window(config, free | cell, worker)
        for moves, half in zip(_HALVES, _moves_to(config, steps, worker), strict=True):
            builds = [(_AROUND[move] + _AROUND[build] - CENTRE, 8 * (move % 4) + build) for move in moves for build in range(8)]
            words.append(move_bits(near, builds) & half)
    return (words[0], words[1], words[2], words[3])


def _moves_to(config: Config, cells: Bitboard, worker: Position) -> tuple[Word, Word]:
    """All turns of a worker that move to one of these cells, legal or not."""
    near = window(config, cells, worker)
    moved = (move_bits(near, [(_AROUND[move], 8 * (move % 4)) for move in moves]) for moves in _HALVES)
    first, second = ((bits << np.uint32(8)) - bits for bits in moved)  # from the first bit of a byte to all eight
    return first, second


def climbs(config: Config, state: State) -> Turns:
    """The legal turns that win by standing on level 3."""
    first, second = (_moves_to(config, state.levels[2], worker) for worker in state.workers[:2])
    a, b, c, d = (legal & up for legal, up in zip(state.turns, first + second, strict=True))
    return a, b, c, d


def apply(config: Config, state: State, action: Action) -> State:
    """The position after an action that is trusted to be legal; after -1, the same position."""
    first, second, third, fourth = state.workers
    chosen = (action >> 6) == 0
    to = jnp.where(chosen, first, second) + _step(config, action >> 3)
    built = single(config, to + _step(config, action))
    if config.placement == "chosen":
        cell = action - NUM_TURNS
        places = cell >= 0
        built = built & _all_or_none(~places)
        chosen = jnp.where(places, first < 0, chosen)
        to = jnp.where(places, bit_of(config, cell), to)
    one, two, three, four = state.levels
    raised = (one | built, two | (built & one), three | (built & two), four | (built & three))
    workers = (third, fourth, jnp.where(chosen, to, first), jnp.where(chosen, second, to))
    after = position(config, raised, workers, 1 - state.current_player)
    chosen_state: State = jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), after, state)
    return chosen_state


def is_over(config: Config, state: State) -> Bool[Array, ""]:
    """Whether the player to move has lost."""
    return (reduce(jnp.bitwise_or, state.turns) == 0) & ~placing(config, state)


def placing(config: Config, state: State) -> Bool[Array, ""]:
    """Whether the player to move has a worker to place."""
    return jnp.asarray(config.placement == "chosen") & (state.workers[1] < 0)


def free(config: Config, state: State) -> Bitboard:
    """Where a worker may be placed."""
    taken = reduce(Bitboard.__or__, (single(config, worker) for worker in state.workers))
    return every(config) & ~taken & _all_or_none(placing(config, state))


def is_legal(config: Config, state: State, action: Action) -> Bool[Array, ""]:
    """Whether an action, any integer, is legal."""
    word = reduce(lambda found, i: jnp.where(action >> 5 == i, state.turns[i], found), range(4), jnp.uint32(0))
    legal: Array = (word >> (action & (WORD_BITS - 1)).astype(jnp.uint32)) & np.uint32(1) != 0
    if config.placement == "chosen":
        cell = action - NUM_TURNS
        inside = (cell >= 0) & (cell < config.size**2)
        place = jnp.where(inside, bit_of(config, cell), -1)
        legal = legal | (free(config, state) & single(config, place)).any()
    return legal


def legal_actions(config: Config, state: State) -> Bool[Array, "num_actions"]:
    """Which actions are legal."""
    legal = unpack_words(jnp.stack(state.turns), NUM_TURNS)
    if config.placement == "chosen":
        legal = jnp.concatenate([legal, dense(config, free(config, state)).ravel()])
    return legal


def sample(config: Config, state: State, bits: UInt32[Array, ""]) -> Action:
    """A legal action drawn uniformly with 32 random bits; -1 at the end."""
    return several(config, state, bits, 1)[0]


def several(config: Config, state: State, bits: UInt32[Array, "*lanes"], count: int) -> Int32[Array, "count *lanes"]:
    """Different legal actions, each as likely as any other, with 32 random bits; all of them where they fit, then -1."""
    turns = _pick(state.turns, bits, count)
    if config.placement != "chosen":
        return turns
    places = _pick(free(config, state).words, bits, count)
    cells = jnp.where(places >= 0, NUM_TURNS + cell_of(config, places), -1)
    return jnp.where(jnp.broadcast_to(placing(config, state), cells.shape), cells, turns)


def initial(config: Config, key: PRNGKeyArray) -> State:
    """A new game."""
    if config.placement == "random":
        cells = _distinct(random_words(key, 4), config.size**2)
        workers = [bit_of(config, cell) for cell in cells]
    else:
        workers = [jnp.int32(config.bit(cell) if config.placement == "default" else -1) for cell in config.start]
    none = every(config) & jnp.uint32(0)
    return position(config, (none, none, none, none), (workers[0], workers[1], workers[2], workers[3]), jnp.int32(0))


def board_of(config: Config, state: State) -> Int8[Array, "2 size size"]:
    """Pieces and heights; the pieces of the player to move are 1 and 2, the other's -1 and -2."""
    pieces = [
        jnp.where(dense(config, single(config, worker)), np.int8(piece), np.int8(0))
        for worker, piece in zip(state.workers, PIECES, strict=True)
    ]
    heights = [dense(config, level).astype(jnp.int8) for level in state.levels]
    return jnp.stack([reduce(jnp.add, pieces), reduce(jnp.add, heights)])


def state_of(config: Config, board: Int8[Array, "2 size size"], player: Int32[Array, ""]) -> State:
    """The inverse of ``board_of``. The board is trusted to be a position."""
    pieces, heights = board[0], board[1]
    one, two, three, four = (pack(config, heights >= level) for level in range(1, 5))
    first, second, third, fourth = (
        jnp.where(jnp.any(pieces == piece), bit_of(config, jnp.argmax(pieces == piece).astype(jnp.int32)), -1)
        for piece in PIECES
    )
    return position(config, (one, two, three, four), (first, second, third, fourth), player)


def _all_or_none(flag: Bool[Array, ""]) -> Word:
    return jnp.where(flag, ~np.uint32(0), np.uint32(0))


def _step(config: Config, direction: Int32[Array, ""]) -> Int32[Array, ""]:
    """How far a step in the direction of the last three bits leads."""
    direction = direction & 7
    ninth = direction + (direction > 3).astype(jnp.int32)  # among nine cells, row by row, the middle one included
    row = (ninth > 2).astype(jnp.int32) + (ninth > 5).astype(jnp.int32)
    return row * (config.stride - 3) + ninth - (config.stride + 1)


def _pick(words: Sequence[Word], bits: Word, count: int) -> Int32[Array, "count *lanes"]:
    """Indices of different set bits by 32 random bits, bit ``i`` of word ``w`` being ``32 * w + i``; then -1."""
    counts = [popcount(word) for word in words]
    rank = systematic_sample(bits, sum(counts[1:], start=counts[0]), count)
    index, word = jnp.zeros_like(rank), jnp.broadcast_to(words[0], rank.shape)
    before = passed = jnp.zeros_like(rank)
    for i in range(1, len(words)):
        passed = passed + jnp.broadcast_to(counts[i - 1], rank.shape)
        later = rank >= passed
        word = jnp.where(later, jnp.broadcast_to(words[i], rank.shape), word)
        index, before = jnp.where(later, i, index), jnp.where(later, passed, before)
    return jnp.where(rank >= 0, index * WORD_BITS + kth_set_bit(word, rank - before), -1)


def _distinct(bits: UInt32[Array, "count"], bound: int) -> list[Int32[Array, ""]]:
    """Different numbers below ``bound``, by random bits."""
    drawn: list[Int32[Array, ""]] = []
    ascending: list[Int32[Array, ""]] = []
    for i in range(bits.shape[0]):
        number = uniform_below(bits[i], jnp.uint32(bound - i))
        for taken in ascending:  # the number-th of those that are left
            number = number + (number >= taken).astype(jnp.int32)
        drawn.append(number)
        ascending.append(number)
        for j in range(i, 0, -1):
            low, high = ascending[j - 1], ascending[j]
            ascending[j - 1], ascending[j] = jnp.minimum(low, high), jnp.maximum(low, high)
    return drawn
