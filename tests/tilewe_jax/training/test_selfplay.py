"""Self-play."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.search.tictactoe import TicTacToe
from tests.support import rows
from tilewe_jax.search import Evaluation, GumbelRule, SearchSettings, dense_logits
from tilewe_jax.training import agents, replay, selfplay
from tilewe_jax.training.config import SelfplayConfig

GAME = TicTacToe()
CONFIG = SelfplayConfig(
    num_games=8,
    unroll_length=24,
    search=SearchSettings(num_simulations=6, num_candidates=9, candidate_pool=9, max_depth=9),
    gumbel=GumbelRule(max_num_considered_actions=4, gumbel_scale=1.0),
)


def uniform(params: Any, state: Any, key: Any) -> Any:
    """Evaluate a position with logits that grow with the action."""
    del params, state, key
    return Evaluation(dense_logits(jnp.linspace(0.0, 1.0, 9)), jnp.full(2, 0.5))


def played(config: SelfplayConfig, seed: int = 0, opponent: Any = None) -> Any:
    players = agents.full_and_fast(config, GAME, uniform)
    games = selfplay.start(config, GAME, jax.random.key(seed), config.num_games)
    play = jax.jit(lambda games, key: selfplay.play(config, GAME, players, games, key, opponent))
    return play(games, jax.random.key(seed + 1))


def test_columns_are_sequences_of_legal_games() -> None:
    """Each column holds games by the rules, and the last position of a game has its outcome."""
    games, moved, stats = jax.device_get(played(CONFIG))
    step, over, first = jax.jit(GAME.step), GAME.is_terminal, GAME.init(jax.random.key(0))
    finished = 0
    for lane in range(CONFIG.num_games):
        number, ply = 0, 0
        for t in range(CONFIG.unroll_length):
            state = rows(rows(moved, t), lane).state
            if not ply:
                jax.tree.map(np.testing.assert_array_equal, state, jax.device_get(first))
            legal = np.flatnonzero(np.asarray(GAME.legal_action_mask(state)))
            actions, policy = moved.candidates[t, lane], moved.policy[t, lane]
            assert sorted(actions[actions >= 0].tolist()) == legal.tolist()
            np.testing.assert_allclose(policy.sum(), 1, rtol=1e-5)
            assert (policy[actions < 0] == 0).all()
            assert moved.game_index[t, lane] == number
            after = rows(rows(moved, t + 1), lane).state if t + 1 < CONFIG.unroll_length else rows(games, lane).state
            ends = [a for a in legal if bool(over(step(state, jnp.int32(a))))]
            if moved.finished[t, lane]:
                results = {tuple(np.asarray(GAME.returns(step(state, jnp.int32(a)))).tolist()) for a in ends}
                assert tuple(moved.returns[t, lane].tolist()) in results
                number, ply, finished = number + 1, 0, finished + 1
            else:
                nexts = [jax.device_get(step(state, jnp.int32(a))) for a in legal]
                assert any(jax.tree.all(jax.tree.map(np.array_equal, after, following)) for following in nexts)
                assert (moved.returns[t, lane] == replay.UNKNOWN).all()
                ply += 1
        assert games.game_index[lane] == number
        assert games.ply[lane] == ply
    assert stats.games == finished > 10
    assert stats.moves == stats.full_searches == CONFIG.num_games * CONFIG.unroll_length
    assert stats.returns.sum() == pytest.approx(finished)
    assert (moved.surprise > 0).any()


def test_fast_searches_are_excluded_from_learning() -> None:
    _, moved, stats = jax.device_get(played(replace(CONFIG, fast_simulations=2, full_search_prob=0.3)))
    full = (moved.surprise >= 0).all(axis=1)
    assert ((moved.surprise >= 0) == full[:, None]).all()  # all games alike
    assert 0 < full.sum() < CONFIG.unroll_length
    assert stats.full_searches == full.sum() * CONFIG.num_games


def test_every_tenth_game_is_played_without_resignation() -> None:
    """With a threshold of 0.5, players resign immediately, except in every tenth game of a column."""
    games, moved, stats = jax.device_get(played(replace(CONFIG, resign_threshold=0.5)))
    assert stats.resigned > 0
    assert stats.resignations_checked >= CONFIG.num_games
    assert 0 < stats.false_resignations <= stats.resignations_checked
    first = moved.game_index == 0
    lengths = first.sum(axis=0)
    assert (lengths >= 5).all()  # no game of tic-tac-toe is shorter
    assert ((moved.game_index == 1).sum(axis=0) == 1).all()
    assert set(moved.returns[moved.finished].ravel().tolist()) <= {0.0, 0.5, 1.0}
    assert (games.winner[games.game_index % 10 != 0] == -1).all()


AGAINST = replace(CONFIG, num_games=72, opponent_fraction=1.0)
"""Self-play against an opponent, with more games than a chunk of searches."""


def first_legal(state: Any, key: Any) -> Any:
    """Play the first legal action."""
    del key
    return jnp.argmax(GAME.legal_action_mask(state)).astype(jnp.int32)


def test_moves_of_an_opponent_have_no_policy_target() -> None:
    """Only the moves of the learner, which has one seat per game, have a searched policy; the opponent's have one candidate."""
    games, moved, stats = jax.device_get(played(AGAINST, opponent=first_legal))
    mover, cells = moved.state.current_player, moved.state.cells
    searched = moved.root_value[..., 0] != replay.UNKNOWN
    lowest = np.argmax(cells < 0, axis=-1)
    assert (moved.candidates[~searched][:, 0] == lowest[~searched]).all()
    assert (moved.candidates[~searched][:, 1:] == -1).all()
    assert (moved.policy[~searched] == np.eye(9)[0]).all()
    assert (moved.surprise[~searched] == 0).all()
    legal = (cells < 0).sum(axis=-1)
    assert ((moved.candidates >= 0).sum(axis=-1)[searched] == legal[searched]).all()
    np.testing.assert_array_equal(cells[1:][~searched[:-1] & ~moved.finished[:-1]].max(), 1)

    seats, won, finished = [], 0.0, 0
    for column in range(AGAINST.num_games):
        for number in range(games.game_index[column] + 1):
            rows_of_game = moved.game_index[:, column] == number
            seat = set(mover[rows_of_game & searched[:, column], column].tolist())
            assert seat.isdisjoint(mover[rows_of_game & ~searched[:, column], column].tolist())
            if number < games.game_index[column]:
                assert len(seat) == 1
                seats += seat
                won += moved.returns[rows_of_game & moved.finished[:, column], column, seats[-1]].item()
                finished += 1
            elif seat:
                assert seat == {games.learner_seat[column]}
        for t in range(AGAINST.unroll_length - 1):  # recorded actions were played
            if not searched[t, column] and not moved.finished[t, column]:
                after = cells[t].copy()[column]
                after[lowest[t, column]] = mover[t, column]
                np.testing.assert_array_equal(cells[t + 1, column], after)
    assert stats.opponent_games == stats.games == finished > 150
    assert stats.learner_returns == pytest.approx(won)
    assert stats.opponent_moves == (~searched).sum()
    assert stats.full_searches == searched.sum()
    assert abs(np.mean(seats) - 0.5) < 4 * 0.5 / len(seats) ** 0.5


def test_fraction_of_games_against_the_opponent() -> None:
    config = replace(AGAINST, opponent_fraction=0.25)
    games, moved, stats = jax.device_get(played(config, opponent=first_legal))
    against = stats.opponent_games / stats.games
    assert abs(against - 0.25) < 4 * (0.25 * 0.75 / stats.games) ** 0.5
    alone = (moved.game_index == games.game_index[None]) & (games.learner_seat < 0)[None]
    assert (moved.root_value[alone] != replay.UNKNOWN).all()
    assert 0 < stats.opponent_moves < 0.25 * stats.moves


def test_games_without_the_opponent_equal_plain_selfplay() -> None:
    """If no game is against the opponent, positions are bit-exact, with fast searches."""
    config = replace(AGAINST, opponent_fraction=0.0, fast_simulations=2, full_search_prob=0.5)
    _, plain, before = jax.device_get(played(config))
    _, moved, after = jax.device_get(played(replace(config, opponent_fraction=1e-9), opponent=first_legal))
    jax.tree.map(np.testing.assert_array_equal, plain, moved)
    assert after.opponent_moves == after.opponent_games == before.opponent_moves == 0
    assert after.full_searches == before.full_searches > 0


def test_seats_of_the_learner_are_uniform() -> None:
    seats = jax.vmap(lambda key: selfplay._learner_seat(1.0, 4, key))(jax.random.split(jax.random.key(0), 8000))
    counts = np.bincount(np.asarray(seats), minlength=4)
    assert counts.sum() == 8000
    assert (abs(counts - 2000) < 4 * (8000 * 0.25 * 0.75) ** 0.5).all()


def test_half_of_the_games_start_with_random_actions() -> None:
    config = replace(CONFIG, random_opening=3, num_games=512)
    state = jax.jit(lambda key: selfplay.start(config, GAME, key, config.num_games).state)(jax.random.key(0))
    plies = np.bincount((np.asarray(state.cells) >= 0).sum(axis=1), minlength=10)
    assert plies[4:].sum() == 0
    assert (abs(plies[:4] - 512 * np.array([3, 1, 1, 1]) / 6) < 4 * (512 * 0.25) ** 0.5).all()
    # The law holds for restarted games too.
    _, moved, _ = jax.device_get(played(replace(config, num_games=8)))
    starts = (moved.state.cells[1:] >= 0).sum(axis=-1)[moved.finished[:-1]]
    assert set(starts.tolist()) == {0, 1, 2, 3}
