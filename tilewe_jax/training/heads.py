"""Heads that only training has: they read the features of a network, and are no part of the weights that are kept."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from tilewe_jax.game import Game, num_owned_cells
from tilewe_jax.networks import Model, evaluate
from tilewe_jax.networks.layers import Linear
from tilewe_jax.search.exported import network_interface, observation_spec
from tilewe_jax.training.config import LossConfig


class OwnershipHead(eqx.Module):
    """Logits of the owner of each cell: seats from that of the player to move on, and nobody.

    Of a board of features each cell's are read, else all features for every cell. It begins with equal logits.
    """

    linear: Linear
    owners: int = eqx.field(static=True)
    """Number of seats, and one more."""

    def __init__(self, game: Game[Any], features: jax.ShapeDtypeStruct) -> None:
        self.owners = game.num_players + 1
        cells = 1 if len(features.shape) == 3 else num_owned_cells(game)
        self.linear = Linear(features.shape[-1], cells * self.owners, jax.random.key(0), scale=0.0)

    def __call__(self, features: Float[Array, "*features"]) -> Float32[Array, "cells owners"]:
        return self.linear(features).astype(jnp.float32).reshape(-1, self.owners)


class ShortTermHead(eqx.Module):
    """Logits of the outcome as searches see it some moves later, by seat from that of the player to move on.

    A board of features is averaged over its cells. It begins with equal logits.
    """

    linear: Linear

    def __init__(self, game: Game[Any], features: jax.ShapeDtypeStruct) -> None:
        self.linear = Linear(features.shape[-1], game.num_players, jax.random.key(0), scale=0.0)

    def __call__(self, features: Float[Array, "*features"]) -> Float32[Array, "P"]:
        return self.linear(jnp.mean(features, axis=tuple(range(features.ndim - 1)))).astype(jnp.float32)


class Heads(NamedTuple):
    """The heads of a run; ``None`` for what it does not learn."""

    ownership: OwnershipHead | None = None
    short_term: ShortTermHead | None = None


NO_HEADS = Heads()


def make_heads(config: LossConfig, game: Game[Any], model: Model) -> Heads:
    """The heads that these losses need. Raises ``ValueError`` where the network gives no features for them."""
    owners, short_term = config.ownership_loss_weight > 0, config.short_term_loss_weight > 0
    if not (owners or short_term):
        return NO_HEADS
    spec = observation_spec(network_interface(game, model), game)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), spec)
    features: Any = jax.eval_shape(lambda: evaluate(model, zeros)).features
    if features is None:
        name = "ownership" if owners else "short_term"
        raise ValueError(f"loss.{name}_loss_weight needs a network that gives its features (networks.Outputs.features)")
    return Heads(OwnershipHead(game, features) if owners else None, ShortTermHead(game, features) if short_term else None)
