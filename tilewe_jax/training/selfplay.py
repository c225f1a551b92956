"""Self-play of a batch of games in one compiled loop: search, choose, apply, record, restart."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.batching import auto_reset
from tilewe_jax.batching.reset import Start, init_batch
from tilewe_jax.game import Game, Policy
from tilewe_jax.lanes import chunk_size, some_set
from tilewe_jax.search import PolicyOutput
from tilewe_jax.training.agents import Agents, legal_action
from tilewe_jax.training.config import SelfplayConfig
from tilewe_jax.training.loss import entropy
from tilewe_jax.training.replay import UNKNOWN, Positions

State = TypeVar("State")
Result = TypeVar("Result")

_PLAYED_OUT_DIVISOR = 10
"""Every n-th game of a column is played without resignation, to count false resignations."""
_SEAT_STREAM = 0x5EA7
"""Folded into the key of a game to sample the learner's seat, so that the keys of the moves do not change."""
_CHUNK_DIVISOR = 8
"""With an opponent, searches run for chunks of the games that need them; chunks have about 1/n of all games."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfplayState(Generic[State]):
    """G games in progress, ``[G, ...]``."""

    state: State
    """States of the games."""
    key: PRNGKeyArray
    """One key per game."""
    ply: Int32[Array, "G"]
    """Number of moves played in the current game."""
    game_index: Int32[Array, "G"]
    """Number of games finished before the current one."""
    winner: Int32[Array, "G"]
    """Seat to which the others would have resigned, in games without resignation; otherwise -1."""
    learner_seat: Int32[Array, "G"] | None = None
    """Seat of the learner in games against the opponent, -1 in games against itself; ``None`` without an opponent."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelfplayStats:
    """Sums over the moves and the finished games of an iteration; P players."""

    moves: Int32[Array, ""]
    """Number of moves."""
    full_searches: Int32[Array, ""]
    """Number of moves with a full search."""
    entropy: Float32[Array, ""]
    """Sum of the entropies of the improved policies of full searches, in nats."""
    surprise: Float32[Array, ""]
    """Sum of the divergences of these policies from the priors, in nats."""
    games: Int32[Array, ""]
    """Number of finished games."""
    plies: Int32[Array, ""]
    """Number of moves of the finished games."""
    returns: Float32[Array, "P"]
    """Sum of the returns of the finished games by seat."""
    resigned: Int32[Array, ""]
    """Number of games that ended by resignation."""
    resignations_checked: Int32[Array, ""]
    """Number of finished games in which seats would have resigned, but resignation was off."""
    false_resignations: Int32[Array, ""]
    """Number of these games that the expected winner did not win."""
    opponent_moves: Int32[Array, ""]
    """Number of moves of the opponent."""
    opponent_games: Int32[Array, ""]
    """Number of finished games against the opponent."""
    learner_returns: Float32[Array, ""]
    """Sum of the returns of the learner in games against the opponent."""
    solved: Int32[Array, ""]
    """Number of positions with an exact outcome, see ``training.endings``."""


@dataclass(frozen=True)
class RandomOpenings(Generic[State]):
    """Initial states, half of them after 1 to ``max_plies`` random actions."""

    game: Game[State]
    max_plies: int
    fixed_start: bool = False

    def init(self, key: PRNGKeyArray) -> State:
        """Return an initial state, which is terminal if random actions have ended the game."""
        key_init, key_half, key_plies, key = jax.random.split(key, 4)
        plies = jax.random.randint(key_plies, (), 1, self.max_plies + 1, jnp.int32)
        plies = jnp.where(jax.random.bernoulli(key_half), plies, 0)

        def move(ply: Int32[Array, ""], state: State) -> State:
            return self.game.apply(state, self.game.sample_action(state, jax.random.fold_in(key, ply)))

        state: State = lax.fori_loop(0, plies, move, self.game.init(key_init))
        return state


def openings(config: SelfplayConfig, game: Game[State]) -> Start[State]:
    """Return the distribution of the initial states of self-play."""
    return RandomOpenings(game, config.random_opening) if config.random_opening else game


def start(config: SelfplayConfig, game: Game[State], key: PRNGKeyArray, num_games: int) -> SelfplayState[State]:
    """Start ``num_games`` games."""
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
    agents: Agents,
    games: SelfplayState[State],
    key: PRNGKeyArray,
    opponent: Policy | None = None,
    final_states: bool = False,
    params: Any = None,
) -> tuple[SelfplayState[State], Positions[State], SelfplayStats]:
    """Play ``config.unroll_length`` moves in every game, and restart games that end.

    Args:
        config: settings of self-play.
        game: the game.
        agents: a full and a fast search.
        games: the games in progress.
        key: random key of the choice between full and fast searches, which is the same for all games of all devices, because a
            batch takes as long as its longest search. Everything else depends on the keys of the games.
        opponent: policy of the opponent, for a positive ``config.opponent_fraction``. Its moves are recorded with a single
            candidate, so that only values are learned from them.
        final_states: whether the state at the end of a game is recorded.
        params: parameters of the agents.

    Returns the games, the positions, ``[T, G, ...]``, and statistics.
    """

    def move(games: SelfplayState[State], key: PRNGKeyArray) -> tuple[SelfplayState[State], Any]:
        keys = jax.vmap(partial(jax.random.split, num=4))(games.key)
        searched = _search(config, game, agents, params, opponent, games, keys[:, 0], key)
        action = jax.vmap(partial(_choose, config))(searched.output, games.ply, keys[:, 1])
        moved = _apply(config, game, games, action, searched.output.value)
        recorded = _record(games, searched, moved, final_states)
        return _restart(config, game, games, moved, keys[:, 2], keys[:, 3]), recorded

    games, (positions, stats) = lax.scan(move, games, jax.random.split(key, config.unroll_length))
    return games, positions, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), stats)


class _Searched(NamedTuple):
    """Results of the searches of G games."""

    output: PolicyOutput
    in_full: Bool[Array, ""]
    """Whether the searches were full."""
    learns: Bool[Array, "G"]
    """Whether the learner is to move instead of the opponent."""


class _Moved(NamedTuple):
    """G games after a move."""

    state: Any
    ended: Bool[Array, "G"]
    resigned: Bool[Array, "G"]
    returns: Float32[Array, "G P"]
    score_value: Float32[Array, "G P"]
    winner: Int32[Array, "G"]
    """As in ``SelfplayState``."""


def _search(
    config: SelfplayConfig,
    game: Game[State],
    agents: Agents,
    params: Any,
    opponent: Policy | None,
    games: SelfplayState[State],
    keys: Key[Array, "G"],
    key: PRNGKeyArray,
) -> _Searched:
    """Search the positions with the learner to move, and ask the opponent in the others."""
    full, fast = (jax.vmap(partial(agent, params=params)) if agent else None for agent in agents)
    assert full
    in_full = jax.random.uniform(key, dtype=jnp.float32) < config.full_search_prob if fast else jnp.asarray(True)
    arguments: tuple[Any, ...] = games.state, keys
    search: list[Callable[..., PolicyOutput]] = [full, fast] if fast else [full]
    learns = jnp.ones_like(games.ply, jnp.bool_)
    if opponent is not None:
        assert games.learner_seat is not None
        learns = (games.learner_seat < 0) | (jax.vmap(game.current_player)(games.state) == games.learner_seat)
        arguments = learns, *arguments, _opponent_moves(config, game, opponent, ~learns, *arguments)
        search = [partial(_where_needed, agent) for agent in search]
    output = lax.cond(in_full, *search, *arguments) if fast else search[0](*arguments)
    return _Searched(output, in_full, learns)


def _opponent_moves(
    config: SelfplayConfig, game: Game[State], opponent: Policy, needed: Bool[Array, "G"], state: State, keys: Key[Array, "G"]
) -> PolicyOutput:
    """Return the moves of the opponent as single candidates; illegal moves are replaced by random ones."""
    count, decide = config.search.num_candidates, jax.vmap(partial(legal_action, game, opponent))
    action = _where_needed(decide, needed, state, keys, jnp.full(needed.shape, -1, jnp.int32))
    only = jnp.arange(count, dtype=jnp.int32)[None] == 0
    policy = jnp.broadcast_to(only, (len(action), count)).astype(jnp.float32)
    values = jnp.full((len(action), game.num_players), UNKNOWN, jnp.float32)
    return PolicyOutput(action, jnp.where(only, action[:, None], -1), policy, policy, values)


def _choose(config: SelfplayConfig, output: PolicyOutput, ply: Int32[Array, ""], key: PRNGKeyArray) -> Int32[Array, ""]:
    """Return the action to play: sampled from the improved policy in the first plies, later the choice of the search."""
    logits = jnp.where(output.policy > 0, jnp.log(output.policy), -jnp.inf) / config.temperature
    drawn = output.candidates[jax.random.categorical(key, logits)]
    return jnp.where((ply < config.temperature_plies) & jnp.any(output.policy > 0), drawn, output.action)


def _apply(
    config: SelfplayConfig,
    game: Game[State],
    games: SelfplayState[State],
    action: Int32[Array, "G"],
    value: Float32[Array, "G P"],
) -> _Moved:
    """Apply the actions. If the value of a seat reaches the threshold, the others resign."""
    state = jax.vmap(game.apply)(games.state, action)
    over, best = jax.vmap(game.is_terminal)(state), jnp.argmax(value, axis=1).astype(jnp.int32)
    decided = (jnp.max(value, axis=1) >= config.resign_threshold) & (config.resign_threshold > 0)
    played_out = games.game_index % _PLAYED_OUT_DIVISOR == 0
    resigned = decided & ~played_out & ~over
    wins = jax.nn.one_hot(best, game.num_players)
    return _Moved(
        state=state,
        ended=over | resigned,
        resigned=resigned,
        returns=jnp.where(resigned[:, None], wins, jax.vmap(game.returns)(state)),
        score_value=jnp.where(resigned[:, None], value, jax.vmap(game.heuristic_value)(state)),
        winner=jnp.where(decided & played_out & (games.winner < 0), best, games.winner),
    )


def _record(
    games: SelfplayState[State], searched: _Searched, moved: _Moved, final_states: bool
) -> tuple[Positions[State], SelfplayStats]:
    """Return the positions before the moves, with the outcomes of games that ended, and statistics."""
    output, ended = searched.output, moved.ended
    surprise = jax.vmap(_surprise)(output)
    positions = Positions(
        state=games.state,
        candidates=output.candidates,
        policy=output.policy,
        root_value=output.value,
        surprise=jnp.where(searched.in_full, surprise, -1.0),
        game_index=games.game_index,
        returns=jnp.where(ended[:, None], moved.returns, UNKNOWN),
        outcome_target=jnp.zeros_like(moved.returns),
        score_value=jnp.where(ended[:, None], moved.score_value, 0.0),
        final=moved.state if final_states else None,
    )
    count, returns = partial(jnp.sum, dtype=jnp.int32), jnp.where(ended[:, None], moved.returns, 0.0)
    checked = ended & (moved.winner >= 0)
    weight = searched.in_full.astype(jnp.float32)
    against = jnp.zeros_like(ended) if games.learner_seat is None else ended & (games.learner_seat >= 0)
    stats = SelfplayStats(
        moves=count(jnp.ones_like(ended)),
        full_searches=count(searched.in_full & searched.learns),
        entropy=weight * jnp.sum(jax.vmap(entropy)(output.policy)),
        surprise=weight * jnp.sum(surprise),
        games=count(ended),
        plies=count(jnp.where(ended, games.ply + 1, 0)),
        returns=jnp.sum(returns, axis=0),
        resigned=count(moved.resigned),
        resignations_checked=count(checked),
        false_resignations=count(checked & (_of_seat(returns, moved.winner) < 1)),
        opponent_moves=count(~searched.learns),
        opponent_games=count(against),
        learner_returns=jnp.sum(jnp.where(against, _of_seat(returns, games.learner_seat), 0.0)),
        solved=jnp.int32(0),
    )
    return positions, stats


def _restart(
    config: SelfplayConfig,
    game: Game[State],
    games: SelfplayState[State],
    moved: _Moved,
    keys: Key[Array, "G"],
    next_keys: Key[Array, "G"],
) -> SelfplayState[State]:
    """Replace ended games by new ones."""
    ended, seat = moved.ended, games.learner_seat
    if seat is not None:
        drawn = jax.vmap(partial(_learner_seat, config.opponent_fraction, game.num_players))(next_keys)
        seat = jnp.where(ended, drawn, seat)
    return SelfplayState(
        state=auto_reset(openings(config, game), keys, ended, moved.state),
        key=next_keys,
        ply=jnp.where(ended, 0, games.ply + 1),
        game_index=games.game_index + ended.astype(jnp.int32),
        winner=jnp.where(ended, -1, moved.winner),
        learner_seat=seat,
    )


def _of_seat(returns: Float32[Array, "G P"], seat: Int32[Array, "G"] | None) -> Float32[Array, "G"]:
    """Return the returns of a seat in each game; the first seat stands in for -1 and ``None``."""
    index = jnp.zeros(len(returns), jnp.int32) if seat is None else jnp.maximum(seat, 0)
    return jnp.take_along_axis(returns, index[:, None], axis=1)[:, 0]


def _learner_seat(opponent_fraction: float, num_players: int, key: PRNGKeyArray) -> Int32[Array, ""]:
    """Sample the seat of the learner in a new game, -1 for all seats, with a key derived from ``key``."""
    key_fraction, key_seat = jax.random.split(jax.random.fold_in(key, _SEAT_STREAM))
    seat = jax.random.randint(key_seat, (), 0, num_players, jnp.int32)
    return jnp.where(jax.random.uniform(key_fraction, dtype=jnp.float32) < opponent_fraction, seat, -1)


def chunk_of_games(num_games: int) -> int:
    """Return the number of games in a chunk of searches when an opponent plays."""
    return chunk_size(num_games, _CHUNK_DIVISOR)


def _where_needed(
    function: Callable[[State, Key[Array, "some"]], Result],
    needed: Bool[Array, "G"],
    state: State,
    keys: Key[Array, "G"],
    otherwise: Result,
) -> Result:
    """Return ``function(state, keys)``, computed in chunks, for the games that need it, and ``otherwise`` for the others."""
    chunk = chunk_of_games(len(needed))

    def decide(carry: tuple[Array, Result]) -> tuple[Array, Result]:
        left, output = carry
        index = some_set(left, chunk)
        some_state, some_keys = jax.tree.map(lambda leaf: leaf.at[index].get(mode="clip"), (state, keys))
        decided = function(some_state, some_keys)
        output = jax.tree.map(lambda leaf, new: leaf.at[index].set(new, mode="drop"), output, decided)
        return left.at[index].set(False, mode="drop"), output

    return lax.while_loop(lambda carry: jnp.any(carry[0]), decide, (needed, otherwise))[1]


def _surprise(result: PolicyOutput) -> Float32[Array, ""]:
    """Return the Kullback-Leibler divergence of the improved policy from the prior, in nats."""
    ratio = jnp.log(jnp.maximum(result.policy, 1e-9)) - jnp.log(jnp.maximum(result.prior_probs, 1e-9))
    return jnp.maximum(jnp.sum(jnp.where(result.policy > 0, result.policy * ratio, 0.0)), 0.0)
