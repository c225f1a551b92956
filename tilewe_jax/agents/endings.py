"""Exact endings on the host: solves positions one by one, see ``tilewe_jax.search.solve``."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from tilewe_jax.game import Game, check_state
from tilewe_jax.interop.analysis import Solved
from tilewe_jax.interop.analysis_requests import Request
from tilewe_jax.search.solve import DEFAULT_MAX_NODES, Solution, check_solvable, solve
from tilewe_jax.settings import check_number

SIZES = (256, 1024, 2048)
"""Values of ``max_moves`` that are tried in turn; positions with few moves are solved faster in a small form."""


class EndingSolver:
    """Solves positions of a game one by one, with programs that are compiled when they are first needed.

    Args:
        game: a game for two players without hidden information.
        max_nodes: maximum number of positions visited for one solution.
        margin: whether to prove the margin too, and not only the outcome.
        compiling: context in which a program is compiled.

    Raises ``ValueError`` for another game or number.
    """

    def __init__(
        self,
        game: Game[Any],
        max_nodes: int = DEFAULT_MAX_NODES,
        margin: bool = True,
        compiling: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        check_solvable(game)
        check_number("max_nodes", max_nodes, 1)
        self.game, self.max_nodes, self.margin, self._compiling = game, max_nodes, margin, compiling
        self._apply = jax.jit(game.apply)
        self._replay = jax.jit(self._after)
        self._programs: dict[int, Any] = {}

    def state(self, actions: Sequence[int], deal: Any = None) -> Any:
        """Return the state after legal actions from a deal."""
        padded = np.full(self.game.max_steps, -1, np.int32)
        padded[: len(actions)] = actions
        return self._replay(self.game.init_from_deal(deal), padded)

    def after(self, state: Any, action: int) -> Any:
        """Return the state after a legal action."""
        return self._apply(state, np.int32(action))

    def solve(self, state: Any, without: int = -1) -> Solution:
        """Return the solution of a position, as NumPy values; see ``tilewe_jax.search.solve`` for ``without``.

        Raises like ``Game.step`` for a state of another game.
        """
        check_state(self.game, state)
        for size in SIZES:
            solution: Solution = jax.device_get(self._program(size, state)(state, np.int32(without)))
            if solution.is_supported:
                break
        return solution

    def line(self, state: Any, solution: Solution) -> list[int]:
        """Return best play by both sides from a solved position; it ends early if a position after it is not solved."""
        actions = []
        while solution.is_exact and solution.action >= 0:
            actions.append(int(solution.action))
            state = self.after(state, int(solution.action))
            solution = self.solve(state)
        return actions

    def proven(self, request: Request) -> dict[int, Solved]:
        """Return the proven results of the last positions of a game, by the number of moves before them.

        It goes back from the last position to the first one whose result is not proven.
        """
        results: dict[int, Solved] = {}
        for turn in reversed(range(len(request.positions))):
            solution = self.solve(self.state(request.actions[:turn], request.deal))
            if not solution.is_exact:
                break
            results[turn] = Solved(int(solution.action), tuple(solution.returns.tolist()), int(solution.low))
        return results

    def _after(self, state: Any, actions: Any) -> Any:
        return jax.lax.fori_loop(0, self.game.max_steps, lambda ply, state: self.game.apply(state, actions[ply]), state)

    def _program(self, size: int, state: Any) -> Any:
        if size not in self._programs:
            with self._compiling():
                function = partial(solve, self.game, max_nodes=self.max_nodes, margin=self.margin, max_moves=size)
                program = jax.jit(lambda state, without: function(state, without=without))
                self._programs[size] = program.lower(state, np.int32(-1)).compile()
        return self._programs[size]


@lru_cache(maxsize=16)
def solver_of(game: Game[Any], max_nodes: int, margin: bool) -> EndingSolver:
    """Return the solver of a game with its compiled programs; the most recently used solvers are kept."""
    return EndingSolver(game, max_nodes, margin)
