"""The heuristics of Santorini against the host board, which counts levels and replies slowly."""

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched, positions, rows
from tilewe_jax.games.santorini.host import SantoriniBoard

GAME = tilewe_jax.make("santorini")
BATCH = 16


def logit(board: SantoriniBoard, action: int) -> float:
    """What ``GAME.heuristic_logits`` documents, of one action."""
    after = board.after(action)
    if after.is_terminal:
        return 8.0
    own = after.workers[2:] if after.player == 1 else after.workers[:2]
    value = 8 * sum(after.height(cell) for cell in own if cell) - len(after.legal_moves)
    if any(after.height(reply.to) == 3 for reply in after.legal_moves):
        value -= 1 << 12
    return float(np.clip(value / 8, -8, 8))


def test_logits_of_actions() -> None:
    """Each logit is that of its own game and action, in a batch as alone."""
    sample = jax.jit(jax.vmap(lambda state, key: GAME.sample_actions(state, key, 6)))
    logits = jax.jit(jax.vmap(GAME.heuristic_logits))
    alone = jax.jit(GAME.heuristic_logits)
    compared = set()
    for ply, (state, _) in enumerate(positions(GAME, BATCH, seed=4)):
        if ply % 10 != 5:
            continue
        actions = sample(state, jax.random.split(jax.random.key(ply), BATCH))
        batched = np.asarray(logits(state, actions))
        np.testing.assert_array_equal(alone(rows(state, 0), actions[0]), batched[0])
        for lane in range(BATCH):
            board = GAME.host(rows(state, lane))
            for action, value in zip(np.asarray(actions[lane]).tolist(), batched[lane].tolist(), strict=True):
                if action >= 0:
                    assert value == logit(board, action)
                    compared.add(value)
    assert len(compared) > 20


@pytest.mark.parametrize("seat", [0, 1])
def test_values_of_positions(seat: int) -> None:
    """Sums to 1, is decided at the end, and prefers the seat that can climb next."""
    value = jax.jit(jax.vmap(GAME.heuristic_value))
    climbing = 0
    for ply, (state, _) in enumerate(positions(GAME, BATCH, seed=5)):
        if ply % 7:
            continue
        values = np.asarray(value(state))
        np.testing.assert_allclose(values.sum(axis=1), 1, rtol=1e-6)
        over = np.asarray(batched(GAME).is_terminal(state))
        np.testing.assert_array_equal(values[over], np.asarray(batched(GAME).returns(state))[over])
        for lane in np.flatnonzero(~over & (np.asarray(state.current_player) == seat)):
            board = GAME.host(rows(state, lane))
            if any(board.height(turn.to) == 3 for turn in board.legal_moves):
                climbing += 1
                assert values[lane, seat] > 0.999
    assert climbing
