"""Exact outcomes as targets: positions late in the games of self-play are solved after play."""

from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32

from tilewe_jax.game import Game
from tilewe_jax.search import Solution, solve
from tilewe_jax.training.replay import Positions
from tilewe_jax.utils.loops import by_platform, cond

State = TypeVar("State")

MAX_MOVES = 256
"""``max_moves`` of ``search.solve``."""


def with_exact_outcomes(game: Game[State], positions: Positions[State], max_nodes: int) -> Positions[State]:
    """Solve the last positions of each game, from its end backwards until the outcome of a position is not proven.

    In each column the last position and the last position of each game are tried, and every position before a solved one.

    Args:
        game: a game for two players without hidden information.
        positions: positions of self-play, ``[T, G, ...]``, for ``replay.add``.
        max_nodes: maximum number of positions that the solver visits for each position.

    Returns the positions. Solved positions have the exact outcome as ``outcome_target``.
    """

    def solve_row(
        goes_on: Bool[Array, "G"], row: tuple[State, Bool[Array, "G"]]
    ) -> tuple[Bool[Array, "G"], tuple[Bool[Array, "G"], Float32[Array, "G P"]]]:
        state, finished = row
        is_solved, returns = by_platform(one_by_one, together, state, goes_on | finished)
        return is_solved, (is_solved, returns)

    def outcome(state: State, needed: Bool[Array, ""] | bool = True) -> tuple[Array, Array]:
        solution: Solution = solve(game, state, max_nodes=max_nodes, margin=False, max_moves=MAX_MOVES, where=needed)
        return solution.has_outcome, solution.returns

    def one_by_one(state: State, needed: Bool[Array, "G"]) -> tuple[Array, Array]:
        # On a CPU a batch costs the largest number of nodes for each of its positions.
        def unsolved(state: State) -> tuple[Array, Array]:
            del state
            return jnp.asarray(False), jnp.zeros(game.num_players, jnp.float32)

        solved: tuple[Array, Array] = lax.map(lambda lane: cond(lane[1], outcome, unsolved, lane[0]), (state, needed))
        return solved

    together = jax.vmap(outcome)
    is_last = jnp.ones_like(positions.finished[0])
    _, (is_solved, returns) = lax.scan(solve_row, is_last, (positions.state, positions.finished), reverse=True)
    return replace(positions, outcome_target=jnp.where(is_solved[..., None], returns, positions.outcome_target))
