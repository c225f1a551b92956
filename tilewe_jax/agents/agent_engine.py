"""Agents of the device as engines of ``tilewe_jax.tilewe``, the way back from ``host_players``."""

from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.kept_tree import KeptTree
from tilewe_jax.agents.players import agent_player
from tilewe_jax.registry import make
from tilewe_jax.search import TreePlayer
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action, state_of_board
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.move import Move


class AgentEngine(Engine):
    """An agent, such as ``puct:num_simulations=64,num_playouts=4``, as an engine for boards of any number of players.

    The seconds for a move are ignored: how long it searches is part of the agent's settings. The first move takes the seconds
    that compilation takes, once for each number of players.

    Args:
        text: the agent.
        name: name of the engine, by default the text.
        estimated_elo: as of any engine.
        seed: seed of its random numbers.

    Raises ``ValueError`` where there is no such agent.
    """

    def __init__(self, text: str, name: str | None = None, estimated_elo: float | None = None, seed: int = 0) -> None:
        super().__init__(name or text, estimated_elo)
        self._text = text
        self._key = jax.random.key(seed)
        self._players: dict[int, _BoardPlayer] = {}
        self._player(4)

    def on_search(self, board: Board, seconds: float) -> Move:
        """The move that the agent chooses."""
        del seconds
        self._key, move_key = jax.random.split(self._key)
        action = self._player(board.n_players).choose(board, move_key)
        return moves_of_action(action, board)[0]

    def _player(self, players: int) -> "_BoardPlayer":
        if players not in self._players:
            agent = agent_player(make("tilewe", players=players), self.name, self._text).agent
            self._players[players] = _TreeBoardPlayer(agent) if isinstance(agent, TreePlayer) else _BoardPlayer(agent)
        return self._players[players]


class _BoardPlayer:
    """A policy on boards of one number of players."""

    def __init__(self, policy: Any) -> None:
        def decide(state: Any, key: PRNGKeyArray) -> Any:
            return policy(state, key)

        self._decide = jax.jit(decide)

    def choose(self, board: Board, key: PRNGKeyArray) -> int:
        """The action to play."""
        return int(self._decide(state_of_board(board), key))


class _TreeBoardPlayer(_BoardPlayer):
    """An agent that goes on in its tree while a board shows the game in which it searched last."""

    def __init__(self, agent: TreePlayer) -> None:
        self._tree = KeptTree(agent)

    def choose(self, board: Board, key: PRNGKeyArray) -> int:
        """The action to play."""
        state = state_of_board(board)
        self._tree.follow(board.moves, state, action_of_move)
        return self._tree.act(state, key)
