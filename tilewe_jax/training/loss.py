"""Predictions of a network, and their loss."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game
from tilewe_jax.networks import Model, Outputs, check_outputs, evaluate
from tilewe_jax.search.exported import network_interface
from tilewe_jax.training import learner
from tilewe_jax.training.config import LossConfig, TrainConfig
from tilewe_jax.training.heads import OwnershipHead, ownership_head
from tilewe_jax.training.learner import Learner
from tilewe_jax.training.replay import UNKNOWN, Positions

BINS = 10
"""Number of bins in the calibration of outcomes."""


class Losses(NamedTuple):
    """Losses and metrics, means over the positions of a batch."""

    policy: Float32[Array, ""]
    """Divergence of the network's policy from the improved policy over the candidates of the search, in nats."""
    outcome: Float32[Array, ""]
    """Divergence of the expected outcome from its target, in nats."""
    score: Float32[Array, ""]
    """Divergence of the expected score from the final ``Game.heuristic_value``, in nats."""
    ownership: Float32[Array, ""]
    """Divergence of the expected owners of cells from the final owners, averaged over cells, in nats."""
    entropy: Float32[Array, ""]
    """Entropy of the network's policy over the candidates, in nats."""
    agreement: Float32[Array, ""]
    """Fraction of positions in which network and search prefer the same action."""
    calibration: Float32[Array, "3 BINS"]
    """In bins of the expected outcome of a seat: number of seats, sum of expected outcomes, sum of actual outcomes."""


class Prediction(NamedTuple):
    """Prediction of a network for a position and K actions; P players."""

    seats: Int32[Array, "P"]
    """Absolute seats in the order of the outputs, starting with the player to move."""
    log_probs: Float32[Array, "K"]
    """Log-probabilities over the given actions."""
    outputs: Outputs
    """All outputs of the network."""


def predict(game: Game[Any], model: Model, state: Any, actions: Int32[Array, "K"]) -> Prediction:
    """Evaluate a network on a position and actions (-1 in unused places).

    Raises ``TypeError`` or ``ValueError`` at trace time for outputs of another structure, dtype or shape.
    """
    player, interface = game.current_player(state), network_interface(game, model)
    outputs = evaluate(model, interface.observe(state, player))
    check_outputs(model, outputs, interface.num_logits, game.num_players)
    logits = jnp.where(actions >= 0, interface.gather_logits(state, outputs.logits, actions), -1e9)
    seats = (player + jnp.arange(game.num_players, dtype=jnp.int32)) % game.num_players
    return Prediction(seats, jax.nn.log_softmax(logits), outputs)


def start(config: TrainConfig, game: Game[Any], model: Model) -> Learner:
    """Create the learner of a run with initial weights."""
    head = ownership_head(game, model) if config.loss.ownership_loss_weight else None
    return learner.start(config.optimizer, model, head, gated=config.evaluation.gate is not None)


def position_loss(
    config: LossConfig,
    game: Game[Any],
    model: Model,
    position: Positions[Any],
    key: PRNGKeyArray,
    head: OwnershipHead | None = None,
) -> tuple[Float32[Array, ""], Losses]:
    """Return the loss of one position and its parts; 0 if the outcome is unknown.

    The policy loss covers only the candidates, because the search does not evaluate other actions.
    """
    state, actions, final = position.state, position.candidates, position.final
    if config.augment and game.num_symmetries > 1:
        index = jax.random.randint(key, (), 0, game.num_symmetries, jnp.int32)
        state = game.transform(state, index)
        renamed = jnp.asarray(game.action_symmetries)[index][jnp.maximum(actions, 0)]
        actions = jnp.where(actions >= 0, renamed, -1)
        final = None if final is None else game.transform(final, index)
    seats, log_probs, outputs = predict(game, model, state, actions)

    valid = actions >= 0
    policy = divergence(jnp.where(valid, position.policy, 0.0), log_probs)
    searched = jnp.where(position.root_value == UNKNOWN, position.outcome_target, position.root_value)
    target = (1 - config.root_value_weight) * position.outcome_target + config.root_value_weight * searched
    outcome = divergence(target[seats], jax.nn.log_softmax(outputs.outcome_logits))
    score = divergence(position.score_value[seats], jax.nn.log_softmax(outputs.score_logits))
    ownership = jnp.float32(0) if head is None else head.loss(game, outputs.features, final, seats)

    expected = jax.nn.softmax(outputs.outcome_logits)
    bins = jax.nn.one_hot(jnp.minimum((expected * BINS).astype(jnp.int32), BINS - 1), BINS)
    calibration = jnp.stack([jnp.ones_like(expected), expected, position.returns[seats]]) @ bins
    agrees = jnp.argmax(log_probs).astype(jnp.int32) == jnp.argmax(position.policy).astype(jnp.int32)
    total = policy + config.outcome_loss_weight * outcome + config.score_loss_weight * score
    total = total + config.ownership_loss_weight * ownership
    parts = Losses(
        policy=policy,
        outcome=outcome,
        score=score,
        ownership=ownership,
        entropy=entropy(jnp.exp(log_probs)),
        agreement=agrees.astype(jnp.float32),
        calibration=calibration,
    )
    weight = (position.finished & (jnp.sum(valid, dtype=jnp.int32) > 0)).astype(jnp.float32)
    return weight * total, jax.tree.map(lambda leaf: weight * leaf, parts)


def gradients(
    config: LossConfig, game: Game[Any], learner: Learner, batch: Positions[Any], key: PRNGKeyArray
) -> tuple[tuple[Model, Any], Losses]:
    """Return the gradients of the mean loss of a batch, ``[N, ...]``, for ``learner.update``, and the parts of the loss."""

    def loss(trained: tuple[Model, OwnershipHead | None]) -> tuple[Array, Losses]:
        model, head = trained
        keys = jax.random.split(key, len(batch.game_index))
        total, parts = jax.vmap(partial(position_loss, config, game, model, head=head))(batch, keys)
        return jnp.mean(total), jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), parts)

    return jax.grad(loss, has_aux=True)(learner.trained)  # type: ignore[no-any-return]


def divergence(target: Float32[Array, "n"], log_probs: Float32[Array, "n"]) -> Float32[Array, ""]:
    """Return the Kullback-Leibler divergence of log-probabilities from a target distribution, in nats."""
    return -jnp.sum(jnp.where(target > 0, target * log_probs, 0.0)) - entropy(target)


def entropy(policy: Float32[Array, "K"]) -> Float32[Array, ""]:
    """Return the entropy of a probability vector, in nats."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy))
