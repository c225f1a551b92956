"""Perceptrons for the polyomino games on CPUs, with a hundredth of the operations of a residual tower.

They read ``PolyominoGame.encode``, which contains the possible placements of each colour. Their policy output is not logits but
weights: of the linear features of placements (``heuristics.Features``), or of a second perceptron of these features. Thus only
the candidates of a search are scored, and the untrained policy is that of the heuristics.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int8, Int32, PRNGKeyArray

from tilewe_jax.bits import WORD_BITS, unpack_words
from tilewe_jax.games.polyomino import heuristics
from tilewe_jax.games.polyomino.encoding import Encoding
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.heuristics import WEIGHT_NAMES, Features, PerceptronWeights
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_SIZES
from tilewe_jax.lanes import materialize, rule_per_lane
from tilewe_jax.networks.base import Outputs, Size
from tilewe_jax.networks.layers import BFloat16Linear, BinaryLinear, Linear, ValueHead

_FEATURE_SCALE = Features(
    opponent_corners_covered=0.5,
    cells_beside_opponent_corners=0.5,
    cells_near_opponent_corners=0.5,
    cells_beside_opponents=0.5,
    edges_on_opponents=0.5,
    corners_opened=0.25,
    corners_with_a_free_neighbor=0.25,
    corners_with_two_free_neighbors=0.25,
    corners_with_three_free_neighbors=0.25,
    corners_in_new_area=0.25,
    corners_beside_opponents=0.25,
    own_corners_covered=0.5,
    own_corners_wasted=0.5,
    free_cells_wasted=0.25,
    centrality=0.25,
)
"""Factors that scale the features for the perceptron to about 1. Shipped weights depend on them."""


@dataclass(frozen=True)
class LinearPolicy:
    """Interface of a network that reads encodings and outputs weights of the features of placements."""

    game: PolyominoGame

    @property
    def num_logits(self) -> int:
        """Number of weights."""
        return len(WEIGHT_NAMES)

    def initial_weights(self, key: PRNGKeyArray) -> Float32[Array, "weights"]:
        """Return the offset of an untrained network to the weights of the heuristics."""
        del key
        return jnp.zeros(self.num_logits, jnp.float32)

    def observe(self, state: Any, player: Int32[Array, ""]) -> Encoding:
        """Return the encoding of a position; ``player`` is to move."""
        del player
        return self.game.encode(state)

    def gather_logits(self, state: Any, logits: Float32[Array, "weights"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Return the logits of actions: the weighted sums of their features."""
        return _linear_logits(self.game, state, logits, actions)


@dataclass(frozen=True)
class PerceptronPolicy(LinearPolicy):
    """Interface of a network that outputs the weights of a perceptron (``heuristics.perceptron_logits``), and two board maps.

    The maps hold the logit that each cell adds to the placements that cover it, and to the placements that have it as a corner
    (``Orientation.corners``). The linear weights come first.
    """

    hidden: int = 16
    """Number of hidden units of the perceptron."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the parts of the weights: the fields of ``PerceptronWeights``, and the maps."""
        features, pieces = len(Features._fields), len(WEIGHT_NAMES) - len(Features._fields)
        perceptron = (features, self.hidden), (pieces, self.hidden), (self.hidden,)
        return (features + pieces,), *perceptron, (2, self.game.config.size, self.game.config.size)

    @property
    def num_logits(self) -> int:
        """Number of weights."""
        return sum(map(math.prod, self.shapes))

    def initial_weights(self, key: PRNGKeyArray) -> Float32[Array, "weights"]:
        """Return initial weights with different hidden units, whose contribution to the logits is 0."""
        linear, features, pieces, *rest = self.shapes
        zeros = partial(jnp.zeros, dtype=jnp.float32)
        planes = jax.random.normal(key, (features[0] + pieces[0], self.hidden), jnp.float32) / 2
        parts = zeros(linear), planes, *map(zeros, rest)
        return jnp.concatenate([part.ravel() for part in parts])

    def gather_logits(self, state: Any, logits: Float32[Array, "weights"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Return the logits of actions: the perceptron of their features, plus the maps at their cells and corners."""
        parts = jnp.split(logits, np.cumsum([math.prod(shape) for shape in self.shapes])[:-1])
        linear, features, pieces, out, maps = (part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))
        weights = PerceptronWeights(linear, features * np.array(_FEATURE_SCALE, np.float32)[:, None], pieces, out)
        return _perceptron_logits(self.game, state, weights, actions) + _map_logits(self.game, maps, actions)


def _map_logits(game: PolyominoGame, maps: Float32[Array, "2 size size"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
    """Return the sum of both maps over the cells and the corners of placements; 0 for a pass."""
    cells, size, side = game.config.cells, game.config.size, game.config.size + 2  # with a border for corners
    # Zeros follow the maps, for the sum of any start and `nowhere`.
    nowhere = 2 * side * side
    padded = jnp.append(jnp.pad(maps, ((0, 0), (1, 1), (1, 1))).ravel(), jnp.zeros(side * side, jnp.float32))
    offsets = [
        [y * side + x for x, y in orientation.cells] + [(side + y) * side + x for x, y in orientation.corners]
        for orientation in ORIENTATIONS
    ]
    longest = max(map(len, offsets))
    tables = np.array([row + [nowhere] * (longest - len(row)) for row in offsets], np.int32).T
    placement = jnp.clip(actions, 0, game.config.num_placements - 1)
    start = (placement % cells // size + 1) * side + placement % size + 1
    # One gather for each cell, with the actions innermost: XLA takes three times as long for a gather of all cells.
    looked_up = [padded.at[jnp.asarray(table)[placement // cells] + start].get(mode="promise_in_bounds") for table in tables]
    return jnp.where(game.config.is_placement(actions), sum(looked_up[1:], start=looked_up[0]), 0.0)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _linear_logits(
    game: PolyominoGame, state: Any, weights: Float32[Array, "weights"], actions: Int32[Array, "k"]
) -> Float32[Array, "k"]:
    return rule_per_lane(heuristics.linear_logits, game.config)(state, actions, weights)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _perceptron_logits(
    game: PolyominoGame, state: Any, weights: PerceptronWeights, actions: Int32[Array, "k"]
) -> Float32[Array, "k"]:
    return rule_per_lane(heuristics.perceptron_logits, game.config)(state, actions, weights)


def _dense_linear_logits(weights: Float32[Array, "weights"], features: Float32[Array, "k weights"]) -> Float32[Array, "k"]:
    return features @ weights


def _dense_perceptron_logits(weights: PerceptronWeights, features: Float32[Array, "k weights"]) -> Float32[Array, "k"]:
    hidden = jax.nn.relu(features @ jnp.concatenate([weights.features, weights.pieces]))
    return features @ weights.linear + hidden @ weights.out


def _define_gradient(function: Any, of_features: Callable[[Any, Array], Array]) -> None:
    """Define the gradient of logits with respect to the weights by a dense function of weights and features."""

    def forward(game: PolyominoGame, state: Any, weights: Any, actions: Array) -> tuple[Array, tuple[Any, Array, Array]]:
        features = game.heuristic_features(state, actions)[:, : len(WEIGHT_NAMES)]
        is_placement = game.config.is_placement(actions)
        return function(game, state, weights, actions), (weights, features, is_placement)

    def backward(game: PolyominoGame, residuals: tuple[Any, Array, Array], cotangent: Array) -> tuple[None, Any, None]:
        del game
        weights, features, is_placement = residuals
        _, pullback = jax.vjp(lambda weights: of_features(weights, features), weights)
        return None, *pullback(jnp.where(is_placement, cotangent, 0.0)), None

    function.defvjp(forward, backward)


_define_gradient(_linear_logits, _dense_linear_logits)
_define_gradient(_perceptron_logits, _dense_perceptron_logits)


class PolyominoMLP(eqx.Module):
    """Perceptron of the boards, pieces and numbers of legal placements of all colours."""

    boards: BinaryLinear
    numbers: BFloat16Linear
    hidden: BFloat16Linear
    policy: BFloat16Linear
    value: ValueHead
    interface: LinearPolicy = eqx.field(static=True)

    def __init__(self, game: PolyominoGame, size: Size, key: PRNGKeyArray, policy: type[LinearPolicy] = LinearPolicy) -> None:
        key_boards, key_numbers, key_hidden, key_policy, key_value = jax.random.split(key, 5)
        config, width = game.config, 8 * size.channels
        numbers = config.colors * (3 * len(config.pieces) + 4)
        self.interface = policy(game)
        self.boards = BinaryLinear(4 * config.colors * config.cells, width, key_boards, scale=2.0)
        self.numbers = BFloat16Linear(numbers, width, key_numbers, scale=2**0.5)
        self.hidden = BFloat16Linear(width, width // 2, key_hidden, scale=2**0.5)
        policy_layer = BFloat16Linear(width // 2, self.interface.num_logits, key_policy, scale=0.0)
        self.policy = eqx.tree_at(lambda layer: layer.bias, policy_layer, self.interface.initial_weights(key_policy))
        self.value = ValueHead(width // 2, game.num_players, key_value)

    def grown_from(self, model: Any) -> "PolyominoMLP | None":
        """Return this network with the weights of a smaller network, and the outputs of that network.

        The smaller network has fewer units, ``LinearPolicy`` as its interface, or both. Its units come first, and units that
        only this network has do not affect them (Chen et al. 2016, Net2Net). Returns ``None`` for other networks.
        """
        if not isinstance(model, PolyominoMLP) or type(model.interface) not in (LinearPolicy, type(self.interface)):
            return None

        def layers(network: PolyominoMLP) -> tuple[Linear, ...]:
            value = network.value
            return network.boards, network.numbers, network.hidden, network.policy, value.hidden, value.out

        small, large = layers(model), layers(self)
        (old, new) = (
            (boards.weight.shape[0], numbers.weight.shape[0], out.bias.shape) for boards, numbers, *_, out in (small, large)
        )
        if old != new or model.hidden.weight.shape > self.hidden.weight.shape:
            return None
        return cast(PolyominoMLP, eqx.tree_at(layers, self, tuple(map(_embed, small, large))))

    def __call__(self, encoding: Encoding) -> Outputs:
        game, numbers = self.interface.game, _numbers(self.interface.game, encoding)
        x = jax.nn.relu(self.boards(_planes(game, encoding).ravel()) + self.numbers(numbers))
        x = jax.nn.relu(self.hidden(x))
        weights = _heuristic_weights(game, encoding)
        weights = jnp.pad(weights, (0, self.interface.num_logits - len(weights)))
        return Outputs(weights + self.policy(x), *self.value(x), features=x)


def _embed(small: Linear, large: Linear) -> Linear:
    """Return ``large`` with the weights of ``small``, whose outputs do not depend on the inputs that only ``large`` has."""
    before, after = small.weight.shape
    weight = large.weight.at[:, :after].set(0).at[:before, :after].set(small.weight)
    embedded = eqx.tree_at(lambda layer: (layer.weight, layer.bias), large, (weight, large.bias.at[:after].set(small.bias)))
    return cast(Linear, embedded)


def _planes(game: PolyominoGame, encoding: Encoding) -> Int8[Array, "planes cells"]:
    """Return the boards of an encoding as planes of 0 and 1."""
    boards = jnp.concatenate([encoding.cells, encoding.free, encoding.corners, encoding.reachable])
    # Materialized, because XLA does not vectorize the loop over the bits of whole words and the selection of cells as one.
    bits = materialize(jax.vmap(partial(unpack_words, size=boards.shape[1] * WORD_BITS)), boards)
    return bits[:, : game.config.cells].astype(jnp.int8)


def _numbers(game: PolyominoGame, encoding: Encoding) -> Float32[Array, "numbers"]:
    """Return the numbers of an encoding, scaled to between 0 and about 1."""
    config = game.config
    held = (encoding.hands[:, None] >> np.array(config.pieces, np.uint32)[None]) & np.uint32(1)
    legal, points = encoding.legal.astype(jnp.float32), encoding.points.astype(jnp.float32)
    numbers = [
        held,
        encoding.legal > 0,
        jnp.log1p(legal) / 3,
        jnp.log1p(jnp.sum(legal, axis=1)) / 5,
        encoding.out,
        points / sum(PIECE_SIZES[piece] for piece in config.pieces),
        jnp.arange(config.colors, dtype=jnp.int32) == encoding.color,
    ]
    return jnp.concatenate([number.astype(jnp.float32).ravel() for number in numbers])


def _heuristic_weights(game: PolyominoGame, encoding: Encoding) -> Float32[Array, "weights"]:
    """Return the weights of the heuristics in this position."""
    start, slope = heuristics.weights(game.config)
    left = jnp.sum((encoding.hands[0] >> np.array(game.config.pieces, np.uint32)) & np.uint32(1))
    return jnp.asarray(start) + jnp.asarray(slope) * (1 - left.astype(jnp.float32) / len(game.config.pieces))
