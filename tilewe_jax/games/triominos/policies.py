"""Built-in players, each a placing strategy and a drawing strategy. No player uses hidden information.

Placing: ``random``; ``greedy`` maximizes the score; ``thrifty`` also keeps tiles with equal numbers; ``flexible`` also keeps
places for its next tiles; ``block`` also avoids places for the tiles of others. All except ``random`` maximize
``heuristics.placement_value``.

Drawing although a tile fits: ``stuck`` never draws; ``gain`` draws if the expected gain exceeds the cost; ``hoard`` always
draws. Without a tile that fits, the rules require a draw.

The player ``greedy_stuck`` combines ``greedy`` and ``stuck``, and so on.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import hash32, popcount
from tilewe_jax.game import Action, Policy
from tilewe_jax.games.triominos import rules, tile_sets
from tilewe_jax.games.triominos.config import DRAW_SCORE, Config
from tilewe_jax.games.triominos.heuristics import (
    BLOCK,
    FLEXIBLE,
    GREEDY,
    THRIFTY,
    PlacementWeights,
    best_scores,
    placement_value,
)
from tilewe_jax.games.triominos.rules import State
from tilewe_jax.lanes import random_words
from tilewe_jax.utils.loops import while_loop

DrawRule = Callable[[Config, State], Bool[Array, ""]]
"""Decides whether to draw although a tile fits."""


def stuck(config: Config, state: State) -> Bool[Array, ""]:
    """Never draw if a tile fits."""
    del config, state
    return jnp.asarray(False)


def gain(config: Config, state: State) -> Bool[Array, ""]:
    """Draw if the expected increase of the best score exceeds the cost of a draw."""
    own = tile_sets.unpack(config, rules.tray_of(state))
    unseen = tile_sets.unpack(config, rules.unseen_tiles(config, state))
    scores = best_scores(config, state.table)
    gains = jnp.where(unseen, jnp.maximum(scores - jnp.max(jnp.where(own, scores, 0)), 0), 0)
    return jnp.sum(gains, dtype=jnp.int32) > -DRAW_SCORE * jnp.sum(unseen, dtype=jnp.int32)


def hoard(config: Config, state: State) -> Bool[Array, ""]:
    """Always draw."""
    del config, state
    return jnp.asarray(True)


PLACING: dict[str, PlacementWeights | None] = {
    "random": None,
    "greedy": GREEDY,
    "thrifty": THRIFTY,
    "flexible": FLEXIBLE,
    "block": BLOCK,
}
DRAWING: dict[str, DrawRule] = {"stuck": stuck, "gain": gain, "hoard": hoard}


def policies(config: Config) -> dict[str, Policy]:
    """All combinations of ``PLACING`` and ``DRAWING`` by name."""
    return {
        f"{placing}_{drawing}": partial(choose_action, config, weights, wants_draw)
        for placing, weights in PLACING.items()
        for drawing, wants_draw in DRAWING.items()
    }


def choose_action(
    config: Config, weights: PlacementWeights | None, wants_draw: DrawRule, state: State, key: PRNGKeyArray
) -> Action:
    """Choose an action by the two strategies: draw, place the tile with the highest value, or pass; -1 at the end.

    Args:
      config: the settings.
      weights: weights of the features of placements; ``None`` places at random.
      wants_draw: decides whether to draw although a tile fits.
      state: the position.
      key: PRNG key for ties.
    """
    words, bits = rules.legal_words(config, state), random_words(key, 1)[0]
    draw_or_pass = rules.draw_or_pass(config, words)
    placements = words.at[-1].set(np.uint32(0))
    can_place = jnp.any(placements != 0)
    is_drawing = (draw_or_pass == config.draw) & (~can_place | wants_draw(config, state))
    if weights is None:
        placed = rules.sample_action(config, state, placements, bits)
    else:
        placed = _best_placement(config, weights, state, jnp.where(is_drawing, np.uint32(0), placements), bits)
    return jnp.where(is_drawing, config.draw, jnp.where(can_place, placed, draw_or_pass)).astype(jnp.int32)


def _best_placement(
    config: Config,
    weights: PlacementWeights,
    state: State,
    placements: UInt32[Array, "legal_words"],
    bits: UInt32[Array, ""],
) -> Action:
    """Draw uniformly among the placements with the highest value. The few placements are evaluated one by one."""
    unseen, tray = rules.unseen_tiles(config, state), rules.tray_of(state)

    def evaluate_next(carry: tuple[UInt32[Array, "legal_words"], Int32[Array, ""], Action]) -> tuple[Array, Array, Array]:
        remaining, best, chosen = carry
        index = jnp.argmax(remaining != 0).astype(jnp.int32)
        lowest = remaining[index] & (~remaining[index] + np.uint32(1))
        action = rules.action_of(config, state, index, popcount(lowest - np.uint32(1)))
        tie_break = (hash32(bits, action) >> np.uint32(24)).astype(jnp.int32)
        value = placement_value(config, weights, state, tray, unseen, action)
        ranked = jnp.where(lowest != 0, (value << 8) + tie_break, best)
        is_better = ranked > best
        remaining = remaining ^ jnp.where(np.arange(remaining.shape[0], dtype=np.int32) == index, lowest, np.uint32(0))
        return remaining, jnp.maximum(best, ranked), jnp.where(is_better, action, chosen)

    start = placements, jnp.int32(jnp.iinfo(jnp.int32).min), jnp.int32(-1)
    chosen: Action = while_loop(lambda carry: jnp.any(carry[0] != 0), evaluate_next, start)[2]
    return chosen
