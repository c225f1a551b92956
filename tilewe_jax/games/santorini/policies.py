"""Ready-made players. Each looks at all actions of a position at once, and chooses at random among the best."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.bits import hash32, popcount_sum
from tilewe_jax.game import Action, Policy
from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.bitboard import single
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.rules import State
from tilewe_jax.lanes import random_words

Value = Callable[[Config, State], Int32[Array, ""]]
"""How good a position is for the player who has just moved, between -1000 and 1000."""

_WIN = 1 << 14
_LOSS = -(1 << 12)

_LOGIT, _SURE = 8.0, 8.0
"""So much of a value is a logit; and no logit is further from 0."""
_LEVEL, _TURN, _THREAT = 0.5, 0.012, 1.2
"""Logits of the share of the win: a level under a worker, a turn of the player to move less than the average, a win that the
other would have next."""
_TURNS = 40


def greedy(config: Config, state: State) -> Int32[Array, ""]:
    """Levels under the own workers."""
    steps = [(single(config, worker) & level).any() for worker in state.workers[2:] for level in state.levels[:3]]
    return jnp.sum(jnp.stack(steps), dtype=jnp.int32)


def one_ply(config: Config, state: State) -> Int32[Array, ""]:
    """Levels under the own workers, each as good as eight turns less for the other.

    Taking turns from the other player is worth something; own turns, added to this, make it play worse.
    """
    return 8 * greedy(config, state) - popcount_sum([*state.turns])


def heuristic_logits(config: Config, state: State, action: Action) -> Float32[Array, ""]:
    """How good an action looks, as a logit."""
    value = _outlook(config, one_ply, rules.apply(config, state, action)).astype(jnp.float32)
    return jnp.clip(value / _LOGIT, -_SURE, _SURE)


def heuristic_value(config: Config, state: State) -> Float32[Array, "2"]:
    """Shares of the win by the look of a position."""
    after = replace(state, workers=state.workers[2:] + state.workers[:2])
    mine, other = greedy(config, after), greedy(config, state)
    passed = rules.position(config, state.levels, after.workers, 1 - state.current_player)
    threat = popcount_sum([*rules.climbs(config, passed)]) > 0
    turns = popcount_sum([*state.turns]) - _TURNS
    ahead = _LEVEL * (mine - other).astype(jnp.float32) + _TURN * turns.astype(jnp.float32)
    ahead = ahead - jnp.where(threat, _THREAT, 0.0)
    ahead = jnp.where(popcount_sum([*rules.climbs(config, state)]) > 0, _SURE, ahead)
    ahead = jnp.where(rules.is_over(config, state), -jnp.inf, ahead)
    share = jax.nn.sigmoid(ahead)
    return jnp.where(jnp.arange(2) == state.current_player, share, 1 - share)


def policies(config: Config) -> dict[str, Policy]:
    """The players that win where they can, prevent a win in one where they can, and else do what is best by a value."""
    return {value.__name__: _policy(config, value) for value in (greedy, one_ply)}


def _policy(config: Config, value: Value) -> Policy:
    def policy(state: State, key: PRNGKeyArray) -> Action:
        actions = jnp.arange(config.num_actions, dtype=jnp.int32)
        legal = rules.legal_actions(config, state)
        after = jax.vmap(lambda action: rules.apply(config, state, action))(actions)
        values = jax.vmap(lambda after: _outlook(config, value, after))(after)
        noise = hash32(random_words(key, 1)[0], actions) >> np.uint32(16)  # decides between equal values
        ranked = jnp.where(legal, (values << 16) | noise.astype(jnp.int32), jnp.iinfo(jnp.int32).min)
        return jnp.where(jnp.any(legal), jnp.argmax(ranked), -1).astype(jnp.int32)

    return policy


def _outlook(config: Config, value: Value, after: State) -> Int32[Array, ""]:
    """The value of a position for the player who has just moved, with what the next move decides."""
    loses = popcount_sum([*rules.climbs(config, after)]) > 0
    return jnp.where(rules.is_over(config, after), _WIN, jnp.where(loses, _LOSS, 0) + value(config, after))
