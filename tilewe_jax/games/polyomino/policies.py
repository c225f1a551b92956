"""Built-in policies: the sample engines of the package ``tilewe``, each a one-ply search by a value of placements.

They count moves by contact (see ``contacts``). Ties are broken uniformly at random, except by ``simple_search``, which takes
the first move in the order of ``generate_legal_moves`` of that package. Values are functions of lanes, see
``tilewe_jax.lanes``; policies are functions of one game.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import popcount
from tilewe_jax.game import IndexedPolicy, Policy
from tilewe_jax.games.polyomino import rules
from tilewe_jax.games.polyomino.boards import playable, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.one_ply import (
    Candidate,
    Preference,
    Value,
    best_placement,
    count_moves,
    count_playable_corners,
    lowest_cell,
)
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE, MONOMINO, ORIENTATIONS
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize, per_lane, where_needed

_SIZES = np.array([len(orientation.cells) for orientation in ORIENTATIONS], np.int32)
# Weights of cells by distance from the edge: the smaller of the two distances for `wall_crawler`, the greater for `turtle`.
_WALL = (100, 90, 75, 60, 50, 40, 30, 25, 10, 0)
_TURTLE = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
_FIRST_MOVE_PENALTY = 2.0**22


def policies(config: Config) -> dict[str, Policy]:
    """Return the sample engines by name."""
    size = config.size
    distances = [[min(i, size - 1 - i) for i in (x, y)] for y in range(size) for x in range(size)]
    values: dict[str, Value] = {
        "random": _no_preference,
        "largest_piece": partial(_signed, piece_size, 1),
        "smallest_piece": partial(_signed, piece_size, -1),
        "most_open_corners": partial(_signed, open_corners, 1),
        "least_open_corners": partial(_signed, open_corners, -1),
        "max_move_diff": partial(_signed, move_difference, 1),
        "min_move_diff": partial(_signed, move_difference, -1),
        "wall_crawler": partial(tile_weight, [_WALL[min(*pair, len(_WALL) - 1)] for pair in distances]),
        "turtle": partial(tile_weight, [_TURTLE[min(max(pair), len(_TURTLE) - 1)] for pair in distances]),
    }
    return {
        **{
            name: OnePlyPolicy(config, Preference(value, reads_moves=name in ("max_move_diff", "min_move_diff")))
            for name, value in values.items()
        },
        "simple_search": OnePlyPolicy(config, Preference(simple_search, in_listed_order=True)),
    }


@dataclass(frozen=True, eq=False)
class OnePlyPolicy:
    """A policy that plays its preferred placement, see ``one_ply.best_placement``; -1 at the end."""

    config: Config
    preference: Preference

    def __call__(self, state: State, key: PRNGKeyArray) -> Int32[Array, ""]:
        return per_lane(partial(best_placement, self.config, (self.preference,)))(state, jax.random.bits(key, dtype=jnp.uint32))

    @staticmethod
    def together(policies: Sequence["OnePlyPolicy"]) -> IndexedPolicy:
        """Implement ``SharingPolicy``."""
        best = partial(best_placement, policies[0].config, tuple(policy.preference for policy in policies))

        def play(index: Int32[Array, ""], state: State, key: PRNGKeyArray) -> Int32[Array, ""]:
            return per_lane(best)(state, jax.random.bits(key, dtype=jnp.uint32), index)

        return play


def _signed(value: Value, sign: int, candidate: Candidate) -> Float32[Array, "lanes"]:
    return sign * value(candidate)


def _no_preference(candidate: Candidate) -> Float32[Array, "lanes"]:
    return jnp.zeros_like(candidate.anchor, jnp.float32)


def piece_size(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Count 100 per cell of the piece, 10 per open corner of the piece on an empty board, and 1 per contact."""
    values = [100 * len(o.cells) + 10 * len(o.corners) + len(o.contacts) for o in ORIENTATIONS]
    return jnp.asarray(np.array(values, np.float32))[candidate.orientation]


def open_corners(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Count the playable corners of the mover after the move."""
    return _own_playable_corners(candidate).astype(jnp.float32)


def move_difference(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Count the legal moves of the mover after the move, minus the legal moves of all opponents."""
    config, root = candidate.config, candidate.root
    own = count_moves(config, *materialize(Candidate.own, candidate))
    in_reach = jnp.any(root.reachable & candidate.cells[:, None] != 0, axis=0)
    by_color = candidate.other_statistic(partial(count_moves, config), in_reach, root.moves)
    return (own - jnp.sum(jnp.where(candidate.is_opponent, by_color, 0), axis=0, dtype=jnp.int32)).astype(jnp.float32)


def simple_search(candidate: Candidate) -> Float32[Array, "lanes"]:
    """Compute 50 times the default evaluation of ``SimpleSearchEngine``, without terms that are equal for all moves.

    If players have two colours, the mover's other colour contributes its score only.
    """
    config, root, is_mover = candidate.config, candidate.root, candidate.is_mover
    size = words(config)
    open_after = root.free[:size] & root.corners[:size] & ~candidate.cells[:, None]
    has_monomino = _has_monomino(playable(config, root.hands))
    other_corners = candidate.other_statistic(
        partial(count_playable_corners, config), ~has_monomino, jnp.sum(popcount(open_after), axis=0, dtype=jnp.int32)
    )
    corners = jnp.where(is_mover, _own_playable_corners(candidate)[None], other_corners)
    sizes = jnp.asarray(_SIZES)[candidate.orientation]
    scores = rules.by_player(config, rules.cells_placed(config, root.hands) + jnp.where(is_mover, sizes[None], 0))
    is_own = jnp.arange(config.players, dtype=jnp.int32)[:, None] == config.owner(root.color)[None]
    own_score = jnp.sum(jnp.where(is_own, scores, 0), axis=0, dtype=jnp.int32)
    finished = jnp.all(corners == 0, axis=0)
    won = finished & (own_score == jnp.max(scores, axis=0))
    stuck = ((corners == 0) & ~finished[None]).astype(jnp.int32)
    of_opponents = jnp.where(candidate.is_opponent, 150 * stuck - 2 * corners, 0)
    by_color = jnp.where(is_mover, 10 * corners - 50_000 * stuck, of_opponents)
    return (jnp.sum(by_color, axis=0, dtype=jnp.int32) + 25 * sizes + 50_000 * won.astype(jnp.int32)).astype(jnp.float32)


def tile_weight(weights: Sequence[float], candidate: Candidate) -> Float32[Array, "lanes"]:
    """Sum the weights of the cells that the move covers; a first piece must cover the lowest open corner.

    Args:
      weights: the weight of each cell of the board, row by row from the bottom.
      candidate: the placement.
    """
    config = candidate.config
    table = jnp.asarray(np.append(np.array(weights, np.float32), np.float32(0)))
    # Bits of the cells of each orientation relative to its anchor, padded by a bit off the board.
    offsets = np.full((len(ORIENTATIONS), MAX_PIECE_SIZE), config.cells, np.int32)
    for row, orientation in zip(offsets, ORIENTATIONS, strict=True):
        row[: len(orientation.cells)] = [config.bit(cell) for cell in orientation.cells]
    bits = jnp.asarray(offsets)[candidate.orientation] + candidate.anchor[:, None]
    total = jnp.sum(table[jnp.minimum(bits, config.cells)], axis=1)

    plies = jnp.sum(popcount(np.uint32(config.full_hand) & ~candidate.root.hands), axis=0, dtype=jnp.int32)
    free, corners, _ = candidate.root.own
    lowest = lowest_cell((free & corners)[: words(config)])
    elsewhere = jnp.all(lowest & candidate.cells == 0, axis=0)
    return jnp.where((plies < config.colors) & elsewhere, total - _FIRST_MOVE_PENALTY, total)


def _own_playable_corners(candidate: Candidate) -> Int32[Array, "lanes"]:
    """Count the playable corners of the mover after the move: all open corners while it has the single cell, which is cheap."""
    free, corners, hand = materialize(Candidate.own, candidate)
    is_open = jnp.sum(popcount(free & corners), axis=0, dtype=jnp.int32)
    playable = partial(count_playable_corners, candidate.config)
    return where_needed(~_has_monomino(hand), playable, (free, corners, hand), is_open)


def _has_monomino(hands: UInt32[Array, "*shape"]) -> Bool[Array, "*shape"]:
    return (hands >> np.uint32(MONOMINO)) & np.uint32(1) != 0
