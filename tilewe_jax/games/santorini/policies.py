"""Built-in players: evaluate all actions one ply deep and draw uniformly among the best."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from tilewe_jax.bits import hash32
from tilewe_jax.game import Action, Policy
from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.config import Config
from tilewe_jax.games.santorini.heuristics import GREEDY, ONE_PLY, ActionWeights, action_value
from tilewe_jax.games.santorini.rules import State
from tilewe_jax.lanes import random_words


def policies(config: Config) -> dict[str, Policy]:
    """The players ``greedy`` and ``one_ply``: win if possible, prevent a win of the opponent, otherwise use ``heuristics``."""
    return {"greedy": partial(best_action, config, GREEDY), "one_ply": partial(best_action, config, ONE_PLY)}


def best_action(config: Config, weights: ActionWeights, state: State, key: PRNGKeyArray) -> Action:
    """Draw uniformly among the legal actions with the highest ``heuristics.action_value``; -1 at the end."""
    actions = jnp.arange(config.num_actions, dtype=jnp.int32)
    legal = rules.legal_action_mask(config, state)
    after = jax.vmap(lambda action: rules.apply(config, state, action))(actions)
    values = jax.vmap(lambda after: action_value(config, weights, after))(after)
    tie_break = hash32(random_words(key, 1)[0], actions) >> np.uint32(16)
    ranked = jnp.where(legal, (values << 16) | tie_break.astype(jnp.int32), jnp.iinfo(jnp.int32).min)
    return jnp.where(jnp.any(legal), jnp.argmax(ranked).astype(jnp.int32), -1).astype(jnp.int32)
