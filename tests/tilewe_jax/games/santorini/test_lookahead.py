"""The lookahead of Santorini against exhaustive search of the next three turns with the rules of ``reference``."""

import random
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import slow
from tests.tilewe_jax.games.santorini import reference
from tests.tilewe_jax.games.santorini.reference import Board, Turn
from tilewe_jax.games.santorini.config import NUM_TURNS


def climbs(board: Board, turns: list[Turn]) -> bool:
    return any(board[1, row, column] == 3 for _, _, row, column, _, _ in turns)


def wins(board: Board, player: int, turns_left: int) -> bool:
    """Return whether the player to move can force a win within ``turns_left`` turns."""
    turns = reference.legal(board, player)
    if climbs(board, turns) or turns_left == 1:
        return climbs(board, turns)
    return any(wins_after(board, player, turn, turns_left - 1) for turn in turns)


def wins_after(board: Board, player: int, turn: Turn, turns_left: int) -> bool:
    """Return whether a turn wins, or forces a win within ``turns_left`` further turns of the player."""
    after = reference.play(board, turn)
    replies = reference.legal(after, -player)
    if board[1, turn[2], turn[3]] == 3 or not replies:
        return True
    return not climbs(after, replies) and all(wins(reference.play(after, reply), player, turns_left) for reply in replies)


def outcome(board: Board, player: int, turn: Turn) -> int:
    """1 if a turn wins or forces a win in the next turn, -1 if the opponent can then do so, otherwise 0."""
    if wins_after(board, player, turn, 1):
        return 1
    return -1 if wins(reference.play(board, turn), -player, 2) else 0


def late_positions(size: int, games: int, rng: random.Random) -> list[tuple[Board, int]]:
    """The last ten positions of each random game between players who avoid moving down."""
    result = []
    for _ in range(games):
        board, player, history = reference.random_start(size, rng), 1, []
        while not reference.winner(board, player):
            history.append((board, player))
            turns = reference.legal(board, player)
            up = [turn for turn in turns if board[1, turn[2], turn[3]] >= board[1, turn[0], turn[1]]]
            board, player = reference.play(board, rng.choice(up or turns)), -player
        result += history[-10:]
    return result


@pytest.mark.parametrize(
    ("size", "games", "missed"),
    [(5, 3, 0.0), (3, 12, 0.05), slow(4, 40, 0.01), slow(5, 60, 0.0), slow(7, 12, 0.0), slow(10, 4, 0.0)],
)
def test_against_exhaustive_search(size: int, games: int, missed: float) -> None:
    """Proofs are correct, and only the wins listed in the module's docstring are missed."""
    game: Any = tilewe_jax.make("santorini", size=size, placement="random")
    rng = random.Random(size)
    outcomes, counts = jax.jit(game.outcomes_of_actions), Counter[tuple[int, int]]()
    for board, player in late_positions(size, games, rng):
        turns = rng.sample(all_turns := reference.legal(board, player), min(6, len(all_turns)))
        state = game.state_of(board, player)
        actions = [game.action_of(turn[:2], turn[2:4], turn[4:], state=state) for turn in turns]
        padded = np.array(actions + [-1] * (6 - len(actions)), np.int32)
        proven = np.asarray(outcomes(state, padded)).tolist()
        assert proven[len(turns) :] == [0] * (6 - len(turns))
        for turn, result in zip(turns, proven, strict=False):
            expected = outcome(board, player, turn)
            assert result in (0, expected), (board, player, turn)
            counts[result, expected] += 1
    assert min(counts[value, value] for value in (-1, 0, 1)) >= 3
    assert counts[0, 1] + counts[0, -1] <= missed * counts.total()


def test_nothing_is_proven_while_workers_are_placed() -> None:
    game: Any = tilewe_jax.make("santorini", placement="chosen")
    actions = jnp.array([NUM_TURNS, NUM_TURNS + 7, -1], jnp.int32)
    proven = jax.jit(lambda key: game.outcomes_of_actions(game.init(key), actions))(jax.random.key(0))
    assert proven.tolist() == [0, 0, 0]


def test_games_without_lookahead() -> None:
    assert tilewe_jax.make("santorini").has_lookahead
    game = TicTacToe()
    assert not game.has_lookahead
    assert game.outcomes_of_actions(game.init(jax.random.key(0)), jnp.arange(3)).tolist() == [0, 0, 0]
