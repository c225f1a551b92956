"""Batches of complete games, with or without their actions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree

from tilewe_jax.batching.reset import batch_first
from tilewe_jax.game import Game, Policy, check_own_game, chosen_by
from tilewe_jax.lanes import each, typed_key
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count, shown
from tilewe_jax.utils.loops import while_loop

S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rollout(Generic[S]):
    """Final states and results of a batch of games."""

    state: S
    """Final states, ``[batch, ...]``."""
    lengths: Int32[Array, "batch"]
    """Number of actions played in each game."""
    scores: Int32[Array, "batch players"]
    """Final points by seat."""
    returns: Float32[Array, "batch players"]
    """Outcomes by seat, see ``Game.returns``."""
    illegal_actions: Int32[Array, "batch"]
    """Number of illegal actions chosen by the policy; each leaves the game unchanged but counts toward ``game.max_steps``."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trajectory(Generic[S]):
    """A batch of games with all actions. T is ``game.max_steps``."""

    initial: S
    """Initial states, ``[batch, ...]``."""
    actions: Int32[Array, "batch T"]
    """Actions in the order of play; -1 after the end."""
    players: Int32[Array, "batch T"]
    """The player of each action; -1 after the end."""
    rollout: Rollout[S]
    """Final states and results."""


def rollout(game: Game[S], key: PRNGKeyArray, batch: int, policy: Policy | None = None) -> Rollout[S]:
    """Play a batch of games to the end.

    Args:
      game: the game.
      key: PRNG key, consumed.
      batch: number of games.
      policy: chooses every action; by default actions are uniformly random.

    Returns:
      The final states and results. Games in which the policy chose illegal actions may be unfinished, see
      ``Rollout.illegal_actions``.

    Raises ``ValueError`` or ``TypeError`` unless ``batch`` is an integer of at least 1.

    >>> import jax, tilewe_jax
    >>> games = jax.jit(lambda key: tilewe_jax.rollout(tilewe_jax.make("santorini", size=3), key, 8))(jax.random.key(0))
    >>> games.returns.shape, int(games.returns.sum())
    ((8, 2), 8)
    """
    return trajectories(game, key, batch, policy).rollout  # XLA removes the unused actions


def trajectories(game: Game[S], key: PRNGKeyArray, batch: int, policy: Policy | None = None) -> Trajectory[S]:
    """Play a batch of games to the end and keep all actions; arguments as in ``rollout``."""
    require_backend()
    check_own_game(game)
    batch = check_count("batch", batch)
    key, init_key, action_key = jax.random.split(typed_key(key), 3)
    initial = jax.vmap(game.init, out_axes=-1)(jax.random.split(init_key, batch))
    choose, move = choose_and_move(game, policy)
    lane = jnp.arange(batch, dtype=jnp.int32)

    # The action is chosen at the end of an iteration and carried, because XLA would compute it twice in the same iteration.
    def play(carry: PyTree) -> PyTree:
        state, action, key, turn, lengths, illegal, actions, players = carry
        key, action_key = jax.random.split(key)
        played = action >= 0
        if policy:
            illegal = illegal + (~played & ~each(game.is_terminal)(state)).astype(jnp.int32)
        place = jnp.where(played, lengths, game.max_steps)
        actions = actions.at[place, lane].set(action, mode="drop")
        players = players.at[place, lane].set(each(game.current_player)(state), mode="drop")
        state = move(state, action)
        action = choose(state, jax.random.split(action_key, batch))
        return state, action, key, turn + 1, lengths + played.astype(jnp.int32), illegal, actions, players

    def any_left(carry: PyTree) -> Bool[Array, ""]:
        left = ~jnp.all(each(game.is_terminal)(carry[0]))
        return left & (carry[3] < game.max_steps) if policy else left

    zeros, empty = jnp.zeros(batch, jnp.int32), jnp.full((game.max_steps, batch), -1, jnp.int32)
    action = choose(initial, jax.random.split(action_key, batch))
    carry = initial, action, key, jnp.int32(0), zeros, zeros, empty, empty
    state, _, _, _, lengths, illegal, actions, players = while_loop(any_left, play, carry)
    scores, returns = each(game.scores)(state), each(game.returns)(state)
    finished = Rollout(batch_first(state), lengths, scores.T, returns.T, illegal)
    return Trajectory(batch_first(initial), actions.T, players.T, finished)


def choose_and_move(game: Game[S], policy: Policy | None) -> tuple[Callable[[S, PRNGKeyArray], Array], Callable[[S, Array], S]]:
    """Make two functions over games on the last axis: one chooses an action for each game, the other plays it.

    Random play may defer forced passes, which is faster (``Game.apply_deferred``). Play by a policy never defers passes, and
    illegal actions of the policy become -1.
    """
    if policy is not None and not callable(policy):
        raise TypeError(f"policy must be a function (state, key) -> action, got {shown(policy)}")
    if not policy:
        return each(game.sample_action), each(game.apply_deferred)

    def legal_or_none(state: S, key: PRNGKeyArray) -> Array:
        action = chosen_by(policy, state, key)
        return jnp.where(game.is_legal(state, action), action, -1)

    return each(legal_or_none), each(game.apply)
