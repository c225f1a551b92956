"""Puzzles from recorded games: positions in which one move alone wins, proven by the solver of endings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewe_jax.agents.endings import EndingSolver
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import OFFERS
from tilewe_jax.records import Record

PUZZLE = "puzzle"
"""Name of the field of a record that holds what is asked, see ``Puzzle.record``."""


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
            position, before = positions[move], tuple(actions[:move])
            solution = self._outcomes.solve(self._outcomes.state(before, deal))
            if not solution.has_outcome:
                break
            legal = position.legal_actions()
            if solution.returns[position.current_player] == 1.0 and len(legal) >= self._min_legal:
                wins = list(self._wins(deal, before, position))
                if len(wins) == 1 and wins[0] is not None and not position.after(wins[0]).is_terminal:
                    found.append(((not self._is_obvious(position, wins[0]), len(legal)), move, wins[0]))
        if not found:
            return None
        (is_hard, num_legal), move, action = max(found)
        after = (*actions[:move], action)
        state = self._margins.state(after, deal)
        line = (action, *self._margins.line(state, self._margins.solve(state)))
        return Puzzle(deal, tuple(actions[:move]), positions[move].current_player, line, num_legal, not is_hard)

    def _wins(self, deal: Any, before: Sequence[int], position: HostPosition) -> Iterator[int | None]:
        """Yield the actions that win, two at most; ``None`` for one whose outcome is not proven."""
        wins = 0
        for action in position.legal_actions():
            solution = self._outcomes.solve(self._outcomes.state((*before, action), deal))
            is_win = bool(solution.returns[position.current_player] == 1.0)
            if is_win or not solution.has_outcome:
                yield action if is_win else None
                wins += 1
                if wins == 2:
                    return

    def _is_obvious(self, position: HostPosition, action: int) -> bool:
        if self._heuristics is None:
            return False
        legal = position.legal_actions()
        return legal[int(np.argmax(self._heuristics.logits(position, legal)))] == action
