"""Self-play: thousands of games at once, searched, moved, recorded and restarted in one compiled loop."""

from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from experiments.config import SelfplayConfig
from experiments.training.agents import Searcher
from experiments.training.loss import entropy
from experiments.training.replay import Positions
from search import PolicyOutput
from tilewe_jax.batching import auto_reset
from tilewe_jax.game import Game

State = TypeVar("State")

_PLAYED_OUT_DIVISOR = 10
"""One game in so many is played to its end although seats would resign, to count false resignations."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfplayState(Generic[State]):
    """The G games under way, ``[G, ...]``."""

    state: State
    """States of the games."""
    key: PRNGKeyArray
    """One key per game."""
    ply: Int32[Array, "G"]
    """Number of moves played in the game."""
    game_index: Int32[Array, "G"]
    """Number of games finished before this one."""
    winner: Int32[Array, "G"]
    """The seat to which the others would have resigned, in games that are played out all the same; else -1."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfplayStats:
    """Sums over the moves and the finished games of an iteration; P players."""

    moves: Int32[Array, ""]
    """Number of moves."""
    full_searches: Int32[Array, ""]
    """Number of moves of a full search."""
    entropy: Float32[Array, ""]
    """Sum of the entropies of the improved policies of full searches, in nats."""
    surprise: Float32[Array, ""]
    """Sum of the divergences of these policies from their priors, in nats."""
    games: Int32[Array, ""]
    """Number of finished games."""
    plies: Int32[Array, ""]
    """Number of moves of these games."""
    returns: Float32[Array, "P"]
    """Sum of their returns by seat."""
    resigned: Int32[Array, ""]
    """Number of games that ended by resignation."""
    resignations_checked: Int32[Array, ""]
    """Number of games that were played out although seats would have resigned."""
    false_resignations: Int32[Array, ""]
    """Number of these that the seat to which the others would have resigned did not win."""


def begin(game: Game[State], key: PRNGKeyArray, num_games: int) -> SelfplayState[State]:
    """New games."""
    key_init, key = jax.random.split(key)
    none = jnp.zeros(num_games, jnp.int32)
    state = jax.vmap(game.init)(jax.random.split(key_init, num_games))
    return SelfplayState(state, jax.random.split(key, num_games), none, none, none - 1)


def play(
    config: SelfplayConfig,
    game: Game[State],
    agents: tuple[Searcher, Searcher | None],
    games: SelfplayState[State],
    key: PRNGKeyArray,
) -> tuple[SelfplayState[State], Positions[State], Bool[Array, "T G"], SelfplayStats]:
    """Play ``config.unroll_length`` moves in every game; where a game ends, the next one starts.

    Args:
        config: settings of self-play.
        game: the game.
        agents: a full and a fast search.
        games: the games under way.
        key: the same for all parts of a divided batch: whether a move is searched in full is decided for all games alike,
            since a batch takes as long as its longest search. All else follows from the keys of the games.

    Returns the games, the positions searched, whether each of them was the last of its game, and statistics.
    """
    full, fast = jax.vmap(agents[0]), jax.vmap(agents[1]) if agents[1] else None

    def move(
        games: SelfplayState[State], key: PRNGKeyArray
    ) -> tuple[SelfplayState[State], tuple[Positions[State], Array, SelfplayStats]]:
        keys = jax.vmap(partial(jax.random.split, num=4))(games.key)
        if fast:
            in_full = jax.random.uniform(key) < config.full_search_prob
            result = lax.cond(in_full, full, fast, games.state, keys[:, 0])
        else:
            in_full = jnp.asarray(True)
            result = full(games.state, keys[:, 0])
        action = jax.vmap(partial(_draw, config))(result, games.ply, keys[:, 1])
        state = jax.vmap(game.apply)(games.state, action)
        over = jax.vmap(game.is_terminal)(state)
        returns = jax.vmap(game.returns)(state)
        score_value = jax.vmap(game.heuristic_value)(state)

        best = jnp.argmax(result.value, axis=1).astype(jnp.int32)
        decided = (jnp.max(result.value, axis=1) >= config.resign_threshold) & (config.resign_threshold > 0)
        played_out = games.game_index % _PLAYED_OUT_DIVISOR == 0
        resigns = decided & ~played_out & ~over
        winner = jnp.where(decided & played_out & (games.winner < 0), best, games.winner)
        returns = jnp.where(resigns[:, None], jax.nn.one_hot(best, game.num_players), returns)
        score_value = jnp.where(resigns[:, None], result.value, score_value)
        ended = over | resigns

        surprise = jax.vmap(_surprise)(result)
        positions = Positions(
            state=games.state,
            candidates=result.candidates,
            policy=result.policy,
            root_value=result.value,
            surprise=jnp.where(in_full, surprise, -1.0),
            game_index=games.game_index,
            returns=jnp.where(ended[:, None], returns, 0.0),
            score_value=jnp.where(ended[:, None], score_value, 0.0),
            finished=ended,
        )
        count, ends = partial(jnp.sum, dtype=jnp.int32), ended.astype(jnp.int32)
        checked = ended & (winner >= 0)
        won = jnp.take_along_axis(returns, jnp.maximum(winner, 0)[:, None], axis=1)[:, 0]
        weight = in_full.astype(jnp.float32)
        stats = SelfplayStats(
            moves=count(jnp.ones_like(ended)),
            full_searches=count(jnp.broadcast_to(in_full, ended.shape)),
            entropy=weight * jnp.sum(jax.vmap(entropy)(result.policy)),
            surprise=weight * jnp.sum(surprise),
            games=count(ends),
            plies=count(ends * (games.ply + 1)),
            returns=jnp.sum(positions.returns, axis=0),
            resigned=count(resigns),
            resignations_checked=count(checked),
            false_resignations=count(checked & (won < 1)),
        )
        games = SelfplayState(
            auto_reset(game, keys[:, 2], ended, state),
            keys[:, 3],
            jnp.where(ended, 0, games.ply + 1),
            games.game_index + ends,
            jnp.where(ended, -1, winner),
        )
        return games, (positions, ended, stats)

    games, (positions, ended, stats) = lax.scan(move, games, jax.random.split(key, config.unroll_length))
    return games, positions, ended, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), stats)


def _draw(config: SelfplayConfig, result: PolicyOutput, ply: Int32[Array, ""], key: PRNGKeyArray) -> Int32[Array, ""]:
    """The action to play: in the first plies drawn from the improved policy, later the one that the search chooses."""
    logits = jnp.where(result.policy > 0, jnp.log(result.policy), -jnp.inf) / config.temperature
    drawn = result.candidates[jax.random.categorical(key, logits)]
    return jnp.where((ply < config.temperature_plies) & jnp.any(result.policy > 0), drawn, result.action)


def _surprise(result: PolicyOutput) -> Float32[Array, ""]:
    """Kullback-Leibler divergence of the improved policy from the prior, in nats."""
    ratio = jnp.log(jnp.maximum(result.policy, 1e-9)) - jnp.log(jnp.maximum(result.prior_probs, 1e-9))
    return jnp.maximum(jnp.sum(jnp.where(result.policy > 0, result.policy * ratio, 0.0)), 0.0)
