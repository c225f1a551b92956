"""A network that learns, and the steps of its optimizer; of self-play, imitation and policy gradients alike."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int32

from tilewe_jax.networks import Model
from tilewe_jax.training.config import OptimizerConfig

_FINAL_RATE = 0.05
"""Fraction of the learning rate that is left after its decay."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """A network that learns, with its optimizer."""

    model: Model
    """Weights that the optimizer updates."""
    auxiliary: Any
    """A pytree of weights that learns with the model and is not kept with it, such as a head or a critic."""
    average: Model
    """Exponential moving average of the weights of the model."""
    accepted: Model | None
    """Weights that passed the gate last, where there is a gate."""
    optimizer: Any
    """State of the optimizer."""
    steps: Int32[Array, ""]
    """Number of steps made."""

    @property
    def trained(self) -> tuple[Model, Any]:
        """All that the optimizer updates, of which gradients are taken."""
        return self.model, self.auxiliary

    @property
    def acting(self) -> Model:
        """The weights that play."""
        return self.average if self.accepted is None else self.accepted


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


def start(config: OptimizerConfig, model: Model, auxiliary: Any = None, gated: bool = False) -> Learner:
    """A learner that begins with these weights."""
    state = make_optimizer(config).init((model, auxiliary))
    return Learner(model, auxiliary, model, model if gated else None, state, jnp.int32(0))


def update(config: OptimizerConfig, learner: Learner, grads: tuple[Model, Any]) -> Learner:
    """A step of the optimizer by the gradients of ``learner.trained``."""
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        updates, optimizer = make_optimizer(config).update(grads, learner.optimizer, learner.trained)
    model, auxiliary = optax.apply_updates(learner.trained, updates)
    # At first the average follows quickly, or it would remember the random weights for long.
    steps = learner.steps.astype(jnp.float32)
    decay = jnp.minimum(config.ema_decay, (1 + steps) / (10 + steps))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, learner.average, model)
    after = learner.steps + 1
    return replace(learner, model=model, auxiliary=auxiliary, average=average, optimizer=optimizer, steps=after)
