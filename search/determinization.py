"""Searches for games with hidden information: several worlds that the mover cannot tell apart, one search each.

In each world the search knows everything, the others' trays included, and so it plans as if it would know then which world it
is in, and values hiding and finding out too little (strategy fusion, Frank and Basin 1998). Adding up over worlds helps against
chance in the sample, not against that.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray

from search.mcts import Decision, Search
from search.tree import check_counts
from tilewe_jax.game import Game

State = TypeVar("State")


def is_hidden(game: Game[Any]) -> bool:
    """Whether players of the game do not see all."""
    return game.has_hidden_information


@dataclass(frozen=True)
class Worlds(Generic[State]):
    """A search of sampled worlds. Raises ``ValueError`` for less than one."""

    search: Search[State]
    count: int = 4

    def __post_init__(self) -> None:
        check_counts(worlds=self.count)

    def __call__(self, state: State, key: PRNGKeyArray) -> Decision:
        """What to play: of the candidates of all worlds the K that have the highest shares of the policy on average."""
        game = self.search.game
        player = game.current_player(state)
        one, other = (jax.random.split(part, self.count) for part in jax.random.split(key))
        worlds = jax.vmap(game.determinize, in_axes=(None, None, 0))(state, player, one)
        found = jax.vmap(self.search)(worlds, other)
        actions = found.actions.ravel()
        same = actions[:, None] == actions[None]
        index = jnp.arange(actions.shape[0])
        first = ~jnp.any(same & (index[None] < index[:, None]), axis=1) & (actions >= 0)

        def mean(shares: Float32[Array, "D K"]) -> Float32[Array, "D*K"]:
            total = jnp.sum(jnp.where(same, shares.ravel()[None] / self.count, 0.0), axis=1)
            return jnp.where(first, total, -1.0)

        policy, best = jax.lax.top_k(mean(found.policy), self.search.candidates)
        there = policy >= 0
        return Decision(
            action=actions[best[0]],
            actions=jnp.where(there, actions[best], -1),
            prior=jnp.where(there, mean(found.prior)[best], 0.0),
            policy=jnp.where(there, policy, 0.0),
            values=jnp.mean(found.values, axis=0),
        )
