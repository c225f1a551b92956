"""Games of a match that are played on the host, so that no program of the rules has to be compiled."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tilewe_jax.agents import Agent
from tilewe_jax.game import Game
from tilewe_jax.host import HostPosition
from tilewe_jax.host_games import make_host_game


def is_random(agent: Agent) -> bool:
    """Return whether an agent is the policy ``random``, which ``Game.host_draws`` plays on the host."""
    return agent.spec is not None and agent.spec.kind == "random"


class HostGames:
    """A batch of games on host positions, in the steps in which ``Match`` plays games on the device, with equal results.

    Arrays by seat are ``[seats, games]``.

    Args:
        game: a game with ``host_draws``.
        initial: the initial states, ``[batch, ...]``.
        openings: opening actions of each game, padded with -1, ``int32[batch, actions]``.
        num_random: number of random moves at the start of each game.
        count: number of games to play; the others stay at their start.
    """

    def __init__(self, game: Game[Any], initial: Any, openings: np.ndarray, num_random: int, count: int) -> None:
        assert game.host_draws
        self._game, self._draws, self._openings, self._num_random = game, game.host_draws, openings, num_random
        self._host_game = make_host_game(game.id, **game.options)
        initial = jax.device_get(initial)
        self._states = [jax.tree.map(lambda leaf, row=row: leaf[row], initial) for row in range(len(openings))]
        self._positions: list[HostPosition] = [game.host(state) for state in self._states[:count]]
        self.forfeited = np.zeros((game.num_players, count), np.bool_)
        """True if the player in each seat has forfeited."""
        self.plies = np.zeros((game.num_players, count), np.int32)
        """Number of actions of each seat."""
        self.legal = np.zeros((game.num_players, count), np.int32)
        """Sum of the number of legal actions over the actions of each seat."""

    @property
    def states(self) -> Any:
        """The states of all games, ``[batch, ...]``."""
        return jax.tree.map(lambda *leaves: np.stack(leaves), *self._states)

    def movers(self, ply: int, words: np.ndarray, seating: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the opening action of each game, -1 for none, and the player that decides, -1 for none; ``int32[batch]``.

        Args:
            ply: number of actions played in each game.
            words: random word of each game for its opening.
            seating: the player in each seat, ``[batch, seats]``.
        """
        action, mover = np.full((2, len(seating)), -1, np.int32)
        for index, position in enumerate(self._positions):
            if ply < self._num_random:
                action[index] = self._draws.sample_action(position, int(words[index]))
            elif ply < self._openings.shape[1]:
                action[index] = self._openings[index, ply]
            seat = position.current_player
            if not (position.is_terminal or self.forfeited[seat, index] or action[index] >= 0):
                mover[index] = seating[index, seat]
        return action, mover

    def choose_randomly(self, players: Sequence[int], mover: np.ndarray, words: np.ndarray, action: np.ndarray) -> None:
        """Write the actions of the policy ``random`` in the games in which one of these players is to move."""
        for index, position in enumerate(self._positions):
            if mover[index] in players:
                action[index] = self._draws.random(position, int(words[index]))

    def move(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play the legal actions; return the actions played, -1 for none, and a mask of the games that refused an action."""
        played, refused = np.full_like(action, -1), np.zeros(len(action), np.bool_)
        for index, position in enumerate(self._positions):
            if position.is_terminal:
                continue
            if position.explain(int(action[index])):
                refused[index] = True
                continue
            seat = position.current_player
            self.plies[seat, index] += 1
            self.legal[seat, index] += len(position.legal_actions())
            played[index] = action[index]
            self._positions[index] = after = position.after(int(action[index]))
            self._states[index] = self._game.state_of(after)
        return played, refused

    def forfeit(self, refused: np.ndarray, words: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Let the players to move forfeit in games that refused an action, and replace the actions by random ones."""
        action = action.copy()
        for index in np.flatnonzero(refused):
            position = self._positions[index]
            self.forfeited[position.current_player, index] = True
            action[index] = self._draws.sample_action(position, int(words[index]))
        return action

    def results(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores, ``int32[games, seats]``, and the returns, ``float32[games, seats]``."""
        none = (0.0,) * self._game.num_players
        returns = [self._host_game.returns(position) if position.is_terminal else none for position in self._positions]
        return np.array([position.scores() for position in self._positions], np.int32), np.array(returns, np.float32)
