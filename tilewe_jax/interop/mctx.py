"""Two-player games in mctx: a root and a ``recurrent_fn`` whose nodes have K candidates instead of all actions.

    import mctx
    from tilewe_jax.interop.mctx import CandidateSearch

    search = CandidateSearch(tilewe_jax.make("duo"), num_candidates=64)
    root = search.root(params, root_key, states)
    output = mctx.gumbel_muzero_policy(
        params, key, root, search.recurrent_fn, num_simulations=32, invalid_actions=search.invalid_actions(root)
    )
    actions = search.actions(root, output.action)

An "action" of mctx is the index of a candidate, because trees of mctx contain six arrays ``[batch, nodes, actions]``: a
gigabyte per 20 games of Tilewe, with 36,400 actions and 64 simulations. Needs the extra ``[interop]``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.batching.environment import zero_sum
from tilewe_jax.game import Game, as_action, check_state
from tilewe_jax.search.evaluators import heuristic_evaluator
from tilewe_jax.utils.checks import check_count
from tilewe_jax.utils.extras import optional_import

mctx = optional_import("mctx")

LogitsFn = Callable[[Int32[Array, "k"]], Float32[Array, "k"]]
"""Logits of legal actions of one position."""
Evaluator = Callable[[Any, Any, PRNGKeyArray], tuple[LogitsFn, Float32[Array, "2"]]]
"""Maps parameters, one state and a key to the logits of its actions and the expected ``Game.returns``, like the evaluators of
``tilewe_jax.search``."""
Sampler = Callable[[Game[Any], Any, LogitsFn, PRNGKeyArray, int], tuple[Any, ...]]
"""Maps game, state, logits, key and K to candidates ``int32[K]``, padded with -1, their logits ``float32[K]``, and further
results, like ``search.candidates.sample_candidates``."""
MAX_POOL = 256
"""At most this many legal actions are scored per node by ``sample_top``; beyond that, a uniform sample of them."""


class Embedding(NamedTuple):
    """Embedding of a node: a state and its candidates, ``[batch, ...]``."""

    state: Any
    actions: Int32[Array, "batch K"]


@dataclass(frozen=True)
class CandidateSearch:
    """The functions that mctx needs from a two-player game. Raises ``ValueError`` for other games.

    Values are from -1 to 1, for the player to move. Discounts are -1 if the opponent moves next, 1 if the same player moves
    again after a forced pass, and 0 at the end.
    """

    game: Game[Any]
    num_candidates: int = 32
    evaluator: Evaluator | None = None
    """Defaults to the heuristics of the game, without parameters."""
    sampler: Sampler | None = None
    """Defaults to ``sample_top``."""

    def __post_init__(self) -> None:
        if self.game.num_players != 2:
            raise ValueError(f"mctx searches two-player games, got {self.game.id} for {self.game.num_players} players")
        check_count("num_candidates", self.num_candidates)

    def root(self, params: Any, key: PRNGKeyArray, states: Any) -> Any:
        """Return the ``mctx.RootFnOutput`` of states ``[batch, ...]``."""
        actions, logits, value = self._evaluate(params, key, states)
        return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=Embedding(states, actions))

    def recurrent_fn(
        self, params: Any, key: PRNGKeyArray, action: Int32[Array, "batch"], embedding: Embedding
    ) -> tuple[Any, Embedding]:
        """Play a candidate of each state, as the ``recurrent_fn`` of mctx."""
        states, reward, discount = jax.vmap(self._step)(embedding, action)
        actions, logits, value = self._evaluate(params, key, states)
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=logits, value=jnp.where(discount == 0, 0.0, value)
        )
        return output, Embedding(states, actions)

    def invalid_actions(self, root: Any) -> Bool[Array, "batch K"]:
        """Return the mask of unused candidate indices of a root."""
        return jnp.asarray(root.embedding.actions < 0)

    def actions(self, root: Any, index: Int32[Array, "batch"]) -> Int32[Array, "batch"]:
        """Convert candidate indices to actions of the game; -1 at the end of a game."""
        return jnp.take_along_axis(root.embedding.actions, index[:, None], axis=1)[:, 0]

    def _step(self, node: Embedding, index: Int32[Array, ""]) -> tuple[Any, Float32[Array, ""], Float32[Array, ""]]:
        game = self.game
        index = as_action(index)
        was_over, mover = game.is_terminal(node.state), game.current_player(node.state)
        after = game.apply(node.state, node.actions[index])
        is_over = game.is_terminal(after)
        outcome = zero_sum(game.returns(after), (is_over & ~was_over).astype(jnp.float32))
        goes_on = jnp.where(game.current_player(after) == mover, 1.0, -1.0)
        return after, outcome[mover], jnp.where(is_over, 0.0, goes_on)

    def _evaluate(self, params: Any, key: PRNGKeyArray, states: Any) -> tuple[Array, Array, Array]:
        """Return candidates, their logits, and the values of the players to move."""
        evaluator = self.evaluator or heuristic_evaluator(self.game)
        sampler = self.sampler or sample_top

        def evaluate(state: Any, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
            key_evaluator, key_sampler = jax.random.split(key)
            logits, values = evaluator(params, state, key_evaluator)
            actions, scores, *_ = sampler(self.game, state, logits, key_sampler, self.num_candidates)
            lowest = jnp.finfo(jnp.float32).min
            value = 2 * values[self.game.current_player(state)] - 1
            return actions, jnp.where(actions >= 0, jnp.maximum(scores, lowest), lowest), value

        batch = jax.tree.leaves(states)[0].shape[0]
        check_state(self.game, states, (batch,))
        return jax.vmap(evaluate)(states, jax.random.split(key, batch))


def sample_top(
    game: Game[Any], state: Any, logits: LogitsFn, key: PRNGKeyArray, num_candidates: int
) -> tuple[Int32[Array, "K"], Float32[Array, "K"]]:
    """Return all legal actions, or K sampled without replacement by softmax(logits), as the top K of logits + Gumbel noise."""
    key_actions, key_noise = jax.random.split(key)
    actions = game.sample_actions(state, key_actions, max(num_candidates, min(MAX_POOL, game.num_actions)))
    scores = jnp.where(actions >= 0, logits(actions), -jnp.inf)
    _, best = jax.lax.top_k(scores + jax.random.gumbel(key_noise, scores.shape, jnp.float32), num_candidates)
    return actions[best], scores[best]
