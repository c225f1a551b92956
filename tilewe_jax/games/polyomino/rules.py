"""The rules of all variants: state, legality, placing, passing, and turns.

All are functions of lanes (see ``tilewe_jax.lanes``): arrays, including the fields of ``State``, have one game per index of
their last axis. ``game.py`` turns them into functions of one game.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32, Shaped, UInt16, UInt32

from tilewe_jax.bits import WORD_BITS, find_interval, kth_set_bit, popcount, systematic_sample, uniform_below
from tilewe_jax.games.polyomino import movegen, movegen_conv, movegen_gpu
from tilewe_jax.games.polyomino.boards import Board, Hand, pack, pick, planes, reach, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host import Position, bits
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, MONOMINO, ORIENTATIONS, PIECE_SIZES, Cell
from tilewe_jax.lanes import CHUNK_DIVISOR, chunk_size, materialize, while_any
from tilewe_jax.utils.loops import by_platform

FEW_LANES = 4096
"""Maximum number of lanes for which a GPU counts the placements of all colours to resolve passes. A loop counts fewer, but a
GPU waits for the host after each round."""

Hands = UInt32[Array, "colors lanes"]
"""``State.hands``."""
Turn = tuple[Int32[Array, "lanes"], Bool[Array, "colors lanes"], UInt16[Array, "words lanes"]]
"""The fields of ``State`` that ``resolve_passes`` changes: ``current_color``, ``out``, ``legal_counts``."""

_Counted = Literal["counts", "anchors"]
"""Name of the function of a generator that counts: the legal placements in each word, or their anchors."""
_MOVEGENS = {"bitboard": movegen, "conv": movegen_conv}


def pack_rows(cells: Iterable[Cell]) -> int:
    """Pack cells of a piece into one word: five rows of five bits, from the bottom."""
    return sum(1 << (MAX_PIECE_SIZE * y + x) for x, y in cells)


_ROWS_AND_PIECE = np.array([pack_rows(o.cells) | o.piece << MAX_PIECE_SIZE * MAX_PIECE_SIZE for o in ORIENTATIONS], np.uint32)
"""The packed rows of each orientation in the low 25 bits, its piece above them."""

CELL_ROWS = np.array([pack_rows(orientation.cells) for orientation in ORIENTATIONS], np.uint32)
"""The cells of each orientation, see ``pack_rows``."""
PIECES = np.array([orientation.piece for orientation in ORIENTATIONS], np.int32)
"""The piece of each orientation."""
_WIDTHS = np.array([max(x for x, _ in o.cells) + 1 for o in ORIENTATIONS], np.int32)
_HEIGHTS = np.array([max(y for _, y in o.cells) + 1 for o in ORIENTATIONS], np.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position. 262 bytes for four players on 20 x 20, where a board has 13 words."""

    occupied: UInt32[Array, "colors words *lanes"]
    """Cells of each colour, bit ``y * size + x``."""
    hands: UInt32[Array, "colors *lanes"]
    """Pieces that each colour has not placed, bit ``p`` for piece ``p``."""
    out: Bool[Array, "colors *lanes"]
    """True for colours that have passed or were blocked in their turn; a blocked colour stays blocked. All true at the end."""
    monomino_last: Bool[Array, "colors *lanes"]
    """True for colours whose latest piece was the single cell."""
    current_color: Int32[Array, "*lanes"]
    """The colour to move; at the end the last colour that passed or was blocked."""
    legal_counts: UInt16[Array, "words *lanes"]
    """Number of legal placements of the current colour, by the word that holds their anchor; all zero at the end. A cache: it
    decides whether the colour can move, and sampling starts from it. After ``apply_in_playout`` the number of their anchors."""


def initial(config: Config) -> dict[str, np.ndarray]:
    """Return the fields of the initial state of one game, as NumPy arrays."""
    return fields_of(Position(config))


def fields_of(position: Position) -> dict[str, np.ndarray]:
    """Return the fields of the state of a position in which no pass is deferred, as NumPy arrays."""
    config, cell = position.config, position.geometry.cell
    anchors = np.array(position.actions(position.color), np.int32) % config.cells
    legal_counts = np.bincount(anchors // WORD_BITS, minlength=words(config)).astype(np.uint16)
    occupied = [pack(config, map(cell, bits(board)))[: words(config)] for board in position.occupied]
    return {
        "occupied": np.stack(occupied),
        "hands": np.array(position.hands, np.uint32),
        "out": np.array([bool(position.out >> color & 1) for color in range(config.colors)]),
        "monomino_last": np.array(position.monomino_last, np.bool_),
        "current_color": np.array(position.color, np.int32),
        "legal_counts": legal_counts,
    }


def apply(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """Return the position after a legal action and all forced passes; -1 changes nothing."""
    if chunk_size(action.shape[0], CHUNK_DIVISOR) < action.shape[0]:
        return _apply_and_resolve(config, state, action)
    return by_platform(partial(_apply_in_loop, config), partial(_apply_and_resolve, config), state, action)


def _apply_and_resolve(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    return resolve_passes(config, apply_deferred(config, state, action))


def _apply_in_loop(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """``apply`` for few lanes: counts placements in one loop, also before the first pass, which halves the compiled program."""
    placed = _place(config, state, action)

    def is_open(carry: tuple[Array, Turn]) -> Bool[Array, "lanes"]:
        uncounted, turn = carry
        return uncounted | _is_blocked(turn)

    def count(boards: tuple[Array, Array], carry: tuple[Array, Turn]) -> tuple[Array, Turn]:
        uncounted, turn = carry
        color, out = (jnp.where(uncounted, *pair) for pair in zip(turn[:2], _passed(config, turn), strict=True))
        return jnp.zeros_like(uncounted), (color, out, legal_counts(config, *boards, color, out))

    turn = placed.current_color, placed.out, placed.legal_counts
    boards = placed.occupied, placed.hands
    _, (color, out, counts) = while_any(is_open, count, boards, (jnp.ones_like(action, jnp.bool_), turn))
    return replace(placed, current_color=color, out=out, legal_counts=counts)


def apply_deferred(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """Like ``apply``, but forced passes are deferred: the colour to move may be blocked.

    After -1 a blocked colour to move passes, which makes one forced pass; other positions stay the same.
    """
    return _count(config, _place(config, state, action), "counts")


def apply_in_playout(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """Like ``apply_deferred``, but ``legal_counts`` has the number of anchors in each word, which is cheaper to compute."""
    return _count(config, _place(config, state, action), "anchors")


def _count(config: Config, placed: State, what: _Counted) -> State:
    """Complete the result of ``_place``."""
    counts = legal_counts(config, placed.occupied, placed.hands, placed.current_color, placed.out, what)
    return replace(placed, legal_counts=counts)


def _place(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """``apply_deferred`` with the ``legal_counts`` of the position before."""
    colors = jnp.arange(config.colors, dtype=jnp.int32)[:, None]
    mover = colors == state.current_color[None]
    places = config.is_placement(action)
    rows = jnp.where(places, _rows_and_piece(config, action), np.uint32(0))
    piece = rows >> np.uint32(MAX_PIECE_SIZE * MAX_PIECE_SIZE)
    cell = lax.rem(action, jnp.int32(config.cells))
    covered = _words_covered(config, cell, rows)
    index = np.arange(config.colors * words(config), dtype=np.int32).reshape(config.colors, -1)
    occupied = state.occupied | _words_at(state.current_color * words(config) + cell // WORD_BITS, covered, index)
    hands = state.hands & ~jnp.where(mover, places.astype(jnp.uint32) << piece, np.uint32(0))
    leaves = (action == config.num_placements) | jnp.all(state.legal_counts == 0, axis=0)
    out = state.out | (mover & leaves[None])
    color = jnp.where(places | leaves, next_color(state.current_color, list(out)), state.current_color)
    return State(
        occupied=occupied,
        hands=hands,
        out=out,
        monomino_last=jnp.where(mover & places[None], (piece == MONOMINO)[None], state.monomino_last),
        current_color=color,
        legal_counts=state.legal_counts,
    )


def resolve_passes(config: Config, state: State) -> State:
    """Make all forced passes: blocked colours are out, and the turn goes to the next colour that can move, if any."""
    args = state.occupied, state.hands, (state.current_color, state.out, state.legal_counts)
    if len(state.current_color) <= FEW_LANES:
        color, out, counts = by_platform(partial(passes_by_loop, config), partial(passes_at_once, config), *args)
    else:
        color, out, counts = passes_by_loop(config, *args)
    return replace(state, current_color=color, out=out, legal_counts=counts)


def passes_by_loop(config: Config, occupied: UInt32[Array, "colors words lanes"], hands: Hands, turn: Turn) -> Turn:
    """``resolve_passes`` by a loop over the lanes in which a colour is blocked."""

    def skip(boards: tuple[Array, Array], turn: Turn) -> Turn:
        color, out = _passed(config, turn)
        return color, out, legal_counts(config, *boards, color, out)

    return while_any(_is_blocked, skip, (occupied, hands), turn)


def _is_blocked(turn: Turn) -> Bool[Array, "lanes"]:
    """Return whether the colour to move is blocked and must pass."""
    _, out, counts = turn
    return jnp.all(counts == 0, axis=0) & ~jnp.all(out, axis=0)


def _passed(config: Config, turn: Turn) -> tuple[Int32[Array, "lanes"], Bool[Array, "colors lanes"]]:
    """Return the colour to move and the colours that are out after a pass."""
    color, out, _ = turn
    out = out | (jnp.arange(config.colors, dtype=jnp.int32)[:, None] == color[None])
    return next_color(color, list(out)), out


def passes_at_once(config: Config, occupied: UInt32[Array, "colors words lanes"], hands: Hands, turn: Turn) -> Turn:
    """``resolve_passes`` from the counts of all colours, each in separate lanes.

    The rest is elementwise, so that XLA's GPU compiler fuses it into one kernel.
    """
    color, out, _ = turn
    colors, lanes = out.shape
    each = jnp.repeat(jnp.arange(colors, dtype=jnp.int32), lanes)
    counts = _counts_on_gpu(config, "counts", jnp.tile(occupied, colors), jnp.tile(hands, colors), each)
    by_color = list(jnp.moveaxis(counts.reshape(-1, colors, lanes), 1, 0))
    can_move = [reduce(jnp.bitwise_or, list(count)) != 0 for count in by_color]
    is_out = list(out)
    for _ in range(colors):
        passes = ~pick(can_move, color) & ~reduce(jnp.bitwise_and, is_out)
        is_out = [before | (passes & (color == i)) for i, before in enumerate(is_out)]
        color = jnp.where(passes, next_color(color, is_out), color)
    counts = jnp.where(reduce(jnp.bitwise_and, is_out), np.uint16(0), pick(by_color, color[None]))
    return color, jnp.stack(is_out), counts


def legal(config: Config, state: State, action: Int32[Array, "lanes"]) -> Bool[Array, "lanes"]:
    """Return whether an action, any integer, is legal; much cheaper than generating all placements."""
    is_placement = config.is_placement(action)
    placement = jnp.where(is_placement, action, 0)
    orientation, cell = placement // config.cells, placement % config.cells
    rows = _rows_and_piece(config, placement)
    free, corners, hand = materialize(lambda *args: planes(config, *args), state.occupied, state.hands, state.current_color)
    board = materialize(lambda *args: cover(config, *args), placement, rows)

    not_free = [covered & ~allowed for covered, allowed in zip(board, free, strict=False)]
    touching = [covered & corner for covered, corner in zip(board, corners, strict=False)]
    width, height = jnp.asarray(_WIDTHS)[orientation], jnp.asarray(_HEIGHTS)[orientation]
    fits = (cell % config.size + width <= config.size) & (cell // config.size + height <= config.size)
    in_hand = (hand >> (rows >> np.uint32(MAX_PIECE_SIZE * MAX_PIECE_SIZE))) & np.uint32(1) != 0
    may_place = in_hand & fits & (reduce(jnp.bitwise_or, not_free) == 0) & (reduce(jnp.bitwise_or, touching) != 0)
    may_pass = config.voluntary_pass & (action == config.num_placements)
    return ~jnp.all(state.out, axis=0) & jnp.where(is_placement, may_place, may_pass)


def sample(config: Config, state: State, bits: UInt32[Array, "lanes"]) -> Int32[Array, "lanes"]:
    """Draw a legal action uniformly, or -1 if none is legal: draw a rank, then find its placement, without a dense mask.

    Args:
      config: the variant.
      state: a position, possibly with deferred passes.
      bits: a random word per lane.
    """
    counts = [count.astype(jnp.int32) for count in state.legal_counts]
    placements = sum(counts[1:], start=counts[0])
    # Before `resolve_passes` the colour to move may be blocked; its pass is forced, not voluntary.
    passes = ((placements > 0) & config.voluntary_pass).astype(jnp.int32)
    rank = uniform_below(bits, (placements + passes).astype(jnp.uint32))

    placement = _nth_placement(config, state, rank)
    action = jnp.where(rank < placements, placement, config.num_placements)
    return jnp.where(placements + passes > 0, action, -1)


def sample_several(config: Config, state: State, bits: UInt32[Array, "lanes"], count: int) -> Int32[Array, "count lanes"]:
    """Draw ``count`` different legal actions, each equally likely, by systematic sampling.

    Args:
      config: the variant.
      state: a position, possibly with deferred passes.
      bits: a random word per lane.
      count: size of the sample.

    Returns:
      The actions, in no particular order; if at most ``count`` are legal, all of them, padded with -1 at the end.
    """
    placements = jnp.sum(state.legal_counts, axis=0, dtype=jnp.int32)
    total = placements + ((placements > 0) & config.voluntary_pass).astype(jnp.int32)
    return nth_legal(config, state, systematic_sample(bits, total, count))


def nth_legal(config: Config, state: State, rank: Int32[Array, "k lanes"]) -> Int32[Array, "k lanes"]:
    """Return the legal actions of the given ranks, see ``nth_placement``; a pass follows the placements. -1 for the rank -1."""
    placements = jnp.sum(state.legal_counts, axis=0, dtype=jnp.int32)
    placement = _nth_placement(config, state, rank)
    action = jnp.where(rank < placements[None], placement, config.num_placements)
    return jnp.where(rank >= 0, action, -1)


def sample_large(config: Config, state: State, bits: UInt32[Array, "three lanes"]) -> Int32[Array, "lanes"]:
    """Draw a placement of a large piece, or -1 if nothing can be placed.

    First a word of the board is drawn, in proportion to ``legal_counts``. Among the largest pieces that can be anchored in this
    word, an anchor is drawn, and then an orientation with this anchor; each is equally likely.

    Args:
      config: the variant.
      state: a position, possibly with deferred passes or from ``apply_in_playout``.
      bits: three random words per lane.
    """
    counts = [count.astype(jnp.int32) for count in state.legal_counts]
    total = sum(counts[1:], start=counts[0])
    word, _ = find_interval(counts, uniform_below(bits[0], total.astype(jnp.uint32)))

    def in_word(occupied: Array, hands: Array, color: Array, word: Array) -> dict[int, UInt32[Array, "lanes"]]:
        boards = materialize(lambda *args: planes(config, *args), occupied, hands, color)
        masks: dict[int, UInt32[Array, "lanes"]] = _MOVEGENS[config.movegen].placements_at(config, *boards, word)
        return masks

    on_gpu = partial(movegen_gpu.placements_at, config) if config.movegen == "bitboard" else in_word
    masks = by_platform(in_word, on_gpu, state.occupied, state.hands, state.current_color, word)
    orientations = sorted(masks)
    sizes = {i: len(ORIENTATIONS[i].cells) for i in orientations}
    anchors, largest = jnp.zeros_like(bits[0]), jnp.zeros_like(word)
    for size in sorted(set(sizes.values())):
        union = reduce(jnp.bitwise_or, [masks[i] for i in orientations if sizes[i] == size])
        anchors, largest = jnp.where(union != 0, union, anchors), jnp.where(union != 0, size, largest)
    bit = kth_set_bit(anchors, uniform_below(bits[1], popcount(anchors).astype(jnp.uint32)))
    anchored = [((masks[i] >> bit.astype(jnp.uint32)) & np.uint32(1)).astype(jnp.int32) for i in orientations]
    numbers = [jnp.where(largest == sizes[i], number, 0) for i, number in zip(orientations, anchored, strict=True)]
    index, _ = find_interval(numbers, uniform_below(bits[2], sum(numbers[1:], start=numbers[0]).astype(jnp.uint32)))
    orientation = jnp.take(jnp.asarray(np.array(orientations, np.int32)), index, mode="clip")
    return jnp.where(total > 0, orientation * config.cells + word * WORD_BITS + bit, -1)


def _nth_placement(config: Config, state: State, rank: Int32[Array, "*several lanes"]) -> Int32[Array, "*several lanes"]:
    """Return the legal placement of a given rank, see ``nth_placement``, in the form for the platform."""

    def find(counts: Array, occupied: Array, hands: Array, color: Array, rank: Array) -> Array:
        boards = materialize(lambda *args: planes(config, *args), occupied, hands, color)
        if rank.ndim == 1:
            return nth_placement(config, counts, boards, rank)
        return materialize(partial(nth_placement, config), counts, boards, rank)

    on_gpu = partial(movegen_gpu.nth_placement, config) if config.movegen == "bitboard" else find
    return by_platform(find, on_gpu, state.legal_counts, state.occupied, state.hands, state.current_color, rank)


def nth_placement(
    config: Config,
    counts: UInt16[Array, "words lanes"],
    boards: tuple[Board, Board, Hand],
    rank: Int32[Array, "*several lanes"],
) -> Int32[Array, "*several lanes"]:
    """Return the legal placement of a given rank: by the word of the anchor, then the orientation, then the anchor.

    The generators order orientations, and so rank placements, differently.

    Args:
      config: the variant.
      counts: number of legal placements anchored in each word.
      boards: the results of ``boards.planes``.
      rank: from 0, below the sum of ``counts``; one or several per lane. Other ranks give an unspecified id.
    """
    word, before = find_interval([count.astype(jnp.int32).reshape(*[1] * (rank.ndim - 1), -1) for count in counts], rank)
    orientation, bit = _nth_anchor(_MOVEGENS[config.movegen].placements_at(config, *boards, word), rank - before)
    return orientation * config.cells + word * WORD_BITS + bit


def _nth_anchor(masks: dict[int, UInt32[Array, "*shape"]], rank: Int32[Array, "*shape"]) -> tuple[Array, Array]:
    """Return the orientation and the bit of the anchor of a rank, by orientation in the order of ``masks``."""
    mask = jnp.zeros_like(rank).astype(jnp.uint32)
    orientation, before, total = jnp.zeros_like(rank), jnp.zeros_like(rank), jnp.zeros_like(rank)
    for i, anchors in masks.items():
        reached = total <= rank
        orientation, mask = jnp.where(reached, i, orientation), jnp.where(reached, anchors, mask)
        before = jnp.where(reached, total, before)
        total = total + popcount(anchors)
    return orientation, kth_set_bit(mask, rank - before)


def cells_placed(config: Config, hands: UInt32[Array, "*shape"]) -> Int32[Array, "*shape"]:
    """Number of cells of the pieces that are no longer in the hands."""
    placed = np.uint32(config.full_hand) & ~hands
    # A piece of n cells is counted n times: once among the pieces of at least 1, of at least 2, ... of at least n cells.
    at_least = [sum(1 << piece for piece, cells in enumerate(PIECE_SIZES) if cells >= n) for n in range(1, MAX_PIECE_SIZE + 1)]
    counts = [popcount(placed & np.uint32(pieces)) for pieces in at_least]
    return sum(counts[1:], start=counts[0])


def points(
    config: Config, hands: UInt32[Array, "colors *lanes"], monomino_last: Bool[Array, "colors *lanes"]
) -> Int32[Array, "colors *lanes"]:
    """Points by colour: cells placed, plus the bonuses of the variant."""
    bonus = config.bonus_all + config.bonus_monomino_last * monomino_last.astype(jnp.int32)
    return cells_placed(config, hands) + jnp.where(hands == 0, bonus, 0)


def placements(config: Config, state: State) -> UInt32[Array, "orientations words lanes"]:
    """Anchors of the legal placements of the current colour, a board for each orientation."""
    boards = planes(config, state.occupied, state.hands, state.current_color)
    generator = _MOVEGENS[config.movegen]
    on_gpu = movegen_gpu if generator is movegen else generator
    masks = by_platform(partial(generator.placements, config), partial(on_gpu.placements, config), *boards)
    return jnp.where(jnp.all(state.out, axis=0)[None, None], np.uint32(0), masks)


def legal_counts(
    config: Config,
    occupied: UInt32[Array, "colors words lanes"],
    hands: UInt32[Array, "colors lanes"],
    color: Int32[Array, "lanes"],
    out: Bool[Array, "colors lanes"],
    what: _Counted = "counts",
) -> UInt16[Array, "words lanes"]:
    """Number of legal placements of a colour, or of their anchors, by the word that holds the anchor; zero at the end."""
    counts = by_platform(partial(_counts, config, what), partial(_counts_on_gpu, config, what), occupied, hands, color)
    return jnp.where(jnp.all(out, axis=0)[None], np.uint16(0), counts)


def _counts(
    config: Config, what: _Counted, occupied: UInt32[Array, "colors words lanes"], hands: Hands, color: Int32[Array, "lanes"]
) -> UInt16[Array, "words lanes"]:
    count = getattr(_MOVEGENS[config.movegen], what)
    boards = materialize(lambda *args: planes(config, *args), occupied, hands, color)
    counts: Array = materialize(lambda *args: count(config, *args).astype(jnp.uint16), *boards)
    return counts


def _counts_on_gpu(
    config: Config, what: _Counted, occupied: UInt32[Array, "colors words lanes"], hands: Hands, color: Int32[Array, "lanes"]
) -> UInt16[Array, "words lanes"]:
    if _MOVEGENS[config.movegen] is not movegen:
        return _counts(config, what, occupied, hands, color)
    counts: Array = getattr(movegen_gpu, what)(config, occupied, hands, color).astype(jnp.uint16)
    return counts


def by_player(config: Config, values: Shaped[Array, "colors *lanes"]) -> Shaped[Array, "players *lanes"]:
    """Sum values over the colours of each player."""
    if config.colors_per_player == 1:
        return values
    shape = config.colors_per_player, config.players, *values.shape[1:]
    return jnp.sum(values.reshape(shape), axis=0, dtype=values.dtype)


def next_color(color: Int32[Array, "*lanes"], out: list[Bool[Array, "*lanes"]]) -> Int32[Array, "*lanes"]:
    """Return the next colour in turn that is not out, possibly the same; the same if all are out."""
    colors = len(out)
    following = color
    for distance in range(colors, 0, -1):
        candidate = (color + distance) % colors
        following = jnp.where(~pick(out, candidate), candidate, following)
    return following


def _rows_and_piece(config: Config, action: Int32[Array, "lanes"]) -> UInt32[Array, "lanes"]:
    orientation = lax.div(action, jnp.int32(config.cells))
    return jnp.take(jnp.asarray(_ROWS_AND_PIECE), orientation, mode="clip")


def cover(config: Config, action: Int32[Array, "lanes"], rows: UInt32[Array, "lanes"]) -> Board:
    """Return the board of cells given relative to an anchor.

    Args:
      config: the variant.
      action: a placement, or the bit of its anchor.
      rows: the cells, as ``pack_rows`` packs them.
    """
    cell = lax.rem(action, jnp.int32(config.cells))
    covered = _words_covered(config, cell, rows)
    return _words_at(cell // WORD_BITS, covered, np.arange(words(config), dtype=np.int32))


def _words_covered(config: Config, cell: Int32[Array, "lanes"], rows: UInt32[Array, "lanes"]) -> UInt32[Array, "span lanes"]:
    """The words of ``cover`` that can contain cells, from the word of the anchor on."""
    span = reach(config) - words(config) + 1

    def place(cell: Int32[Array, "lanes"], rows: UInt32[Array, "lanes"]) -> UInt32[Array, "span lanes"]:
        piece = [jnp.zeros_like(rows)] * (span + 1)  # anchored at the first bit
        for y in range(MAX_PIECE_SIZE):
            row = (rows >> np.uint32(MAX_PIECE_SIZE * y)) & np.uint32(31)
            word, bit = divmod(y * config.size, WORD_BITS)
            piece[word] = piece[word] | row << np.uint32(bit)
            if bit + MAX_PIECE_SIZE > WORD_BITS:
                piece[word + 1] = piece[word + 1] | row >> np.uint32(WORD_BITS - bit)
        shift = (cell % WORD_BITS).astype(jnp.uint32)
        # A shift by 32 gives zero.
        carried = [jnp.zeros_like(rows), *(lax.shift_right_logical(word, np.uint32(WORD_BITS) - shift) for word in piece)]
        return jnp.stack([piece[i] << shift | carried[i] for i in range(span)])

    return by_platform(partial(materialize, place), place, cell, rows)


def _words_at(
    first: Int32[Array, "lanes"], part: UInt32[Array, "span lanes"], index: Int32[np.ndarray, "*shape"]
) -> UInt32[Array, "*shape lanes"]:
    """Return the words at some indices of a board of which only the words from ``first`` on, ``part``, are not zero."""
    distance = index[..., None] - first.reshape(*[1] * index.ndim, -1)
    content = jnp.zeros(distance.shape, jnp.uint32)
    for i, word in enumerate(part):
        content = jnp.where(distance == i, jnp.broadcast_to(word, distance.shape), content)
    return content
