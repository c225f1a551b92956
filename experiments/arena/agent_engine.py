"""Agents of the device as engines of ``tilewe_jax.tilewe``, the way back from ``host_players``."""

from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from experiments.arena.players import agent_player
from tilewe_jax.registry import make
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import moves_of_action, state_of_board
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
        self._policies: dict[int, Any] = {}
        self._policy(4)

    def on_search(self, board: Board, seconds: float) -> Move:
        """The move that the agent chooses."""
        del seconds
        self._key, move_key = jax.random.split(self._key)
        action = self._policy(board.n_players)(state_of_board(board), move_key)
        return moves_of_action(int(action), board)[0]

    def _policy(self, players: int) -> Any:
        if players not in self._policies:
            policy: Any = agent_player(make("tilewe", players=players), self.name, self._text).agent

            def decide(state: Any, key: PRNGKeyArray) -> Any:
                return policy(state, key)

            self._policies[players] = jax.jit(decide)
        return self._policies[players]
