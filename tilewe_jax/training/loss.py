"""The losses, and a step of the optimizer."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game
from tilewe_jax.networks import Model, Outputs, evaluate
from tilewe_jax.search.exported import NetworkInterface, network_interface
from tilewe_jax.training.config import LossConfig, OptimizerConfig, TrainConfig
from tilewe_jax.training.heads import NO_HEADS, Heads, make_heads
from tilewe_jax.training.replay import UNKNOWN, Positions, Replay, sample, take

BINS = 10
"""Number of bins in the calibration of outcomes."""
_FINAL_RATE = 0.05
"""Fraction of the learning rate that is left after its decay."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """A network that learns, with its optimizer."""

    model: Model
    """Weights that the optimizer updates."""
    average: Model
    """Exponential moving average of these weights."""
    accepted: Model | None
    """Weights that passed the gate last, where there is a gate."""
    optimizer: Any
    """State of the optimizer."""
    steps: Int32[Array, ""]
    """Number of steps made."""
    heads: Heads
    """Heads that only training has."""

    @property
    def acting(self) -> Model:
        """The weights that play."""
        return self.average if self.accepted is None else self.accepted


class Losses(NamedTuple):
    """Losses and metrics, means over the positions of a batch."""

    policy: Float32[Array, ""]
    """Divergence of the network's policy from the improved policy, among the candidates of the search, in nats."""
    outcome: Float32[Array, ""]
    """Divergence of the expected outcome from its target, in nats."""
    node: Float32[Array, ""]
    """Divergence of the expected outcome of a position inside of a search tree from its mean value there, in nats."""
    score: Float32[Array, ""]
    """Divergence of the expected score from the final ``Game.heuristic_value``, in nats."""
    soft_policy: Float32[Array, ""]
    """Divergence of the network's policy from the improved policy, both at ``loss.soft_policy_temperature``, in nats."""
    ownership: Float32[Array, ""]
    """Divergence of the expected owners of cells from the owners at the end of the game, a mean over the cells, in nats."""
    short_term: Float32[Array, ""]
    """Divergence of the expected values of the searches that follow from their mean, in nats."""
    entropy: Float32[Array, ""]
    """Entropy of the network's policy among the candidates, in nats."""
    agreement: Float32[Array, ""]
    """How often the network's first choice is that of the search."""
    calibration: Float32[Array, "3 BINS"]
    """Binned by the outcome that the network expects for a seat: number of seats, sum of expected and of real outcomes."""


def make_optimizer(config: OptimizerConfig) -> optax.GradientTransformation:
    """AdamW with gradient clipping, a linear warm-up and, on demand, a cosine decay; biases and gains do not decay."""
    rate = optax.linear_schedule(config.learning_rate / config.warmup_steps, config.learning_rate, config.warmup_steps)
    if config.decay_steps:
        decay = optax.cosine_decay_schedule(config.learning_rate, config.decay_steps, alpha=_FINAL_RATE)
        rate = optax.join_schedules([rate, decay], [config.warmup_steps])

    def decays(trained: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.ndim > 1, trained)

    adam = optax.adamw(rate, weight_decay=config.weight_decay, mask=decays)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def start(config: TrainConfig, game: Game[Any], model: Model) -> Learner:
    """A learner that begins with these weights."""
    accepted = model if config.evaluation.gate else None
    auxiliary = make_heads(config.loss, game, model)
    optimizer = make_optimizer(config.optimizer).init((model, auxiliary))
    return Learner(model, model, accepted, optimizer, jnp.int32(0), auxiliary)


def position_loss(
    config: LossConfig,
    game: Game[Any],
    model: Model,
    position: Positions[Any],
    key: PRNGKeyArray,
    heads: Heads = NO_HEADS,
) -> tuple[Float32[Array, ""], Losses]:
    """The loss of one position, and its parts; 0 where the outcome is not known.

    The policy is learned among the candidates alone: the search says nothing of other actions.
    """
    state, actions, node, final = position.state, position.candidates, position.node, position.final
    if config.augment and game.num_symmetries > 1:
        index = jax.random.randint(key, (), 0, game.num_symmetries, jnp.int32)
        state = game.transform(state, index)
        renamed = jnp.asarray(game.action_symmetries)[index][jnp.maximum(actions, 0)]
        actions = jnp.where(actions >= 0, renamed, -1)
        if node is not None:
            node = replace(node, state=game.transform(node.state, index))
        if final is not None:
            final = game.transform(final, index)
    interface = network_interface(game, model)
    seats, outputs = _evaluate(game, interface, model, state)

    valid = actions >= 0
    logits = jnp.where(valid, interface.gather_logits(state, outputs.logits, actions), -1e9)
    log_probs = jax.nn.log_softmax(logits)
    improved = jnp.where(valid, position.policy, 0.0)
    policy = divergence(improved, log_probs)
    soft = improved ** (1 / config.soft_policy_temperature)
    soft = soft / jnp.maximum(jnp.sum(soft), 1e-9)
    soft_policy = divergence(soft, jax.nn.log_softmax(logits / config.soft_policy_temperature))
    searched = jnp.where(position.root_value == UNKNOWN, position.outcome_target, position.root_value)
    target = (1 - config.root_value_weight) * position.outcome_target + config.root_value_weight * searched
    outcome = divergence(target[seats], jax.nn.log_softmax(outputs.outcome_logits))
    score = divergence(position.score_value[seats], jax.nn.log_softmax(outputs.score_logits))
    node_outcome = jnp.float32(0)
    if node is not None:
        node_seats, node_outputs = _evaluate(game, interface, model, node.state)
        known = node.value[0] != UNKNOWN
        value = jnp.where(known, node.value, 0.0)[node_seats]
        node_outcome = divergence(value, jax.nn.log_softmax(node_outputs.outcome_logits))
    ownership, short_term = _auxiliary_losses(game, heads, position, final, outputs.features, seats)

    expected = jax.nn.softmax(outputs.outcome_logits)
    bins = jax.nn.one_hot(jnp.minimum((expected * BINS).astype(jnp.int32), BINS - 1), BINS)
    calibration = jnp.stack([jnp.ones_like(expected), expected, position.returns[seats]]) @ bins
    agrees = jnp.argmax(logits).astype(jnp.int32) == jnp.argmax(position.policy).astype(jnp.int32)
    total = policy + config.outcome_loss_weight * (outcome + node_outcome) + config.score_loss_weight * score
    total = total + config.soft_policy_weight * soft_policy + config.ownership_loss_weight * ownership
    total = total + config.short_term_loss_weight * short_term
    parts = Losses(
        policy=policy,
        outcome=outcome,
        node=node_outcome,
        score=score,
        soft_policy=soft_policy,
        ownership=ownership,
        short_term=short_term,
        entropy=entropy(jnp.exp(log_probs)),
        agreement=agrees.astype(jnp.float32),
        calibration=calibration,
    )
    weight = (position.finished & (jnp.sum(valid, dtype=jnp.int32) > 0)).astype(jnp.float32)
    return weight * total, jax.tree.map(lambda leaf: weight * leaf, parts)


def _auxiliary_losses(
    game: Game[Any], heads: Heads, position: Positions[Any], final: Any, features: Any, seats: Int32[Array, "P"]
) -> tuple[Float32[Array, ""], Float32[Array, ""]]:
    """The losses of the owners of cells and of the short-term value; 0 without the head."""
    ownership = short_term = jnp.float32(0)
    if heads.ownership is not None:
        owners = game.ownership(final)
        relative = jnp.where(owners < 0, game.num_players, (owners - seats[0]) % game.num_players)
        log_owners = jax.nn.log_softmax(heads.ownership(features))
        known = game.is_terminal(final).astype(jnp.float32)  # of a game that was resigned the end is not known
        ownership = -known * jnp.mean(jnp.take_along_axis(log_owners, relative[:, None], axis=1))
    if heads.short_term is not None:
        log_outcome = jax.nn.log_softmax(heads.short_term(features))
        short_term = divergence(position.short_term_target[seats], log_outcome)
    return ownership, short_term


def _evaluate(game: Game[Any], interface: NetworkInterface, model: Model, state: Any) -> tuple[Int32[Array, "P"], Outputs]:
    """The seats from that of the player to move on, and the outputs, which are in their order."""
    player = game.current_player(state)
    seats = (player + jnp.arange(game.num_players, dtype=jnp.int32)) % game.num_players
    return seats, evaluate(model, interface.observe(state, player))


def learn(
    config: TrainConfig,
    game: Game[Any],
    learner: Learner,
    replay: Replay[Any],
    key: PRNGKeyArray,
    axis: str,
    devices: int,
    recorded: Positions[Any] | None = None,
) -> tuple[Learner, Losses]:
    """A step of the optimizer, each device with its part of the batch from its part of the buffer.

    Where there are positions of recorded games, ``[N, ...]``, a part of the batch is drawn from these, uniformly.
    Steps are not scanned: in a loop, XLA's CPU compiler makes the gradients of convolutions thirty times as slow.
    """
    count = config.optimizer.batch_size // devices
    from_records = 0 if recorded is None else round(config.replay.records_fraction * count)
    key_sample, key_loss = jax.random.split(jax.random.fold_in(key, lax.axis_index(axis)))
    batch = take(replay, sample(replay, key_sample, count - from_records, config.replay.surprise_fraction))
    if recorded is not None:
        drawn = jax.random.randint(jax.random.fold_in(key_sample, 1), (from_records,), 0, len(recorded.finished), jnp.int32)
        batch = jax.tree.map(lambda leaf, more: jnp.concatenate([leaf, more[drawn]]), batch, recorded)

    def loss(trained: Any) -> tuple[Array, Losses]:
        model, auxiliary = trained
        per_position = jax.vmap(partial(position_loss, config.loss, game, model, heads=auxiliary))
        total, parts = per_position(batch, jax.random.split(key_loss, count))
        return jnp.mean(total), jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), parts)

    before = learner.model, learner.heads
    grads, parts = lax.pmean(jax.grad(loss, has_aux=True)(before), axis)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        updates, optimizer = make_optimizer(config.optimizer).update(grads, learner.optimizer, before)
    model, auxiliary = optax.apply_updates(before, updates)
    # At first the average follows quickly, or it would remember the random weights for long.
    steps = learner.steps.astype(jnp.float32)
    decay = jnp.minimum(config.optimizer.ema_decay, (1 + steps) / (10 + steps))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, learner.average, model)
    return Learner(model, average, learner.accepted, optimizer, learner.steps + 1, auxiliary), parts


def divergence(target: Float32[Array, "n"], log_probs: Float32[Array, "n"]) -> Float32[Array, ""]:
    """Kullback-Leibler divergence of a distribution, given by logarithms, from a target, in nats."""
    return -jnp.sum(jnp.where(target > 0, target * log_probs, 0.0)) - entropy(target)


def entropy(policy: Float32[Array, "K"]) -> Float32[Array, ""]:
    """Entropy of a probability vector, in nats."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy))
