"""What a position is worth, and which actions look good, before anything is searched."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray

from tilewe_jax.game import Game, shapes

Evaluation = tuple[Float32[Array, "num_actions"] | None, Float32[Array, "P"]]
"""Logits of all actions, legal or not, or ``None`` where all are equal; and the share of the win that each may expect."""
Evaluator = Callable[[Any, PRNGKeyArray], Evaluation]


def uniform(game: Game[Any]) -> Evaluator:
    """Knows nothing: equal logits, equal shares."""

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        del state, key
        return None, jnp.full(game.num_players, 1 / game.num_players, jnp.float32)

    return evaluate


def playouts(game: Game[Any], count: int = 1) -> Evaluator:
    """Equal logits, and the mean returns of random games. Raises ``ValueError`` for less than one game."""
    if count < 1:
        raise ValueError(f"playouts must be at least 1, not {count}")

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        returns = jax.vmap(game.playout, in_axes=(None, 0))(state, jax.random.split(key, count))
        return None, jnp.mean(returns, axis=0)

    return evaluate


def network(game: Game[Any], apply: Callable[[Array], tuple[Array, Array]]) -> Evaluator:
    """``apply`` maps an observation to logits of all actions and to shares by seat from the mover's on.

    Raises ``ValueError`` where it gives other shapes than ``[num_actions]`` and ``[num_players]``.
    """
    observation = jax.eval_shape(lambda state: game.observe(state, game.current_player(state)), shapes(game))
    logits, values = jax.eval_shape(apply, observation)
    if logits.shape != (game.num_actions,) or values.shape != (game.num_players,):
        raise ValueError(
            f"the network gives logits {logits.shape} and values {values.shape}; {game.id} needs ({game.num_actions},) and"
            f" ({game.num_players},)"
        )

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        del key
        player = game.current_player(state)
        logits, values = apply(game.observe(state, player))
        seats = (jnp.arange(game.num_players) - player) % game.num_players
        return logits.astype(jnp.float32), values.astype(jnp.float32)[seats]

    return evaluate
