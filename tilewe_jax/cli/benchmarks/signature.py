"""Signature of all behaviour, like Stockfish's bench: hashes of fixed games and fixed searches of every game.

A change of rules, arithmetic or random numbers changes hashes in its column; a pure refactoring changes none. Only integers
and bools are hashed, because floating-point numbers may differ between processors in their last bit. Neither the names nor
the order of the fields of a state matter.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, PRNGKeyArray

from tilewe_jax.agents import Agent, AgentSpec, agent
from tilewe_jax.batching import Trajectory, trajectories
from tilewe_jax.game import Game
from tilewe_jax.registry import make
from tilewe_jax.search import (
    Determinized,
    EvaluatorSettings,
    GumbelRule,
    InformationSetSearch,
    PuctRule,
    Search,
    SearchOutput,
    SearchSettings,
    heuristic_evaluator,
    playout_evaluator,
)
from tilewe_jax.utils.words import did_you_mean

TABLE = Path(__file__).with_suffix(".json")
"""The hashes of this version, computed on a CPU."""
RANDOM_GAMES = 64
POLICY_GAMES = 8
POSITIONS = 16
SIMULATIONS = 8
CANDIDATES = 16
POOL = 128
DEPTH = 32
DETERMINIZATIONS = 2
DIGITS = 12

_SETTINGS = SearchSettings(SIMULATIONS, CANDIDATES, POOL, DEPTH, score_weight=0.3)
_RULES: dict[str, PuctRule | GumbelRule] = {
    "puct": PuctRule(c_init=1.25, fpu_reduction=0.1),
    "gumbel": GumbelRule(CANDIDATES // 2, gumbel_scale=1.0, value_scale=0.1),
}
_SHARES = 840 * DETERMINIZATIONS
"""Factor that turns the mean over determinizations of fractions of up to ``SIMULATIONS`` visits into an integer."""


@dataclass(frozen=True)
class Setup:
    """A game with options, and its policies and searches besides random play."""

    game: str
    """Id of the game."""
    options: tuple[tuple[str, Any], ...] = ()
    """Options of the game by name."""
    policy: str = ""
    """Name of a built-in policy of the game, or empty."""
    searches: tuple[str, ...] = ()
    """Searches without a network, see ``_search``."""
    networks: tuple[str, ...] = ()
    """Searches with the shipped weights of the game, see ``_network``."""

    def make(self) -> Game[Any]:
        """Make the game."""
        return make(self.game, **dict(self.options))


SETUPS = {
    "tilewe": Setup("tilewe", policy="simple_search", searches=("puct", "gumbel"), networks=("puct", "gumbel")),
    "tilewe_2_players": Setup("tilewe", (("players", 2),)),
    "duo": Setup("duo", searches=("gumbel",), networks=("gumbel",)),
    "duo_official": Setup("duo_official", searches=("puct",), networks=("puct",)),
    "classic": Setup("classic", searches=("gumbel",), networks=("puct",)),
    "classic_2": Setup("classic_2", searches=("gumbel",)),
    "santorini": Setup("santorini", policy="one_ply", searches=("puct", "gumbel"), networks=("puct", "gumbel")),
    "triominos": Setup("triominos", policy="block_hoard", searches=("puct", "gumbel", "tree"), networks=("puct",)),
    "triominos_target": Setup(
        "triominos", (("game", "target"), ("target", 150), ("max_rounds", 3)), policy="block_hoard", searches=("gumbel",)
    ),
}
"""Rows of the table by name: every game, some with several options. Compilation takes nearly all of the time, so code that the
polyomino games share is not compiled for each of them."""


def signature(name: str, columns: Iterable[str] | None = None) -> dict[str, str]:
    """Return the hashes of one of ``SETUPS`` by column, on a CPU. Raises ``KeyError`` for an unknown name or column.

    Columns are ``random``, games of random play and of a policy; ``search``, searches without a network; and ``network``,
    searches with the shipped weights. By default all columns of the setup, see ``columns_of``.
    """
    available = columns_of(name)
    return {column: digest(available[column](SETUPS[name])) for column in (available if columns is None else columns)}


def setups_of(game: str) -> list[str]:
    """Return the names of the setups of a game, or of all games for an empty text. Raises ``ValueError`` for other games."""
    games = list(dict.fromkeys(setup.game for setup in SETUPS.values()))
    if game and game not in games:
        raise ValueError(f"the signature has no game {game!r}{did_you_mean(game, games)}; it has {', '.join(games)}")
    return [name for name, setup in SETUPS.items() if game in ("", setup.game)]


def columns_of(name: str) -> dict[str, Callable[[Setup], list[Any]]]:
    """Return the columns of one of ``SETUPS`` with their functions. Raises ``KeyError`` for an unknown name."""
    setup = SETUPS[name]
    has = {"random": True, "search": bool(setup.searches), "network": bool(setup.networks)}
    return {column: function for column, function in COLUMNS.items() if has[column]}


def digest(tree: Any) -> str:
    """Return 12 hexadecimal digits of a SHA-256 hash of all integer and bool arrays in a tree, with dtypes and shapes.

    The order of the arrays does not matter, so that fields may be renamed and moved.
    """
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    hashes = sorted(_array_hash(array) for array in arrays if array.dtype.kind in "iub")
    return hashlib.sha256(b"".join(hashes)).hexdigest()[:DIGITS]


def _array_hash(array: np.ndarray) -> bytes:
    dtype = array.dtype.newbyteorder("<")
    return hashlib.sha256(f"{dtype.str} {array.shape} ".encode() + array.astype(dtype).tobytes()).digest()


def _random(setup: Setup) -> list[Any]:
    """Return random games, the legal actions of their positions, and games of the policy of the setup."""
    game = setup.make()
    results: list[Any] = [_random_games(game), jax.jit(jax.vmap(game.legal_action_mask))(_positions(game))]
    if setup.policy:
        policy = game.policies()[setup.policy]
        results.append(jax.jit(lambda key: trajectories(game, key, POLICY_GAMES, policy))(jax.random.key(1)))
    return results


def _search(setup: Setup) -> list[Any]:
    """Return the actions and visits of searches without a network.

    ``puct`` evaluates leaves by playouts, ``gumbel`` by static heuristics, with determinizations for hidden information.
    ``tree`` is PUCT with heuristics in an information-set tree.
    """
    game = setup.make()
    heuristic = heuristic_evaluator(game)
    playouts = playout_evaluator(game, priors=True, num_samples=4, score_weight=0.3)
    puct = Search(game, playouts, _RULES["puct"], replace(_SETTINGS, stop_early=True))
    gumbel = Search(game, heuristic, _RULES["gumbel"], _SETTINGS)
    hidden = game.has_hidden_information
    searches: dict[str, Callable[..., Any]] = {
        "puct": Determinized(puct, DETERMINIZATIONS) if hidden else puct,
        "gumbel": Determinized(gumbel, DETERMINIZATIONS) if hidden else gumbel,
        "tree": InformationSetSearch(game, heuristic, _RULES["puct"], _SETTINGS),
    }
    states, keys = _positions(game), jax.random.split(jax.random.key(2), POSITIONS)
    return [jax.jit(jax.vmap(partial(_summary, searches[search])))(states, keys) for search in setup.searches]


def _summary(search: Callable[..., Any], state: Any, key: PRNGKeyArray) -> tuple[Array, ...]:
    """Return the action, and the root candidates in ascending order with their visits."""
    result = search(state, key)
    if isinstance(result, SearchOutput):
        actions, visits = result.candidates, result.visits
    elif isinstance(search, Determinized) and isinstance(search.search.rule, GumbelRule):
        return (result.action,)  # the policy does not depend on visits alone
    else:
        visits = jnp.round(result.policy * _SHARES).astype(jnp.int32)
        actions = jnp.where(visits > 0, result.candidates, -1)
    order = jnp.argsort(actions).astype(jnp.int32)
    return result.action, actions[order], visits[order]


def _network(setup: Setup) -> list[Any]:
    """Return the actions of searches with the shipped weights: ``puct``, ``gumbel``."""
    game = setup.make()
    states, keys = _positions(game), jax.random.split(jax.random.key(3), POSITIONS)
    decide = jax.jit(jax.vmap(Agent.act, in_axes=(None, 0, 0)))
    specs = [
        AgentSpec(
            rule,
            replace(_SETTINGS, stop_early=True),
            _RULES[rule],
            EvaluatorSettings(network=game.id),
            num_determinizations=DETERMINIZATIONS,
        )
        for rule in setup.networks
    ]
    return [decide(agent(spec, game), states, keys) for spec in specs]


def forget_games() -> None:
    """Forget the random games and their positions, which are computed once in a process."""
    _random_games.cache_clear()
    _positions.cache_clear()


@cache
def _random_games(game: Game[Any]) -> Trajectory[Any]:
    games: Trajectory[Any] = jax.jit(lambda key: trajectories(game, key, RANDOM_GAMES))(jax.random.key(0))
    return games


@cache
def _positions(game: Game[Any]) -> Any:
    """Return non-terminal positions of random games, ``[POSITIONS, ...]``, from the start to near the end."""
    games = jax.tree.map(lambda leaf: leaf[:POSITIONS], _random_games(game))
    plies = games.rollout.lengths * jnp.arange(POSITIONS, dtype=jnp.int32) // POSITIONS

    def replay(state: Any, actions: Int32[Array, "T"], ply: Int32[Array, ""], last: Int32[Array, ""]) -> Any:
        return jax.lax.fori_loop(0, last, lambda t, state: game.apply(state, jnp.where(t < ply, actions[t], -1)), state)

    return jax.jit(jax.vmap(replay, in_axes=(0, 0, 0, None)))(games.initial, games.actions, plies, jnp.max(plies))


COLUMNS: dict[str, Callable[[Setup], list[Any]]] = {"random": _random, "search": _search, "network": _network}
"""Columns of the table with the functions that compute what is hashed."""
