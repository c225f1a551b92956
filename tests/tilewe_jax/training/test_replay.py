"""The replay buffer."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.tictactoe import TicTacToe
from tests.support import rows
from tilewe_jax.training import replay

GAME = TicTacToe()
ADD = jax.jit(replay.add, static_argnums=2)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_outcomes_are_copied_to_all_positions_of_a_game(data: st.DataObject) -> None:
    """Outcomes and TD(lambda) targets equal those of a list of games, over several rounds of the ring.

    Some positions are solved: their targets, and those of the positions before them, take the exact outcome.
    """
    size, more, lanes = 6, 3, 2
    td_lambda = data.draw(st.sampled_from([1.0, 0.7, 0.0]))

    def target(history: list[Any], time: int, lane: int, td_lambda: float) -> Any:
        _, _, ended, won, solved = history[time]
        if solved[lane].sum():
            return solved[lane]
        if ended[lane]:
            return won[lane]
        value, rest = history[time + 1][1][lane], target(history, time + 1, lane, td_lambda)
        is_exact = history[time + 1][4][lane].sum() > 0
        return rest if is_exact or value[0] == replay.UNKNOWN else (1 - td_lambda) * value + td_lambda * rest

    ring = replay.empty(GAME, size, lanes, 9, final_states=True)
    add, history = ADD, []
    number = np.zeros(lanes, int)
    for _ in range(data.draw(st.integers(1, 6))):
        ended = np.array(
            data.draw(st.lists(st.lists(st.booleans(), min_size=lanes, max_size=lanes), min_size=more, max_size=more))
        )
        game = number + np.cumsum(np.vstack([np.zeros((1, lanes), bool), ended[:-1]]), axis=0)
        number = game[-1] + ended[-1]
        outcome = np.where(ended, 1 / (game + 2), 0).astype(np.float32)
        won = np.stack([outcome, np.where(ended, 1 - outcome, 0)], axis=-1)
        share = st.sampled_from([0.1, 0.4, 0.9, replay.UNKNOWN])
        shares = np.array(data.draw(st.lists(share, min_size=more * lanes, max_size=more * lanes)))
        values = np.stack([shares, np.where(shares == replay.UNKNOWN, shares, 1 - shares)], axis=-1).astype(np.float32)
        values = values.reshape(more, lanes, 2)
        exact = np.array(
            data.draw(st.lists(st.sampled_from([-1, -1, -1, 0.0, 0.5, 1.0]), min_size=more * lanes, max_size=more * lanes))
        )
        solved = np.where(exact[:, None] < 0, 0, np.stack([exact, 1 - exact], axis=-1)).reshape(more, lanes, 2)
        solved = solved.astype(np.float32)
        new = rows(ring.positions, np.arange(more))
        cells = jnp.asarray(np.where(ended, game, -1), new.final.cells.dtype)
        new = replace(
            new,
            final=replace(new.final, cells=jnp.broadcast_to(cells[..., None], new.final.cells.shape)),
            root_value=jnp.asarray(values),
            game_index=jnp.asarray(game, jnp.int32),
            returns=jnp.asarray(np.where(ended[..., None], won, replay.UNKNOWN)),
            score_value=jnp.asarray(won),
            outcome_target=jnp.asarray(solved),
        )
        ring = add(ring, new, td_lambda)
        history += [(game[t], values[t], ended[t], won[t], solved[t]) for t in range(more)]
    kept = {time % size: time for time in range(max(0, len(history) - size), len(history))}
    for row in range(size):
        for lane in range(lanes):
            if row not in kept:
                assert int(ring.positions.game_index[row, lane]) == -1
                assert not ring.positions.finished[row, lane]
                continue
            time = kept[row]
            game = int(history[time][0][lane])
            over = game < number[lane]
            assert int(ring.positions.game_index[row, lane]) == game
            assert bool(ring.positions.finished[row, lane]) == over
            np.testing.assert_allclose(
                ring.positions.returns[row, lane, 0], 1 / (game + 2) if over else replay.UNKNOWN, rtol=1e-6
            )
            if over:
                expected = target(history, time, lane, td_lambda)
                np.testing.assert_allclose(ring.positions.outcome_target[row, lane], expected, atol=1e-6)
                assert (np.asarray(ring.positions.final.cells[row, lane]) == game).all()


def test_positions_are_sampled_by_surprise() -> None:
    ring = replay.empty(GAME, 4, 2, 9)
    surprise = jnp.asarray([[0.0, 1.0], [3.0, -1.0], [9.0, 0.0], [0.0, 0.0]])
    returns = jnp.asarray([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])[..., None].repeat(2, -1)
    ring = replace(ring, positions=replace(ring.positions, surprise=surprise, returns=returns))
    draw = jax.jit(replay.sample, static_argnums=(2, 3))
    drawn = np.asarray(draw(ring, jax.random.key(0), 40_000, 0.5))
    shares = np.bincount(drawn, minlength=8) / 40_000
    np.testing.assert_allclose(shares, [0.125, 0.25, 0.5, 0, 0, 0.125, 0, 0], atol=0.01)
    none = replace(ring, positions=replace(ring.positions, returns=returns * 0 + replay.UNKNOWN))
    assert (np.asarray(draw(none, jax.random.key(0), 10, 0.5)) == -1).all()
