"""Network, optimizer and moving average, and their update, for self-play and imitation alike."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int32

from tilewe_jax.networks import Model
from tilewe_jax.training.config import OptimizerConfig

_FINAL_RATE = 0.05
"""Final learning rate after the decay, as a fraction of its maximum."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """A network in training, with its optimizer."""

    model: Model
    """Weights that the optimizer updates."""
    auxiliary: Any
    """Pytree of further weights that are trained but not saved with the model, such as an auxiliary head."""
    average: Model
    """Exponential moving average of the weights of the model."""
    accepted: Model | None
    """Weights that passed the gate last; ``None`` without a gate."""
    optimizer: Any
    """State of the optimizer."""
    steps: Int32[Array, ""]
    """Number of optimizer steps."""

    @property
    def trained(self) -> tuple[Model, Any]:
        """All weights that the optimizer updates."""
        return self.model, self.auxiliary

    @property
    def acting(self) -> Model:
        """Parameters used for self-play: ``accepted`` with a gate, otherwise the moving average."""
        return self.average if self.accepted is None else self.accepted


def make_optimizer(config: OptimizerConfig) -> optax.GradientTransformation:
    """Create AdamW with gradient clipping, linear warm-up and optional cosine decay; no weight decay on biases and gains."""
    rate = optax.linear_schedule(config.learning_rate / config.warmup_steps, config.learning_rate, config.warmup_steps)
    if config.decay_steps:
        decay = optax.cosine_decay_schedule(config.learning_rate, config.decay_steps, alpha=_FINAL_RATE)
        rate = optax.join_schedules([rate, decay], [config.warmup_steps])

    def decays(trained: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.ndim > 1, trained)

    adam = optax.adamw(rate, weight_decay=config.weight_decay, mask=decays)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def start(config: OptimizerConfig, model: Model, auxiliary: Any = None, gated: bool = False) -> Learner:
    """Create a learner with initial weights."""
    state = make_optimizer(config).init((model, auxiliary))
    return Learner(model, auxiliary, model, model if gated else None, state, jnp.int32(0))


def update(config: OptimizerConfig, learner: Learner, grads: tuple[Model, Any]) -> Learner:
    """Apply an optimizer step with the gradients of ``learner.trained``."""
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        updates, optimizer = make_optimizer(config).update(grads, learner.optimizer, learner.trained)
    model, auxiliary = optax.apply_updates(learner.trained, updates)
    # A smaller decay at the start removes the random initial weights from the average.
    steps = learner.steps.astype(jnp.float32)
    decay = jnp.minimum(config.ema_decay, (1 + steps) / (10 + steps))
    average = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, learner.average, model)
    after = learner.steps + 1
    return replace(learner, model=model, auxiliary=auxiliary, average=average, optimizer=optimizer, steps=after)
