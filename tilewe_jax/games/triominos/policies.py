"""Ready-made players: a strategy of placing and one of drawing each, none of which looks at what is hidden.

Placing: ``random``; ``greedy``, the highest score; ``thrifty``, which also keeps tiles with equal numbers; ``flexible``, which
also wants its next tiles to fit; ``block``, which also wants those of others not to.

Drawing, where a tile would fit (else the rules demand it): ``stuck`` does not; ``gain`` does where the tile drawn is expected
to score more than it costs; ``hoard`` does as often as it may.

The player ``greedy_stuck`` is greedy and draws when stuck, and so on.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt32

from tilewe_jax.bits import hash32, popcount
from tilewe_jax.game import Action, Policy
from tilewe_jax.games.triominos import rules, table, tile_sets
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.rules import DRAW_SCORE, State
from tilewe_jax.games.triominos.table import Table
from tilewe_jax.games.triominos.tile_sets import Tray
from tilewe_jax.lanes import random_words


class Prospect(NamedTuple):
    """A placement, as a strategy sees it."""

    score: Int32[Array, ""]
    tile: Int32[Array, ""]
    after: Table
    own: Tray
    """What is left on the own tray."""
    unseen: Tray
    """The tiles of the other trays and of the pile, which look the same."""


Value = Callable[[Config, Prospect], Int32[Array, ""]]
"""How good a placement is; in quarters of a point."""

# In rounds of two against `greedy_stuck`, 12,000 for each weight, these were the best for `flexible` and `block`. Thrift lost
# at every price.
_KEEP = np.array([0, 0, 3, 6], np.int32)
"""Points that keeping a tile is worth, by how many of its numbers are equal."""
_OWN_PLACE, _OTHERS_PLACE = 8, 2
"""Points that a place for a tile is worth."""


def greedy(config: Config, prospect: Prospect) -> Int32[Array, ""]:
    """The points that it scores."""
    del config
    return 4 * prospect.score


def thrifty(config: Config, prospect: Prospect) -> Int32[Array, ""]:
    """The points, less what a tile with equal numbers is worth later."""
    equal = np.array([4 - len(set(tile)) for tile in config.tile_list])
    return 4 * (prospect.score - jnp.asarray(_KEEP[equal])[prospect.tile])


def flexible(config: Config, prospect: Prospect) -> Int32[Array, ""]:
    """The points, and the places that the own tiles will then have, and those that a tile drawn may be expected to have."""
    own = _places(config, prospect.after, prospect.own)
    drawn = (
        _places(config, prospect.after, prospect.unseen) * 4 * _OWN_PLACE // jnp.maximum(tile_sets.count(prospect.unseen), 1)
    )
    return 4 * (prospect.score + _OWN_PLACE * own) + drawn


def block(config: Config, prospect: Prospect) -> Int32[Array, ""]:
    """The points, less the places that the tiles of others may have."""
    return 4 * (prospect.score - _OTHERS_PLACE * _places(config, prospect.after, prospect.unseen))


Draws = Callable[[Config, State], Bool[Array, ""]]
"""Whether to draw where a tile would fit."""


def stuck(config: Config, state: State) -> Bool[Array, ""]:
    """Never."""
    del config, state
    return jnp.asarray(False)


def gain(config: Config, state: State) -> Bool[Array, ""]:
    """Whether the best score after drawing is expected to be higher than it is now, by more than drawing costs."""
    own, unseen = (tile_sets.unpack(config, tiles) for tiles in (rules.tray_of(state), _unseen(config, state)))
    scores = _best_scores(config, state.table)
    more = jnp.where(unseen, jnp.maximum(scores - jnp.max(jnp.where(own, scores, 0)), 0), 0)
    return jnp.sum(more, dtype=jnp.int32) > -DRAW_SCORE * jnp.sum(unseen, dtype=jnp.int32)


def hoard(config: Config, state: State) -> Bool[Array, ""]:
    """Always."""
    del config, state
    return jnp.asarray(True)


_LOGIT = 40
"""Quarters of a point that are a logit of an action."""
_DRAWING, _PASSING = {2: 6.0}, -8.0
"""Logit of drawing, by the number of players: two do best to hoard, more do best not to draw; and of passing."""


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
    """How good actions look to ``block``, as logits."""
    unseen, tray = _unseen(config, state), rules.tray_of(state)

    def look(action: Action) -> Float32[Array, ""]:
        prospect = _prospect(config, state, tray, unseen, action)
        return block(config, prospect).astype(jnp.float32) / _LOGIT

    placed = jax.vmap(look)(actions)
    drawing = _DRAWING.get(config.players, -4.0)
    return jnp.where(actions == config.pass_, _PASSING, jnp.where(actions == config.draw, drawing, placed))


PLACING: dict[str, Value | None] = {"random": None, "greedy": greedy, "thrifty": thrifty, "flexible": flexible, "block": block}
DRAWING: dict[str, Draws] = {"stuck": stuck, "gain": gain, "hoard": hoard}


def policies(config: Config) -> dict[str, Policy]:
    """All combinations, by name."""
    return {
        f"{placing}_{drawing}": partial(_play, config, value, draws)
        for placing, value in PLACING.items()
        for drawing, draws in DRAWING.items()
    }


def _play(config: Config, value: Value | None, draws: Draws, state: State, key: PRNGKeyArray) -> Action:
    words, bits = rules.legal_words(config, state), random_words(key, 1)[0]
    other = words[-1]
    placements = words.at[-1].set(np.uint32(0))
    fits = jnp.any(placements != 0)
    drawing = (other == 1) & (~fits | draws(config, state))
    if value is None:
        placed = rules.sample(config, state, placements, bits)
    else:
        placed = _best(config, value, state, jnp.where(drawing, np.uint32(0), placements), bits)
    without = jnp.where(other == 1, config.draw, jnp.where(other == 2, config.pass_, -1))
    return jnp.where(drawing, config.draw, jnp.where(fits, placed, without)).astype(jnp.int32)


def _best(config: Config, value: Value, state: State, placements: UInt32[Array, "actions"], bits: UInt32[Array, ""]) -> Action:
    """The placement of the highest value, by chance among equals; looked at one by one, as there are few."""
    unseen, tray = _unseen(config, state), rules.tray_of(state)

    def look(carry: tuple[UInt32[Array, "actions"], Int32[Array, ""], Action]) -> tuple[Array, Array, Array]:
        left, best, chosen = carry
        index = jnp.argmax(left != 0).astype(jnp.int32)
        lowest = left[index] & (~left[index] + np.uint32(1))
        action = rules.action_of(config, state, index, popcount(lowest - np.uint32(1)))
        prospect = _prospect(config, state, tray, unseen, action)
        noise = (hash32(bits, action) >> np.uint32(24)).astype(jnp.int32)
        ranked = jnp.where(lowest != 0, (value(config, prospect) << 8) + noise, best)
        better = ranked > best
        left = left ^ jnp.where(np.arange(left.shape[0]) == index, lowest, np.uint32(0))
        return left, jnp.maximum(best, ranked), jnp.where(better, action, chosen)

    start = placements, jnp.int32(jnp.iinfo(jnp.int32).min), jnp.int32(-1)
    chosen: Action = lax.while_loop(lambda carry: jnp.any(carry[0] != 0), look, start)[2]
    return chosen


def _prospect(config: Config, state: State, tray: Tray, unseen: Tray, action: Action) -> Prospect:
    placed, score = rules.placement(config, state, action)
    after = table.lay(config, state.table, placed)
    return Prospect(score, placed.tile, after, tray & ~tile_sets.single(config, placed.tile), unseen)


def _best_scores(config: Config, board: Table) -> Int32[Array, "N"]:
    """The best that each tile would score on the table; 0 where it fits nowhere."""
    count = config.numbers
    value = table.bonus(config, board.around)
    # The best slot for each three numbers, clockwise, and for each two where the third corner is open.
    first, second, known = (row.astype(jnp.int32) for row in table.corners_of_slots(config, board))
    pair = first * count + second
    none, there = jnp.full(count**3, -1, jnp.int32), board.cells >= 0
    given = none.at[jnp.where(there & (known >= 0), pair * count + known, count**3)].max(value, mode="drop")
    free = none[: count**2].at[jnp.where(there & (known < 0), pair, count**2)].max(value, mode="drop")
    best = jnp.maximum(given, jnp.repeat(free, count))
    tiles = np.array(config.tile_list)
    turns = [np.roll(tiles, -turn, axis=1) @ [count, 1, count**2] for turn in range(3)]  # third, first, second
    best = jnp.max(jnp.stack([jnp.take(best, turn) for turn in turns]), axis=0)
    return jnp.where(best >= 0, best + tiles.sum(axis=1, dtype=np.int32), 0)


def _places(config: Config, board: Table, tiles: Tray) -> Int32[Array, ""]:
    """How many placements these tiles have."""
    return jnp.sum(popcount(rules.thirds(config, board, tiles)), dtype=jnp.int32)


def _unseen(config: Config, state: State) -> Tray:
    """What the player to move does not see."""
    lying = tile_sets.pack(state.table.lying >= 0)
    return tile_sets.pack(jnp.ones(config.tiles, jnp.bool_)) & ~lying & ~rules.tray_of(state)
