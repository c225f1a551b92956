"""The rules of Triominos: the state and its transitions.

Batching (see ``tilewe_jax.lanes``): unbatched; every function takes and returns the arrays of one game.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, kth_set_bit, popcount, systematic_sample
from tilewe_jax.game import Action
from tilewe_jax.games.triominos import table, tile_sets
from tilewe_jax.games.triominos.config import (
    DRAW_SCORE,
    FIRST_TRIPLE_SCORE,
    FIRST_ZEROS_SCORE,
    MAX_DRAWS,
    OUT_SCORE,
    PASS_SCORE,
    Config,
)
from tilewe_jax.games.triominos.host import Position
from tilewe_jax.games.triominos.table import Placed, Table
from tilewe_jax.games.triominos.tile_sets import TileSet
from tilewe_jax.games.triominos.tiles import tile_id
from tilewe_jax.lanes import random_words


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position of one game; P players, N tiles. 686 bytes for two players and 56 tiles."""

    table: Table
    """The placed tiles and the frontier."""
    trays: UInt32[Array, "P words"]
    """``uint32[P, words]``: the tiles of each player, see ``tile_sets``."""
    order: Int8[Array, "N"]
    """``int8[N]``: drawing order of the tiles of the pile, the next tile being ``drawn``; arbitrary for other tiles."""
    drawn: Int32[Array, ""]
    """``int32``: number of tiles not in the pile."""
    scores: Int32[Array, "P"]
    """``int32[P]``: points of all rounds so far."""
    current_player: Int32[Array, ""]
    """``int32``: the player to move, from 0."""
    draws: Int32[Array, ""]
    """``int32``: number of tiles drawn in this turn."""
    passes: Int32[Array, ""]
    """``int32``: number of passes since the last placement."""
    starter: Int32[Array, ""]
    """``int32``: the first player of the round."""
    round: Int32[Array, ""]
    """``int32``: number of previous rounds."""
    seed: UInt32[Array, "2"]
    """``uint32[2]``: seed of the deals of later rounds, see ``deal``."""


def init(config: Config, key: PRNGKeyArray) -> State:
    """The initial state of a new game; ``key`` determines all deals."""
    seed = random_words(key, 2)
    return deal(config, jnp.zeros(config.players, jnp.int32), jnp.int32(0), seed, jnp.ones(config.players, jnp.bool_))


def deal(
    config: Config, scores: Int32[Array, "P"], number: Int32[Array, ""], seed: UInt32[Array, "2"], may_start: Bool[Array, "P"]
) -> State:
    """The start of round ``number``, with tiles and lots drawn by a hash of seed and number.

    Args:
      config: the settings.
      scores: points so far.
      number: number of previous rounds.
      seed: the seed of the game.
      may_start: the candidates for the first player; ignored with ``start="highest"``.
    """
    words = hash32(
        hash32(hash32(seed[0], number), seed[1].astype(jnp.int32))[None],
        jnp.arange(config.tiles + config.players, dtype=jnp.int32),
    )
    shuffle, lots = words[: config.tiles], words[config.tiles :]
    return start_round(config, scores, number, seed, _ranks(shuffle).astype(jnp.int8), lots, may_start)


def start_round(
    config: Config,
    scores: Int32[Array, "P"],
    number: Int32[Array, ""],
    seed: UInt32[Array, "2"],
    order: Int8[Array, "N"],
    lots: UInt32[Array, "P"],
    may_start: Bool[Array, "P"],
) -> State:
    """The start of round ``number`` with the tiles in this order.

    Tile ``t`` is dealt ``order[t]``-th: the first tiles to player 0, the next tiles to player 1, ..., the rest to the pile. The
    candidate with the highest lot starts.
    """
    holder = order // np.int8(config.dealt)
    trays = jax.vmap(lambda player: tile_sets.pack(holder == player))(jnp.arange(config.players, dtype=jnp.int8))
    if config.start == "highest":
        may_start = tile_sets.holds_highest(config, trays)
    starter = jnp.argmax(jnp.where(may_start, (lots >> np.uint32(1)).astype(jnp.int32), -1)).astype(jnp.int32)
    zero = jnp.int32(0)
    return State(
        table=table.empty(config),
        trays=trays,
        order=order,
        drawn=jnp.int32(config.players * config.dealt),
        scores=scores,
        current_player=starter,
        draws=zero,
        passes=zero,
        starter=starter,
        round=number,
        seed=seed,
    )


def state_of(position: Position) -> State:
    """The state of a host position. Runs on the host."""
    config = position.config
    order, drawn = np.empty(config.tiles, np.int8), config.tiles - len(position.pile)
    others = [tile for tile in config.tile_list if tile not in position.pile]
    for number, tile in enumerate([*others, *position.pile]):
        order[tile_id(tile)] = number
    trays = np.zeros((config.players, tile_sets.num_words(config)), np.uint32)
    for row, tray in zip(trays, position.trays, strict=True):
        for tile in tray:
            row[tile_id(tile) // WORD_BITS] |= np.uint32(1 << tile_id(tile) % WORD_BITS)
    return State(
        table=table.table_of(position),
        trays=jnp.asarray(trays),
        order=jnp.asarray(order),
        drawn=jnp.int32(drawn),
        scores=jnp.array(position.points, jnp.int32),
        current_player=jnp.int32(position.current_player),
        draws=jnp.int32(position.draws),
        passes=jnp.int32(position.passes),
        starter=jnp.int32(position.starter),
        round=jnp.int32(position.round),
        seed=jnp.array(position.seed, jnp.uint32),
    )


def apply_in_round(config: Config, state: State, action: Action) -> State:
    """The state after a legal ``action``, which is not checked; -1 returns the state unchanged.

    The end of a round is scored, but the next round is not dealt.
    """
    is_mover = jnp.arange(config.players, dtype=jnp.int32) == state.current_player
    draws, passes = action == config.draw, action == config.pass_
    places = (action >= 0) & ~draws & ~passes

    placed, score = placement(config, state, action)
    new_table = table.place(config, state.table, placed)
    new_table = jax.tree.map(lambda new, old: jnp.where(places, new, old), new_table, state.table)
    drawn = jnp.argmax(state.order == state.drawn.astype(jnp.int8)).astype(jnp.int32)
    moved = jnp.where(places | draws, tile_sets.singleton(config, jnp.where(draws, drawn, placed.tile)), np.uint32(0))
    trays = state.trays ^ jnp.where(is_mover[:, None], moved[None], np.uint32(0))

    gained = jnp.where(places, score, jnp.where(draws, DRAW_SCORE, jnp.where(passes, PASS_SCORE, 0)))
    after = replace(
        state,
        table=new_table,
        trays=trays,
        drawn=state.drawn + draws.astype(jnp.int32),
        scores=state.scores + jnp.where(is_mover, gained, 0),
        current_player=jnp.where(places | passes, (state.current_player + 1) % config.players, state.current_player),
        draws=jnp.where(places | passes, 0, state.draws + draws.astype(jnp.int32)),
        passes=jnp.where(places, 0, state.passes + passes.astype(jnp.int32)),
    )
    _, bonuses = round_result(config, after)
    return replace(after, scores=after.scores + jnp.where(places | passes, bonuses, 0))


def placement(config: Config, state: State, action: Action) -> tuple[Placed, Int32[Array, ""]]:
    """The placed tile of ``action`` and its points; arbitrary for draw, pass and -1."""
    is_first = action >= config.first
    cell = jnp.where(is_first | (action < 0), 0, action // config.numbers).astype(jnp.int16)
    numbers, neighbour_mask = table.find(state.table, cell)
    free = table.free_corner(neighbour_mask)
    third = (action % config.numbers).astype(jnp.int8)
    first_tile = jnp.clip(action - config.first, 0, config.tiles - 1)
    first_numbers = (jnp.take(jnp.asarray(row), first_tile) for row in np.array(config.tile_list, np.int8).T)
    left, middle, right = (
        jnp.where(is_first, first_number, jnp.where(free == k, third, number))
        for k, (first_number, number) in enumerate(zip(first_numbers, numbers, strict=True))
    )
    bonus = table.bonus(config, neighbour_mask)
    if config.start == "highest":
        is_triple = (left == middle) & (middle == right)
        first_bonus = jnp.where(first_tile == 0, FIRST_ZEROS_SCORE, jnp.where(is_triple, FIRST_TRIPLE_SCORE, 0))
        bonus = jnp.where(is_first, first_bonus, bonus)
    score = bonus + (left + middle + right).astype(jnp.int32)
    numbers = left, middle, right
    return Placed(table.tile_of(*numbers), table.orientation_of(config, numbers, cell), cell, numbers), score


def is_round_over(config: Config, state: State) -> Bool[Array, ""]:
    """Return whether the round is over. For states after ``Game.apply``, which deals the next round, so is the game."""
    return jnp.any(jnp.all(state.trays == 0, axis=1)) | (state.passes == config.players)


def round_result(config: Config, state: State) -> tuple[Bool[Array, "P"], Int32[Array, "P"]]:
    """Mask of the winners of the round, and their bonuses; all false and 0 before its end."""
    values = jax.vmap(partial(tile_sets.value, config))(state.trays)
    is_empty = jnp.all(state.trays == 0, axis=1)
    is_out, total = jnp.any(is_empty), jnp.sum(values, dtype=jnp.int32)
    lowest = jnp.min(values)
    won = jnp.where(is_out, is_empty, (values == lowest) & (state.passes == config.players))
    return won, jnp.where(won, jnp.where(is_out, OUT_SCORE + total, total - config.players * lowest), 0)


def needs_next_round(config: Config, state: State) -> Bool[Array, ""]:
    """Return whether the round is over and the game continues."""
    goes_on = (jnp.max(state.scores) < config.target) & (state.round < config.rounds - 1)
    return is_round_over(config, state) & goes_on


def next_round(config: Config, state: State) -> State:
    """The start of the next round after the end of a round."""
    won, _ = round_result(config, state)
    may_start = won if config.start == "winner" else jnp.ones_like(won)
    return deal(config, state.scores, state.round + 1, state.seed, may_start)


def legal_words(config: Config, state: State) -> UInt32[Array, "legal_words"]:
    """The legal actions as bits; ``action_of`` converts a bit to an action id.

    The first words hold the legal numbers at the free corner, one word for each slot of the frontier. Then follow the set of
    legal first tiles, and a word with draw (bit 0) and pass (bit 1).
    """
    tray, in_play = tray_of(state), ~is_round_over(config, state)
    is_first = ~jnp.any(state.table.placed_at >= 0)
    must_open = is_first & (config.start == "highest")
    openers = tile_sets.openers(config, tray) if config.start == "highest" else tray
    openers = jnp.where(is_first, openers, np.uint32(0))
    may_draw = (state.draws < MAX_DRAWS) & (state.drawn < config.tiles)
    draw_or_pass = jnp.where(must_open, np.uint32(0), jnp.where(may_draw, np.uint32(1), np.uint32(2)))
    words = jnp.concatenate([placements(config, state.table, tray), openers, draw_or_pass[None]])
    return jnp.where(in_play, words, np.uint32(0))


def placements(config: Config, board: Table, tiles: TileSet) -> UInt32[Array, "F"]:
    """For each slot of the frontier, the numbers at its free corner that a tile of a set can provide, as bits."""
    first, second, known = table.frontier_corners(config, board)
    pair = first.astype(jnp.int32) * config.numbers + second.astype(jnp.int32)
    allowed = jnp.where(known < 0, ~np.uint32(0), np.uint32(1) << jnp.maximum(known, 0).astype(jnp.uint32))
    bits = jnp.take(tile_sets.completions(config, tiles), pair, mode="clip") & allowed
    return jnp.where(board.frontier >= 0, bits, np.uint32(0))


def is_legal(config: Config, state: State, action: Action) -> Bool[Array, ""]:
    """Return whether ``action``, any integer, is legal."""
    words = legal_words(config, state)
    on_cell = (action >= 0) & (action < config.first)
    is_slot = state.table.frontier == jnp.where(on_cell, action // config.numbers, 0).astype(jnp.int16)
    has_bit = jnp.where(on_cell, jnp.any(is_slot), (action >= config.first) & (action < config.num_actions))
    tile, draw_or_pass = action - config.first, action - config.draw
    slot = jnp.argmax(is_slot).astype(jnp.int32)
    tile_word = config.frontier_size + tile // WORD_BITS
    word = jnp.where(on_cell, slot, jnp.where(draw_or_pass < 0, tile_word, words.shape[0] - 1))
    bit = jnp.where(on_cell, action % config.numbers, jnp.where(draw_or_pass < 0, tile % WORD_BITS, draw_or_pass))
    bits = jnp.take(words, word, mode="clip") >> (bit & (WORD_BITS - 1)).astype(jnp.uint32)
    return has_bit & (bits & np.uint32(1) != 0)


def action_of(
    config: Config, state: State, word: Int32[Array, "*shape"], bit: Int32[Array, "*shape"]
) -> Int32[Array, "*shape"]:
    """The action ids of bits of ``legal_words``."""
    cell = jnp.take(state.table.frontier, word, mode="clip").astype(jnp.int32)
    first = config.first + (word - config.frontier_size) * WORD_BITS + bit
    last = config.frontier_size + tile_sets.num_words(config)
    on_cell = word < config.frontier_size
    return jnp.where(on_cell, cell * config.numbers + bit, jnp.where(word < last, first, config.draw + bit)).astype(jnp.int32)


def sample_action(config: Config, state: State, words: UInt32[Array, "legal_words"], bits: UInt32[Array, ""]) -> Action:
    """Draw one of the actions in ``words`` (see ``legal_words``) uniformly with 32 random bits; -1 if there is none."""
    return sample_actions(config, state, words, bits, 1)[0]


def sample_actions(
    config: Config, state: State, words: UInt32[Array, "legal_words"], bits: UInt32[Array, ""], count: int
) -> Int32[Array, "count"]:
    """Draw different actions in ``words`` uniformly; with fewer than ``count`` of them, all, then -1."""
    return nth_action(config, state, words, systematic_sample(bits, jnp.sum(popcount(words), dtype=jnp.int32), count))


def draw_or_pass(config: Config, words: UInt32[Array, "legal_words"]) -> Action:
    """The action draw or pass in ``words`` (see ``legal_words``), which never have both; -1 for neither."""
    word = words[-1].astype(jnp.int32)
    return jnp.where(word > 0, config.draw + word - 1, -1)


def nth_action(config: Config, state: State, words: UInt32[Array, "legal_words"], rank: Int32[Array, "k"]) -> Int32[Array, "k"]:
    """Return the actions of the given ranks in ``words``; -1 for the rank -1."""
    counts = popcount(words)
    # A product with a triangular matrix is faster than XLA's cumulative sum, which is quadratic on a CPU.
    ends = (np.tri(counts.shape[0], dtype=np.float32) @ counts.astype(jnp.float32)).astype(jnp.int32)
    is_before = ends[None] <= rank[:, None]
    word = jnp.sum(is_before, axis=1, dtype=jnp.int32)
    before = jnp.max(jnp.where(is_before, ends[None], 0), axis=1)
    mask = jnp.take(words, word, mode="clip")
    return jnp.where(rank >= 0, action_of(config, state, word, kth_set_bit(mask, rank - before)), -1)


def determinize(config: Config, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
    """Redistribute the tiles hidden from ``player`` among the pile and the other trays, whose sizes stay the same."""
    words = random_words(key, config.tiles + 2)
    shuffle, seed = words[: config.tiles], words[config.tiles :]
    own = tile_sets.unpack(config, state.trays[player])
    unseen = ~own & (state.table.placed_at < 0)
    rank = jnp.where(unseen, _ranks(jnp.where(unseen, shuffle >> np.uint32(1), ~np.uint32(0))), -1)
    others = jnp.arange(config.players, dtype=jnp.int32) != player
    sizes = jnp.where(others, tray_sizes(state), 0)
    ends = jnp.sum(jnp.where(np.tri(config.players, dtype=bool), sizes[None], 0), axis=1, dtype=jnp.int32)
    dealt = jax.vmap(lambda size, end: tile_sets.pack((rank >= end - size) & (rank < end)))(sizes, ends)
    in_pile = rank - ends[-1]
    return replace(
        state,
        trays=jnp.where(others[:, None], dealt, state.trays),
        order=jnp.where(in_pile >= 0, state.drawn + in_pile, -1).astype(jnp.int8),
        seed=seed,
    )


def tray_sizes(state: State) -> Int32[Array, "P"]:
    """Number of tiles in each tray."""
    return jax.vmap(tile_sets.count)(state.trays)


def tray_of(state: State) -> TileSet:
    """The tray of the player to move."""
    is_mover = jnp.arange(state.trays.shape[0], dtype=jnp.int32) == state.current_player
    return jnp.sum(jnp.where(is_mover[:, None], state.trays, np.uint32(0)), axis=0, dtype=jnp.uint32)


def unseen_tiles(config: Config, state: State) -> TileSet:
    """The tiles hidden from the player to move: the other trays and the pile."""
    placed = tile_sets.pack(state.table.placed_at >= 0)
    return tile_sets.pack(jnp.ones(config.tiles, jnp.bool_)) & ~placed & ~tray_of(state)


def _ranks(words: UInt32[Array, "N"]) -> Int32[Array, "N"]:
    """The rank of each word from 0; ties are broken by index. Counting is cheaper than sorting for so few words."""
    index = np.arange(words.shape[0], dtype=np.int32)
    smaller = (words[None] < words[:, None]) | ((words[None] == words[:, None]) & (index[None] < index[:, None]))
    return jnp.sum(smaller, axis=1, dtype=jnp.int32)
