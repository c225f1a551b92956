"""The ownership head: an auxiliary head that reads the features of a network and is used in training only."""

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
    """Logits of the owner of each cell: the seats, starting with the player to move, and nobody.

    Features ``[height, width, channels]`` are read cell by cell; a vector of features gives the logits of all cells. Initial
    logits are equal.
    """

    linear: Linear
    owners: int = eqx.field(static=True)
    """Number of seats plus one."""

    def __init__(self, game: Game[Any], features: jax.ShapeDtypeStruct) -> None:
        self.owners = game.num_players + 1
        cells = 1 if len(features.shape) == 3 else num_owned_cells(game)
        self.linear = Linear(features.shape[-1], cells * self.owners, jax.random.key(0), scale=0.0)

    def __call__(self, features: Float[Array, "*features"]) -> Float32[Array, "cells owners"]:
        return self.linear(features).astype(jnp.float32).reshape(-1, self.owners)

    def loss(self, game: Game[Any], features: Any, final: Any, seats: Int32[Array, "P"]) -> Float32[Array, ""]:
        """Return the cross-entropy with the owners in a final state, averaged over cells; 0 for a resigned game."""
        owners = game.ownership(final)
        relative = jnp.where(owners < 0, game.num_players, (owners - seats[0]) % game.num_players)
        log_owners = jax.nn.log_softmax(self(features))
        known = game.is_terminal(final).astype(jnp.float32)
        return -known * jnp.mean(jnp.take_along_axis(log_owners, relative[:, None], axis=1))


def ownership_head(game: Game[Any], model: Model) -> OwnershipHead:
    """Create a head for a network. Raises ``ValueError`` if the network has no output ``features``."""
    spec = observation_spec(network_interface(game, model), game)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), spec)
    features: Any = jax.eval_shape(lambda: evaluate(model, zeros)).features
    if features is None:
        raise ValueError("loss.ownership_loss_weight needs a network with the output networks.Outputs.features")
    return OwnershipHead(game, features)
