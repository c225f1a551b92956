"""Exhaustive search of small endings in plain Python, the reference for ``tilewe_jax.search.solve``."""

from collections.abc import Iterator
from random import Random

from tilewe_jax.host import HostGame, HostPosition


class TooLargeError(Exception):
    """The tree has more positions than the limit."""


class Exhaustive:
    """Minimax over the margin of seat 0, without pruning and without a table.

    Args:
      game: a game for two players.
      most: maximum number of positions of a tree.
    """

    def __init__(self, game: HostGame, most: int) -> None:
        self.game, self.most = game, most
        self.count = 0

    def action_margins(self, position: HostPosition) -> dict[int, int] | None:
        """Return the margin under best play after each legal action; ``None`` if the tree is too large."""
        self.count = 1
        try:
            return {action: self._margin(position.after(action)) for action in position.legal_actions()}
        except TooLargeError:
            return None

    def _margin(self, position: HostPosition) -> int:
        self.count += 1
        if self.count > self.most:
            raise TooLargeError
        if position.is_terminal:
            scores, returns = position.scores(), self.game.returns(position)
            outcome = (returns[0] > returns[1]) - (returns[0] < returns[1])
            return outcome * max(outcome * (scores[0] - scores[1]), 1)
        margins = [self._margin(position.after(action)) for action in position.legal_actions()]
        return best_of(margins, position)


def best_of(margins: list[int], position: HostPosition) -> int:
    """Return the margin that is best for the player to move."""
    return min(margins) if position.current_player else max(margins)


def random_endings(game: HostGame, most: int, seed: int) -> Iterator[tuple[list[int], HostPosition, dict[int, int]]]:
    """Play random games, and yield the endings that are small enough: actions so far, position, and margin by action."""
    chance, solver = Random(seed), Exhaustive(game, most)
    while True:
        position, actions, line = game.init_from_deal(None), [], []
        while not position.is_terminal:
            line.append(position)
            actions.append(chance.choice(position.legal_actions()))
            position = position.after(actions[-1])
        for ply in reversed(range(len(line))):
            margins = solver.action_margins(line[ply])
            if margins is None:
                break
            if solver.count > 4:  # smaller trees test little
                yield actions[:ply], line[ply], margins
