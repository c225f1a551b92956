"""Static heuristics: values of placements, action logits and position values without search.

Named features of a placement times named weights. Nothing here looks at what is hidden from the player to move. Batching (see
``tilewe_jax.lanes``): unbatched, as in ``rules``.
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
    """Points that it scores."""
    kept_value: Int32[Array, ""]
    """Points that keeping its tile would be worth, by the number of equal numbers on it (``_KEPT_VALUES``)."""
    own_places: Int32[Array, ""]
    """Placements that the tiles left on the own tray have afterwards."""
    unseen_places: Int32[Array, ""]
    """Placements that all unseen tiles (other trays and pile) have afterwards."""
    num_unseen: Int32[Array, ""]
    """Number of unseen tiles."""


class PlacementWeights(NamedTuple):
    """Weights of the features of a placement, in points per unit; integers, to compare values exactly."""

    kept_value: int = 0
    own_places: int = 0
    unseen_places: int = 0
    drawn_places: int = 0
    """Weight of the placements that a tile drawn at random is expected to have, ``unseen_places / num_unseen``."""


# In rounds of two against `greedy_stuck`, 12,000 for each weight, these were the best for `flexible` and `block`. Thrift lost
# at every price.
GREEDY = PlacementWeights()
"""The points alone."""
THRIFTY = PlacementWeights(kept_value=-1)
"""The points, less what a tile with equal numbers is worth later."""
FLEXIBLE = PlacementWeights(own_places=8, drawn_places=8)
"""The points, the places of the own tiles, and those that a drawn tile is expected to have."""
BLOCK = PlacementWeights(unseen_places=-2)
"""The points, less the places of tiles that others may hold."""

_KEPT_VALUES = np.array([0, 0, 3, 6], np.int32)
"""Points that keeping a tile is worth, by how many of its numbers are equal."""
_QUARTERS = 4
"""Values of placements are in quarters of a point."""
_QUARTERS_PER_LOGIT = 40
_DRAW_LOGITS, _DRAW_LOGIT_OF_MANY, _PASS_LOGIT = {2: 6.0}, -4.0, -8.0
"""Logit of drawing by the number of players: two do best to hoard, more to draw only where no tile fits; and of passing."""
_POINTS_PER_LOGIT = 60.0


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
    """Logits of legal actions: of placements by the weights ``BLOCK``, of drawing and passing constants."""
    unseen, tray = rules.unseen_tiles(config, state), rules.tray_of(state)

    def placement_logit(action: Action) -> Float32[Array, ""]:
        return placement_value(config, BLOCK, state, tray, unseen, action).astype(jnp.float32) / _QUARTERS_PER_LOGIT

    placement_logits = jax.vmap(placement_logit)(actions)
    draw_logit = _DRAW_LOGITS.get(config.players, _DRAW_LOGIT_OF_MANY)
    return jnp.where(actions == config.pass_, _PASS_LOGIT, jnp.where(actions == config.draw, draw_logit, placement_logits))


def heuristic_value(state: State) -> Float32[Array, "P"]:
    """Expected outcome by seat: the softmax of the points."""
    return jax.nn.softmax(state.scores.astype(jnp.float32) / _POINTS_PER_LOGIT)


def placement_value(
    config: Config, weights: PlacementWeights, state: State, tray: TileSet, unseen: TileSet, action: Action
) -> Int32[Array, ""]:
    """The value of a placement in quarters of a point; higher is better.

    Args:
      config: the settings.
      weights: of its features.
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
    # Features without a weight are left out, so that nothing is computed for them.
    points = sum((weight * feature for weight, feature in weighted if weight), start=features.score)
    if not weights.drawn_places:
        return _QUARTERS * points
    drawn = features.unseen_places * _QUARTERS * weights.drawn_places // jnp.maximum(features.num_unseen, 1)
    return _QUARTERS * points + drawn


def placement_features(config: Config, state: State, tray: TileSet, unseen: TileSet, action: Action) -> PlacementFeatures:
    """The features of a placement; arguments as those of ``placement_value``."""
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
    """Number of placements that the tiles of a set have on the table, each tile counted in all of its places."""
    return jnp.sum(popcount(rules.placements(config, board, tiles)), dtype=jnp.int32)


def best_scores(config: Config, board: Table) -> Int32[Array, "N"]:
    """The best score of each tile on the table; 0 for a tile that fits nowhere."""
    count = config.numbers
    bonus = table.bonus(config, board.neighbour_mask)
    # The best bonus for each three numbers, clockwise, and for each two where the number of the third corner is open.
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
