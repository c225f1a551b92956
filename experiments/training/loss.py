"""What is learned from positions: the losses, and a round of steps of the optimiser."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from experiments.config import Config
from experiments.networks import Model, ask
from experiments.training.replay import UNKNOWN, Positions, Replay, sample, take
from tilewe_jax.game import Game

BINS = 10
"""Of the calibration of win shares."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """A network that learns."""

    model: Model
    average: Model
    """The moving average of its weights."""
    passed: Model | None
    """What passed the gate last, where there is one."""
    optimiser: Any
    steps: Int32[Array, ""]

    @property
    def plays(self) -> Model:
        """The weights that play."""
        return self.average if self.passed is None else self.passed


class Losses(NamedTuple):
    """Means over the positions of a batch."""

    policy: Float32[Array, ""]
    """Cross entropy of the improved policy, among the candidates of the search, less the entropy of that policy."""
    win: Float32[Array, ""]
    """Cross entropy of the share of the win, less that of the target."""
    margin: Float32[Array, ""]
    """Likewise of the final estimate."""
    entropy: Float32[Array, ""]
    """Of the network's policy among the candidates."""
    agreement: Float32[Array, ""]
    """How often the network's first choice is that of the search."""
    calibration: Float32[Array, "3 BINS"]
    """By the share of the win that the network gives a seat: how many seats, their shares as given, and as they were."""


def optimiser(config: Config) -> optax.GradientTransformation:
    """AdamW with a warm-up; biases and gains do not decay."""
    rate = optax.linear_schedule(config.learning_rate / config.warmup, config.learning_rate, config.warmup)

    def decays(model: Model) -> Any:
        return jax.tree.map(lambda leaf: leaf.ndim > 1, model)

    adam = optax.adamw(rate, weight_decay=config.weight_decay, mask=decays)
    return optax.chain(optax.clip_by_global_norm(config.clip), adam)


def start(config: Config, model: Model) -> Learner:
    """A learner that begins with these weights."""
    return Learner(model, model, model if config.gate else None, optimiser(config).init(model), jnp.int32(0))


def losses(
    config: Config, game: Game[Any], model: Model, position: Positions[Any], key: PRNGKeyArray
) -> tuple[Float32[Array, ""], Losses]:
    """The loss of one position, and what it is made of.

    The policy learns among the candidates alone: of the others the search says nothing.
    """
    state, actions = position.state, position.actions
    if config.augment and game.num_symmetries > 1:
        index = jax.random.randint(key, (), 0, game.num_symmetries)
        state = game.transform(state, index)
        renamed = jnp.asarray(game.action_symmetries)[index][jnp.maximum(actions, 0)]
        actions = jnp.where(actions >= 0, renamed, -1)
    player = game.current_player(state)
    outputs = ask(model, game.observe(state, player))

    there = actions >= 0
    logits = jnp.where(there, game.gather_logits(state, outputs.logits, actions), -1e9)
    guess = jax.nn.log_softmax(logits)
    policy = -jnp.sum(jnp.where(there, position.policy * guess, 0.0)) - entropy(position.policy)
    seats = (player + jnp.arange(game.num_players)) % game.num_players  # the network counts from the mover
    searched = jnp.where(position.values == UNKNOWN, position.returns, position.values)
    shares = ((1 - config.root_share) * position.returns + config.root_share * searched)[seats]
    win = -jnp.sum(shares * jax.nn.log_softmax(outputs.win)) - entropy(shares)
    final = position.margin[seats]
    margin = -jnp.sum(final * jax.nn.log_softmax(outputs.margin)) - entropy(final)

    given = jax.nn.softmax(outputs.win)
    bins = jax.nn.one_hot(jnp.minimum((given * BINS).astype(jnp.int32), BINS - 1), BINS)
    calibration = jnp.stack([jnp.ones_like(given), given, position.returns[seats]]) @ bins
    agrees = jnp.argmax(logits) == jnp.argmax(position.policy)
    total = policy + config.win_weight * win + config.margin_weight * margin
    parts = Losses(policy, win, margin, entropy(jnp.exp(guess)), agrees.astype(jnp.float32), calibration)
    counts = (position.known & (jnp.sum(there) > 0)).astype(jnp.float32)
    return counts * total, jax.tree.map(lambda leaf: counts * leaf, parts)


def learn(
    config: Config, game: Game[Any], learner: Learner, replay: Replay[Any], key: PRNGKeyArray, axis: str, devices: int
) -> tuple[Learner, Losses]:
    """A step of the optimiser, each device with its part of the batch from its part of the buffer.

    Steps are not scanned: in a loop, XLA's CPU compiler makes the gradients of convolutions thirty times as slow.
    """
    count = config.batch // devices
    draw, turn = jax.random.split(jax.random.fold_in(key, lax.axis_index(axis)))
    batch = take(replay, sample(replay, draw, count, config.surprise))

    def loss(model: Model) -> tuple[Array, Losses]:
        total, parts = jax.vmap(partial(losses, config, game, model))(batch, jax.random.split(turn, count))
        return jnp.mean(total), jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), parts)

    grads, parts = lax.pmean(jax.grad(loss, has_aux=True)(learner.model), axis)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        changes, state = optimiser(config).update(grads, learner.optimiser, learner.model)
    model = optax.apply_updates(learner.model, changes)
    # At first the average follows quickly, or it would remember the random weights for long.
    done = learner.steps.astype(jnp.float32)
    decay = jnp.minimum(config.ema, (1 + done) / (10 + done))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, learner.average, model)
    return Learner(model, average, learner.passed, state, learner.steps + 1), parts


def entropy(policy: Float32[Array, "K"]) -> Float32[Array, ""]:
    """In nats."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy))
