"""The agents of a training run: searches with its network, policies of the warm-up, and the opponent."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents import Agent, agent
from tilewe_jax.game import Action, Game, Policy
from tilewe_jax.networks import Model
from tilewe_jax.networks.weights import TrainedNetwork
from tilewe_jax.search import (
    Determinized,
    Evaluator,
    EvaluatorSettings,
    GumbelRule,
    PolicyOutput,
    PuctRule,
    Search,
    playout_evaluator,
    sample_candidates,
)
from tilewe_jax.training.config import SelfplayConfig
from tilewe_jax.training.replay import UNKNOWN
from tilewe_jax.utils.words import did_you_mean

State = TypeVar("State")

Searcher = Callable[..., PolicyOutput]
"""``searcher(state, key, params=None)`` returns an action with an improved policy and a value. ``params`` are those of the
evaluator."""
Agents = tuple[Searcher, Searcher | None]
"""A full search, and a fast search or ``None``."""

HEURISTIC = "heuristic"
"""Name of the warm-up policy that samples from ``Game.heuristic_logits``."""


def searcher(
    config: SelfplayConfig, game: Game[Any], evaluator: Evaluator, num_simulations: int, explore: bool = True
) -> Searcher:
    """Return the search of a run. Evaluations and fast searches have no exploration noise (``explore=False``)."""
    determinizations = config.num_determinizations if game.has_hidden_information else 1
    settings = replace(config.search, num_simulations=max(1, num_simulations // determinizations))
    search = Search(game, evaluator, rule(config, explore), settings)
    if game.has_hidden_information:
        return Determinized(search, determinizations)
    return lambda state, key, params=None: search(state, key, params).policy_output


def rule(config: SelfplayConfig, explore: bool) -> GumbelRule | PuctRule:
    """Return the action selection of the search; noise and forced playouts need ``explore``."""
    if config.rule == "gumbel":
        return config.gumbel if explore else replace(config.gumbel, gumbel_scale=0.0)
    return config.puct if explore else replace(config.puct, dirichlet_alpha=0.0, forced_playouts=0.0)


def network_of(config: SelfplayConfig, model: Model) -> TrainedNetwork:
    """Return the network of a run as the parameters of its ``evaluator``."""
    return TrainedNetwork(model, config.search.score_weight or 0.0)


def evaluator(config: SelfplayConfig, game: Game[Any]) -> Evaluator:
    """Return the evaluator of a run: a network, given as its parameters, with playouts mixed into the values if configured."""
    settings = EvaluatorSettings(
        num_samples=config.warmup_samples,
        network="the network of the run",
        playout_weight=config.playout_weight,
        playout_max_legal=config.playout_max_legal,
    )
    return settings.build(game, config.search.score_weight or 0.0)


def check_warmup(config: SelfplayConfig, game: Game[Any]) -> None:
    """Raise ``ValueError`` if the game does not have the warm-up policy."""
    if config.warmup_policy not in ("", HEURISTIC):
        _warmup_policy(config, game)


def opponent_policy(config: SelfplayConfig, game: Game[Any]) -> Policy | None:
    """Return the policy of ``config.opponent`` as a pytree of its weights, or ``None`` without an opponent.

    Raises ``ValueError`` for unknown agents, agents that decide on the host, and games with a single player.
    """
    if not config.opponent:
        return None
    if game.num_players < 2:
        raise ValueError(f"selfplay.opponent needs a game with at least 2 players, got {game.id} with {game.num_players}")
    opponent = agent(config.opponent, game)
    if opponent.player:
        raise ValueError(
            f"selfplay.opponent must be an agent that decides on the device; {config.opponent!r} decides on the host"
        )
    return jax.tree_util.Partial(Agent.act, opponent)


def legal_action(game: Game[State], policy: Policy, state: State, key: PRNGKeyArray) -> Action:
    """Return the action of a policy, or a random legal action if the policy chose an illegal one."""
    key_action, key_random = jax.random.split(key)
    action = policy(state, key_action)
    return jnp.where(game.is_legal(state, action), action, game.sample_action(state, key_random))


def full_and_fast(config: SelfplayConfig, game: Game[Any], evaluator: Evaluator) -> Agents:
    """Return the full search, and the fast search if fast searches are configured."""
    fast = searcher(config, game, evaluator, config.fast_simulations, explore=False) if config.fast_simulations else None
    return searcher(config, game, evaluator, config.search.num_simulations), fast


def warmup_agents(config: SelfplayConfig, game: Game[Any]) -> Agents:
    """Return the agents of the warm-up: searches with playouts, or a policy without search."""
    if not config.warmup_policy:
        weight = config.search.score_weight or 0.0
        evaluator = playout_evaluator(game, priors=True, num_samples=config.warmup_samples, score_weight=weight)
        return full_and_fast(config, game, evaluator)
    if config.warmup_policy == HEURISTIC:
        return _heuristic(config, game), None
    return _imitation(config, game), None


def _heuristic(config: SelfplayConfig, game: Game[Any]) -> Searcher:
    """Return an agent that samples from the game's heuristic logits; its policy is their softmax over the candidates."""
    settings, unknown = config.search, jnp.full(game.num_players, UNKNOWN, jnp.float32)

    def decide(state: Any, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        del params
        key_candidates, key_action = jax.random.split(key)
        logits = partial(game.heuristic_logits, state)
        candidates = sample_candidates(game, state, logits, key_candidates, settings.num_candidates, settings.candidate_pool)
        policy = jnp.where(candidates.actions >= 0, jax.nn.softmax(candidates.logits), 0.0)
        chosen = jax.random.categorical(key_action, candidates.logits)
        return PolicyOutput(candidates.actions[chosen], candidates.actions, policy, policy, unknown)

    return decide


def _imitation(config: SelfplayConfig, game: Game[Any]) -> Searcher:
    """Return an agent that plays a policy of the game; its policy is one-hot among random other candidates."""
    policy, unknown = _warmup_policy(config, game), jnp.full(game.num_players, UNKNOWN, jnp.float32)
    count = config.search.num_candidates

    def decide(state: Any, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        del params
        key_action, key_others = jax.random.split(key)
        action = policy(state, key_action)
        others = game.sample_actions(state, key_others, count - 1)
        actions = jnp.concatenate([action[None], jnp.where(others == action, -1, others)])
        valid = (actions >= 0).astype(jnp.float32)
        target = valid * (jnp.arange(count, dtype=jnp.int32) == 0).astype(jnp.float32)
        return PolicyOutput(action, actions, valid / jnp.maximum(jnp.sum(valid), 1.0), target, unknown)

    return decide


def _warmup_policy(config: SelfplayConfig, game: Game[Any]) -> Policy:
    """Return the policy of the game that plays in the warm-up. Raises ``ValueError`` for unknown names."""
    policies = game.policies()
    if config.warmup_policy not in policies:
        known, given = [HEURISTIC, *policies], config.warmup_policy
        hint = did_you_mean(given, known)
        raise ValueError(f"selfplay.warmup_policy for {game.id} must be one of {', '.join(known)}, not {given!r}{hint}")
    return policies[config.warmup_policy]
