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
    num_asked: int
    """Number of actions of the player at the start of the line that are the only wins in their positions, at least 1."""
    num_legal: int
    """Number of legal actions."""
    is_obvious: bool
    """True if the heuristics of the game prefer the winning action to all others."""

    @property
    def record(self) -> Record:
        """The position as a record of an unfinished game, whose field ``puzzle`` has ``player``, ``line`` and ``asked``."""
        answer = {"player": self.player, "line": list(self.line), "asked": self.num_asked}
        return Record(self.deal, self.actions, (), (), (), {PUZZLE: answer})


class PuzzleFinder:
    """Finds puzzles in games of one kind.

    Two searches prove a puzzle: the first one finds a winning action, and the second one shows that the player does not win
    without this action.

    Args:
        game: the game on the device.
        host: the same game on the host.
        max_nodes: maximum number of positions that the solver visits in one search.
        min_legal: smallest number of legal actions of a puzzle.

    Raises ``ValueError`` for a game that cannot be solved.
    """

    def __init__(self, game: Any, host: HostGame, max_nodes: int, min_legal: int) -> None:
        self._host, self._min_legal = host, min_legal
        self._outcomes = EndingSolver(game, max_nodes, margin=False)
        self._margins = EndingSolver(game, max_nodes)
        offer = OFFERS.get(host.id)
        self._heuristics = offer.heuristics if offer else None

    def find(self, deal: Any, actions: Sequence[int], with_obvious: bool = False) -> Puzzle | None:
        """Return the hardest puzzle in a game, or ``None``: one that is not obvious, with the most legal actions.

        It goes back from the end of the game, over the positions with enough legal actions, to the first one whose outcome is
        not proven.

        Args:
            deal: the deal of the game.
            actions: its actions.
            with_obvious: whether to return an obvious puzzle if the game has only obvious ones.
        """
        positions = [self._host.init_from_deal(deal)]
        for action in actions:
            positions.append(positions[-1].after(action))
        found: list[tuple[tuple[bool, int], int, int]] = []
        for move in reversed(range(len(actions))):
            position = positions[move]
            num_legal = len(position.legal_actions())
            if num_legal < self._min_legal:
                continue
            state = self._outcomes.state(actions[:move], deal)
            solution = self._outcomes.solve(state)
            if not solution.has_outcome:
                break
            win = int(solution.action)
            if solution.returns[position.current_player] != 1.0 or position.after(win).is_terminal:
                continue
            is_hard = not self._is_obvious(position, win)
            if (is_hard or with_obvious) and self._is_only_win(position, state, win):
                found.append(((is_hard, num_legal), move, win))
        if not found:
            return None
        (is_hard, num_legal), move, win = max(found)
        state = self._margins.state((*actions[:move], win), deal)
        line = (win, *self._margins.line(state, self._margins.solve(state)))
        if not self._end(positions[move], line).is_terminal:
            return None  # best play after the winning move is not proven to the end
        num_asked = 1 + self._num_only_wins(deal, actions[:move], positions[move], line)
        return Puzzle(deal, tuple(actions[:move]), positions[move].current_player, line, num_asked, num_legal, not is_hard)

    @staticmethod
    def _end(position: HostPosition, line: Sequence[int]) -> HostPosition:
        """Return the position after a line."""
        for action in line:
            position = position.after(action)
        return position

    def _is_only_win(self, position: HostPosition, state: Any, win: int) -> bool:
        """Return whether it is proven that the player to move does not win without an action."""
        solution = self._outcomes.solve(state, without=win)
        return bool(solution.has_outcome and solution.returns[position.current_player] != 1.0)

    def _num_only_wins(self, deal: Any, actions: Sequence[int], position: HostPosition, line: Sequence[int]) -> int:
        """Return the number of further actions of the player in a line that are the only wins, up to the first other one."""
        count, before, player = 0, list(actions), position.current_player
        for number, action in enumerate(line):
            if number and position.current_player == player:
                if len(position.legal_actions()) == 1 or not self._is_only_win(
                    position, self._outcomes.state(before, deal), action
                ):
                    break
                count += 1
            position = position.after(action)
            before.append(action)
        return count

    def _is_obvious(self, position: HostPosition, action: int) -> bool:
        if self._heuristics is None:
            return False
        legal = position.legal_actions()
        return legal[int(np.argmax(self._heuristics.logits(position, legal)))] == action
