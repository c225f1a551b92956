"""Self-play: thousands of games at once, searched, moved, recorded and restarted in one compiled loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.batching import auto_reset
from tilewe_jax.batching.reset import Start, init_batch
from tilewe_jax.game import Game, Policy
from tilewe_jax.lanes import chunk_size, some_set
from tilewe_jax.search import PolicyOutput
from tilewe_jax.training.agents import Decision, Searcher, legal_action, without_node
from tilewe_jax.training.config import SelfplayConfig
from tilewe_jax.training.loss import entropy
from tilewe_jax.training.replay import UNKNOWN, Positions

State = TypeVar("State")
Result = TypeVar("Result")

_PLAYED_OUT_DIVISOR = 10
"""One game in so many is played to its end although seats would resign, to count false resignations."""
_SEAT_STREAM = 0x5EA7
"""Folded into the key of a game to draw the learner's seat; ``jax.random.split`` gives no such key to the moves."""
_CHUNK_DIVISOR = 8
"""Where an opponent plays, searches run for one game in so many at a time, as long as there are games that need them."""


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
    learner_seat: Int32[Array, "G"] | None = None
    """The seat of the network that learns in games against the opponent, -1 in games that it plays against itself; ``None``
    where there is no opponent."""


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
    opponent_moves: Int32[Array, ""]
    """Number of moves of the opponent."""
    opponent_games: Int32[Array, ""]
    """Number of finished games against the opponent."""
    learner_returns: Float32[Array, ""]
    """Sum of the returns of the network that learns in these games."""


@dataclass(frozen=True)
class RandomOpenings(Generic[State]):
    """The start of games, half of which begin with random actions, one to ``max_plies`` of them."""

    game: Game[State]
    max_plies: int
    fixed_start: bool = False

    def init(self, key: PRNGKeyArray) -> State:
        """The state in which a game begins; where random actions have ended it, it is over."""
        key_init, key_half, key_plies, key = jax.random.split(key, 4)
        plies = jax.random.randint(key_plies, (), 1, self.max_plies + 1, jnp.int32)
        plies = jnp.where(jax.random.bernoulli(key_half), plies, 0)

        def move(ply: Int32[Array, ""], state: State) -> State:
            return self.game.apply(state, self.game.sample_action(state, jax.random.fold_in(key, ply)))

        state: State = lax.fori_loop(0, plies, move, self.game.init(key_init))
        return state


def openings(config: SelfplayConfig, game: Game[State]) -> Start[State]:
    """How the games of self-play begin."""
    return RandomOpenings(game, config.random_opening) if config.random_opening else game


def begin(config: SelfplayConfig, game: Game[State], key: PRNGKeyArray, num_games: int) -> SelfplayState[State]:
    """New games, ``num_games`` of them."""
    key_init, key = jax.random.split(key)
    none = jnp.zeros(num_games, jnp.int32)
    state = init_batch(openings(config, game), key_init, num_games)
    keys = jax.random.split(key, num_games)
    fraction = config.opponent_fraction
    seat = jax.vmap(partial(_learner_seat, fraction, game.num_players))(keys) if fraction else None
    return SelfplayState(state, keys, none, none, none - 1, seat)


def play(
    config: SelfplayConfig,
    game: Game[State],
    agents: tuple[Searcher, Searcher | None],
    games: SelfplayState[State],
    key: PRNGKeyArray,
    opponent: Policy | None = None,
    final_states: bool = False,
    params: Any = None,
) -> tuple[SelfplayState[State], Positions[State], Bool[Array, "T G"], SelfplayStats]:
    """Play ``config.unroll_length`` moves in every game; where a game ends, the next one starts.

    Args:
        config: settings of self-play.
        game: the game.
        agents: a full and a fast search.
        games: the games under way.
        key: the same for all parts of a divided batch: whether a move is searched in full is decided for all games alike,
            since a batch takes as long as its longest search. All else follows from the keys of the games.
        opponent: policy of the opponent, where ``config.opponent_fraction`` is positive. A move of it is recorded as a position
            with a single candidate, from which only values are learned.
        final_states: whether the state at the end of a game is recorded.
        params: parameters of the agents.

    Returns the games, the positions searched, whether each of them was the last of its game, and statistics.
    """
    full, fast = (jax.vmap(partial(agent, params=params)) if agent else None for agent in agents)
    assert full

    def move(
        games: SelfplayState[State], key: PRNGKeyArray
    ) -> tuple[SelfplayState[State], tuple[Positions[State], Array, SelfplayStats]]:
        keys = jax.vmap(partial(jax.random.split, num=4))(games.key)
        in_full = jax.random.uniform(key, dtype=jnp.float32) < config.full_search_prob if fast else jnp.asarray(True)
        if opponent is None:
            decision: Decision = (
                lax.cond(in_full, full, fast, games.state, keys[:, 0]) if fast else full(games.state, keys[:, 0])
            )
            learns = jnp.ones_like(games.ply, jnp.bool_)
        else:
            seat = games.learner_seat
            assert seat is not None
            learns = (seat < 0) | (jax.vmap(game.current_player)(games.state) == seat)
            replies = _opponent_moves(config, game, opponent, ~learns, games.state, keys[:, 0])
            search = [partial(_where_needed, agent) for agent in (full, fast) if agent]
            arguments = learns, games.state, keys[:, 0], replies
            decision = lax.cond(in_full, *search, *arguments) if fast else search[0](*arguments)
        result: PolicyOutput = decision.output
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
            outcome_target=jnp.zeros_like(returns),
            short_term_target=jnp.zeros_like(returns),
            finished=ended,
            node=decision.node,
            final=state if final_states else None,
        )
        count, ends = partial(jnp.sum, dtype=jnp.int32), ended.astype(jnp.int32)
        checked = ended & (winner >= 0)
        won = jnp.take_along_axis(returns, jnp.maximum(winner, 0)[:, None], axis=1)[:, 0]
        weight = in_full.astype(jnp.float32)
        stats = SelfplayStats(
            moves=count(jnp.ones_like(ended)),
            full_searches=count(in_full & learns),
            entropy=weight * jnp.sum(jax.vmap(entropy)(result.policy)),
            surprise=weight * jnp.sum(surprise),
            games=count(ends),
            plies=count(ends * (games.ply + 1)),
            returns=jnp.sum(positions.returns, axis=0),
            resigned=count(resigns),
            resignations_checked=count(checked),
            false_resignations=count(checked & (won < 1)),
            opponent_moves=count(~learns),
            **_against_opponent(games.learner_seat, ended, positions.returns),
        )
        next_seat = games.learner_seat
        if next_seat is not None:
            drawn = jax.vmap(partial(_learner_seat, config.opponent_fraction, game.num_players))(keys[:, 3])
            next_seat = jnp.where(ended, drawn, next_seat)
        games = SelfplayState(
            auto_reset(openings(config, game), keys[:, 2], ended, state),
            keys[:, 3],
            jnp.where(ended, 0, games.ply + 1),
            games.game_index + ends,
            jnp.where(ended, -1, winner),
            next_seat,
        )
        return games, (positions, ended, stats)

    games, (positions, ended, stats) = lax.scan(move, games, jax.random.split(key, config.unroll_length))
    return games, positions, ended, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), stats)


def _learner_seat(opponent_fraction: float, num_players: int, key: PRNGKeyArray) -> Int32[Array, ""]:
    """The seat of the network that learns in a new game, drawn with a key derived from ``key``; -1 is all seats."""
    key_fraction, key_seat = jax.random.split(jax.random.fold_in(key, _SEAT_STREAM))
    seat = jax.random.randint(key_seat, (), 0, num_players, jnp.int32)
    return jnp.where(jax.random.uniform(key_fraction, dtype=jnp.float32) < opponent_fraction, seat, -1)


def _against_opponent(
    seat: Int32[Array, "G"] | None, ended: Bool[Array, "G"], returns: Float32[Array, "G P"]
) -> dict[str, Array]:
    """Statistics of the games against the opponent among those that have ended."""
    if seat is None:
        return {"opponent_games": jnp.int32(0), "learner_returns": jnp.float32(0)}
    counts = ended & (seat >= 0)
    mine = jnp.take_along_axis(returns, jnp.maximum(seat, 0)[:, None], axis=1)[:, 0]
    return {"opponent_games": jnp.sum(counts, dtype=jnp.int32), "learner_returns": jnp.sum(jnp.where(counts, mine, 0.0))}


def _opponent_moves(
    config: SelfplayConfig,
    game: Game[State],
    opponent: Policy,
    needed: Bool[Array, "G"],
    state: State,
    keys: Key[Array, "G"],
) -> Decision:
    """The moves of the opponent, each as the only candidate of a decision; a random one where it chose an illegal action."""
    count, decide = config.search.num_candidates, jax.vmap(partial(legal_action, game, opponent))
    action = _where_needed(decide, needed, state, keys, jnp.full(needed.shape, -1, jnp.int32))
    only = jnp.arange(count, dtype=jnp.int32)[None] == 0
    policy = jnp.broadcast_to(only, (len(action), count)).astype(jnp.float32)
    values = jnp.full((len(action), game.num_players), UNKNOWN, jnp.float32)
    output = PolicyOutput(action, jnp.where(only, action[:, None], -1), policy, policy, values)
    return without_node(config, state, output)


def chunk_of_games(num_games: int) -> int:
    """Number of games for which moves are decided at a time where an opponent plays."""
    return chunk_size(num_games, _CHUNK_DIVISOR)


def _where_needed(
    function: Callable[[State, Key[Array, "some"]], Result],
    needed: Bool[Array, "G"],
    state: State,
    keys: Key[Array, "G"],
    otherwise: Result,
) -> Result:
    """``function(state, keys)`` in the games that need it, a chunk of them at a time, and ``otherwise`` elsewhere."""
    chunk = chunk_of_games(len(needed))

    def decide(carry: tuple[Array, Result]) -> tuple[Array, Result]:
        left, output = carry
        index = some_set(left, chunk)
        some_state, some_keys = jax.tree.map(lambda leaf: leaf.at[index].get(mode="clip"), (state, keys))
        decided = function(some_state, some_keys)
        output = jax.tree.map(lambda leaf, new: leaf.at[index].set(new, mode="drop"), output, decided)
        return left.at[index].set(False, mode="drop"), output

    return lax.while_loop(lambda carry: jnp.any(carry[0]), decide, (needed, otherwise))[1]


def _draw(config: SelfplayConfig, result: PolicyOutput, ply: Int32[Array, ""], key: PRNGKeyArray) -> Int32[Array, ""]:
    """The action to play: in the first plies drawn from the improved policy, later the one that the search chooses."""
    logits = jnp.where(result.policy > 0, jnp.log(result.policy), -jnp.inf) / config.temperature
    drawn = result.candidates[jax.random.categorical(key, logits)]
    return jnp.where((ply < config.temperature_plies) & jnp.any(result.policy > 0), drawn, result.action)


def _surprise(result: PolicyOutput) -> Float32[Array, ""]:
    """Kullback-Leibler divergence of the improved policy from the prior, in nats."""
    ratio = jnp.log(jnp.maximum(result.policy, 1e-9)) - jnp.log(jnp.maximum(result.prior_probs, 1e-9))
    return jnp.maximum(jnp.sum(jnp.where(result.policy > 0, result.policy * ratio, 0.0)), 0.0)
