"""Searches for games with hidden information: several worlds that the mover cannot tell apart, one search each.

In each world the search knows everything, the others' trays included, and so it plans as if it would know then which world it
is in, and values hiding and finding out too little (strategy fusion, Frank and Basin 1998). Adding up over worlds helps against
chance in the sample, not against that.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from search.mcts import Search
from search.tree import first_highest
from tilewe_jax.game import Game

State = TypeVar("State")


def is_hidden(game: Game[Any]) -> bool:
    """Whether players of the game do not see all."""
    return type(game).determinize is not Game.determinize


@dataclass(frozen=True)
class Worlds(Generic[State]):
    """A search of sampled worlds. Raises ``ValueError`` for less than one."""

    search: Search[State]
    count: int = 4

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"worlds must be at least 1, not {self.count}")

    def __call__(self, state: State, key: PRNGKeyArray) -> tuple[Int32[Array, ""], Int32[Array, "D*K"], Float32[Array, "D*K"]]:
        """The action to play, the candidates of all worlds, and the policy, each action's share where it first stands."""
        game = self.search.game
        player = game.current_player(state)
        one, other = (jax.random.split(part, self.count) for part in jax.random.split(key))
        worlds = jax.vmap(game.determinize, in_axes=(None, None, 0))(state, player, one)
        found = jax.vmap(self.search)(worlds, other)
        actions, shares = found.actions.ravel(), found.policy.ravel() / self.count
        same = actions[:, None] == actions[None]
        total = jnp.sum(jnp.where(same, shares[None], 0.0), axis=1)
        index = jnp.arange(actions.shape[0])
        first = ~jnp.any(same & (index[None] < index[:, None]), axis=1) & (actions >= 0)
        policy = jnp.where(first, total, 0.0)
        best = first_highest(jnp.where(first, policy, -1.0))
        return actions[best], actions, policy
