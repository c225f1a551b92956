"""Static heuristics: action values, action logits and position values without search.

Named features of a position times named weights. Functions whose annotations say ``*lanes`` are elementwise, see ``rules``.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.bits import popcount_sum
from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.bitboard import BitIndex, singleton
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.rules import State


class ActionFeatures(NamedTuple):
    """Features of an action, read off the position after it; the mover is the player who has just acted."""

    wins: Bool[Array, "*lanes"]
    """The game is over, so that the mover has won."""
    loses: Bool[Array, "*lanes"]
    """The opponent can climb to level 3 at once."""
    height: Int32[Array, "*lanes"]
    """Levels under the workers of the mover, 0 to 6."""
    replies: Int32[Array, "*lanes"]
    """Legal turns of the opponent, 0 to 128."""


class ActionWeights(NamedTuple):
    """Integer weights of the graded features of an action."""

    height: int
    replies: int


GREEDY = ActionWeights(height=1, replies=0)
"""Stand as high as possible."""
ONE_PLY = ActionWeights(height=8, replies=-1)
"""A level is worth eight replies of the opponent. The mover's own mobility, added to this, made it play worse."""

_WIN, _LOSS = 1 << 14, -(1 << 12)
"""Value of an action that wins; and what one that lets the opponent win loses. Graded features sum to less than 1,000."""
_VALUE_PER_LOGIT, _MAX_LOGIT = 8.0, 8.0


class PositionFeatures(NamedTuple):
    """Features of a position for the player to move."""

    lost: Bool[Array, "*lanes"]
    """The game is over, so that the player to move has lost."""
    wins_next: Bool[Array, "*lanes"]
    """The player to move can climb to level 3 at once."""
    is_threatened: Bool[Array, "*lanes"]
    """The opponent could climb to level 3 at once, if it were their turn."""
    height: Int32[Array, "*lanes"]
    """Levels under the own workers less those under the opponent's, -6 to 6."""
    mobility: Int32[Array, "*lanes"]
    """Legal turns less the average of a game, ``_MEAN_TURNS``."""


class PositionWeights(NamedTuple):
    """Logits of winning for a unit of each graded feature of a position."""

    is_threatened: float
    height: float
    mobility: float


_POSITION_WEIGHTS = PositionWeights(is_threatened=-1.2, height=0.5, mobility=0.012)
_MEAN_TURNS = 40


def heuristic_logits(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Float32[Array, "*lanes"]:
    """The logit of a legal action: a win first, what loses at once last, else by the weights ``ONE_PLY``."""
    value = action_value(config, ONE_PLY, rules.apply(config, state, action)).astype(jnp.float32)
    return jnp.clip(value / _VALUE_PER_LOGIT, -_MAX_LOGIT, _MAX_LOGIT)


def heuristic_value(config: Config, state: State) -> Float32[Array, "2"]:
    """Expected outcome by seat: the logistic function of the weighted features of the position. For one game."""
    features, weights = position_features(config, state), _POSITION_WEIGHTS
    logit = weights.height * features.height.astype(jnp.float32) + weights.mobility * features.mobility.astype(jnp.float32)
    logit = logit + jnp.where(features.is_threatened, weights.is_threatened, 0.0)
    logit = jnp.where(features.wins_next, _MAX_LOGIT, logit)
    logit = jnp.where(features.lost, -jnp.inf, logit)
    outcome = jax.nn.sigmoid(logit)
    return jnp.where(jnp.arange(2) == state.current_player, outcome, 1 - outcome)


def action_value(config: Config, weights: ActionWeights, after: State) -> Int32[Array, "*lanes"]:
    """The value for the mover of the action that led to ``after``; higher is better."""
    features = action_features(config, after)
    graded = weights.height * features.height + weights.replies * features.replies
    return jnp.where(features.wins, _WIN, jnp.where(features.loses, _LOSS, 0) + graded)


def action_features(config: Config, after: State) -> ActionFeatures:
    """The features of the action that led to ``after``."""
    return ActionFeatures(
        wins=rules.is_terminal(config, after),
        loses=popcount_sum([*rules.winning_turns(config, after)]) > 0,
        height=_height_under(config, after, after.workers[2:]),
        replies=popcount_sum([*after.turns]),
    )


def position_features(config: Config, state: State) -> PositionFeatures:
    """The features of a position."""
    swapped = state.workers[2:] + state.workers[:2]
    opponent_to_move = rules.make_state(config, state.levels, swapped, 1 - state.current_player)
    own, opponent = (_height_under(config, state, workers) for workers in (state.workers[:2], state.workers[2:]))
    return PositionFeatures(
        lost=rules.is_terminal(config, state),
        wins_next=popcount_sum([*rules.winning_turns(config, state)]) > 0,
        is_threatened=popcount_sum([*rules.winning_turns(config, opponent_to_move)]) > 0,
        height=own - opponent,
        mobility=popcount_sum([*state.turns]) - _MEAN_TURNS,
    )


def _height_under(config: Config, state: State, workers: tuple[BitIndex, ...]) -> Int32[Array, "*lanes"]:
    """Levels under two workers, 0 for those not placed."""
    levels = [(singleton(config, worker) & level).any() for worker in workers for level in state.levels[:3]]
    return jnp.sum(jnp.stack(levels), axis=0, dtype=jnp.int32)
