"""Agents of the device as engines of ``tilewe_jax.tilewe``, the way back from ``host_players``."""

from tilewe_jax.agents.base import agent
from tilewe_jax.agents.host_agent import HostAgent
from tilewe_jax.registry import make
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action, state_of_board
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.move import Move


class AgentEngine(Engine):
    """An agent, such as ``puct:num_simulations=64,num_playouts=4``, as an engine for boards of any number of players.

    The seconds for a move are ignored: how long it searches is part of the agent's settings. It is compiled with the first move
    for each number of players.

    Args:
        text: the agent.
        name: name of the engine, by default the text.
        estimated_elo: as of any engine.
        seed: seed of its random numbers.

    Raises ``ValueError`` where there is no such agent.
    """

    def __init__(self, text: str, name: str | None = None, estimated_elo: float | None = None, seed: int = 0) -> None:
        super().__init__(name or text, estimated_elo)
        self._text, self._seed = text, seed
        self._players: dict[int, HostAgent] = {}
        agent(text, make("tilewe"))

    def on_search(self, board: Board, seconds: float) -> Move:
        """The move that the agent chooses."""
        del seconds
        if board.n_players not in self._players:
            self._players[board.n_players] = agent(self._text, make("tilewe", players=board.n_players)).host(self._seed)
        actions = [action_of_move(move) for move in board.moves]
        action = self._players[board.n_players].choose(actions, state_of_board(board))
        return moves_of_action(action, board)[0]
