"""The networks: what each game's observations and actions look like to them, in one place.

A network is a function of one observation and a pytree of its weights (equinox); ``vmap`` makes it a function of many. Boards
go through a residual convolutional trunk, and the policy head is a convolution too: 91 orientations a cell for the polyomino
games, moves times builds at the cells of the two workers for Santorini. Triominos' tiles and free cells exchange messages.
Any other game gets a multilayer perceptron.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from search.exported import observation_shape
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.games.santorini.config import NUM_TURNS
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.games.triominos import observation
from tilewe_jax.games.triominos.game import TriominosGame


class Outputs(NamedTuple):
    """What a network says of a position; P seats, from the observer's on."""

    logits: Float32[Array, "num_logits"]
    """Of the actions, see ``Game.gather_logits``."""
    win: Float32[Array, "P"]
    """Logits of the share of the win."""
    margin: Float32[Array, "P"]
    """Logits of ``Game.heuristic_value`` at the end: by how much it is won."""


@dataclass(frozen=True)
class Size:
    """How large a network is."""

    channels: int
    """Of the trunk; for Triominos of a tile or a free cell."""
    blocks: int
    """Residual blocks of two convolutions; for Triominos rounds of messages."""


SIZES = {
    "tiny": Size(16, 1),
    "nano": Size(32, 3),
    "small": Size(64, 6),
    "medium": Size(128, 8),
    "large": Size(192, 12),
}
"""``nano`` is for CPUs, ``large`` the size of the strongest published network for Blokus Duo."""


class Conv(eqx.Module):
    """A convolution of ``[height, width, channels]`` that keeps the size; channels last is what CPUs are fast at."""

    weight: Float[Array, "rows columns before after"]
    bias: Float[Array, "after"]

    def __init__(self, before: int, after: int, side: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        self.weight = _normal(key, (side, side, before, after), scale * (2 / (side * side * before)) ** 0.5)
        self.bias = jnp.zeros(after)

    def __call__(self, x: Float[Array, "height width before"]) -> Float[Array, "height width after"]:
        names = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x[None], self.weight.astype(x.dtype), (1, 1), "SAME", dimension_numbers=names)[0]
        return y + self.bias.astype(x.dtype)[None, None]


class Linear(eqx.Module):
    """``x @ weight + bias`` for rows of any number."""

    weight: Float[Array, "before after"]
    bias: Float[Array, "after"]

    def __init__(self, before: int, after: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        self.weight = _normal(key, (before, after), scale * (1 / before) ** 0.5)
        self.bias = jnp.zeros(after)

    def __call__(self, x: Float[Array, "*rows before"]) -> Float[Array, "*rows after"]:
        y = x @ self.weight.astype(x.dtype)
        return y + jnp.broadcast_to(self.bias.astype(x.dtype), y.shape)


class Scale(eqx.Module):
    """Root mean square normalisation, of all numbers of a position at once, and a gain for each channel."""

    gain: Float[Array, "channels"]

    def __init__(self, channels: int) -> None:
        self.gain = jnp.ones(channels)

    def __call__(self, x: Float[Array, "*rows channels"]) -> Float[Array, "*rows channels"]:
        size = lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32))) + 1e-6)
        return x * jnp.broadcast_to(size.astype(x.dtype) * self.gain.astype(x.dtype), x.shape)


class Block(eqx.Module):
    """Two convolutions, between which every cell is told what the whole board looks like."""

    scale: Scale
    first: Conv
    pooled: Linear
    second: Conv

    def __init__(self, channels: int, key: PRNGKeyArray) -> None:
        one, two, three = jax.random.split(key, 3)
        self.scale = Scale(channels)
        self.first = Conv(channels, channels, 3, one)
        self.pooled = Linear(2 * channels, channels, two)
        self.second = Conv(channels, channels, 3, three, scale=0.1)  # close to the identity at first

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        y = self.first(jax.nn.relu(self.scale(x)))
        y = y + self.pooled(_pool(jax.nn.relu(y)))[None, None]
        return x + self.second(jax.nn.relu(y))


class Trunk(eqx.Module):
    """Planes to ``[height, width, channels]``; planes that are constant enter as numbers."""

    enter: Conv
    told: Linear
    blocks: list[Block]
    leave: Scale
    spatial: int = eqx.field(static=True)
    """Planes that are not constant; they come first."""

    def __init__(self, planes: int, spatial: int, size: Size, key: PRNGKeyArray) -> None:
        one, two, *keys = jax.random.split(key, 2 + size.blocks)
        self.spatial = spatial
        self.enter = Conv(spatial, size.channels, 3, one)
        self.told = Linear(planes - spatial, size.channels, two)
        self.blocks = [Block(size.channels, key) for key in keys]
        self.leave = Scale(size.channels)

    def __call__(self, planes: Float[Array, "planes height width"]) -> Float[Array, "height width channels"]:
        x = self.enter(jnp.moveaxis(planes[: self.spatial], 0, -1)) + self.told(planes[self.spatial :, 0, 0])[None, None]
        for block in self.blocks:
            x = block(x)
        return jax.nn.relu(self.leave(x))


class Seats(eqx.Module):
    """The heads for win and margin: two numbers a seat from a row of features."""

    hidden: Linear
    out: Linear

    def __init__(self, features: int, players: int, key: PRNGKeyArray) -> None:
        one, two = jax.random.split(key)
        self.hidden = Linear(features, 64, one)
        self.out = Linear(64, 2 * players, two, scale=0.1)

    def __call__(self, features: Float[Array, "features"]) -> tuple[Float32[Array, "P"], Float32[Array, "P"]]:
        win, margin = self.out(jax.nn.relu(self.hidden(features))).astype(jnp.float32).reshape(2, -1)
        return win, margin


class PlacementNetwork(eqx.Module):
    """For the polyomino games: a plane of logits for each orientation, by the cell of the anchor."""

    trunk: Trunk
    place: Conv
    extra: Linear | None
    """For a voluntary pass."""
    seats: Seats

    def __init__(self, game: PolyominoGame, size: Size, key: PRNGKeyArray) -> None:
        one, two, three, four = jax.random.split(key, 4)
        planes = observation_shape(game)[0]
        self.trunk = Trunk(planes, game.num_players + 2, size, one)
        self.place = Conv(size.channels, len(ORIENTATIONS), 1, two, scale=0.1)
        self.extra = Linear(2 * size.channels, 1, three, scale=0.1) if game.config.voluntary_pass else None
        self.seats = Seats(2 * size.channels, game.num_players, four)

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        x = self.trunk(observation)
        pooled = _pool(x)
        logits = jnp.moveaxis(self.place(x), -1, 0).ravel()
        if self.extra:
            logits = jnp.concatenate([logits, self.extra(pooled)])
        return Outputs(logits.astype(jnp.float32), *self.seats(pooled))


class WorkerNetwork(eqx.Module):
    """For Santorini: moves times builds for each own worker, from the features of its cell; and cells for placing workers."""

    trunk: Trunk
    turn: Linear
    place: Conv | None
    """For placing workers, where the players do."""
    seats: Seats

    def __init__(self, game: SantoriniGame, size: Size, key: PRNGKeyArray) -> None:
        one, two, three, four = jax.random.split(key, 4)
        planes = observation_shape(game)[0]
        self.trunk = Trunk(planes, planes - 1, size, one)
        self.turn = Linear(3 * size.channels, NUM_TURNS // 2, two, scale=0.1)
        self.place = Conv(size.channels, 1, 1, three, scale=0.1) if game.num_actions > NUM_TURNS else None
        self.seats = Seats(2 * size.channels, game.num_players, four)

    def __call__(self, observation: Float[Array, "planes height width"]) -> Outputs:
        x = self.trunk(observation)
        pooled = _pool(x)
        at = jnp.einsum("whk,hkc->wc", observation[:2].astype(x.dtype), x)
        logits = self.turn(jnp.concatenate([at, jnp.broadcast_to(pooled, (2, pooled.shape[0]))], axis=1)).ravel()
        if self.place:
            logits = jnp.concatenate([logits, self.place(x).ravel()])
        return Outputs(logits.astype(jnp.float32), *self.seats(pooled))


class TileNetwork(eqx.Module):
    """For Triominos: messages between the tiles and the free cells where they would fit.

    A free cell and the number that its free corner is to get (an entry) name one tile. So entries are where the two meet: each
    hears of its cell and its tile, and tells both of them what it makes of that.
    """

    enter: dict[str, Linear]
    rounds: list["Exchange"]
    entry: Linear
    begin: Linear
    other: Linear
    seats: Seats
    game: TriominosGame = eqx.field(static=True)

    def __init__(self, game: TriominosGame, size: Size, key: PRNGKeyArray) -> None:
        enter, rounds, entry, begin, other, seats = jax.random.split(key, 6)
        width, blocks = size.channels, observation.sizes(game.config)
        self.game = game
        self.enter = {
            name: Linear(columns, width, key)
            for (name, (_, columns)), key in zip(blocks.items(), jax.random.split(enter, len(blocks)), strict=True)
        }
        self.rounds = [Exchange(width, game.config.numbers, key) for key in jax.random.split(rounds, size.blocks)]
        self.entry = Linear(width, 1, entry, scale=0.1)
        self.begin = Linear(width, 1, begin, scale=0.1)
        self.other = Linear(width, 2, other, scale=0.1)
        self.seats = Seats(width, game.num_players, seats)

    def __call__(self, seen: Float[Array, "size"]) -> Outputs:
        parts = observation.split(self.game.config, seen)
        tile, fits = observation.tiles_of_slots(self.game.config, parts["slots"])
        own = fits & (parts["tiles"][:, 0] > 0)[tile]
        rows = {name: jax.nn.relu(self.enter[name](part)) for name, part in parts.items()}
        tiles, slots, rest = rows["tiles"], rows["slots"], rows["rest"][0]
        entries = jnp.zeros((*tile.shape, slots.shape[1]), seen.dtype)
        for exchange in self.rounds:
            tiles, slots, rest, entries = exchange(tiles, slots, rest, tile, fits, own)
        logits = [self.entry(entries)[..., 0].ravel(), self.begin(tiles)[:, 0], self.other(rest)]
        return Outputs(jnp.concatenate(logits).astype(jnp.float32), *self.seats(rest))


class Exchange(eqx.Module):
    """A round of messages."""

    from_tile: Linear
    from_slot: Linear
    from_rest: Linear
    numbers: Float[Array, "numbers width"]
    to_tile: Linear
    to_slot: Linear
    to_rest: Linear
    scales: list[Scale]

    def __init__(self, width: int, numbers: int, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 7)
        self.from_tile, self.from_slot, self.from_rest = (Linear(width, width, key) for key in keys[:3])
        self.numbers = _normal(keys[3], (numbers, width), 0.3)
        self.to_tile, self.to_slot = (Linear(width, width, key, scale=0.5) for key in keys[4:6])
        self.to_rest = Linear(5 * width, width, keys[6], scale=0.5)
        self.scales = [Scale(width) for _ in range(3)]

    def __call__(
        self,
        tiles: Float[Array, "N width"],
        slots: Float[Array, "S width"],
        rest: Float[Array, "width"],
        tile: Int[Array, "S numbers"],
        fits: Bool[Array, "S numbers"],
        own: Bool[Array, "S numbers"],
    ) -> tuple[Float[Array, "N width"], Float[Array, "S width"], Float[Array, "width"], Float[Array, "S numbers width"]]:
        """Tiles, slots and the rest after it, and the entries; ``own`` are those that fit with a tile of the own tray."""
        hears = self.from_tile(tiles)[tile] + self.from_slot(slots)[:, None]
        entries = jax.nn.relu(hears + self.numbers.astype(hears.dtype)[None] + self.from_rest(rest)[None, None])
        told = jnp.where(fits[..., None], entries, 0)
        playable = jnp.where(own[..., None], entries, 0)
        pooled = [
            *(jnp.mean(rows, axis=0) for rows in (tiles, slots)),
            jnp.sum(playable, axis=(0, 1)) / 8,
            jnp.max(playable, axis=(0, 1)),
            rest,
        ]
        return (
            tiles + jax.nn.relu(self.to_tile(self.scales[0](tiles.at[tile].add(told)))),
            slots + jax.nn.relu(self.to_slot(self.scales[1](slots + jnp.sum(told, axis=1)))),
            rest + jax.nn.relu(self.to_rest(jnp.concatenate(pooled))),
            entries,
        )


class FlatNetwork(eqx.Module):
    """For any other game: a residual perceptron of all numbers of the observation."""

    enter: Linear
    blocks: list[Linear]
    policy: Linear
    seats: Seats

    def __init__(self, game: Game[Any], size: Size, key: PRNGKeyArray) -> None:
        one, two, three, four = jax.random.split(key, 4)
        width = 4 * size.channels
        self.enter = Linear(int(np.prod(observation_shape(game))), width, one)
        self.blocks = [Linear(width, width, key) for key in jax.random.split(two, 2 * size.blocks)]
        self.policy = Linear(width, game.num_logits, three, scale=0.1)
        self.seats = Seats(width, game.num_players, four)

    def __call__(self, observation: Float[Array, "..."]) -> Outputs:
        x = jax.nn.relu(self.enter(observation.ravel()))
        for block in self.blocks:
            x = x + jax.nn.relu(block(x))
        return Outputs(self.policy(x).astype(jnp.float32), *self.seats(x))


Model = Callable[[Array], Outputs]
"""A network with its weights: a pytree that maps an observation to ``Outputs``."""

_KINDS: dict[type[Game[Any]], Callable[..., Model]] = {
    PolyominoGame: PlacementNetwork,
    SantoriniGame: WorkerNetwork,
    TriominosGame: TileNetwork,
}


def make(game: Game[Any], size: str, key: PRNGKeyArray) -> Model:
    """A network for a game with random weights. Raises ``ValueError`` for a size that is not among ``SIZES``."""
    if size not in SIZES:
        raise ValueError(f"network must be one of {', '.join(SIZES)}, not {size!r}")
    model: Model = _KINDS.get(type(game), FlatNetwork)(game, SIZES[size], key)
    outputs = jax.eval_shape(model, jax.ShapeDtypeStruct(observation_shape(game), jnp.float32))
    wanted = (game.num_logits,), (game.num_players,), (game.num_players,)
    if tuple(leaf.shape for leaf in outputs) != wanted:
        raise ValueError(f"the network gives {[leaf.shape for leaf in outputs]}; {game.id} needs {list(wanted)}")
    return model


def ask(model: Model, observation: Array) -> Outputs:
    """What a network says; on accelerators it works in bfloat16, its outputs and its weights are float32 everywhere."""
    return model(observation if jax.default_backend() == "cpu" else observation.astype(jnp.bfloat16))


def predict(model: Model, observation: Array, margin: float = 0.0) -> tuple[Array, Array]:
    """Logits and shares by seat from the mover's on: a ``search.exported.Network``, once a model is given.

    ``margin`` is the weight of by how much, and not only whether, a game is won.
    """
    outputs = ask(model, observation)
    shares = jax.nn.softmax(outputs.win)
    if margin:
        shares = (1 - margin) * shares + margin * jax.nn.softmax(outputs.margin)
    return outputs.logits, shares


def parameters(model: Model) -> int:
    """Number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(model))


def _pool(x: Float[Array, "height width channels"]) -> Float[Array, "2*channels"]:
    """The mean and the maximum of each channel."""
    return jnp.concatenate([jnp.mean(x, axis=(0, 1)), jnp.max(x, axis=(0, 1))])


def _normal(key: PRNGKeyArray, shape: tuple[int, ...], deviation: float) -> Array:
    return deviation * jax.random.normal(key, shape)
