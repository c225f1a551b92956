"""Message-passing network for Triominos."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tilewe_jax.games.triominos import observation
from tilewe_jax.games.triominos.game import TriominosGame
from tilewe_jax.networks.base import Outputs, Size
from tilewe_jax.networks.layers import Linear, RMSNorm, ValueHead, normal


class TriominosMessagePassing(eqx.Module):
    """Message passing on the bipartite graph of tiles and free cells ("slots").

    A slot and a number for its free corner determine a tile. This pair is an edge of the graph, and an action. Each edge
    receives messages from its slot and its tile, and sends messages to both.
    """

    stem: dict[str, Linear]
    rounds: list["MessagePassing"]
    place: Linear
    first_tile: Linear
    draw_or_pass: Linear
    value: ValueHead
    game: TriominosGame = eqx.field(static=True)

    def __init__(self, game: TriominosGame, size: Size, key: PRNGKeyArray) -> None:
        key_stem, key_rounds, key_place, key_first, key_draw, key_value = jax.random.split(key, 6)
        width, blocks = size.channels, observation.sizes(game.config)
        self.game = game
        self.stem = {
            name: Linear(columns, width, key)
            for (name, (_, columns)), key in zip(blocks.items(), jax.random.split(key_stem, len(blocks)), strict=True)
        }
        self.rounds = [MessagePassing(width, game.config.numbers, key) for key in jax.random.split(key_rounds, size.blocks)]
        self.place = Linear(width, 1, key_place, scale=0.1)
        self.first_tile = Linear(width, 1, key_first, scale=0.1)
        self.draw_or_pass = Linear(width, 2, key_draw, scale=0.1)
        self.value = ValueHead(width, game.num_players, key_value)

    def __call__(self, observed: Float[Array, "size"]) -> Outputs:
        parts = observation.split(self.game.config, observed)
        tile, fits = observation.tiles_of_slots(self.game.config, parts["slots"])
        own = fits & (parts["tiles"][:, 0] > 0)[tile]
        rows = {name: jax.nn.relu(self.stem[name](part)) for name, part in parts.items()}
        tiles, slots, global_features = rows["tiles"], rows["slots"], rows["rest"][0]
        edges = jnp.zeros((*tile.shape, slots.shape[1]), observed.dtype)
        for message_passing in self.rounds:
            tiles, slots, global_features, edges = message_passing(tiles, slots, global_features, tile, fits, own)
        logits = [self.place(edges)[..., 0].ravel(), self.first_tile(tiles)[:, 0], self.draw_or_pass(global_features)]
        return Outputs(jnp.concatenate(logits).astype(jnp.float32), *self.value(global_features))


class MessagePassing(eqx.Module):
    """One round of message passing, which computes edges from their ends, and updates tiles, slots and global features."""

    from_tile: Linear
    from_slot: Linear
    from_global: Linear
    numbers: Float[Array, "numbers width"]
    to_tile: Linear
    to_slot: Linear
    to_global: Linear
    norms: list[RMSNorm]

    def __init__(self, width: int, numbers: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 7)
        self.from_tile, self.from_slot, self.from_global = (Linear(width, width, key) for key in keys[:3])
        self.numbers = normal(keys[3], (numbers, width), 0.3)
        self.to_tile, self.to_slot = (Linear(width, width, key, scale=0.5) for key in keys[4:6])
        self.to_global = Linear(5 * width, width, keys[6], scale=0.5)
        self.norms = [RMSNorm(width) for _ in range(3)]

    def __call__(
        self,
        tiles: Float[Array, "N width"],
        slots: Float[Array, "S width"],
        global_features: Float[Array, "width"],
        tile: Int[Array, "S numbers"],
        fits: Bool[Array, "S numbers"],
        own: Bool[Array, "S numbers"],
    ) -> tuple[Float[Array, "N width"], Float[Array, "S width"], Float[Array, "width"], Float[Array, "S numbers width"]]:
        """Return tiles, slots, global features and edges after the round.

        ``tile`` is the tile of each edge, ``fits`` masks the edges that exist, and ``own`` those with a tile of the own tray.
        """
        ends = self.from_tile(tiles)[tile] + self.from_slot(slots)[:, None]
        edges = jax.nn.relu(ends + self.numbers.astype(ends.dtype)[None] + self.from_global(global_features)[None, None])
        messages = jnp.where(fits[..., None], edges, 0)
        playable = jnp.where(own[..., None], edges, 0)
        pooled = [
            *(jnp.mean(rows, axis=0) for rows in (tiles, slots)),
            jnp.sum(playable, axis=(0, 1)) / 8,
            jnp.max(playable, axis=(0, 1)),
            global_features,
        ]
        return (
            tiles + jax.nn.relu(self.to_tile(self.norms[0](tiles.at[tile].add(messages)))),
            slots + jax.nn.relu(self.to_slot(self.norms[1](slots + jnp.sum(messages, axis=1)))),
            global_features + jax.nn.relu(self.to_global(jnp.concatenate(pooled))),
            edges,
        )
