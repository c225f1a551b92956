"""The perceptron for the polyomino games, for CPUs: a hundredth of the work of a residual tower.

It reads ``PolyominoGame.encode``, which knows what each colour could play, and gives the weights of the linear features of
placements (``heuristics.Features``) in place of logits. So only the placements that a search looks at are scored, and before
anything is learned the policy is that of the heuristics.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from experiments.networks.base import Outputs, Size
from experiments.networks.layers import BFloat16Linear, ValueHead
from tilewe_jax.games.polyomino.encoding import Encoding
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.heuristics import WEIGHT_NAMES
from tilewe_jax.games.polyomino.observation import unpack_boards
from tilewe_jax.games.polyomino.pieces import PIECE_SIZES


@dataclass(frozen=True)
class LinearPolicy:
    """The interface of a network that reads encodings and gives weights of the features of placements."""

    game: PolyominoGame

    @property
    def num_logits(self) -> int:
        """Number of weights."""
        return len(WEIGHT_NAMES)

    def observe(self, state: Any, player: Int32[Array, ""]) -> Encoding:
        """The encoding of a position; ``player`` is to move."""
        del player
        return self.game.encode(state)

    def gather_logits(self, state: Any, logits: Float32[Array, "weights"], actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """The logits of actions: their features, weighted."""
        return _linear_logits(self.game, state, logits, actions)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _linear_logits(
    game: PolyominoGame, state: Any, weights: Float32[Array, "weights"], actions: Int32[Array, "k"]
) -> Float32[Array, "k"]:
    return game.linear_logits(state, actions, weights)


def _forward(game: PolyominoGame, state: Any, weights: Array, actions: Array) -> tuple[Array, Array]:
    features = game.heuristic_features(state, actions)[:, : len(WEIGHT_NAMES)]
    is_placement = (actions >= 0) & (actions < game.config.num_placements)
    return game.linear_logits(state, actions, weights), jnp.where(is_placement[:, None], features, 0.0)


def _backward(game: PolyominoGame, features: Array, cotangent: Array) -> tuple[None, Array, None]:
    return None, cotangent @ features, None


_linear_logits.defvjp(_forward, _backward)


class PolyominoMLP(eqx.Module):
    """A perceptron of the boards, pieces and numbers of legal placements of all colours."""

    boards: BFloat16Linear
    numbers: BFloat16Linear
    hidden: BFloat16Linear
    policy: BFloat16Linear
    value: ValueHead
    interface: LinearPolicy = eqx.field(static=True)

    def __init__(self, game: PolyominoGame, size: Size, key: PRNGKeyArray) -> None:
        key_boards, key_numbers, key_hidden, key_policy, key_value = jax.random.split(key, 5)
        config, width = game.config, 8 * size.channels
        numbers = config.colors * (3 * len(config.pieces) + 4)
        self.interface = LinearPolicy(game)
        self.boards = BFloat16Linear(4 * config.colors * config.cells, width, key_boards, scale=2.0)
        self.numbers = BFloat16Linear(numbers, width, key_numbers, scale=2**0.5)
        self.hidden = BFloat16Linear(width, width // 2, key_hidden, scale=2**0.5)
        self.policy = BFloat16Linear(width // 2, len(WEIGHT_NAMES), key_policy, scale=0.0)
        self.value = ValueHead(width // 2, game.num_players, key_value)

    def __call__(self, encoding: Encoding) -> Outputs:
        game, numbers = self.interface.game, _numbers(self.interface.game, encoding)
        x = jax.nn.relu(self.boards(_planes(game, encoding).ravel()) + self.numbers(numbers))
        x = jax.nn.relu(self.hidden(x))
        return Outputs(_heuristic_weights(game, encoding) + self.policy(x), *self.value(x))


def _planes(game: PolyominoGame, encoding: Encoding) -> Float32[Array, "planes size size"]:
    """The boards of an encoding."""
    boards = [encoding.cells, encoding.free, encoding.corners, encoding.reachable]
    return unpack_boards(game.config, jnp.concatenate(boards)).astype(jnp.float32)


def _numbers(game: PolyominoGame, encoding: Encoding) -> Float32[Array, "numbers"]:
    """What an encoding says beside boards, each number between 0 and about 1."""
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
        jnp.arange(config.colors) == encoding.color,
    ]
    return jnp.concatenate([number.astype(jnp.float32).ravel() for number in numbers])


def _heuristic_weights(game: PolyominoGame, encoding: Encoding) -> Float32[Array, "weights"]:
    """The weights of the heuristics in this position."""
    start, slope = np.array(list(game.heuristic_weights.values()), np.float32).T
    left = jnp.sum((encoding.hands[0] >> np.array(game.config.pieces, np.uint32)) & np.uint32(1))
    return jnp.asarray(start) + jnp.asarray(slope) * (1 - left.astype(jnp.float32) / len(game.config.pieces))
