"""Batches of games, of any kind: random play to the end, streams that restart, recorded games, and a stepping environment.

Batches stand first in everything that is given or taken, ``[batch, ...]``. Inside loops the lanes stand last, see ``lanes``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, PyTree

from tilewe_jax.game import Game, Policy, as_action
from tilewe_jax.lanes import some_set, while_any

S = TypeVar("S")

RESTART_SHARE = 32
"""Games last longer than this many steps, mostly, so that one round of restarts is enough in most."""

_each = partial(jax.vmap, in_axes=-1, out_axes=-1)
_batch_first = partial(jax.tree.map, lambda leaf: jnp.moveaxis(leaf, -1, 0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rollout(Generic[S]):
    """Finished games."""

    state: S
    """Final states, ``[batch, ...]``."""
    lengths: Int32[Array, "batch"]
    """Actions played."""
    scores: Int32[Array, "batch players"]
    returns: Float32[Array, "batch players"]
    refused: Int32[Array, "batch"]
    """Illegal actions that a policy chose; each left its game as it was and used up one of ``game.max_steps`` turns."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trajectory(Generic[S]):
    """Games with all that led to their ends. T is ``game.max_steps``."""

    first: S
    """Initial states, ``[batch, ...]``; with the actions they give the games again."""
    actions: Int32[Array, "batch T"]
    """What was played; -1 after the end."""
    players: Int32[Array, "batch T"]
    """Who played it; -1 after the end."""
    rollout: Rollout[S]


def rollout(game: Game[S], key: PRNGKeyArray, batch: int, policy: Policy | None = None) -> Rollout[S]:
    """Play ``batch`` games to the end; by ``policy``, or else at random.

    Games in which the policy chooses illegal actions may be unfinished in the end; see ``Rollout.refused``.
    """
    return trajectories(game, key, batch, policy).rollout  # XLA drops what only the actions need


def trajectories(game: Game[S], key: PRNGKeyArray, batch: int, policy: Policy | None = None) -> Trajectory[S]:
    """Play ``batch`` games to the end and keep every action; by ``policy``, or else at random."""
    key, first_key, now = jax.random.split(key, 3)
    first = _init(game, first_key, batch)
    choose, move = _choice(game, policy)
    lane = jnp.arange(batch)

    # The action is chosen at the end of an iteration and carried: fused with the step that uses it, XLA computes it twice.
    def play(carry: PyTree) -> PyTree:
        state, action, key, turn, lengths, refused, actions, players = carry
        key, now = jax.random.split(key)
        played = action >= 0
        if policy:
            refused = refused + (~played & ~_each(game.is_terminal)(state)).astype(jnp.int32)
        place = jnp.where(played, lengths, game.max_steps)
        actions = actions.at[place, lane].set(action, mode="drop")
        players = players.at[place, lane].set(_each(game.current_player)(state), mode="drop")
        state = move(state, action)
        action = choose(state, jax.random.split(now, batch))
        return state, action, key, turn + 1, lengths + played.astype(jnp.int32), refused, actions, players

    def any_left(carry: PyTree) -> Bool[Array, ""]:
        left = ~jnp.all(_each(game.is_terminal)(carry[0]))
        return left & (carry[3] < game.max_steps) if policy else left

    none, nothing = jnp.zeros(batch, jnp.int32), jnp.full((game.max_steps, batch), -1, jnp.int32)
    action = choose(first, jax.random.split(now, batch))
    carry = first, action, key, jnp.int32(0), none, none, nothing, nothing
    state, _, _, _, lengths, refused, actions, players = lax.while_loop(any_left, play, carry)
    scores, returns = _each(game.scores)(state), _each(game.returns)(state)
    finished = Rollout(_batch_first(state), lengths, scores.T, returns.T, refused)
    return Trajectory(_batch_first(first), actions.T, players.T, finished)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stream(Generic[S]):
    """Lanes in which one game follows another. Lanes stand last here, ``[..., lanes]``."""

    pending: S
    """States between two steps, where the next in turn may be blocked; ``positions`` gives them to the world."""
    action: Int32[Array, "lanes"]
    """The action about to be played; -1 where there is none."""
    left: Int32[Array, "lanes"]
    """Games still to finish."""
    key: PRNGKeyArray


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Played:
    """What a stream played: T steps of each lane."""

    actions: Int32[Array, "T lanes"]
    """-1 where a lane had nothing to play, or passed over a blocked player, or the policy's action was illegal."""
    ended: Bool[Array, "T lanes"]
    """Whether that action ended a game."""
    scores: Int32[Array, "players T lanes"]
    """Scores of the games that ended, else zero."""
    returns: Float32[Array, "players T lanes"]
    """Returns of the games that ended, else zero."""


def stream(
    game: Game[S], key: PRNGKeyArray, lanes: int, games: Int32[Array, "lanes"] | int, policy: Policy | None = None
) -> Stream[S]:
    """Lanes about to play ``games`` games each, one after another."""
    key, first, now = jax.random.split(key, 3)
    state = _init(game, first, lanes)
    left = jnp.broadcast_to(jnp.asarray(games, jnp.int32), (lanes,))
    choose, _ = _choice(game, policy)
    action = choose(state, jax.random.split(now, lanes))
    return Stream(state, jnp.where(left > 0, action, -1), left, key)


def positions(game: Game[S], stream: Stream[S]) -> S:
    """The games of a stream as they stand, ``[lanes, ...]``, each with somebody to move who can."""
    settled: S = _batch_first(_each(game.resolve_passes)(stream.pending))
    return settled


def play(game: Game[S], stream: Stream[S], steps: int, policy: Policy | None = None) -> tuple[Stream[S], Played]:
    """Play ``steps`` steps in every lane; a lane whose game ends starts the next one at once.

    Whoever counts games that *ended* within a span counts too many short ones. Where that matters, give every lane a number
    of games and play until all are played.
    """
    lanes = stream.action.shape[0]
    choose, move = _choice(game, policy)

    def one(stream: Stream[S], keys: tuple[PRNGKeyArray, PRNGKeyArray]) -> tuple[Stream[S], Played]:
        state = move(stream.pending, stream.action)
        ended = _each(game.is_terminal)(state) & (stream.left > 0)
        played = Played(
            stream.action,
            ended,
            jnp.where(ended[None], _each(game.scores)(state), 0),
            jnp.where(ended[None], _each(game.returns)(state), 0.0),
        )
        left = stream.left - ended.astype(jnp.int32)
        state = _restart(game, keys[0], ended & (left > 0), state)
        action = choose(state, keys[1])
        return Stream(state, jnp.where(left > 0, action, -1), left, stream.key), played

    key, fresh, now = jax.random.split(stream.key, 3)
    # All keys at once: a loop iteration of its own for each would cost more than the keys themselves. In two arrays, so that
    # the first is never made for games that start without chance.
    keys = jax.random.split(fresh, (steps, lanes)), jax.random.split(now, (steps, lanes))
    stream, played = lax.scan(one, replace(stream, key=key), keys)
    return stream, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -2), played)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Lanes(Generic[S]):
    """The games of an ``Environment``."""

    state: S
    """``[batch, ...]``"""
    steps: Int32[Array, "batch"]
    """Actions played in the present game."""
    waiting: Bool[Array, "batch"]
    """Lanes whose game is over and for which there was no fresh game yet."""
    key: PRNGKeyArray


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Transition:
    """What a step of an ``Environment`` tells."""

    player: Int32[Array, "batch"]
    """Who moved."""
    illegal: Bool[Array, "batch"]
    """The action was illegal, and the game stayed as it was."""
    terminated: Bool[Array, "batch"]
    """The step ended the game by its rules."""
    truncated: Bool[Array, "batch"]
    """The step ended the game by a cap."""
    returns: Float32[Array, "batch players"]
    """Of the games that ended with this step, else zero."""
    scores: Int32[Array, "batch players"]
    """After the step, before any reset."""
    last_observation: Float32[Array, "batch ..."]
    """What ``player`` sees after the step, before any reset."""
    observation: Float32[Array, "batch ..."]
    """What the player now to move sees, after any reset."""


@dataclass(frozen=True)
class Environment(Generic[S]):
    """Games to be stepped from outside, each restarted as soon as it is over.

    ``fresh`` is the number of new games started per step for lanes to take over; by default one a lane. Where starting a
    game is dear, fewer save time: games rarely end all at once, and a lane that finds none left waits until the next step.
    """

    game: Game[S]
    fresh: int | None = None

    def reset(self, key: PRNGKeyArray, batch: int) -> Lanes[S]:
        """``batch`` new games."""
        if batch < 1 or (self.fresh is not None and not 1 <= self.fresh <= batch):
            raise ValueError(f"batch must be positive and fresh between 1 and batch, not {batch} and {self.fresh}")
        key, first = jax.random.split(key)
        state = _batch_first(_init(self.game, first, batch))
        return Lanes(state, jnp.zeros(batch, jnp.int32), jnp.zeros(batch, jnp.bool_), key)

    def step(self, lanes: Lanes[S], action: Int32[Array, "batch"]) -> tuple[Lanes[S], Transition]:
        """Play an action in every lane. In a lane that waits for a game the action is not looked at.

        Raises ``ValueError`` or ``TypeError`` for actions of another shape or dtype than ``int32[batch]``.
        """
        game, batch = self.game, lanes.steps.shape[0]
        action = jnp.asarray(action)
        if action.shape != (batch,):
            raise ValueError(f"action must have shape ({batch},), one for each game, not {action.shape}")
        if action.dtype != jnp.int32:
            raise TypeError(f"action must be int32, not {action.dtype}")

        legal = jax.vmap(game.is_legal)(lanes.state, action)
        player = jax.vmap(game.current_player)(lanes.state)
        state = jax.vmap(game.apply)(lanes.state, jnp.where(legal, action, -1))
        over = jax.vmap(game.is_terminal)(state)
        ended = over & ~lanes.waiting
        truncated = ended & jax.vmap(game.is_truncated)(state)

        key, fresh_key = jax.random.split(lanes.key)
        restarted, taken = self._restart(fresh_key, state, over)
        transition = Transition(
            player=player,
            illegal=~legal & ~lanes.waiting,
            terminated=ended & ~truncated,
            truncated=truncated,
            returns=jnp.where(ended[:, None], jax.vmap(game.returns)(state), 0.0),
            scores=jax.vmap(game.scores)(state),
            last_observation=jax.vmap(game.observe)(state, player),
            observation=jax.vmap(lambda state: game.observe(state, game.current_player(state)))(restarted),
        )
        steps = jnp.where(taken, 0, lanes.steps + (legal & ~lanes.waiting).astype(jnp.int32))
        return Lanes(restarted, steps, over & ~taken, key), transition

    def _restart(self, key: PRNGKeyArray, state: S, over: Bool[Array, "batch"]) -> tuple[S, Bool[Array, "batch"]]:
        """New games in lanes that are over, as far as they go; and which lanes got one."""
        batch = over.shape[0]
        if self.fresh is None or self.fresh == batch:
            fresh = _batch_first(_init(self.game, key, batch))
            return jax.tree.map(lambda new, old: jnp.where(_like(over, old), new, old), fresh, state), over
        fresh = _batch_first(_init(self.game, key, self.fresh))
        lane = some_set(over, self.fresh)
        restarted = jax.tree.map(lambda old, new: old.at[lane].set(new, mode="drop"), state, fresh)
        return restarted, jnp.zeros_like(over).at[lane].set(True, mode="drop")


def over_devices(function: Callable[..., PyTree], devices: int | None = None) -> Callable[..., PyTree]:
    """``function`` on several devices at once, each with its own slice of the arguments.

    Every leaf of the arguments and of the results has a leading axis of length ``devices`` (by default all there are):

        games = over_devices(lambda key: rollout(game, key, 1024), 4)(jax.random.split(key, 4))

    Raises ``ValueError`` where there are fewer devices.
    """

    def local(*args: PyTree) -> PyTree:
        out = function(*jax.tree.map(lambda leaf: leaf[0], args))
        return jax.tree.map(lambda leaf: leaf[None], out)

    return split_over_devices(local, devices)


def split_over_devices(function: Callable[..., PyTree], devices: int | None = None, shared: int = 0) -> Callable[..., PyTree]:
    """A function of batches on several devices at once, each with its part of the batch.

    Every leaf of the arguments and of the results is ``[batch, ...]``, except that the first ``shared`` arguments are the same
    for all, like weights:

        actions = split_over_devices(jax.vmap(search), 4)(states, keys)

    Raises ``ValueError`` where there are fewer devices, and when called with a batch that cannot be divided among them.
    """
    available = jax.devices()
    count = len(available) if devices is None else devices
    if not 1 <= count <= len(available):
        raise ValueError(f"devices must be 1 to {len(available)}, the number there are, not {count}")
    spec = PartitionSpec("data")
    # check_vma: loops start from constants, which vary over the devices only from the second iteration on.
    mesh = Mesh(np.array(available[:count]), ("data",))

    def checked(*args: PyTree) -> PyTree:
        specs = (PartitionSpec(),) * shared + (spec,) * (len(args) - shared)
        mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        batch = jax.tree.leaves(args[shared:])[0].shape[0]
        if batch % count:
            raise ValueError(f"a batch of {batch} cannot be divided among {count} devices; ask for a multiple of {count}")
        return mapped(*args)

    return checked


def _choice(game: Game[S], policy: Policy | None) -> tuple[Callable[[S, PRNGKeyArray], Array], Callable[[S, Array], S]]:
    """What chooses the actions of all lanes, and what plays them.

    Random play may work off forced skips one at a time, which is faster. A policy sees no such states, and is not trusted:
    an illegal action becomes -1.
    """
    if not policy:
        return _each(game.sample_action), _each(game.apply_deferred)

    def legal_or_none(state: S, key: PRNGKeyArray) -> Array:
        action = as_action(policy(state, key))
        return jnp.where(game.is_legal(state, action), action, -1)

    return _each(legal_or_none), _each(game.apply)


def _init(game: Game[S], key: PRNGKeyArray, batch: int) -> S:
    """New games, lanes last."""
    return jax.vmap(game.init, out_axes=-1)(jax.random.split(key, batch))


def _restart(game: Game[S], keys: PRNGKeyArray, over: Bool[Array, "lanes"], state: S) -> S:
    """New games in the lanes that are over, lanes last. Where chance is in them, none is made for the other lanes."""
    if game.fixed_start:
        first: S = jax.tree.map(lambda leaf: leaf[..., None], game.init(jax.random.key(0)))
        return _where(over, first, state)
    impl = jax.random.key_impl(keys)

    def fresh(data: Array, carry: tuple[Array, S]) -> tuple[Array, S]:
        new: S = jax.vmap(game.init, out_axes=-1)(jax.random.wrap_key_data(data.T, impl=impl))
        return jnp.zeros_like(carry[0]), new

    return while_any(lambda carry: carry[0], fresh, jax.random.key_data(keys).T, (over, state), RESTART_SHARE)[1]


def _where(lanes: Bool[Array, "lanes"], new: S, old: S) -> S:
    def choose(new: Array, old: Array) -> Array:
        return jnp.where(lanes.reshape((1,) * (old.ndim - 1) + (-1,)), new, old)

    chosen: S = jax.tree.map(choose, new, old)
    return chosen


def _like(flags: Bool[Array, "batch"], leaf: Array) -> Bool[Array, "batch ..."]:
    return flags.reshape((-1,) + (1,) * (leaf.ndim - 1))
