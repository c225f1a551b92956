"""Static heuristics: logits of placements from weighted features, and position values from scores, without lookahead.

The logit of a placement is the weight of its piece plus a weighted sum of named features, most of which count its cells, edge
neighbours and diagonal neighbours on bitboards of the position. ``heuristic_weights`` has the weights, which
``experiments.heuristics`` learns. Functions of lanes, see ``tilewe_jax.lanes``.
"""

from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, popcount
from tilewe_jax.games.polyomino import rules
from tilewe_jax.games.polyomino.boards import BESIDE, Board, moved, neighbours, pick, planes_of, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host_heuristics import AREA_STEPS, PASS_LOGIT, POINTS_PER_LOGIT, weight_table
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize

T = TypeVar("T")
_NEAR = [(dx, dy) for dx in range(-2, 3) for dy in range(-2, 3) if abs(dx) + abs(dy) <= 2]
_AREA = range(-AREA_STEPS, AREA_STEPS + 1)


class Features(NamedTuple, Generic[T]):
    """A value for each feature of a placement, all counts except the last.

    *Open* corners are the corners of a colour (``boards.planes``) that are free to it. The placement opens *new* corners for
    the mover. Neighbours of the piece do not include its own cells. Opponents are the colours of other players.
    """

    opponent_corners_covered: T
    """Cells on open corners of opponents."""
    cells_beside_opponent_corners: T
    """Cells that are edge neighbours of open corners of opponents."""
    cells_near_opponent_corners: T
    """Cells at most two steps along edges from an open corner of an opponent."""
    cells_beside_opponents: T
    """Cells that are edge neighbours of cells of opponents."""
    edges_on_opponents: T
    """Edge neighbours of the piece that opponents have covered."""
    corners_opened: T
    """New corners."""
    corners_with_a_free_neighbor: T
    """New corners with at least one edge neighbour that was free to the mover before the placement."""
    corners_with_two_free_neighbors: T
    """New corners with at least two of these neighbours."""
    corners_with_three_free_neighbors: T
    """New corners with at least three of these neighbours."""
    corners_in_new_area: T
    """New corners more than three king moves from all previous open corners of the mover."""
    corners_beside_opponents: T
    """New corners that are edge neighbours of cells of opponents."""
    own_corners_covered: T
    """Cells on open corners of the mover."""
    own_corners_wasted: T
    """Edge neighbours of the piece that were open corners of the mover."""
    free_cells_wasted: T
    """Edge neighbours of the piece that were free to the mover."""
    centrality: T
    """Minus the distance of the piece (its anchor plus (1, 1)) from the middle of the board, in cells along the farther axis,
    times ``exp(-plies / (2 * colours))``."""


class PerceptronWeights(NamedTuple):
    """Weights of ``perceptron_logits`` with H hidden units, for each position."""

    linear: Float32[Array, "weights *lanes"]
    """Weights of the linear part, in the order of ``WEIGHT_NAMES``."""
    features: Float32[Array, "features H *lanes"]
    """Weight of each of ``Features`` in the input of each hidden unit."""
    pieces: Float32[Array, "pieces H *lanes"]
    """Weight of each piece in the input of each hidden unit."""
    out: Float32[Array, "H *lanes"]
    """Weight of each hidden unit, after its rectifier, in the logit."""


WEIGHT_NAMES = (*Features._fields, *PIECE_NAMES)
"""Names of the weights: the features, then the pieces."""


class _Boards(NamedTuple):
    """Boards of a position from which the features of its placements are counted."""

    free: Board
    """Cells free to the mover."""
    corners: Board
    """Corners of the mover, free or not."""
    one_free: Board
    """Cells with at least one edge neighbour that is free to the mover; two and three in the next two boards."""
    two_free: Board
    three_free: Board
    old_area: Board
    """Cells at most ``AREA_STEPS`` king moves from an open corner of the mover."""
    opponent_corners: Board
    """Open corners of opponents."""
    beside_opponent_corners: Board
    near_opponent_corners: Board
    opponents: Board
    """Cells of opponents."""
    beside_opponents: Board


class _Placements(NamedTuple):
    """Boards of placements; the last two axes are placements and lanes, in this or the other order."""

    cells: UInt32[Array, "words rows columns"]
    edges: UInt32[Array, "words rows columns"]
    """Edge neighbours of the cells; may include cells."""
    diagonals: UInt32[Array, "words rows columns"]


def weights(config: Config) -> np.ndarray:
    """Return the learned weights of a variant, ``float32[2, weights]``, in the order of ``WEIGHT_NAMES``.

    A weight is linear in the fraction of pieces that the mover has placed: row 0 is its value at the start of a game, row 1 its
    change until the end.
    """
    table = weight_table(config)
    return np.array([table[name] for name in WEIGHT_NAMES], np.float32).T


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k lanes"]) -> Float32[Array, "k lanes"]:
    """Return the logits of legal actions: weighted sums of features, and a low constant for a pass."""
    table, features = weights(config), len(Features._fields)
    phase = _phase(config, state)
    by_feature = table[0, :features, None] + table[1, :features, None] * phase[None]

    def piece_weights(orientation: Int32[Array, "k lanes"], phase: Float32[Array, "lanes"]) -> Float32[Array, "k lanes"]:
        start, slope = (jnp.asarray(row[features:][rules.PIECES])[orientation] for row in table)
        return start + slope * phase[None]

    return _weighted_sum(config, state, actions, by_feature, piece_weights, phase)


def linear_logits(
    config: Config, state: State, actions: Int32[Array, "k lanes"], weights: Float32[Array, "weights lanes"]
) -> Float32[Array, "k lanes"]:
    """Return ``heuristic_logits`` with other weights for each position, in the order of ``WEIGHT_NAMES``."""
    features = len(Features._fields)

    def piece_weights(
        orientation: Int32[Array, "k lanes"], weights: Float32[Array, "pieces lanes"]
    ) -> Float32[Array, "k lanes"]:
        return jnp.take_along_axis(weights, jnp.asarray(rules.PIECES)[orientation], axis=0)

    return _weighted_sum(config, state, actions, weights[:features], piece_weights, weights[features:])


def perceptron_logits(
    config: Config, state: State, actions: Int32[Array, "k lanes"], weights: PerceptronWeights
) -> Float32[Array, "k lanes"]:
    """Return ``linear_logits`` plus the logits of a perceptron with one hidden layer on the same features."""
    # Actions are the last axis here, so that the perceptron is one product of matrices for each lane.
    placement = jnp.clip(actions, 0, config.num_placements - 1).T
    placements, boards, distance = _operands(config, state, placement, -1)
    counts = materialize(partial(_counts, config, axis=-1), placements, boards)
    piece = jnp.asarray(rules.PIECES)[placement // config.cells]
    one_hot = (piece[:, None] == np.arange(len(PIECE_NAMES), dtype=np.int32)[None, :, None]).astype(jnp.float32)
    features = jnp.concatenate([jnp.stack([*counts, -distance], axis=1), one_hot], axis=1)
    hidden = jnp.concatenate([weights.features, weights.pieces])
    units = jnp.concatenate([weights.linear[:, None], hidden], axis=1)  # the logit of the linear part, and the hidden units
    linear, *rest = jnp.moveaxis(jnp.einsum("ful,lfk->luk", units, features), 1, 0)
    logits = linear + sum(jax.nn.relu(unit) * out[:, None] for unit, out in zip(rest, weights.out, strict=True))
    return jnp.where(config.is_placement(actions), logits.T, PASS_LOGIT)


def _weighted_sum(
    config: Config,
    state: State,
    actions: Int32[Array, "k lanes"],
    by_feature: Float32[Array, "features lanes"],
    piece_weights: Callable[[Int32[Array, "k lanes"], Any], Float32[Array, "k lanes"]],
    argument: Any,
) -> Float32[Array, "k lanes"]:
    """Return weighted sums of features; ``piece_weights`` maps orientations and ``argument`` to the terms of pieces."""

    def weighted_sum(
        argument: Any,
        by_feature: Float32[Array, "features lanes"],
        placement: Int32[Array, "k lanes"],
        placements: _Placements,
        boards: _Boards,
        distance: Float32[Array, "k lanes"],
    ) -> Float32[Array, "k lanes"]:
        logits = piece_weights(placement // config.cells, argument) - by_feature[-1][None] * distance
        counts = _counts(config, placements, boards)
        return sum((count * by_feature[i][None] for i, count in enumerate(counts)), start=logits)

    placement = jnp.clip(actions, 0, config.num_placements - 1)
    operands = _operands(config, state, placement)
    logits = materialize(weighted_sum, argument, by_feature, placement, *operands)
    return jnp.where(config.is_placement(actions), logits, PASS_LOGIT)


def heuristic_features(config: Config, state: State, actions: Int32[Array, "k lanes"]) -> Float32[Array, "k two_weights lanes"]:
    """Return the features whose dot product with the flattened ``weights`` is ``heuristic_logits``.

    First all ``Features`` and a one-hot vector of the piece, then both times the fraction of pieces placed. Unspecified for a
    pass.
    """
    placement = jnp.clip(actions, 0, config.num_placements - 1)
    placements, boards, distance = _operands(config, state, placement)
    counts = materialize(lambda *args: jnp.stack(_counts(config, *args), axis=1), placements, boards)
    piece = jnp.asarray(rules.PIECES)[placement // config.cells]
    one_hot = (piece[:, None] == np.arange(len(PIECE_NAMES), dtype=np.int32)[None, :, None]).astype(jnp.float32)
    features = jnp.concatenate([counts, -distance[:, None], one_hot], axis=1)
    return jnp.concatenate([features, features * _phase(config, state)[None, None]], axis=1)


def heuristic_value(scores: Int32[Array, "players"]) -> Float32[Array, "players"]:
    """Estimate the outcome by seat: the softmax of the scores of one game."""
    return jax.nn.softmax(scores.astype(jnp.float32) / POINTS_PER_LOGIT)


def _phase(config: Config, state: State) -> Float32[Array, "lanes"]:
    """The fraction of pieces that the mover has placed."""
    placed = popcount(np.uint32(config.full_hand) & ~pick(list(state.hands), state.current_color))
    return placed.astype(jnp.float32) / len(config.pieces)


def _operands(
    config: Config, state: State, placement: Int32[Array, "rows columns"], axis: int = 0
) -> tuple[_Placements, _Boards, Float32[Array, "rows columns"]]:
    """Return the operands of the features: boards of placements, boards of the position, and ``-centrality``.

    Args:
      config: the variant.
      state: the position.
      placement: placements, ``[k, lanes]``, or ``[lanes, k]`` with ``axis=-1``.
      axis: the axis of the placements, 0 or -1.
    """
    cells = materialize(partial(_cover, config), placement.ravel())
    edges, diagonals = materialize(partial(_neighbours, config), cells)
    placements = _Placements(*(board.reshape(-1, *placement.shape) for board in (cells, edges, diagonals)))
    anchor = placement % config.cells % config.size, placement % config.cells // config.size
    distance = jnp.maximum(*(jnp.abs((along + 1).astype(jnp.float32) - (config.size - 1) / 2) for along in anchor))
    plies = jnp.sum(popcount(np.uint32(config.full_hand) & ~state.hands), axis=0, dtype=jnp.int32).astype(jnp.float32)
    return placements, _boards(config, state), distance * jnp.expand_dims(jnp.exp(-plies / (2 * config.colors)), axis)


def _counts(config: Config, placements: _Placements, boards: _Boards, axis: int = 0) -> list[Float32[Array, "rows columns"]]:
    """Return all ``Features`` except ``centrality``; arguments as in ``_operands``, and its results.

    They are sums over words of elementwise expressions, which XLA fuses into one loop without intermediate arrays.
    """
    farthest = max(config.bit(cell) for orientation in ORIENTATIONS for cell in orientation.cells)
    # A placement and its neighbours lie within ``span`` consecutive words. Of the words at distances of ``span``, at most one
    # contains any of them, so the bits of these words are counted together.
    span = 1 + -(-(farthest + 2 * config.size + 2) // WORD_BITS)

    def counted(word: int) -> list[Array]:
        cells, edges, diagonals = (board[word] for board in placements)
        position = _Boards(*(jnp.expand_dims(board[word], axis) for board in boards))
        free, edges = position.free, edges & ~cells
        own_corners = free & position.corners
        new_corners = diagonals & free & ~(cells | edges | position.corners)
        return [
            cells & position.opponent_corners,
            cells & position.beside_opponent_corners,
            cells & position.near_opponent_corners,
            cells & position.beside_opponents,
            edges & position.opponents,
            new_corners,
            new_corners & position.one_free,
            new_corners & position.two_free,
            new_corners & position.three_free,
            new_corners & ~position.old_area,
            new_corners & position.beside_opponents,
            cells & own_corners,
            edges & own_corners,
            edges & free,
        ]

    apart = [[counted(word) for word in range(first, words(config), span)] for first in range(min(span, words(config)))]
    counts = [[popcount(reduce(jnp.bitwise_or, boards)) for boards in zip(*group, strict=True)] for group in apart]
    return [sum(parts[1:], start=parts[0]).astype(jnp.float32) for parts in zip(*counts, strict=True)]


def _boards(config: Config, state: State) -> _Boards:
    by_color = materialize(partial(_open_corners, config), state.occupied, state.hands)
    free, corners, opponent_corners, opponents = materialize(
        partial(_sides, config), *by_color, state.occupied, state.current_color
    )
    beside_corners, near_corners, beside_opponents, one_free, two_free, three_free, columns = materialize(
        partial(_surroundings, config), free, corners, opponent_corners, opponents
    )
    return _Boards(
        free=free,
        corners=corners,
        one_free=one_free,
        two_free=two_free,
        three_free=three_free,
        old_area=materialize(lambda board: moved(config, board, [(dx, 0) for dx in _AREA]), columns),
        opponent_corners=opponent_corners,
        beside_opponent_corners=beside_corners,
        near_opponent_corners=near_corners,
        opponents=opponents,
        beside_opponents=beside_opponents,
    )


def _open_corners(
    config: Config, occupied: UInt32[Array, "colors words lanes"], hands: UInt32[Array, "colors lanes"]
) -> tuple[UInt32[Array, "words colors*lanes"], UInt32[Array, "words colors*lanes"]]:
    """Return the cells free to each colour, and its corners (``boards.planes``)."""
    colors, lanes = hands.shape
    own = jnp.moveaxis(occupied, 0, 1).reshape(-1, colors * lanes)
    taken = jnp.tile(reduce(jnp.bitwise_or, list(occupied)), colors)
    color = jnp.repeat(jnp.arange(colors, dtype=jnp.int32), lanes)
    free, corners, _ = planes_of(config, own, taken, hands.ravel(), color)
    return free[: words(config)], corners[: words(config)]


def _sides(
    config: Config,
    free: UInt32[Array, "words _"],
    corners: UInt32[Array, "words _"],
    occupied: UInt32[Array, "colors words lanes"],
    mover: Int32[Array, "lanes"],
) -> tuple[Board, Board, Board, Board]:
    """Return the free cells and corners of the mover, and the open corners and cells of opponents.

    The first two arguments are the results of ``_open_corners``.
    """
    free_by_color, corners_by_color = (jnp.split(board, config.colors, axis=-1) for board in (free, corners))
    open_corners = [free & corners for free, corners in zip(free_by_color, corners_by_color, strict=True)]

    def of_opponents(boards: Iterable[Board]) -> Board:
        owns = [config.owner(mover) == config.owner(jnp.full_like(mover, color)) for color in range(config.colors)]
        masked = [jnp.where(own[None], np.uint32(0), board) for own, board in zip(owns, boards, strict=True)]
        return reduce(jnp.bitwise_or, masked)

    own_free, own_corners = pick(free_by_color, mover[None]), pick(corners_by_color, mover[None])
    return own_free, own_corners, of_opponents(open_corners), of_opponents(occupied)


def _surroundings(config: Config, free: Board, corners: Board, opponent_corners: Board, opponents: Board) -> tuple[Board, ...]:
    """Return the boards of cells around others: see ``_Boards``, and the columns of ``old_area``."""
    return (
        moved(config, opponent_corners, BESIDE),
        moved(config, opponent_corners, _NEAR),
        moved(config, opponents, BESIDE),
        *_free_neighbours(config, free),
        moved(config, free & corners, [(0, dy) for dy in _AREA]),
    )


def _free_neighbours(config: Config, free: Board) -> tuple[Board, Board, Board]:
    """Return the cells with at least one, two and three edge neighbours in a set of cells of the board."""
    left, right, below, above = (moved(config, free, [step]) for step in BESIDE)
    both = below & above, left & right
    either = below | above, left | right
    two = both[0] | both[1] | (either[0] & either[1])
    return either[0] | either[1], two, (both[0] & either[1]) | (both[1] & either[0])


def _cover(config: Config, placement: Int32[Array, "lanes"]) -> Board:
    return rules.cover(config, placement, jnp.asarray(rules.CELL_ROWS)[placement // config.cells])


def _neighbours(config: Config, cells: Board) -> tuple[Board, Board]:
    """Return the edge neighbours and the diagonal neighbours of a piece."""
    edges, diagonals = neighbours(config, cells)
    return edges[: words(config)], diagonals[: words(config)]
