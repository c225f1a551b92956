"""The agents of a training run: its search with a network, as self-play and as evaluation use it, and those of the warm-up."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from experiments.config import SelfplayConfig
from experiments.networks import Model, predict
from experiments.training.replay import UNKNOWN
from search.agents import agent
from search.candidates import candidates
from search.determinization import Worlds, is_hidden
from search.evaluators import Evaluator, network, playouts
from search.gumbel import Gumbel
from search.mcts import Decision, Search, Selection
from search.puct import Puct
from tilewe_jax.game import Game

Searcher = Callable[[Any, PRNGKeyArray], Decision]
"""Maps one position and a key to an action with an improved policy and a value."""

HEURISTIC = "heuristic"
"""Names the warm-up policy that draws from ``Game.heuristic_logits``."""


def searcher(
    config: SelfplayConfig, game: Game[Any], evaluator: Evaluator, num_simulations: int, explore: bool = True
) -> Searcher:
    """The search of a run; without ``explore`` it draws no noise, as in evaluations and fast searches."""
    determinizations = config.num_determinizations if is_hidden(game) else 1
    each = max(1, num_simulations // determinizations)
    settings = config.search
    search = Search(
        game,
        evaluator,
        rule(config, each, explore),
        each,
        settings.num_candidates,
        settings.max_depth,
        pool=settings.candidate_pool,
        margin=settings.score_weight,
    )
    if is_hidden(game):
        return Worlds(search, determinizations)
    return lambda state, key: search(state, key).decision


def rule(config: SelfplayConfig, num_simulations: int, explore: bool) -> Selection:
    """Action selection of the search, without its noise and forced playouts unless it explores."""
    if config.rule == "gumbel":
        gumbel = config.gumbel if explore else replace(config.gumbel, gumbel_scale=0.0)
        return Gumbel(
            num_simulations,
            considered=gumbel.max_num_considered_actions,
            scale=gumbel.gumbel_scale,
            value_scale=gumbel.value_scale,
            visits_offset=gumbel.maxvisit_init,
        )
    puct = config.puct if explore else replace(config.puct, dirichlet_alpha=0.0, forced_playouts=0.0)
    return Puct(
        exploration=puct.c_init,
        exploration_base=puct.c_base,
        unvisited=puct.fpu_value,
        reduction=puct.fpu_reduction,
        dirichlet_alpha=puct.dirichlet_alpha,
        dirichlet_share=puct.dirichlet_fraction,
        forced=puct.forced_playouts,
        temperature=puct.temperature,
    )


def network_evaluator(config: SelfplayConfig, game: Game[Any], model: Model) -> Evaluator:
    """The network as evaluator of leaves."""
    return network(game, lambda observation: predict(model, observation, config.search.score_weight))


def full_and_fast(config: SelfplayConfig, game: Game[Any], evaluator: Evaluator) -> tuple[Searcher, Searcher | None]:
    """The full search, and the fast one where there is one."""
    fast = searcher(config, game, evaluator, config.fast_simulations, explore=False) if config.fast_simulations else None
    return searcher(config, game, evaluator, config.search.num_simulations), fast


def warmup_agents(config: SelfplayConfig, game: Game[Any]) -> tuple[Searcher, Searcher | None]:
    """Agents of the warm-up, as ``full_and_fast`` gives them: searches with playouts, or a policy without search."""
    if not config.warmup_policy:
        evaluator = playouts(game, 1, priors=True, samples=config.warmup_samples, margin=config.search.score_weight)
        return full_and_fast(config, game, evaluator)
    if config.warmup_policy == HEURISTIC:
        return _heuristic(config, game), None
    return _imitation(config, game), None


def _heuristic(config: SelfplayConfig, game: Game[Any]) -> Searcher:
    """Draws from the game's heuristic logits; the policy to learn is their softmax over the candidates."""
    settings, unknown = config.search, jnp.full(game.num_players, UNKNOWN)

    def decide(state: Any, key: PRNGKeyArray) -> Decision:
        key_candidates, key_action = jax.random.split(key)
        logits = partial(game.heuristic_logits, state)
        drawn = candidates(game, state, logits, key_candidates, settings.num_candidates, settings.candidate_pool)
        policy = jnp.where(drawn.actions >= 0, jax.nn.softmax(drawn.logits), 0.0)
        chosen = jax.random.categorical(key_action, drawn.logits)
        return Decision(drawn.actions[chosen], drawn.actions, policy, policy, unknown)

    return decide


def _imitation(config: SelfplayConfig, game: Game[Any]) -> Searcher:
    """Plays a policy of the game; the policy to learn is its action, among random others that it does not play."""
    policy, unknown = agent(game, config.warmup_policy), jnp.full(game.num_players, UNKNOWN)
    count = config.search.num_candidates

    def decide(state: Any, key: PRNGKeyArray) -> Decision:
        key_action, key_others = jax.random.split(key)
        action = policy(state, key_action)
        others = game.sample_actions(state, key_others, count - 1)
        actions = jnp.concatenate([action[None], jnp.where(others == action, -1, others)])
        valid = (actions >= 0).astype(jnp.float32)
        target = valid * (jnp.arange(count) == 0).astype(jnp.float32)
        return Decision(action, actions, valid / jnp.maximum(jnp.sum(valid), 1.0), target, unknown)

    return decide
