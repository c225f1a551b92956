"""The head of ownership, which only training has: it reads the features of a network, and is no part of the weights kept."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int32

from tilewe_jax.game import Game, num_owned_cells
from tilewe_jax.networks import Model, evaluate
from tilewe_jax.networks.layers import Linear
from tilewe_jax.search.exported import network_interface, observation_spec


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

    def loss(self, game: Game[Any], features: Any, final: Any, seats: Int32[Array, "P"]) -> Float32[Array, ""]:
        """Divergence from the owners in a final state, a mean over the cells; 0 where the game was resigned before its end."""
        owners = game.ownership(final)
        relative = jnp.where(owners < 0, game.num_players, (owners - seats[0]) % game.num_players)
        log_owners = jax.nn.log_softmax(self(features))
        known = game.is_terminal(final).astype(jnp.float32)
        return -known * jnp.mean(jnp.take_along_axis(log_owners, relative[:, None], axis=1))


def ownership_head(game: Game[Any], model: Model) -> OwnershipHead:
    """A new head for a network. Raises ``ValueError`` where the network gives no features for it."""
    spec = observation_spec(network_interface(game, model), game)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), spec)
    features: Any = jax.eval_shape(lambda: evaluate(model, zeros)).features
    if features is None:
        raise ValueError("loss.ownership_loss_weight needs a network that gives its features (networks.Outputs.features)")
    return OwnershipHead(game, features)
