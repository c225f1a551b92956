"""Random decisions on host positions, with the results of ``rules.sample`` and of the policy ``random`` on the device."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, UInt32

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host import geometry
from tilewe_jax.games.polyomino.movegen import growth_order
from tilewe_jax.games.polyomino.one_ply import BLOCK_SIZE, random_rank
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostDraws, uniform_below

_RANKED = 1024
"""Number of placements whose ranks one call computes."""


def host_draws(config: Config) -> HostDraws | None:
    """Return the random decisions of a variant; ``None`` for a generator that orders placements in another way."""
    if config.movegen != "bitboard":
        return None
    return HostDraws(partial(_sample, config), partial(_random, config), lambda key: jax.random.bits(key, dtype=jnp.uint32))


def _sample(config: Config, position: PolyominoPosition, word: int) -> int:
    """``rules.sample``."""
    placements = _in_order(config, position)
    rank = uniform_below(word, len(placements) + (config.voluntary_pass and bool(placements)))
    if not placements:
        return -1
    return placements[rank] if rank < len(placements) else config.num_placements


def _random(config: Config, position: PolyominoPosition, word: int) -> int:
    """``one_ply.best_placement`` without a preference: a placement with a probability proportional to its number of names."""
    placements = _in_order(config, position)
    weights = [_num_names(config, position, action) for action in placements]
    ranks = _ranks(word, np.array(weights, np.int32))
    # Ties as on the device: the first placement of a block, and the last action id of all blocks.
    blocks = [ranks[first : first + BLOCK_SIZE] for first in range(0, len(placements), BLOCK_SIZE)]
    best = [(block.max(), placements[number * BLOCK_SIZE + int(block.argmax())]) for number, block in enumerate(blocks)]
    return max(best)[1] if best else -1


def _in_order(config: Config, position: PolyominoPosition) -> list[int]:
    """Return the legal placements in the order of ``rules.nth_placement``."""
    if position.is_terminal:
        return []
    order = _order(config)

    def place(action: int) -> tuple[int, int, int]:
        orientation, anchor = divmod(action, config.cells)
        return anchor // WORD_BITS, order[orientation], anchor

    return sorted(position.position.actions(position.current_color), key=place)


@cache
def _order(config: Config) -> dict[int, int]:
    """Map each orientation in play to its place in ``rules.nth_placement``."""
    return {orientation: place for place, orientation in enumerate(growth_order(config.orientations))}


def _num_names(config: Config, position: PolyominoPosition, action: int) -> int:
    """Return the number of contacts of a placement that lie on corners, see ``contacts``."""
    orientation, anchor = position.position.placement(action)
    contacts = _contacts(config, orientation) << anchor
    return (contacts & position.position.corners[position.current_color]).bit_count()


@cache
def _contacts(config: Config, orientation: int) -> int:
    return geometry(config.size).mask(ORIENTATIONS[orientation].contacts)


def _ranks(word: int, weights: np.ndarray) -> np.ndarray:
    """Return ``one_ply.random_rank`` of placements in their order, computed on the device, because logarithms round there."""
    ranks = []
    for first in range(0, len(weights), _RANKED):
        part = np.zeros(_RANKED, np.int32)
        count = len(part[: len(weights) - first])
        part[:count] = weights[first : first + count]
        ranks.append(np.asarray(_rank_many(np.uint32(word), np.int32(first), part))[:count])
    return np.concatenate(ranks) if ranks else np.zeros(0, np.float32)


@jax.jit
def _rank_many(
    seed: UInt32[Array, ""], first: Int32[Array, ""], names: Int32[Array, "placements"]
) -> Float32[Array, "placements"]:
    return random_rank(seed, first + jnp.arange(names.shape[0], dtype=jnp.int32), names)
