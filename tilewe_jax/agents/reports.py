"""Root statistics of a search: values, candidates, principal variations, and the score lead; functions of one position."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

from tilewe_jax.agents.spec import AgentSpec, AnySearch
from tilewe_jax.game import Game
from tilewe_jax.search import Determinized, Search, SearchOutput
from tilewe_jax.search.evaluators import play_out, playout_moves
from tilewe_jax.search.tree import ROOT, child_values, principal_variation

VARIATION_LENGTH = 16
"""Maximum number of actions of a principal variation."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RootReport:
    """Root statistics of one position: D trees (determinizations), K candidates, P players, L plies."""

    action: Int32[Array, ""]
    """The action to play; -1 if the game is over."""
    value: Float32[Array, "P"]
    """Mean value of the root."""
    candidates: Int32[Array, "D K"]
    """Action ids, padded with -1."""
    prior: Float32[Array, "D K"]
    visits: Int32[Array, "D K"]
    child_value: Float32[Array, "D K P"]
    """Mean values of the candidates; 0 without visits."""
    variations: Int32[Array, "D K L"]
    """Principal variations of the candidates, padded with -1."""


def search_report(search: AnySearch, state: Any, key: PRNGKeyArray, params: Any) -> RootReport:
    """Search one position and return its root statistics.

    With hidden information a principal variation is the candidate alone, because replies differ between determinizations.
    """
    if isinstance(search, Search):
        return report_of_tree(search(state, key, params))
    if isinstance(search, Determinized):
        outputs = search.search_each(state, key, params)
        reports = jax.vmap(partial(report_of_tree, length=1))(outputs)
        merged: RootReport = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), reports)  # D is 1 in each report
        return replace(merged, action=search.combine(outputs).action, value=jnp.mean(outputs.value, axis=0))
    output, tree = search.search(state, key, params)
    visits, values = child_values(tree.visits, tree.value_sum, tree.children[ROOT])
    fields = output.candidates, output.prior_probs, visits, values, output.candidates[:, None]
    return RootReport(output.action, output.value, *(leaf[None] for leaf in fields))


def restricted_report(
    search: Search[Any], state: Any, key: PRNGKeyArray, allowed: Int32[Array, "A"], params: Any
) -> RootReport:
    """Search one position with some actions only at the root, and return its root statistics.

    Args:
        search: the search.
        state: the position.
        key: consumed.
        allowed: ids of legal actions, padded with -1. The K actions with the highest priors are the candidates.
        params: parameters of the evaluator.
    """
    key_search, key_ties = jax.random.split(key)
    progress = search.advance(search.start(search.init(state), key_search), params, 0)  # evaluates the root
    logits, _ = search.evaluator(params, state, key_search)
    ties = jax.random.uniform(key_ties, allowed.shape, jnp.float32, 0, 1e-4)
    scores = jnp.where(allowed >= 0, logits(allowed) + ties, -jnp.inf)
    count = min(search.settings.num_candidates, allowed.shape[0])
    scores, best = jax.lax.top_k(scores, count)
    padding = (0, search.settings.num_candidates - count)
    actions = jnp.pad(allowed[best], padding, constant_values=-1)
    prior = search.rule.store_logits(jnp.pad(scores, padding, constant_values=-jnp.inf))
    tree = progress.tree
    tree = replace(tree, candidates=tree.candidates.at[ROOT].set(actions), prior=tree.prior.at[ROOT].set(prior))
    progress = replace(progress, tree=tree, noise=search.rule.root_noise(prior, progress.keys[0]))
    return report_of_tree(search.finish(search.advance(progress, params)))


def report_of_tree(output: SearchOutput[Any], length: int = VARIATION_LENGTH) -> RootReport:
    """Return the root statistics of one tree, with D = 1."""
    tree = output.tree
    visits, values = child_values(tree.visits, tree.value_sum, tree.children[ROOT])
    indices = jnp.arange(visits.shape[0], dtype=jnp.int32)
    variations = jax.vmap(lambda index: principal_variation(tree, index, length))(indices)
    fields = output.candidates, output.prior_probs, visits, values, variations
    return RootReport(output.action, output.value, *(leaf[None] for leaf in fields))


def score_lead(
    game: Game[Any], spec: AgentSpec, num_playouts: int, state: Any, action: Int32[Array, ""], key: PRNGKeyArray
) -> Float32[Array, "P"]:
    """Return the mean final margin of each seat over the best other seat, in playouts after an action.

    The playouts use the evaluator settings of the agent. With hidden information, each starts from another determinization.

    Args:
        game: the game.
        spec: the agent.
        num_playouts: number of playouts.
        state: the position.
        action: the first action; -1 if the game is over.
        key: consumed.
    """
    choose, apply = playout_moves(game, spec.evaluator.policy(game), spec.evaluator.num_samples)
    player = game.current_player(state)

    def margin(key: PRNGKeyArray) -> Float32[Array, "P"]:
        key_determinize, key_play = jax.random.split(key)
        possible = game.determinize(state, player, key_determinize) if game.has_hidden_information else state
        last = play_out(game, choose, apply, game.apply(possible, action), key_play)
        scores = game.scores(last)
        rivals = jnp.where(jnp.eye(game.num_players, dtype=jnp.bool_), jnp.iinfo(jnp.int32).min, scores[None])
        return (scores - jnp.max(rivals, axis=1)).astype(jnp.float32)

    return jnp.mean(jax.vmap(margin)(jax.random.split(key, num_playouts)), axis=0)
