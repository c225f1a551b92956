"""Players of the device as engines of ``tilewe_jax.tilewe``."""

from functools import partial
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from experiments.networks import weights as trained
from search.spec import AgentSpec, build
from tilewe_jax.game import Policy
from tilewe_jax.registry import make
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import moves_of_action, state_of_board
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.move import Move


class AgentEngine(Engine):
    """A player by name, such as ``puct:num_simulations=64``, that plays on a host board of any number of players.

    The seconds for a move are not looked at: how long it searches is part of its name. The first move takes the seconds that
    compiling takes, for each number of players. Raises ``ValueError`` where there is no such player.
    """

    def __init__(self, text: str, name: str | None = None, estimated_elo: float | None = None, seed: int = 0) -> None:
        super().__init__(name or text, estimated_elo)
        self._spec = AgentSpec.parse(text)
        self._key = jax.random.key(seed)
        self._policies: dict[int, Any] = {}
        self._policy(4)

    def on_search(self, board: Board, seconds: float) -> Move:
        """The move that the player chooses."""
        del seconds
        self._key, now = jax.random.split(self._key)
        action = self._policy(board.n_players)(state_of_board(board), now)
        return moves_of_action(int(action), board)[0]

    def _policy(self, players: int) -> Any:
        if players not in self._policies:
            policy = build(self._spec, make("tilewe", players=players), trained.load)
            self._policies[players] = jax.jit(partial(_one, policy))
        return self._policies[players]


def _one(policy: Policy, state: Any, key: PRNGKeyArray) -> Any:
    return policy(state, key)
