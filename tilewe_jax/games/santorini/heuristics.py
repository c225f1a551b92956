"""Static heuristics: action values, action logits and position values, linear in named features.

Functions annotated with ``*lanes`` are elementwise, see ``rules``.
"""

import operator
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.bits import popcount, popcount_sum
from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.bitboard import CENTRE, WINDOW, Bitboard, BitIndex, full_board, singleton, window
from tilewe_jax.games.santorini.config import DIRECTIONS, Config
from tilewe_jax.games.santorini.host_heuristics import LEVEL, LOGIT_WEIGHTS, MAX_LOGIT, MEAN_TURNS, THREAT, TURN
from tilewe_jax.games.santorini.rules import State


class ActionFeatures(NamedTuple):
    """Features of an action for the players of ``policies``, computed from the position after it for the mover."""

    wins: Bool[Array, "*lanes"]
    """The action ends the game."""
    loses: Bool[Array, "*lanes"]
    """The opponent can reply with a climb to level 3."""
    height: Int32[Array, "*lanes"]
    """Sum of the levels of the mover's workers, 0 to 6."""
    replies: Int32[Array, "*lanes"]
    """Legal turns of the opponent, 0 to 128."""


class ActionWeights(NamedTuple):
    """Integer weights of the graded features of an action."""

    height: int
    replies: int


GREEDY = ActionWeights(height=1, replies=0)
"""Maximize the height."""
ONE_PLY = ActionWeights(height=8, replies=-1)
"""A level is worth eight replies of the opponent. Adding the mover's own mobility made the player weaker."""

_WIN, _LOSS = 1 << 14, -(1 << 12)
"""Values of winning and of losing actions. The absolute sum of the graded features is below 1,000."""


# Neighbours are the cells next to a worker without a worker on them; counts are summed over both workers of a player.
LOGIT_FEATURES = (
    "wins",  # the action ends the game
    "loses",  # the opponent can reply with a climb to level 3
    "own_on_1",  # workers on level 1 or 2
    "own_on_2",  # workers on level 2
    "own_near_0",  # neighbours on level 0, and so on
    "own_near_1",
    "own_near_2",
    "own_near_3",
    "own_steps_up",  # neighbours one level above the worker
    "own_threats",  # neighbours on level 3 of workers on level 2
    "opponent_near_0",
    "opponent_near_1",
    "opponent_near_2",
    "opponent_near_3",
    "opponent_steps_up",
    "replies",  # legal turns of the opponent, in tens
)
"""Features of an action for its logit, computed from the position after it; "own" is the player who has just acted."""
_NEIGHBOURS = np.uint32(sum(1 << CENTRE + WINDOW * row + column for row, column in DIRECTIONS))


def heuristic_logits(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Float32[Array, "*lanes"]:
    """Logit of a legal action: the weighted sum of its features."""
    features = logit_features(config, rules.apply(config, state, action))
    weighted = (LOGIT_WEIGHTS[name] * feature for name, feature in zip(LOGIT_FEATURES, features, strict=True))
    logit: Array = reduce(operator.add, weighted)
    return logit


def logit_features(config: Config, after: State) -> list[Array]:
    """``LOGIT_FEATURES`` of the action that led to ``after``, each ``float32[*lanes]``."""
    level_1, level_2, level_3, level_4 = after.levels
    taken = reduce(Bitboard.__or__, (singleton(config, worker) for worker in after.workers))
    free = full_board(config) & ~(taken | level_4)
    ground = [free & ~level_1, free & level_1 & ~level_2, free & level_2 & ~level_3, free & level_3]

    def look(worker: BitIndex) -> tuple[Array, Array, list[Array], Array, Array]:
        cell = singleton(config, worker)
        is_placed = worker >= 0
        on_1, on_2 = ((cell & level).any() & is_placed for level in (level_1, level_2))
        near = [
            jnp.where(is_placed, popcount(window(config, cells, worker) & _NEIGHBOURS), 0).astype(jnp.int32) for cells in ground
        ]
        threats = jnp.where(on_2, near[3], 0)
        steps_up = jnp.where(on_2, near[3], jnp.where(on_1, near[2], near[1]))
        return on_1.astype(jnp.int32), on_2.astype(jnp.int32), near, steps_up, threats

    opponent, own = ([look(worker) for worker in workers] for workers in (after.workers[:2], after.workers[2:]))

    def both(workers: list[Any]) -> Any:
        return jax.tree.map(lambda first, second: (first + second).astype(jnp.float32), *workers)

    own_on_1, own_on_2, own_near, own_steps_up, own_threats = both(own)
    _, _, opponent_near, opponent_steps_up, _ = both(opponent)
    wins, loses, _, replies = (feature.astype(jnp.float32) for feature in action_features(config, after))
    own_counts = (own_on_1, own_on_2, *own_near, own_steps_up, own_threats)
    return [wins, loses, *own_counts, *opponent_near, opponent_steps_up, replies / 10]


def heuristic_value(config: Config, state: State) -> Float32[Array, "2"]:
    """Expected outcome by seat, the logistic function of weighted heights, mobility and threats. For one game."""
    swapped = state.workers[2:] + state.workers[:2]
    opponent_to_move = rules.make_state(config, state.levels, swapped, 1 - state.current_player)
    own, opponent = (_height_under(config, state, workers) for workers in (state.workers[:2], state.workers[2:]))
    mobility = popcount_sum([*state.turns]) - MEAN_TURNS
    logit = LEVEL * (own - opponent).astype(jnp.float32) + TURN * mobility.astype(jnp.float32)
    logit = logit + jnp.where(_can_climb(config, opponent_to_move), THREAT, 0.0)
    logit = jnp.where(_can_climb(config, state), MAX_LOGIT, logit)
    logit = jnp.where(rules.is_terminal(config, state), -jnp.inf, logit)
    outcome = jax.nn.sigmoid(logit)
    return jnp.where(jnp.arange(2, dtype=jnp.int32) == state.current_player, outcome, 1 - outcome)


def action_value(config: Config, weights: ActionWeights, after: State) -> Int32[Array, "*lanes"]:
    """Value for the mover of the action that led to ``after``; higher is better."""
    features = action_features(config, after)
    graded = weights.height * features.height + weights.replies * features.replies
    return jnp.where(features.wins, _WIN, jnp.where(features.loses, _LOSS, 0) + graded)


def action_features(config: Config, after: State) -> ActionFeatures:
    """Features of the action that led to ``after``."""
    return ActionFeatures(
        wins=rules.is_terminal(config, after),
        loses=_can_climb(config, after),
        height=_height_under(config, after, after.workers[2:]),
        replies=popcount_sum([*after.turns]),
    )


def _can_climb(config: Config, state: State) -> Bool[Array, "*lanes"]:
    """Return whether the player to move can climb to level 3."""
    return popcount_sum([*rules.winning_turns(config, state)]) > 0


def _height_under(config: Config, state: State, workers: tuple[BitIndex, ...]) -> Int32[Array, "*lanes"]:
    """Sum of the levels of two workers; 0 for a worker not yet placed."""
    levels = [(singleton(config, worker) & level).any() for worker in workers for level in state.levels[:3]]
    return jnp.sum(jnp.stack(levels), axis=0, dtype=jnp.int32)
