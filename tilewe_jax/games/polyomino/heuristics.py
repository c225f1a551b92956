"""What placements, and positions, look worth at a glance: far cheaper than looking at what may follow.

Pentobi plays its random games by such signs, almost lexicographically: contest the corners of the others, with a big piece.
"""

from functools import partial, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, UInt32

from tilewe_jax.bits import popcount
from tilewe_jax.games.polyomino import rules
from tilewe_jax.games.polyomino.boards import Board, around, pick, planes, words
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.lanes import materialize

# What each of the signs of `weigh` is worth at the start, and how much more when all pieces of the mover are placed. The mean
# of what an evolution strategy (antithetic, 2,048 games a step) found in tilewe, and in duo_official, in games between players
# of the highest worth.
_WORTH_OF_MANY = ((2.55, 0.82), (0.93, 0.64), (-0.43, 0.28), (1.06, -0.67), (0.43, 0.32), (0.63, -0.61), (1.98, 0.49))
_WORTH_OF_TWO = ((2.72, 0.42), (1.13, 0.42), (-1.13, 0.59), (1.05, -0.8), (0.82, 0.05), (-0.7, -0.48), (-1.16, -0.5))
_PASS = -20.0
_POINTS = 8.0
"""Points ahead that are a logit of the share of the win."""

_CELL_ROWS = np.array([rules.pack_rows(orientation.cells) for orientation in ORIENTATIONS], np.uint32)


def heuristic_logits(config: Config, state: State, actions: Int32[Array, "k lanes"]) -> Float32[Array, "k lanes"]:
    """How good legal actions look; a pass looks worse than any placement."""
    done = popcount(np.uint32(config.full_hand) & ~pick(list(state.hands), state.current_player))
    first, more = jnp.asarray(np.array(_WORTH_OF_TWO if config.players == 2 else _WORTH_OF_MANY, np.float32).T)
    worth = first[:, None] + more[:, None] * (done.astype(jnp.float32) / len(config.pieces))[None]
    return jnp.where((actions >= 0) & (actions < config.num_placements), weigh(config, state, actions, worth), _PASS)


def weigh(
    config: Config, state: State, actions: Int32[Array, "k lanes"], worth: Float32[Array, "signs lanes"]
) -> Float32[Array, "k lanes"]:
    """The sum of the signs of placements, each times its worth.

    They are the number of cells of the piece; of corners that it opens; of open ones that it closes, by lying on them or beside
    them; of open ones of others that it covers; of cells beside such; of cells beside pieces of others; and how near to the
    middle of the board it lies, the less the fuller that is.
    """
    size, several = words(config), actions.shape
    free, corners, *others = _position(config, state)
    placement = jnp.clip(actions, 0, config.num_placements - 1)
    cells = materialize(partial(_cover, config), placement.ravel())
    blocked, diagonals = materialize(partial(_near, config), cells)

    def count(
        cells: Board, blocked: Board, diagonals: Board, free: Board, corners: Board, others: list[Board], worth: Array
    ) -> Float32[Array, "k lanes"]:
        cells, blocked, diagonals = (board.reshape(size, *several) for board in (cells, blocked, diagonals))
        free, corners = free[:, None], corners[:, None]
        boards = [
            cells,
            diagonals & free & ~blocked & ~corners,
            free & corners & blocked,
            *(cells & board[:, None] for board in others),
        ]
        counts = [jnp.sum(popcount(board), axis=0).astype(jnp.float32) for board in boards]
        terms = [count * each[None] for count, each in zip(counts, worth[:-1], strict=True)]
        total: Array = sum(terms[1:], start=terms[0])
        return total

    total = materialize(count, cells, blocked, diagonals, free, corners, others, worth)
    at = placement % config.cells % config.size, placement % config.cells // config.size
    away = jnp.maximum(*(jnp.abs((along + 1).astype(jnp.float32) - (config.size - 1) / 2) for along in at))
    plies = jnp.sum(popcount(np.uint32(config.full_hand) & ~state.hands), axis=0).astype(jnp.float32)
    return total - away * (worth[-1] * jnp.exp(-plies / (2 * config.players)))[None]


def heuristic_value(scores: Int32[Array, "players"]) -> Float32[Array, "players"]:
    """Shares of the win by the points."""
    return jax.nn.softmax(scores.astype(jnp.float32) / _POINTS)


def _position(config: Config, state: State) -> list[Board]:
    """The free cells and the corners of the mover; open corners of others, cells beside those, cells beside their pieces."""
    size, mover = words(config), state.current_player
    everyone = [jnp.full_like(mover, player) for player in range(config.players)]
    boards = [materialize(partial(planes, config), state.occupied, state.hands, player)[:2] for player in everyone]

    def of_others(of: list[Board]) -> Board:
        return reduce(jnp.bitwise_or, [jnp.where((mover == p)[None], np.uint32(0), board) for p, board in enumerate(of)])

    def gather(boards: list[tuple[Board, Board]], occupied: UInt32[Array, "players words lanes"]) -> tuple[Board, ...]:
        free, corners = (pick([board[i][:size] for board in boards], mover[None]) for i in range(2))
        return free, corners, of_others([free[:size] & corners[:size] for free, corners in boards]), of_others(list(occupied))

    free, corners, taken, pieces = materialize(gather, boards, state.occupied)
    beside = materialize(lambda *args: [around(config, board)[0][:size] for board in args], taken, pieces)
    return [free, corners, taken, *beside]


def _cover(config: Config, placement: Int32[Array, "lanes"]) -> Board:
    return rules.cover(config, placement, jnp.asarray(_CELL_ROWS)[placement // config.cells])


def _near(config: Config, cells: Board) -> tuple[Board, Board]:
    """The cells of a piece with those beside them, which it takes from its player; and those diagonal to one."""
    edges, diagonals = (board[: words(config)] for board in around(config, cells))
    return cells | edges, diagonals
