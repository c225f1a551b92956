"""Static heuristics: values of placements, action logits and position values, linear in named features.

No function uses information hidden from the player to move. Batching (see ``tilewe_jax.lanes``): unbatched, as in ``rules``.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32

from tilewe_jax.bits import popcount
from tilewe_jax.game import Action
from tilewe_jax.games.triominos import rules, table, tile_sets
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.rules import State
from tilewe_jax.games.triominos.table import Table
from tilewe_jax.games.triominos.tile_sets import TileSet


class PlacementFeatures(NamedTuple):
    """Features of a placement, each ``int32``."""

    score: Int32[Array, ""]
    """Points of the placement."""
    kept_value: Int32[Array, ""]
    """Points for keeping the tile, by the number of equal numbers on it (``_KEPT_VALUES``)."""
    own_places: Int32[Array, ""]
    """Number of placements of the remaining own tiles after the placement."""
    unseen_places: Int32[Array, ""]
    """Number of placements of all unseen tiles (other trays and pile) after the placement."""
    num_unseen: Int32[Array, ""]
    """Number of unseen tiles."""


class PlacementWeights(NamedTuple):
    """Integer weights of the features of a placement, in points per unit."""

    kept_value: int = 0
    own_places: int = 0
    unseen_places: int = 0
    drawn_places: int = 0
    """Weight of the expected number of placements of a random unseen tile, ``unseen_places / num_unseen``."""


# The weights of FLEXIBLE and BLOCK were the best in two-player rounds against `greedy_stuck`, 12,000 rounds for each weight.
# No weight of kept_value helped.
GREEDY = PlacementWeights()
"""The points only."""
THRIFTY = PlacementWeights(kept_value=-1)
"""The points minus the value of keeping the tile."""
FLEXIBLE = PlacementWeights(own_places=8, drawn_places=8)
"""The points, the placements of the own tiles, and the expected placements of a drawn tile."""
BLOCK = PlacementWeights(unseen_places=-2)
"""The points minus the placements of unseen tiles."""

_KEPT_VALUES = np.array([0, 0, 3, 6], np.int32)
"""Points for keeping a tile, by its number of equal numbers."""
_QUARTERS = 4
"""Values of placements are in quarters of a point."""
_POINTS_PER_LOGIT = 60.0

LOGIT_FEATURES = (
    "score",  # of a placement, in tens of points
    "kept_value",  # see PlacementFeatures, in threes
    "own_places",  # in tens
    "unseen_places",  # in hundreds
    "drawn_places",  # expected placements of a random unseen tile
    "draw",
    "draw_again",  # for the action draw: the number of tiles drawn in this turn
    "pass",
)
"""Features of the logit of an action: the first five of placements, the rest of draw and pass; otherwise zero."""
# Learned and printed by ``experiments.heuristics``; not to be edited by hand. ``(start, slope)`` by name.
TWO_PLAYER_WEIGHTS = {
    "score": (0.53, 0.42),
    "kept_value": (-0.16, 0.34),
    "own_places": (1.24, 4.81),
    "unseen_places": (-3.73, -4.5),
    "drawn_places": (-6.47, 1.12),
    "draw": (6.68, 1.33),
    "draw_again": (0.99, 0.43),
    "pass": (-4.79, -2.63),
}
WEIGHTS_OF_MORE_PLAYERS = {
    "score": (0.4, 2.24),
    "kept_value": (0.77, -0.45),
    "own_places": (6.43, 12.36),
    "unseen_places": (8.55, 14.83),
    "drawn_places": (-18.37, 5.55),
    "draw": (-6.11, -19.46),
    "draw_again": (0.57, 3.5),
    "pass": (-9.13, -8.11),
}


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
    """Logits of legal actions: the weighted sum of ``heuristic_features``."""
    return heuristic_features(config, state, actions) @ jnp.asarray(heuristic_weights(config).ravel())


def heuristic_weights(config: Config) -> np.ndarray:
    """The learned weights, ``float32[2, features]``, in the order of ``LOGIT_FEATURES``.

    A weight is linear in the fraction of placed tiles: row 0 is its value at the start, row 1 its increase until all tiles are
    placed.
    """
    table = TWO_PLAYER_WEIGHTS if config.players == 2 else WEIGHTS_OF_MORE_PLAYERS
    return np.array([table[name] for name in LOGIT_FEATURES], np.float32).T


def heuristic_features(config: Config, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k two_weights"]:
    """Features of legal actions: ``LOGIT_FEATURES``, then the same features times the fraction of placed tiles."""
    unseen, tray = rules.unseen_tiles(config, state), rules.tray_of(state)
    draws = state.draws.astype(jnp.float32)

    def look(action: Action) -> Float32[Array, "features"]:
        placed = placement_features(config, state, tray, unseen, action)
        drawn_places = placed.unseen_places / jnp.maximum(placed.num_unseen, 1)
        numbers = [placed.score / 10, placed.kept_value / 3, placed.own_places / 10, placed.unseen_places / 100, drawn_places]
        is_draw, is_pass = ((action == word).astype(jnp.float32) for word in (config.draw, config.pass_))
        placement = [number.astype(jnp.float32) * (1.0 - (is_draw + is_pass)) for number in numbers]
        return jnp.stack([*placement, is_draw, is_draw * draws, is_pass])

    features = jax.vmap(look)(actions)
    fraction = jnp.mean((state.table.placed_at >= 0).astype(jnp.float32))
    return jnp.concatenate([features, features * fraction], axis=1)


def heuristic_value(state: State) -> Float32[Array, "P"]:
    """Expected outcome by seat, the softmax of the points."""
    return jax.nn.softmax(state.scores.astype(jnp.float32) / _POINTS_PER_LOGIT)


def placement_value(
    config: Config, weights: PlacementWeights, state: State, tray: TileSet, unseen: TileSet, action: Action
) -> Int32[Array, ""]:
    """The value of a placement in quarters of a point; higher is better.

    Args:
      config: the settings.
      weights: weights of the features.
      state: the position.
      tray: ``rules.tray_of(state)``.
      unseen: ``rules.unseen_tiles(config, state)``.
      action: a legal action that places a tile.
    """
    features = placement_features(config, state, tray, unseen, action)
    weighted = (
        (weights.kept_value, features.kept_value),
        (weights.own_places, features.own_places),
        (weights.unseen_places, features.unseen_places),
    )
    # Features with zero weight are skipped, so that they are not computed.
    points = sum((weight * feature for weight, feature in weighted if weight), start=features.score)
    if not weights.drawn_places:
        return _QUARTERS * points
    drawn = features.unseen_places * _QUARTERS * weights.drawn_places // jnp.maximum(features.num_unseen, 1)
    return _QUARTERS * points + drawn


def placement_features(config: Config, state: State, tray: TileSet, unseen: TileSet, action: Action) -> PlacementFeatures:
    """Features of a placement; arguments as in ``placement_value``."""
    placed, score = rules.placement(config, state, action)
    after = table.place(config, state.table, placed)
    num_equal = np.array([4 - len(set(tile)) for tile in config.tile_list])
    return PlacementFeatures(
        score=score,
        kept_value=jnp.asarray(_KEPT_VALUES[num_equal])[placed.tile],
        own_places=num_places(config, after, tray & ~tile_sets.singleton(config, placed.tile)),
        unseen_places=num_places(config, after, unseen),
        num_unseen=tile_sets.count(unseen),
    )


def num_places(config: Config, board: Table, tiles: TileSet) -> Int32[Array, ""]:
    """Number of placements of the tiles of a set on the table."""
    return jnp.sum(popcount(rules.placements(config, board, tiles)), dtype=jnp.int32)


def best_scores(config: Config, board: Table) -> Int32[Array, "N"]:
    """The best score of each tile on the table; 0 for a tile without a placement."""
    count = config.numbers
    bonus = table.bonus(config, board.neighbour_mask)
    # The best bonus for each three numbers, clockwise, and for each two numbers if the third corner is open.
    first, second, known = (row.astype(jnp.int32) for row in table.frontier_corners(config, board))
    pair = first * count + second
    none, is_used = jnp.full(count**3, -1, jnp.int32), board.frontier >= 0
    of_three = none.at[jnp.where(is_used & (known >= 0), pair * count + known, count**3)].max(bonus, mode="drop")
    of_two = none[: count**2].at[jnp.where(is_used & (known < 0), pair, count**2)].max(bonus, mode="drop")
    best = jnp.maximum(of_three, jnp.repeat(of_two, count))
    tiles = np.array(config.tile_list)
    rotations = [np.roll(tiles, -turn, axis=1) @ [count, 1, count**2] for turn in range(3)]  # third, first, second
    best = jnp.max(jnp.stack([jnp.take(best, rotation) for rotation in rotations]), axis=0)
    return jnp.where(best >= 0, best + tiles.sum(axis=1, dtype=np.int32), 0)
