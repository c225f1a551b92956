"""What a position is worth, and which actions look good, before anything is searched."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from search.exported import Network, observation_shape
from search.tree import check_counts
from tilewe_jax.game import Action, Game, Policy

Logits = Float32[Array, "num_actions"] | Callable[[Int32[Array, "k"]], Float32[Array, "k"]] | None
"""Of all actions, legal or not; or what gives those of some legal ones; or ``None`` where all are equal."""
Evaluation = tuple[Logits, Float32[Array, "P"]]
"""Logits, and the share of the win that each may expect."""
Evaluator = Callable[[Any, PRNGKeyArray], Evaluation]


def uniform(game: Game[Any]) -> Evaluator:
    """Knows nothing: equal logits, equal shares."""

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        del state, key
        return None, jnp.full(game.num_players, 1 / game.num_players, jnp.float32)

    return evaluate


def heuristic(game: Game[Any]) -> Evaluator:
    """``heuristic_logits`` and ``heuristic_value`` of the game."""

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        del key
        return lambda actions: game.heuristic_logits(state, actions), game.heuristic_value(state)

    return evaluate


def playouts(
    game: Game[Any],
    count: int = 1,
    *,
    priors: bool = False,
    policy: Policy | None = None,
    samples: int = 1,
    plies: int | None = None,
    margin: float = 0.0,
) -> Evaluator:
    """The mean outcome of ``count`` games played from a position.

    They are played by ``policy``, or else by ``best_of``: with one sample at random. After ``plies`` actions they are cut off,
    and worth what ``heuristic_value`` says. ``margin`` is the share that ``heuristic_value`` has in the outcome of a game
    played to its end. Logits are those of ``heuristic_logits`` with ``priors``, else equal. Raises ``ValueError`` for less than
    one game, sample or ply.
    """
    check_counts(playouts=count, samples=samples, plies=1 if plies is None else plies)
    check_margin(margin)
    choose = policy or best_of(game, samples)
    move = game.apply if policy else game.apply_deferred

    def play(state: Any, key: PRNGKeyArray) -> Float32[Array, "P"]:
        def goes_on(carry: tuple[Any, PRNGKeyArray, Array]) -> Array:
            left = ~game.is_terminal(carry[0])
            return left if plies is None else left & (carry[2] < plies)

        def go(carry: tuple[Any, PRNGKeyArray, Array]) -> tuple[Any, PRNGKeyArray, Array]:
            state, key, ply = carry
            key, now = jax.random.split(key)
            return move(state, choose(state, now)), key, ply + 1

        last, _, _ = jax.lax.while_loop(goes_on, go, (state, key, jnp.int32(0)))
        return jnp.where(game.is_terminal(last), outcome(game, last, margin), game.heuristic_value(last))

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        shares = jnp.mean(jax.vmap(play, in_axes=(None, 0))(state, jax.random.split(key, count)), axis=0)
        return (lambda actions: game.heuristic_logits(state, actions)) if priors else None, shares

    return evaluate


def best_of(game: Game[Any], samples: int) -> Policy:
    """The policy that plays the best of so many random actions, by ``heuristic_logits``.

    It may be used with ``apply_deferred``.
    """

    def choose(state: Any, key: PRNGKeyArray) -> Action:
        if samples == 1:
            return game.sample_action(state, key)
        actions = game.sample_actions(state, key, samples)
        best = jnp.argmax(jnp.where(actions >= 0, game.heuristic_logits(state, actions), -jnp.inf))
        # All places are left over only where nobody can move.
        return jnp.where(actions[0] >= 0, actions[best], -1)

    return choose


def outcome(game: Game[Any], state: Any, margin: float) -> Float32[Array, "P"]:
    """Who has won, and with the weight ``margin`` by how much; of a game that is over."""
    returns = game.returns(state)
    return (1 - margin) * returns + margin * game.heuristic_value(state) if margin else returns


def check_margin(margin: float) -> None:
    """Raise ``ValueError`` where a margin is no share."""
    if not 0 <= margin <= 1:
        raise ValueError(f"margin must be between 0 and 1, not {margin}")


def network(game: Game[Any], apply: Network, symmetries: bool = False) -> Evaluator:
    """``apply`` maps an observation to logits, see ``Game.gather_logits``, and to shares by seat from the mover's on.

    With ``symmetries`` it is asked about the position as all symmetries of the game show it, and what it says is averaged.
    Raises ``ValueError`` where it gives other shapes than ``[num_logits]`` and ``[num_players]``, or where the game has no
    symmetries.
    """
    if symmetries and game.num_symmetries == 1:
        raise ValueError(f"{game.id} has no symmetries to average over")
    logits, values = jax.eval_shape(apply, jax.ShapeDtypeStruct(observation_shape(game), jnp.float32))
    if logits.shape != (game.num_logits,) or values.shape != (game.num_players,):
        raise ValueError(
            f"the network gives logits {logits.shape} and values {values.shape}; {game.id} needs ({game.num_logits},) and"
            f" ({game.num_players},)"
        )

    def look(state: Any) -> tuple[Array, Array]:
        player = game.current_player(state)
        logits, values = apply(game.observe(state, player))
        seats = (jnp.arange(game.num_players) - player) % game.num_players
        return logits.astype(jnp.float32), values.astype(jnp.float32)[seats]

    def evaluate(state: Any, key: PRNGKeyArray) -> Evaluation:
        del key
        if not symmetries:
            logits, values = look(state)
            return lambda actions: game.gather_logits(state, logits, actions), values
        indices = jnp.arange(game.num_symmetries, dtype=jnp.int32)
        seen = jax.vmap(game.transform, in_axes=(None, 0))(state, indices)
        every, shares = jax.vmap(look)(seen)

        def of(actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
            renamed = jnp.take(jnp.asarray(game.action_symmetries), actions, axis=1, mode="clip")
            return jnp.mean(jax.vmap(game.gather_logits)(seen, every, renamed), axis=0)

        return of, jnp.mean(shares, axis=0)

    return evaluate
