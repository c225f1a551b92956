"""What every network is: its outputs, its size, and how it is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32


class Outputs(NamedTuple):
    """The output of a network for one position; values of P seats are relative: the observer's seat first."""

    logits: Float32[Array, "num_logits"]
    """Policy logits, see ``NetworkInterface``."""
    outcome_logits: Float32[Array, "P"]
    """Logits of the expected outcome: the softmax is each seat's expected share of the win."""
    score_logits: Float32[Array, "P"]
    """Logits of the expected ``Game.heuristic_value`` at the end of the game, which says by how much it is won."""
    features: Float[Array, "*features"] | None = None
    """What these were computed from: numbers ``[features]``, or a board ``[height, width, channels]``. Heads that only training
    has read them; ``None`` where the network has none for them."""


Model = Callable[[Any], Outputs]
"""A network with its weights: a pytree that maps the observation of one position to ``Outputs``. A model with an attribute
``interface`` reads positions in another way than ``Game.observe``, see ``search.exported.NetworkInterface``."""


@dataclass(frozen=True)
class Size:
    """The size of a network."""

    channels: int
    """Channels of the residual tower; in message passing the features of each node; a perceptron is four times as wide."""
    blocks: int
    """Residual blocks of two layers each; in message passing the number of rounds."""


SIZES = {
    "tiny": Size(16, 1),
    "nano": Size(32, 3),
    "small": Size(64, 6),
    "wide": Size(128, 3),
    "medium": Size(128, 8),
    "large": Size(192, 12),
}
"""Sizes by name. ``nano`` is for towers on CPUs, ``wide`` for perceptrons on CPUs,
``large`` the size of the strongest published network for Blokus Duo."""


def evaluate(model: Model, observation: Any, dtype: DTypeLike | None = None) -> Outputs:
    """Outputs of the network, which computes in ``dtype``, while weights and outputs are float32 everywhere.

    By default the dtype is that of the machine: float32 on CPUs, bfloat16 on accelerators.
    """
    if dtype is None:
        dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    return model(jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float32 else x, observation))


def predict(model: Model, observation: Any, score_weight: float = 0.0, dtype: DTypeLike | None = None) -> tuple[Array, Array]:
    """Policy logits and values by relative seat: a ``search.exported.Network``, once a model is bound.

    Values are expected outcomes, mixed with the expected score by ``score_weight`` between 0 and 1. For ``dtype`` see
    ``evaluate``.
    """
    outputs = evaluate(model, observation, dtype)
    values = jax.nn.softmax(outputs.outcome_logits)
    if score_weight:
        values = (1 - score_weight) * values + score_weight * jax.nn.softmax(outputs.score_logits)
    return outputs.logits, values


def num_parameters(model: Model) -> int:
    """Number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(model))
