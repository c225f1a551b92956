"""Agents as engines of ``tilewe_jax.tilewe``; the inverse of ``host_players``."""

from tilewe_jax.agents.base import agent
from tilewe_jax.agents.host_agent import HostAgent
from tilewe_jax.registry import make
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action, state_of_board
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.move import Move


class AgentEngine(Engine):
    """An agent, like ``puct:num_simulations=64,num_playouts=4``, as an engine for boards with any number of players.

    The time limit of a move is ignored; the agent's settings limit its search. The first move for each number of players
    compiles the agent.

    Args:
        text: text of the agent.
        name: name of the engine, by default the text.
        estimated_elo: estimated rating, see ``Engine``.
        seed: seed of the random numbers.

    Raises ``ValueError`` for an unknown agent.
    """

    def __init__(self, text: str, name: str | None = None, estimated_elo: float | None = None, seed: int = 0) -> None:
        super().__init__(name or text, estimated_elo)
        self._text, self._seed = text, seed
        self._players: dict[int, HostAgent] = {}
        agent(text, make("tilewe"))

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return the agent's move."""
        del seconds
        if board.n_players not in self._players:
            self._players[board.n_players] = agent(self._text, make("tilewe", players=board.n_players)).host(self._seed)
        actions = [action_of_move(move) for move in board.moves]
        action = self._players[board.n_players].choose(actions, state_of_board(board))
        return moves_of_action(action, board)[0]
