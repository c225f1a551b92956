"""Networks for Santorini: the planes of ``reach_resnet``, and the symmetry of its logits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import positions, rows
from tilewe_jax import networks
from tilewe_jax.games.santorini.config import DIRECTIONS
from tilewe_jax.games.santorini.host import SantoriniBoard, Turn
from tilewe_jax.games.santorini.observation import ENCODED_PLANES
from tilewe_jax.search.exported import network_interface

GAME: Any = tilewe_jax.make("santorini", placement="random")
BATCH = 8


@pytest.fixture(scope="module")
def states() -> Any:
    history = [state for state, _ in positions(GAME, BATCH, seed=2)]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *history[4:40:12])


@pytest.fixture(scope="module")
def model() -> Any:
    return networks.make(GAME, "reach_resnet", "tiny", jax.random.key(0))


def free_targets(board: SantoriniBoard, worker: Any) -> set[Any]:
    around = {(worker[0] + row, worker[1] + column) for row, column in DIRECTIONS}
    inside = {cell for cell in around if min(cell) >= 0 and max(cell) < board.size and cell not in board.workers}
    return {cell for cell in inside if board.height(cell) <= min(3, board.height(worker) + 1)}


def test_planes_agree_with_the_host_board(states: Any) -> None:
    planes = np.asarray(jax.jit(jax.vmap(GAME.encode))(states)).astype(bool)
    assert planes.shape[1] == len(ENCODED_PLANES)
    for row in range(len(planes)):
        board = GAME.host(rows(states, row))
        if board.is_terminal:
            continue
        plane = dict(zip(ENCODED_PLANES, planes[row], strict=True))
        shown = {name: set(zip(*(index.tolist() for index in np.nonzero(plane[name])), strict=True)) for name in plane}
        own, others = board.workers[:2], board.workers[2:]
        if board.player == -1:
            own, others = others, own
        assert shown["own targets"] == {turn.to for turn in board.legal_moves if isinstance(turn, Turn)}
        for who, workers in (("own", own), ("other's", others)):
            targets = set.union(*(free_targets(board, worker) for worker in workers))
            assert shown[f"{who} workers"] == set(workers)
            assert shown[f"{who} targets"] == targets
            assert shown[f"{who} climbs to level 3"] == {cell for cell in targets if board.height(cell) == 3}
            assert shown[f"{who} workers on level 2"] == {cell for cell in workers if board.height(cell) == 2}
        every = {(r, c) for r in range(5) for c in range(5)}
        assert shown["free"] == {cell for cell in every - set(board.workers) if board.height(cell) < 4}
        assert shown["board"] == every


def test_swapping_workers_permutes_logits(model: Any, states: Any) -> None:
    interface = network_interface(GAME, model)
    swap = [
        index for index in range(GAME.num_symmetries) if np.array_equal(GAME.action_symmetries[index][:64], np.arange(64, 128))
    ]
    assert swap

    @jax.jit
    @jax.vmap
    def outputs(state: Any) -> Any:
        return model(interface.observe(state, state.current_player))

    @jax.jit
    @jax.vmap
    def swapped(state: Any) -> Any:
        return GAME.transform(state, swap[0])

    plain, other = outputs(states), outputs(swapped(states))
    table = GAME.action_symmetries[swap[0]]
    np.testing.assert_allclose(plain.logits, np.asarray(other.logits)[:, table], atol=1e-5)
    np.testing.assert_allclose(plain.outcome_logits, other.outcome_logits, atol=1e-5)
    assert np.ptp(np.asarray(plain.logits)) > 0.01


def test_logits_of_pairs_of_cells(model: Any, states: Any) -> None:
    """Pair logits agree with loops over the legal turns."""
    state = rows(states, 0)
    board = GAME.host(state)
    vectors = jax.random.normal(jax.random.key(1), (5, 5, 32))
    logits = np.asarray(model._pair_logits(GAME.encode(state)[:2], vectors)).ravel()
    for turn in board.legal_moves:
        assert isinstance(turn, Turn)
        expected = float(vectors[turn.to][:16] @ vectors[turn.build][16:]) / 4
        assert logits[board.action([turn.start, turn.to, turn.build])] == pytest.approx(expected, abs=1e-4)


def test_reach_resnet_rejects_placement_by_the_players() -> None:
    with pytest.raises(ValueError, match="placement=chosen"):
        networks.make(tilewe_jax.make("santorini", placement="chosen"), "reach_resnet", "tiny", jax.random.key(0))
