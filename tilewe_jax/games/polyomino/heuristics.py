"""Static heuristics: logits of placements from weighted features, and position values from scores, without lookahead.

The features follow those by which Pentobi chooses moves in its random playouts (contest corners of opponents, with large
pieces), used there almost lexicographically and here as a weighted sum. Functions of lanes, see ``tilewe_jax.lanes``.
"""

from functools import partial, reduce
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, UInt32

from tilewe_jax.bits import popcount
from tilewe_jax.games.polyomino import rules
from tilewe_jax.games.polyomino.boards import Board, neighbours, pick, planes, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize

T = TypeVar("T")


class Features(NamedTuple, Generic[T]):
    """A value for each feature of a placement.

    *Open* corners are the corners of a colour (``boards.planes``) that are free. Opponents are the colours of other players.
    """

    piece_size: T
    """Number of cells of the piece."""
    corners_opened: T
    """Number of open corners that the mover gains."""
    corners_closed: T
    """Number of open corners that the mover loses, as cells of the piece or their edge neighbours."""
    opponent_corners_covered: T
    """Number of cells on open corners of opponents."""
    cells_beside_opponent_corners: T
    """Number of cells that are edge neighbours of open corners of opponents."""
    cells_beside_opponents: T
    """Number of cells that are edge neighbours of cells of opponents."""
    centrality: T
    """Minus the distance of the piece (its anchor plus (1, 1)) from the middle of the board, in cells along the farther axis,
    times ``exp(-plies / (2 * colours))``."""


class Weight(NamedTuple):
    """The weight of a feature, linear in the fraction of pieces that the mover has placed."""

    start: float
    slope: float


# The means that an evolution strategy (antithetic sampling, 2,048 games per step) reached in games between players that choose
# the action of the highest logit: for several colours in `tilewe`, for two in `duo_official`.
_MULTICOLOR_WEIGHTS = Features(
    piece_size=Weight(2.55, 0.82),
    corners_opened=Weight(0.93, 0.64),
    corners_closed=Weight(-0.43, 0.28),
    opponent_corners_covered=Weight(1.06, -0.67),
    cells_beside_opponent_corners=Weight(0.43, 0.32),
    cells_beside_opponents=Weight(0.63, -0.61),
    centrality=Weight(1.98, 0.49),
)
_TWO_COLOR_WEIGHTS = Features(
    piece_size=Weight(2.72, 0.42),
    corners_opened=Weight(1.13, 0.42),
    corners_closed=Weight(-1.13, 0.59),
    opponent_corners_covered=Weight(1.05, -0.8),
    cells_beside_opponent_corners=Weight(0.82, 0.05),
    cells_beside_opponents=Weight(-0.7, -0.48),
    centrality=Weight(-1.16, -0.5),
)
_PASS_LOGIT = -20.0
_POINTS_PER_LOGIT = 8.0
"""Lead in points that counts as one logit of the outcome."""

_CELL_ROWS = np.array([rules.pack_rows(orientation.cells) for orientation in ORIENTATIONS], np.uint32)


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k lanes"]) -> Float32[Array, "k lanes"]:
    """Logits of legal actions: the weighted sum of their features. A pass gets less than any placement."""
    placed = popcount(np.uint32(config.full_hand) & ~pick(list(state.hands), state.current_color))
    table = _TWO_COLOR_WEIGHTS if config.colors == 2 else _MULTICOLOR_WEIGHTS
    start, slope = jnp.asarray(np.array(table, np.float32).T)
    weights = start[:, None] + slope[:, None] * (placed.astype(jnp.float32) / len(config.pieces))[None]
    is_placement = (actions >= 0) & (actions < config.num_placements)
    return jnp.where(is_placement, weighted_features(config, state, actions, weights), _PASS_LOGIT)


def weighted_features(
    config: Config, state: State, actions: Int32[Array, "k lanes"], weights: Float32[Array, "features lanes"]
) -> Float32[Array, "k lanes"]:
    """The dot product of the features of placements with weights.

    Args:
      config: the variant.
      state: positions.
      actions: ids of legal placements; others get an unspecified finite value.
      weights: a weight for each of ``Features``, in the order of its fields.
    """
    size, shape = words(config), actions.shape
    free, corners, *opponents = _shared_boards(config, state)
    placement = jnp.clip(actions, 0, config.num_placements - 1)
    cells = materialize(partial(_cover, config), placement.ravel())
    blocked, diagonals = materialize(partial(_blocked_and_diagonal, config), cells)

    def sum_counts(
        cells: UInt32[Array, "words flat"],
        blocked: UInt32[Array, "words flat"],
        diagonals: UInt32[Array, "words flat"],
        free: Board,
        corners: Board,
        opponents: list[Board],
        weights: Array,
    ) -> Float32[Array, "k lanes"]:
        cells, blocked, diagonals = (board.reshape(size, *shape) for board in (cells, blocked, diagonals))
        free, corners = free[:, None], corners[:, None]
        counted = [  # in the order of `Features`
            cells,
            diagonals & free & ~blocked & ~corners,
            free & corners & blocked,
            *(cells & board[:, None] for board in opponents),
        ]
        counts = [jnp.sum(popcount(board), axis=0).astype(jnp.float32) for board in counted]
        terms = [count * weight[None] for count, weight in zip(counts, weights[:-1], strict=True)]
        total: Array = sum(terms[1:], start=terms[0])
        return total

    total = materialize(sum_counts, cells, blocked, diagonals, free, corners, opponents, weights)
    anchor = placement % config.cells % config.size, placement % config.cells // config.size
    distance = jnp.maximum(*(jnp.abs((along + 1).astype(jnp.float32) - (config.size - 1) / 2) for along in anchor))
    plies = jnp.sum(popcount(np.uint32(config.full_hand) & ~state.hands), axis=0).astype(jnp.float32)
    return total - distance * (weights[-1] * jnp.exp(-plies / (2 * config.colors)))[None]


def heuristic_value(scores: Int32[Array, "players"]) -> Float32[Array, "players"]:
    """Expected outcome by seat: the softmax of the scores of one game."""
    return jax.nn.softmax(scores.astype(jnp.float32) / _POINTS_PER_LOGIT)


def _shared_boards(config: Config, state: State) -> list[Board]:
    """The boards that the features of all placements of a position are counted on.

    Free cells and corners of the mover; open corners of opponents; edge neighbours of those; edge neighbours of opponents.
    """
    size, mover = words(config), state.current_color
    colors = [jnp.full_like(mover, color) for color in range(config.colors)]
    boards = [materialize(partial(planes, config), state.occupied, state.hands, color)[:2] for color in colors]

    def of_opponents(by_color: list[Board]) -> Board:
        owns = [config.owner(mover) == config.owner(color) for color in range(config.colors)]
        masked = [jnp.where(own[None], np.uint32(0), board) for own, board in zip(owns, by_color, strict=True)]
        return reduce(jnp.bitwise_or, masked)

    def gather(boards: list[tuple[Board, Board]], occupied: UInt32[Array, "colors words lanes"]) -> tuple[Board, ...]:
        free, corners = (pick([board[i][:size] for board in boards], mover[None]) for i in range(2))
        open_corners = of_opponents([free[:size] & corners[:size] for free, corners in boards])
        return free, corners, open_corners, of_opponents(list(occupied))

    free, corners, open_corners, pieces = materialize(gather, boards, state.occupied)
    beside = materialize(lambda *args: [neighbours(config, board)[0][:size] for board in args], open_corners, pieces)
    return [free, corners, open_corners, *beside]


def _cover(config: Config, placement: Int32[Array, "lanes"]) -> Board:
    return rules.cover(config, placement, jnp.asarray(_CELL_ROWS)[placement // config.cells])


def _blocked_and_diagonal(config: Config, cells: Board) -> tuple[Board, Board]:
    """The cells that a piece takes from its colour (its own and their edge neighbours), and its diagonal neighbours."""
    edges, diagonals = (board[: words(config)] for board in neighbours(config, cells))
    return cells | edges, diagonals
