"""Search of games with hidden information by determinization (perfect-information Monte Carlo, PIMC).

Several determinizations (positions that the player to move cannot tell apart) are searched separately, each with perfect
information. The search therefore assumes that the player will know the hidden information later (strategy fusion, Frank and
Basin 1998). More determinizations do not help against this; ``InformationSetSearch`` does.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.game import check_state
from tilewe_jax.search.mcts import Progress, Search
from tilewe_jax.search.output import PolicyOutput, SearchOutput
from tilewe_jax.settings import check_number
from tilewe_jax.utils.backends import require_backend

State = TypeVar("State")


@dataclass(frozen=True)
class Determinized(Generic[State]):
    """A search of sampled determinizations: ``search(state, key, params=None) -> PolicyOutput``.

    Each determinization is searched with ``num_simulations`` simulations. Raises ``ValueError`` for a number out of range.
    """

    search: Search[State]
    num_determinizations: int = 4

    def __post_init__(self) -> None:
        check_number("num_determinizations", self.num_determinizations, 1)

    def __call__(self, state: State, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        """Search a position using only the information of the player to move.

        The candidates of the output are the K actions with the highest mean policy over all determinizations; the first of
        them is the action.

        Args:
            state: the position; information hidden from the player to move is resampled.
            key: consumed.
            params: parameters of the evaluator.
        """
        return self.combine(self.search_each(state, key, params))

    def search_each(self, state: State, key: PRNGKeyArray, params: Any = None) -> SearchOutput[State]:
        """Return the search outputs of all determinizations, with a leading axis D; arguments as for ``__call__``."""
        states, keys = self._sample(state, key)
        outputs: SearchOutput[State] = jax.vmap(partial(self.search, params=params))(states, keys)
        return outputs

    def start(self, state: State, key: PRNGKeyArray) -> Progress[State]:
        """Start a search that runs in parts, see ``Search.start``."""
        states, keys = self._sample(state, key)
        progress: Progress[State] = jax.vmap(lambda state, key: self.search.start(self.search.init(state), key))(states, keys)
        return progress

    def advance(
        self, progress: Progress[State], params: Any = None, rounds: Int32[Array, ""] | int | None = None
    ) -> Progress[State]:
        """Run further rounds, see ``Search.advance``."""
        after: Progress[State] = jax.vmap(partial(self.search.advance, params=params, rounds=rounds))(progress)
        return after

    def finish(self, progress: Progress[State]) -> PolicyOutput:
        """Return the output after the rounds run so far."""
        return self.combine(jax.vmap(self.search.finish)(progress))

    def _sample(self, state: State, key: PRNGKeyArray) -> tuple[State, Key[Array, "D"]]:
        """Sample the determinizations, and a key for each search."""
        game = self.search.game
        require_backend()
        check_state(game, state)
        player = game.current_player(state)
        keys_determinize, keys_search = (jax.random.split(part, self.num_determinizations) for part in jax.random.split(key))
        return jax.vmap(game.determinize, in_axes=(None, None, 0))(state, player, keys_determinize), keys_search

    def combine(self, outputs: SearchOutput[State]) -> PolicyOutput:
        """Average the outputs of ``search_each``."""
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
