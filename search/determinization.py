"""Search of games with hidden information by determinization (perfect-information Monte Carlo, PIMC).

Several determinizations, positions that the mover cannot tell apart, are searched separately. In each of them the search knows
everything, what others hide included, and so it plans as if the mover would know later which one is real, and values hiding and
finding out too little (strategy fusion, Frank and Basin 1998). Adding up over determinizations helps against chance in the
sample, not against that; ``InformationSetSearch`` does.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, PRNGKeyArray

from tilewe_jax.game import check_state
from tilewe_jax.search.mcts import Search
from tilewe_jax.search.output import PolicyOutput, SearchOutput
from tilewe_jax.search.settings import check_number
from tilewe_jax.utils.backends import require_backend

State = TypeVar("State")


@dataclass(frozen=True)
class Determinized(Generic[State]):
    """A search of sampled determinizations: ``search(state, key, params=None) -> PolicyOutput``.

    Every determinization is searched with all simulations of the settings. Raises ``ValueError`` for less than one.
    """

    search: Search[State]
    num_determinizations: int = 4

    def __post_init__(self) -> None:
        check_number("num_determinizations", self.num_determinizations, 1)

    def __call__(self, state: State, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        """Search what the mover knows of a position.

        Of the candidates of all determinizations, the K with the highest mean policy are the candidates of the output, and the
        first of them is the action.

        Args:
            state: the position; what its mover cannot see makes no difference.
            key: consumed.
            params: parameters of the evaluator.
        """
        return self.combine(self.search_each(state, key, params))

    def search_each(self, state: State, key: PRNGKeyArray, params: Any = None) -> SearchOutput[State]:
        """The outputs of the determinizations' searches, with a leading axis for them; arguments as for a call."""
        game = self.search.game
        require_backend()
        check_state(game, state)
        player = game.current_player(state)
        keys_determinize, keys_search = (jax.random.split(part, self.num_determinizations) for part in jax.random.split(key))
        states = jax.vmap(game.determinize, in_axes=(None, None, 0))(state, player, keys_determinize)
        outputs: SearchOutput[State] = jax.vmap(partial(self.search, params=params))(states, keys_search)
        return outputs

    def combine(self, outputs: SearchOutput[State]) -> PolicyOutput:
        """The output of a call, of those of ``search_each``."""
        actions = outputs.candidates.ravel()
        same = actions[:, None] == actions[None]
        index = jnp.arange(actions.shape[0], dtype=jnp.int32)
        is_first = ~jnp.any(same & (index[None] < index[:, None]), axis=1) & (actions >= 0)

        def mean_by_action(probs: Float32[Array, "D K"]) -> Float32[Array, "D*K"]:
            total = jnp.sum(jnp.where(same, probs.ravel()[None] / self.num_determinizations, 0.0), axis=1)
            return jnp.where(is_first, total, -1.0)

        policy, best = jax.lax.top_k(mean_by_action(outputs.policy), self.search.settings.num_candidates)
        available = policy >= 0
        return PolicyOutput(
            action=actions[best[0]],
            candidates=jnp.where(available, actions[best], -1),
            prior_probs=jnp.where(available, mean_by_action(outputs.prior_probs)[best], 0.0),
            policy=jnp.where(available, policy, 0.0),
            value=jnp.mean(outputs.value, axis=0),
        )
