"""The heuristics of Santorini against features counted on the host board."""

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched, positions, rows
from tilewe_jax.games.santorini.host import SantoriniBoard, Turn
from tilewe_jax.games.santorini.host_heuristics import LOGIT_WEIGHTS

GAME = tilewe_jax.make("santorini")
BATCH = 16


def features(board: SantoriniBoard, action: int) -> dict[str, float]:
    """The ``LOGIT_FEATURES`` of an action."""
    after = board.after(action)
    own, opponent = after.workers[2:], after.workers[:2]
    if after.player == -1:
        own, opponent = opponent, own
    values: dict[str, float] = {
        "wins": after.is_terminal,
        "loses": any(isinstance(reply, Turn) and after.height(reply.to) == 3 for reply in after.legal_moves),
        "own_on_1": sum(after.height(cell) >= 1 for cell in own),
        "own_on_2": sum(after.height(cell) >= 2 for cell in own),
        "replies": len(after.legal_moves) / 10,
    }
    for name, workers in (("own", own), ("opponent", opponent)):
        heights = [
            (after.height((row, column)), after.height(cell))
            for cell in workers
            for row in range(cell[0] - 1, cell[0] + 2)
            for column in range(cell[1] - 1, cell[1] + 2)
            if 0 <= row < board.size and 0 <= column < board.size and (row, column) not in after.workers
        ]
        values |= {f"{name}_near_{level}": sum(height == level for height, _ in heights) for level in range(4)}
        values[f"{name}_steps_up"] = sum(height == min(worker, 2) + 1 for height, worker in heights)
        if name == "own":
            values["own_threats"] = sum(height == 3 and worker >= 2 for height, worker in heights)
    return values


def test_logits_of_actions() -> None:
    """Each logit is the weighted sum of its features, in a batch and alone."""
    sample = jax.jit(jax.vmap(lambda state, key: GAME.sample_actions(state, key, 6)))
    logits = jax.jit(jax.vmap(GAME.heuristic_logits))
    alone = jax.jit(GAME.heuristic_logits)
    compared = set()
    for ply, (state, _) in enumerate(positions(GAME, BATCH, seed=4)):
        if ply % 10 != 5:
            continue
        actions = sample(state, jax.random.split(jax.random.key(ply), BATCH))
        batched = np.asarray(logits(state, actions))
        np.testing.assert_allclose(alone(rows(state, 0), actions[0]), batched[0], rtol=1e-5, atol=1e-5)
        for lane in range(BATCH):
            board = GAME.host(rows(state, lane))
            for action, value in zip(np.asarray(actions[lane]).tolist(), batched[lane].tolist(), strict=True):
                if action >= 0:
                    expected = sum(LOGIT_WEIGHTS[name] * number for name, number in features(board, action).items())
                    assert value == pytest.approx(expected, abs=1e-4)
                    compared.add(value)
    assert len(compared) > 20


def test_values_of_positions() -> None:
    """Values sum to 1, equal the returns at the end, and prefer the player who can climb next."""
    value = jax.jit(jax.vmap(GAME.heuristic_value))
    climbing = 0
    for ply, (state, _) in enumerate(positions(GAME, BATCH, seed=5)):
        if ply % 7:
            continue
        values = np.asarray(value(state))
        np.testing.assert_allclose(values.sum(axis=1), 1, rtol=1e-6)
        over = np.asarray(batched(GAME).is_terminal(state))
        np.testing.assert_array_equal(values[over], np.asarray(batched(GAME).returns(state))[over])
        for lane in np.flatnonzero(~over):
            board = GAME.host(rows(state, lane))
            if any(board.height(turn.to) == 3 for turn in board.legal_moves):
                climbing += 1
                assert values[lane, board.current_player] > 0.999
    assert climbing
