"""The rules of Triominos for one game."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, kth_set_bit, popcount, systematic_sample
from tilewe_jax.game import Action
from tilewe_jax.games.triominos import table, tile_sets
from tilewe_jax.games.triominos.config import MAX_DRAWS, Config
from tilewe_jax.games.triominos.table import Placed, Table
from tilewe_jax.games.triominos.tile_sets import Tray
from tilewe_jax.lanes import random_words

DRAW_SCORE, PASS_SCORE, OUT_SCORE = -5, -10, 25
FIRST_TRIPLE_SCORE, FIRST_ZEROS_SCORE = 10, 40


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position. P players, N tiles: 686 bytes for two players and 56 tiles."""

    table: Table
    trays: UInt32[Array, "P words"]
    """The tiles that each player holds."""
    order: Int8[Array, "N"]
    """For each tile of the pile when it will be drawn; the next one is ``drawn``. Of other tiles it means nothing."""
    drawn: Int32[Array, ""]
    """Tiles no more in the pile."""
    scores: Int32[Array, "P"]
    """Points of all rounds so far."""
    current_player: Int32[Array, ""]
    draws: Int32[Array, ""]
    """Tiles drawn in this turn."""
    passes: Int32[Array, ""]
    """Passes since a tile was placed."""
    starter: Int32[Array, ""]
    """Who started the round."""
    round: Int32[Array, ""]
    """Rounds before this one."""
    seed: UInt32[Array, "2"]
    """Decides the rounds to come."""


def initial(config: Config, key: PRNGKeyArray) -> State:
    """A new game."""
    seed = random_words(key, 2)
    return deal(config, jnp.zeros(config.players, jnp.int32), jnp.int32(0), seed, jnp.ones(config.players, jnp.bool_))


def deal(
    config: Config, scores: Int32[Array, "P"], number: Int32[Array, ""], seed: UInt32[Array, "2"], may_start: Bool[Array, "P"]
) -> State:
    """The start of a round. Chance decides among those who may start, except where the highest tile does."""
    words = hash32(hash32(hash32(seed[0], number), seed[1].astype(jnp.int32))[None], jnp.arange(config.tiles + config.players))
    shuffle, lots = words[: config.tiles], words[config.tiles :]
    return start(config, scores, number, seed, _ranked(shuffle).astype(jnp.int8), lots, may_start)


def start(
    config: Config,
    scores: Int32[Array, "P"],
    number: Int32[Array, ""],
    seed: UInt32[Array, "2"],
    order: Int8[Array, "N"],
    lots: UInt32[Array, "P"],
    may_start: Bool[Array, "P"],
) -> State:
    """The start of a round with the tiles in this order; of those who may start, whoever drew the highest lot does."""
    holder = order // np.int8(config.dealt)
    trays = jax.vmap(lambda player: tile_sets.pack(holder == player))(jnp.arange(config.players, dtype=jnp.int8))
    if config.start == "highest":
        may_start = tile_sets.best(config, trays)
    starter = jnp.argmax(jnp.where(may_start, (lots >> np.uint32(1)).astype(jnp.int32), -1)).astype(jnp.int32)
    none = jnp.int32(0)
    return State(
        table=table.empty(config),
        trays=trays,
        order=order,
        drawn=jnp.int32(config.players * config.dealt),
        scores=scores,
        current_player=starter,
        draws=none,
        passes=none,
        starter=starter,
        round=number,
        seed=seed,
    )


def turn(config: Config, state: State, action: Action) -> State:
    """The position after an action that is trusted to be legal, with the round's end scored but no new one begun."""
    players = jnp.arange(config.players)
    mine = players == state.current_player
    draws, passes = action == config.draw, action == config.pass_
    places = (action >= 0) & ~draws & ~passes

    placed, score = placement(config, state, action)
    laid = table.lay(config, state.table, placed)
    laid = jax.tree.map(lambda new, old: jnp.where(places, new, old), laid, state.table)
    drawn = jnp.argmax(state.order == state.drawn.astype(jnp.int8)).astype(jnp.int32)
    moved = jnp.where(places | draws, tile_sets.single(config, jnp.where(draws, drawn, placed.tile)), np.uint32(0))
    trays = state.trays ^ jnp.where(mine[:, None], moved[None], np.uint32(0))

    gained = jnp.where(places, score, jnp.where(draws, DRAW_SCORE, jnp.where(passes, PASS_SCORE, 0)))
    after = replace(
        state,
        table=laid,
        trays=trays,
        drawn=state.drawn + draws.astype(jnp.int32),
        scores=state.scores + jnp.where(mine, gained, 0),
        current_player=jnp.where(places | passes, (state.current_player + 1) % config.players, state.current_player),
        draws=jnp.where(places | passes, 0, state.draws + draws.astype(jnp.int32)),
        passes=jnp.where(places, 0, state.passes + passes.astype(jnp.int32)),
    )
    _, bonuses = round_result(config, after)
    return replace(after, scores=after.scores + jnp.where(places | passes, bonuses, 0))


def placement(config: Config, state: State, action: Action) -> tuple[Placed, Int32[Array, ""]]:
    """What an action places, which must place something, and what that scores."""
    begins = action >= config.first
    cell = jnp.where(begins | (action < 0), 0, action // config.numbers).astype(jnp.int16)
    numbers, around = table.find(state.table, cell)
    free = table.free_corner(around)
    third = (action % config.numbers).astype(jnp.int8)
    first = jnp.clip(action - config.first, 0, config.tiles - 1)
    begun = (jnp.take(jnp.asarray(row), first) for row in np.array(config.tile_list, np.int8).T)
    left, middle, right = (
        jnp.where(begins, at_first, jnp.where(free == k, third, number))
        for k, (at_first, number) in enumerate(zip(begun, numbers, strict=True))
    )
    extra = table.bonus(config, around)
    if config.start == "highest":
        triple = (left == middle) & (middle == right)
        first_extra = jnp.where(first == 0, FIRST_ZEROS_SCORE, jnp.where(triple, FIRST_TRIPLE_SCORE, 0))
        extra = jnp.where(begins, first_extra, extra)
    score = extra + (left + middle + right).astype(jnp.int32)
    numbers = left, middle, right
    return Placed(table.tile_of(*numbers), table.orientation_of(config, numbers, cell), cell, numbers), score


def is_over(config: Config, state: State) -> Bool[Array, ""]:
    """Whether the round is over. Where the game goes on, the next one begins at once, so that the game is then over too."""
    return jnp.any(jnp.all(state.trays == 0, axis=1)) | (state.passes == config.players)


def round_result(config: Config, state: State) -> tuple[Bool[Array, "P"], Int32[Array, "P"]]:
    """Who has won the round, and what that scores; nobody and nothing before its end."""
    values = jax.vmap(partial(tile_sets.value, config))(state.trays)
    empty = jnp.all(state.trays == 0, axis=1)
    out, total = jnp.any(empty), jnp.sum(values, dtype=jnp.int32)
    lowest = jnp.min(values)
    won = jnp.where(out, empty, (values == lowest) & (state.passes == config.players))
    return won, jnp.where(won, jnp.where(out, OUT_SCORE + total, total - config.players * lowest), 0)


def another_round(config: Config, state: State) -> Bool[Array, ""]:
    """Whether the round is over and the game is not."""
    left = (jnp.max(state.scores) < config.target) & (state.round < config.rounds - 1)
    return is_over(config, state) & left


def next_round(config: Config, state: State) -> State:
    """The start of the next round."""
    won, _ = round_result(config, state)
    may_start = won if config.start == "winner" else jnp.ones_like(won)
    return deal(config, state.scores, state.round + 1, state.seed, may_start)


def legal_words(config: Config, state: State) -> UInt32[Array, "F+words+1"]:
    """The legal actions: numbers of each slot; tiles to begin with; and as bits of the last word, draw and pass."""
    tray, going = tray_of(state), ~is_over(config, state)
    begins = ~jnp.any(state.table.lying >= 0)
    must_begin = begins & (config.start == "highest")
    beginners = tile_sets.highest(config, tray) if config.start == "highest" else tray
    beginners = jnp.where(begins, beginners, np.uint32(0))
    may_draw = (state.draws < MAX_DRAWS) & (state.drawn < config.tiles)
    other = jnp.where(must_begin, np.uint32(0), jnp.where(may_draw, np.uint32(1), np.uint32(2)))
    words = jnp.concatenate([thirds(config, state.table, tray), beginners, other[None]])
    return jnp.where(going, words, np.uint32(0))


def thirds(config: Config, board: Table, tray: Tray) -> UInt32[Array, "F"]:
    """For each slot the numbers that its free corner may get by a tile of this tray, as bits."""
    first, second, known = table.corners_of_slots(config, board)
    pair = first.astype(jnp.int32) * config.numbers + second.astype(jnp.int32)
    allowed = jnp.where(known < 0, ~np.uint32(0), np.uint32(1) << jnp.maximum(known, 0).astype(jnp.uint32))
    bits = jnp.take(tile_sets.fits(config, tray), pair, mode="clip") & allowed
    return jnp.where(board.cells >= 0, bits, np.uint32(0))


def is_legal(config: Config, state: State, action: Action) -> Bool[Array, ""]:
    """Whether an action, any integer, is legal."""
    words = legal_words(config, state)
    on_slot = (action >= 0) & (action < config.first)
    here = state.table.cells == jnp.where(on_slot, action // config.numbers, 0).astype(jnp.int16)
    known = jnp.where(on_slot, jnp.any(here), (action >= config.first) & (action < config.num_actions))
    tile, other = action - config.first, action - config.draw
    slot = jnp.argmax(here).astype(jnp.int32)
    word = jnp.where(on_slot, slot, jnp.where(other < 0, config.slots + tile // WORD_BITS, words.shape[0] - 1))
    bit = jnp.where(on_slot, action % config.numbers, jnp.where(other < 0, tile % WORD_BITS, other))
    bits = jnp.take(words, word, mode="clip") >> (bit & (WORD_BITS - 1)).astype(jnp.uint32)
    return known & (bits & np.uint32(1) != 0)


def action_of(
    config: Config, state: State, word: Int32[Array, "*shape"], bit: Int32[Array, "*shape"]
) -> Int32[Array, "*shape"]:
    """The action of a bit of ``legal_words``."""
    cell = jnp.take(state.table.cells, word, mode="clip").astype(jnp.int32)
    begin = config.first + (word - config.slots) * WORD_BITS + bit
    last = config.slots + tile_sets.num_words(config)
    return jnp.where(word < config.slots, cell * config.numbers + bit, jnp.where(word < last, begin, config.draw + bit)).astype(
        jnp.int32
    )


def sample(config: Config, state: State, words: UInt32[Array, "F+words+1"], bits: UInt32[Array, ""]) -> Action:
    """One of these actions, drawn uniformly with 32 random bits; -1 where there is none."""
    return several(config, state, words, bits, 1)[0]


def several(
    config: Config, state: State, words: UInt32[Array, "F+words+1"], bits: UInt32[Array, ""], count: int
) -> Int32[Array, "count"]:
    """Different ones of these actions, each as likely as any other, with 32 random bits; all where they fit, then -1."""
    counts = popcount(words)
    # A product with a triangle, since XLA's cumulative sum is quadratic, and slow, on a CPU.
    upto = (np.tri(counts.shape[0], dtype=np.float32) @ counts.astype(jnp.float32)).astype(jnp.int32)
    rank = systematic_sample(bits, upto[-1], count)
    passed = upto[None] <= rank[:, None]
    word = jnp.sum(passed, axis=1, dtype=jnp.int32)
    before = jnp.max(jnp.where(passed, upto[None], 0), axis=1)
    mask = jnp.take(words, word, mode="clip")
    return jnp.where(rank >= 0, action_of(config, state, word, kth_set_bit(mask, rank - before)), -1)


def determinize(config: Config, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
    """The position with the tiles that ``player`` does not see dealt anew to the other trays and the pile."""
    words = random_words(key, config.tiles + 2)
    shuffle, seed = words[: config.tiles], words[config.tiles :]
    own = tile_sets.unpack(config, state.trays[player])
    unseen = ~own & (state.table.lying < 0)
    rank = jnp.where(unseen, _ranked(jnp.where(unseen, shuffle >> np.uint32(1), ~np.uint32(0))), -1)
    others = jnp.arange(config.players) != player
    sizes = jnp.where(others, tray_sizes(state), 0)
    ends = jnp.sum(jnp.where(np.tri(config.players, dtype=bool), sizes[None], 0), axis=1)
    dealt = jax.vmap(lambda size, end: tile_sets.pack((rank >= end - size) & (rank < end)))(sizes, ends)
    left = rank - ends[-1]
    return replace(
        state,
        trays=jnp.where(others[:, None], dealt, state.trays),
        order=jnp.where(left >= 0, state.drawn + left, -1).astype(jnp.int8),
        seed=seed,
    )


def tray_sizes(state: State) -> Int32[Array, "P"]:
    """The number of tiles in each tray."""
    return jax.vmap(tile_sets.count)(state.trays)


def tray_of(state: State) -> Tray:
    """The tray of the player to move."""
    mine = jnp.arange(state.trays.shape[0]) == state.current_player
    return jnp.sum(jnp.where(mine[:, None], state.trays, np.uint32(0)), axis=0, dtype=jnp.uint32)


def _ranked(words: UInt32[Array, "N"]) -> Int32[Array, "N"]:
    """How many words are smaller than each, of equal ones those before it. So few are cheaper to count than to sort."""
    index = np.arange(words.shape[0])
    smaller = (words[None] < words[:, None]) | ((words[None] == words[:, None]) & (index[None] < index[:, None]))
    return jnp.sum(smaller, axis=1, dtype=jnp.int32)
