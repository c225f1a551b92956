"""Self-play: thousands of games at once, searched, moved, recorded and restarted in one compiled loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from experiments.config import Config
from experiments.networks import Model, predict
from experiments.training.loss import entropy
from experiments.training.replay import UNKNOWN, Positions
from search import (
    AgentSpec,
    Determinized,
    Evaluator,
    GumbelRule,
    PolicyOutput,
    PuctRule,
    Search,
    SearchSettings,
    SelectionRule,
    build,
    has_hidden_information,
    network_evaluator,
    playout_evaluator,
    sample_candidates,
)
from tilewe_jax.game import Game

State = TypeVar("State")
Searcher = Callable[[Any, PRNGKeyArray], PolicyOutput]
"""What searches one position."""

_PLAYED_OUT = 10
"""One game in so many is played to its end where others are given up, to see how often that would be wrong."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Games(Generic[State]):
    """Games under way, ``[lanes, ...]``."""

    state: State
    key: PRNGKeyArray
    ply: Int32[Array, "lanes"]
    """Moves played."""
    number: Int32[Array, "lanes"]
    """Games begun in the lane before this one."""
    winner: Int32[Array, "lanes"]
    """The seat for which the others would have given up, in games that are played out all the same; else -1."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tally:
    """Sums over the moves and the games of a round; P players."""

    moves: Int32[Array, ""]
    full: Int32[Array, ""]
    """Moves that were searched for in full."""
    entropy: Float32[Array, ""]
    """Of the improved policies of these, in nats."""
    surprise: Float32[Array, ""]
    games: Int32[Array, ""]
    """Games that ended."""
    plies: Int32[Array, ""]
    """Their moves."""
    returns: Float32[Array, "P"]
    given_up: Int32[Array, ""]
    """Games given up."""
    checked: Int32[Array, ""]
    """Games that would have been given up, but were played out."""
    wrong: Int32[Array, ""]
    """Those that the seat did not win for which the others would have given up."""


def begin(game: Game[State], key: PRNGKeyArray, lanes: int) -> Games[State]:
    """New games."""
    first, key = jax.random.split(key)
    none = jnp.zeros(lanes, jnp.int32)
    return Games(jax.vmap(game.init)(jax.random.split(first, lanes)), jax.random.split(key, lanes), none, none, none - 1)


def searcher(config: Config, game: Game[Any], evaluate: Evaluator, simulations: int, noise: bool = True) -> Searcher:
    """The search of a run; without ``noise`` as it is tested, and as fast searches are made."""
    worlds = config.worlds if has_hidden_information(game) else 1
    settings = SearchSettings(
        num_simulations=max(1, simulations // worlds),
        num_candidates=config.candidates,
        candidate_pool=config.pool,
        max_depth=config.depth,
        score_weight=config.margin,
    )
    search = Search(game, evaluate, selection(config, noise), settings)
    if has_hidden_information(game):
        return Determinized(search, worlds)
    return lambda state, key: search(state, key).policy_output


def selection(config: Config, noise: bool) -> SelectionRule:
    """How candidates are chosen."""
    if config.search == "gumbel":
        return GumbelRule(config.considered, gumbel_scale=1.0 if noise else 0.0)
    alpha = config.dirichlet / config.candidates
    return PuctRule(dirichlet_alpha=alpha, forced_playouts=2.0) if noise else PuctRule()


def evaluator(config: Config, game: Game[Any], model: Model) -> Evaluator:
    """The network as what looks at leaves."""
    return network_evaluator(game, lambda seen: predict(model, seen, config.margin))


def players(config: Config, game: Game[Any], evaluate: Evaluator) -> tuple[Searcher, Searcher | None]:
    """Who plays: the full search, and the fast one where there are such."""
    fast = searcher(config, game, evaluate, config.fast_simulations, noise=False) if config.fast_simulations else None
    return searcher(config, game, evaluate, config.simulations), fast


def teachers(config: Config, game: Game[Any]) -> tuple[Searcher, Searcher | None]:
    """Who plays before there is a network to ask: searches by playouts, or a player of the game."""
    if not config.teacher:
        evaluate = playout_evaluator(game, priors=True, num_samples=config.teacher_samples, score_weight=config.margin)
        return players(config, game, evaluate)
    nothing = jnp.full(game.num_players, UNKNOWN)

    def glance(state: Any, key: PRNGKeyArray) -> PolicyOutput:
        one, other = jax.random.split(key)
        logits = partial(game.heuristic_logits, state)
        found = sample_candidates(game, state, logits, one, config.candidates, config.pool)
        policy = jnp.where(found.actions >= 0, jax.nn.softmax(found.logits), 0.0)
        chosen = jax.random.categorical(other, found.logits)
        return PolicyOutput(found.actions[chosen], found.actions, policy, policy, nothing)

    def imitate(state: Any, key: PRNGKeyArray) -> PolicyOutput:
        one, other = jax.random.split(key)
        action = policy(state, one)
        # Next to what it does stand others, of which the network learns that the teacher does not do them.
        rest = game.sample_actions(state, other, config.candidates - 1)
        actions = jnp.concatenate([action[None], jnp.where(rest == action, -1, rest)])
        there = (actions >= 0).astype(jnp.float32)
        chosen = there * (jnp.arange(config.candidates) == 0).astype(jnp.float32)
        return PolicyOutput(action, actions, there / jnp.maximum(jnp.sum(there), 1.0), chosen, nothing)

    if config.teacher == "glance":
        return glance, None
    policy = build(AgentSpec.parse(config.teacher), game)
    return imitate, None


def play(
    config: Config, game: Game[State], by: tuple[Searcher, Searcher | None], games: Games[State], key: PRNGKeyArray
) -> tuple[Games[State], Positions[State], Bool[Array, "T lanes"], Tally]:
    """Play ``config.steps`` moves in every lane, ``by`` a full and a fast search; where a game ends, the next one starts.

    ``key`` is the same for all parts of a divided batch: whether a move is searched for in full is decided for all lanes alike,
    since a batch takes as long as its longest search. All else follows from the keys of the lanes.

    Returns the games, the positions searched, which of them was the last of its game, and sums for the report.
    """
    full, fast = jax.vmap(by[0]), jax.vmap(by[1]) if by[1] else None

    def move(games: Games[State], key: PRNGKeyArray) -> tuple[Games[State], tuple[Positions[State], Array, Tally]]:
        keys = jax.vmap(partial(jax.random.split, num=4))(games.key)
        if fast:
            in_full = jax.random.uniform(key) < config.full_share
            found = lax.cond(in_full, full, fast, games.state, keys[:, 0])
        else:
            in_full = jnp.asarray(True)
            found = full(games.state, keys[:, 0])
        action = jax.vmap(partial(_draw, config))(found, games.ply, keys[:, 1])
        state = jax.vmap(game.apply)(games.state, action)
        over = jax.vmap(game.is_terminal)(state)
        returns = jax.vmap(game.returns)(state)
        margin = jax.vmap(game.heuristic_value)(state)

        # Who is as good as beaten gives up; one game in so many goes on to see whether that is right.
        best = jnp.argmax(found.value, axis=1).astype(jnp.int32)
        clear = (jnp.max(found.value, axis=1) >= config.resign) & (config.resign > 0)
        goes_on = games.number % _PLAYED_OUT == 0
        gives_up = clear & ~goes_on & ~over
        winner = jnp.where(clear & goes_on & (games.winner < 0), best, games.winner)
        returns = jnp.where(gives_up[:, None], jax.nn.one_hot(best, game.num_players), returns)
        margin = jnp.where(gives_up[:, None], found.value, margin)
        ended = over | gives_up

        surprise = jax.vmap(_surprise)(found)
        moved = Positions(
            state=games.state,
            actions=found.candidates,
            policy=found.policy,
            values=found.value,
            surprise=jnp.where(in_full, surprise, -1.0),
            game=games.number,
            returns=jnp.where(ended[:, None], returns, 0.0),
            margin=jnp.where(ended[:, None], margin, 0.0),
            known=ended,
        )
        count, ends = partial(jnp.sum, dtype=jnp.int32), ended.astype(jnp.int32)
        checked = ended & (winner >= 0)
        won = jnp.take_along_axis(returns, jnp.maximum(winner, 0)[:, None], axis=1)[:, 0]
        weight = in_full.astype(jnp.float32)
        tally = Tally(
            moves=count(jnp.ones_like(ended)),
            full=count(jnp.broadcast_to(in_full, ended.shape)),
            entropy=weight * jnp.sum(jax.vmap(entropy)(found.policy)),
            surprise=weight * jnp.sum(surprise),
            games=count(ends),
            plies=count(ends * (games.ply + 1)),
            returns=jnp.sum(moved.returns, axis=0),
            given_up=count(gives_up),
            checked=count(checked),
            wrong=count(checked & (won < 1)),
        )
        fresh = jax.vmap(game.init)(keys[:, 2])
        state = jax.tree.map(lambda new, old: jnp.where(ended.reshape(-1, *[1] * (old.ndim - 1)), new, old), fresh, state)
        games = Games(
            state,
            keys[:, 3],
            jnp.where(ended, 0, games.ply + 1),
            games.number + ends,
            jnp.where(ended, -1, winner),
        )
        return games, (moved, ended, tally)

    games, (moved, ended, tally) = lax.scan(move, games, jax.random.split(key, config.steps))
    return games, moved, ended, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), tally)


def _draw(config: Config, found: PolicyOutput, ply: Int32[Array, ""], key: PRNGKeyArray) -> Int32[Array, ""]:
    """The move: in the first plies drawn from the policy, then the one that the search would play."""
    logits = jnp.where(found.policy > 0, jnp.log(found.policy), -jnp.inf) / config.temperature
    drawn = found.candidates[jax.random.categorical(key, logits)]
    return jnp.where((ply < config.temperature_plies) & jnp.any(found.policy > 0), drawn, found.action)


def _surprise(found: PolicyOutput) -> Float32[Array, ""]:
    """The divergence of the improved policy from the prior."""
    ratio = jnp.log(jnp.maximum(found.policy, 1e-9)) - jnp.log(jnp.maximum(found.prior_probs, 1e-9))
    return jnp.maximum(jnp.sum(jnp.where(found.policy > 0, found.policy * ratio, 0.0)), 0.0)
