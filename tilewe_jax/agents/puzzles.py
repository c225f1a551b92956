"""Puzzles from recorded games: positions in which one move alone wins, proven by the solver of endings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewe_jax.agents.endings import EndingSolver
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import OFFERS
from tilewe_jax.records import Record

PUZZLE = "puzzle"
"""Name of the field of a record with the question and its answer, see ``Puzzle.record``."""


@dataclass(frozen=True)
class Puzzle:
    """A position in which exactly one move wins."""

    deal: Any
    """The deal of the game, see ``Game.deal``."""
    actions: tuple[int, ...]
    """Actions before the position."""
    player: int
    """The seat to move."""
    line: tuple[int, ...]
    """The winning action, and best play by both sides after it."""
    num_legal: int
    """Number of legal actions."""
    is_obvious: bool
    """True if the heuristics of the game prefer the winning action to all others."""

    @property
    def record(self) -> Record:
        """The position as a record of an unfinished game, whose field ``puzzle`` has ``player`` and ``line``."""
        return Record(self.deal, self.actions, (), (), (), {PUZZLE: {"player": self.player, "line": list(self.line)}})


class PuzzleFinder:
    """Finds puzzles in games of one kind.

    Args:
        game: the game on the device.
        host: the same game on the host.
        max_nodes: maximum number of positions that the solver visits for the answer to one move.
        min_legal: smallest number of legal actions of a puzzle.

    Raises ``ValueError`` for a game that cannot be solved.
    """

    def __init__(self, game: Any, host: HostGame, max_nodes: int, min_legal: int) -> None:
        self._host, self._min_legal = host, min_legal
        self._outcomes = EndingSolver(game, max_nodes, margin=False)
        self._margins = EndingSolver(game, max_nodes)
        offer = OFFERS.get(host.id)
        self._heuristics = offer.heuristics if offer else None

    def find(self, deal: Any, actions: Sequence[int]) -> Puzzle | None:
        """Return the hardest puzzle in a game, or ``None``: one that is not obvious, with the most legal actions.

        It goes back from the end of the game to the first position whose outcome is not proven.
        """
        positions = [self._host.init_from_deal(deal)]
        for action in actions:
            positions.append(positions[-1].after(action))
        found: list[tuple[tuple[bool, int], int, int]] = []
        for move in reversed(range(len(actions))):
            position, state = positions[move], self._outcomes.state(actions[:move], deal)
            solution = self._outcomes.solve(state)
            if not solution.has_outcome:
                break
            num_legal = len(position.legal_actions())
            if solution.returns[position.current_player] != 1.0 or num_legal < self._min_legal:
                continue
            win = self._only_win(position, state)
            if win is not None and not position.after(win).is_terminal:
                found.append(((not self._is_obvious(position, win), num_legal), move, win))
        if not found:
            return None
        (is_hard, num_legal), move, action = max(found)
        state = self._margins.state((*actions[:move], action), deal)
        line = (action, *self._margins.line(state, self._margins.solve(state)))
        return Puzzle(deal, tuple(actions[:move]), positions[move].current_player, line, num_legal, not is_hard)

    def _only_win(self, position: HostPosition, state: Any) -> int | None:
        """Return the only winning action; ``None`` if several win, or if the outcome of an action is not proven."""
        only = None
        for action in position.legal_actions():
            solution = self._outcomes.solve(self._outcomes.after(state, action))
            is_win = bool(solution.returns[position.current_player] == 1.0)
            if not solution.has_outcome or (is_win and only is not None):
                return None
            only = action if is_win else only
        return only

    def _is_obvious(self, position: HostPosition, action: int) -> bool:
        if self._heuristics is None:
            return False
        legal = position.legal_actions()
        return legal[int(np.argmax(self._heuristics.logits(position, legal)))] == action
