"""Policies with a shared program, and opponents in the variant with two colours a player."""

from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import positions
from tests.tilewe_jax.games.polyomino.reference import Board
from tilewe_jax.game import SharingPolicy
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.policies import OnePlyPolicy

GAME = tilewe_jax.make("tilewe", size=5, pieces=("O1", "I2", "L3", "O4"), players=2)
BATCH = 37


@pytest.mark.slow  # The tests of the arena share a program, too.
def test_policies_with_a_shared_program_play_like_single_ones() -> None:
    names = ["simple_search", "turtle"]
    policies = [GAME.policies()[name] for name in names]
    assert all(isinstance(policy, SharingPolicy) for policy in policies)
    alone = [jax.jit(jax.vmap(policy)) for policy in policies]
    together = jax.jit(jax.vmap(OnePlyPolicy.together(policies)))
    which = jnp.arange(BATCH, dtype=jnp.int32) % len(names)
    differing = 0
    for ply, (state, _) in enumerate(positions(GAME, BATCH)):
        keys = jax.random.split(jax.random.key(ply), BATCH)
        each = np.stack([np.asarray(policy(state, keys)) for policy in alone])
        np.testing.assert_array_equal(np.asarray(together(which, state, keys)), each[np.asarray(which), np.arange(BATCH)])
        differing += int(np.any(each != each[0], axis=0).sum())
    assert differing > BATCH


def moves_by_contact(game: PolyominoGame, board: Board, color: int) -> int:
    """Count the legal moves of a colour on sets of cells, one for each contact on an open corner."""
    corners, moves = board.corners(color), 0
    for cells in board.placements(color):
        orientation, bit = divmod(game.action_of(cells), game.config.cells)
        anchor = bit % game.config.size, bit // game.config.size
        moves += sum((anchor[0] + x, anchor[1] + y) in corners for x, y in ORIENTATIONS[orientation].contacts)
    return moves


@pytest.mark.slow
def test_the_other_own_color_is_not_an_opponent() -> None:
    game = tilewe_jax.make("classic_2", size=6, pieces=("O1", "I2", "L3", "T4"))
    policy = jax.jit(jax.vmap(game.policies()["max_move_diff"]))
    boards, compared = [Board(game.config) for _ in range(6)], 0
    for ply, (state, actions) in enumerate(positions(game, len(boards))):
        chosen = np.asarray(policy(state, jax.random.split(jax.random.key(ply), len(boards))))
        for lane, (board, action) in enumerate(zip(boards, actions.tolist(), strict=True)):
            if action < 0:
                continue
            mover, values = board.color, {}
            for cells in board.placements(mover):
                after, piece = deepcopy(board), PIECE_NAMES.index(game.piece_of(game.action_of(cells)))
                after.place(piece, cells)
                moves = [moves_by_contact(game, after, color) for color in range(4)]
                values[game.action_of(cells)] = moves[mover] - moves[mover - 1] - moves[mover - 3]
            assert values[int(chosen[lane])] == max(values.values())
            compared += min(values.values()) < max(values.values())
            board.place(PIECE_NAMES.index(game.piece_of(action)), frozenset(game.cells_of(action)))
    assert compared > 40
