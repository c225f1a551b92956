"""Outputs, sizes and evaluation of networks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32

from tilewe_jax.utils.boundaries import array, check_result, name_of


class Outputs(NamedTuple):
    """Outputs of a network for one position. Values of the P seats are relative: the observer's seat comes first."""

    logits: Float32[Array, "num_logits"]
    """Policy logits, see ``NetworkInterface``."""
    outcome_logits: Float32[Array, "P"]
    """Logits of the expected outcome: the softmax is the win rate of each seat, ties divided."""
    score_logits: Float32[Array, "P"]
    """Logits of the expected ``Game.heuristic_value`` at the end of the game, which measures the margin of the win."""
    features: Float[Array, "*features"] | None = None
    """Hidden features for auxiliary heads in training: ``[features]`` or ``[height, width, channels]``; ``None`` if the network
    does not support such heads."""


Model = Callable[[Any], Outputs]
"""A network with its weights: a pytree that maps the observation of one position to ``Outputs``. An attribute ``interface``
replaces ``Game.observe``, see ``search.exported.NetworkInterface``."""


@dataclass(frozen=True)
class Size:
    """Size of a network."""

    channels: int
    """Channels of a residual tower, features of a node in message passing, or a quarter of the width of a perceptron."""
    blocks: int
    """Number of residual blocks, or of rounds of message passing."""


SIZES = {
    "tiny": Size(16, 1),
    "nano": Size(32, 3),
    "small": Size(64, 6),
    "wide": Size(128, 3),
    "medium": Size(128, 8),
    "large": Size(192, 12),
}
"""Sizes by name: ``nano`` for towers on CPUs, ``wide`` for perceptrons on CPUs, ``large`` as in the strongest published network
for Blokus Duo."""


def evaluate(model: Model, observation: Any, dtype: DTypeLike | None = None) -> Outputs:
    """Evaluate a network that computes in ``dtype``; weights and outputs are float32.

    The default dtype is float32 on CPUs and bfloat16 on accelerators.
    """
    if dtype is None:
        dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    return model(jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float32 else x, observation))


def predict(model: Model, observation: Any, score_weight: float = 0.0, dtype: DTypeLike | None = None) -> tuple[Array, Array]:
    """Return policy logits and values by relative seat; with a bound model this is a ``search.exported.Network``.

    Values are expected outcomes, mixed with the expected score by ``score_weight`` in [0, 1]. For ``dtype`` see ``evaluate``.
    """
    outputs = evaluate(model, observation, dtype)
    values = jax.nn.softmax(outputs.outcome_logits)
    if score_weight:
        values = (1 - score_weight) * values + score_weight * jax.nn.softmax(outputs.score_logits)
    return outputs.logits, values


def check_outputs(model: Model, outputs: Any, num_logits: int, num_players: int) -> None:
    """Check the outputs of a network at trace time.

    Raises ``TypeError`` for another type or dtype, and ``ValueError`` for another shape.
    """
    if not isinstance(outputs, Outputs):
        raise TypeError(f"result of the network {name_of(model)}: expected networks.Outputs, got {type(outputs).__name__}")
    seats = array(jnp.float32, num_players)
    expected = Outputs(array(jnp.float32, num_logits), seats, seats)  # type: ignore[arg-type]
    check_result("network", model, outputs._replace(features=None), expected)


def num_parameters(model: Model) -> int:
    """Return the number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(model))
