"""Large batches equal the same lanes in chunks; compilers split long loops and have miscompiled them.

Functions run with 65,537 and 40,001 lanes, which are not multiples of a block, or with as many lanes as fit into a quarter of
the memory (``pytest -rP`` prints the number). Integers and flags must be bit-exact.
"""

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import rows
from tilewe_jax import networks
from tilewe_jax.agents import AgentSpec, agent
from tilewe_jax.game import Game, observation_shape

pytestmark = pytest.mark.slow

LANES = 65_537, 40_001
"""One number above 2**16, and one for which jaxlib 0.10.2 miscompiles the last lanes of some functions."""
CHUNK = 4_096
DIFFERENT = 1_021
"""Number of different positions: a prime, so that lanes at the distance of a block differ."""
BUDGET = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
GAMES = {
    "tilewe": tilewe_jax.make("tilewe"),
    "tilewe-10": tilewe_jax.make("tilewe", size=10),
    "tilewe-small": tilewe_jax.make("tilewe", players=2, size=7, pieces=("O1", "I2", "L3", "I3", "T4")),
    "duo": tilewe_jax.make("duo"),
    "duo_official": tilewe_jax.make("duo_official"),
    "classic": tilewe_jax.make("classic"),
    "santorini": tilewe_jax.make("santorini"),
    "triominos": tilewe_jax.make("triominos"),
    "tictactoe": TicTacToe(),
}
FUNCTIONS: dict[str, Callable[[Game[Any], Any, Any, Any], Any]] = {
    "step": lambda game, state, action, key: game.step(state, action),
    "is_legal": lambda game, state, action, key: game.is_legal(state, action),
    "legal_action_mask": lambda game, state, action, key: (game.legal_action_mask(state), game.num_legal(state)),
    "sample": lambda game, state, action, key: (
        game.sample_action(state, key),
        game.sample_actions(state, key, 8),
        game.playout_action(state, key),
    ),
    "observe": lambda game, state, action, key: game.observe(state, game.current_player(state)),
    "outcome": lambda game, state, action, key: (
        game.scores(state),
        game.returns(state),
        game.is_terminal(state),
        game.heuristic_value(state),
        game.heuristic_logits(state, action[None]),
    ),
    "hidden and mirrored": lambda game, state, action, key: (
        game.determinize(state, game.current_player(state), key),
        game.transform(state, game.num_symmetries - 1),
    ),
}
HIDDEN = "information set"
_SIZES = "num_simulations=3,num_candidates=8,candidate_pool=16"
_PLAYOUTS = "num_samples=1,max_plies=4"
SEARCHES = {
    "puct, playouts": f"puct:{_SIZES},{_PLAYOUTS},num_determinizations=2",
    "gumbel, playouts": f"gumbel:{_SIZES},{_PLAYOUTS},num_determinizations=2,max_num_considered_actions=2,gumbel_scale=1",
    HIDDEN: f"puct:{_SIZES},{_PLAYOUTS},num_determinizations=0",
    "puct, network": f"puct:{_SIZES},num_determinizations=1,network=random",
    "gumbel, network": f"gumbel:{_SIZES},num_determinizations=1,max_num_considered_actions=2,gumbel_scale=1,network=random",
}


@cache
def positions(name: str) -> Any:
    """Return positions from all parts of random games."""
    game = GAMES[name]

    @jax.jit
    @jax.vmap
    def play(lane: Any, key: Any) -> Any:
        def move(step: Any, state: Any) -> Any:
            action = game.sample_action(state, jax.random.fold_in(key, step))
            return game.apply(state, jnp.where(step < lane % min(game.max_steps, 60), action, -1))

        return jax.lax.fori_loop(0, 60, move, game.init(key))

    return play(jnp.arange(DIFFERENT), jax.random.split(jax.random.key(0), DIFFERENT))


@cache
def inputs(name: str) -> tuple[Any, Any, Any]:
    """Return a position, a mostly legal action and a key for each lane."""
    game, lane = GAMES[name], np.arange(LANES[0])
    states = rows(positions(name), lane % DIFFERENT)
    keys = jax.random.split(jax.random.key(1), LANES[0])
    some = jax.jit(jax.vmap(game.sample_action))(positions(name), keys[:DIFFERENT])
    anything = np.random.default_rng(0).integers(-1, game.num_actions, LANES[0], dtype=np.int32)
    return states, jnp.asarray(np.where(lane % 5 == 0, anything, np.asarray(some)[lane % DIFFERENT])), keys


def compile_what_fits(function: Callable[..., Any], arguments: Any, lanes: int) -> tuple[Any, Any]:
    """Compile a function for this number of lanes, or as many as fit into memory; also return the arguments of these lanes."""
    while True:
        fewer = rows(arguments, slice(lanes))
        compiled = jax.jit(jax.vmap(function)).lower(*fewer).compile()
        memory = compiled.memory_analysis()
        if (needed := memory.output_size_in_bytes + memory.temp_size_in_bytes) <= BUDGET:
            print(f"{lanes:,} lanes, {needed / 1e9:.2f} GB")
            return compiled, fewer
        lanes = int(lanes * BUDGET / needed * 0.95) | 1
        assert lanes > 2 * CHUNK


def check(function: Callable[..., Any], arguments: Any) -> None:
    """Compare a function over all lanes with the function over chunks; the last chunk overlaps the previous chunk."""
    in_chunks = jax.jit(jax.vmap(function))
    for count in LANES:
        compiled, fewer = compile_what_fits(function, arguments, count)
        at_once = jax.tree.map(np.asarray, compiled(*fewer))
        lanes = len(jax.tree.leaves(at_once)[0])
        for start in [*range(0, lanes - CHUNK, CHUNK), lanes - CHUNK]:
            chunk = slice(start, start + CHUNK)
            expected = in_chunks(*rows(fewer, chunk))
            for part, whole in zip(jax.tree.leaves(expected), jax.tree.leaves(rows(at_once, chunk)), strict=True):
                where = f"lanes {start:,} to {start + CHUNK - 1:,} of {lanes:,}"
                if jnp.issubdtype(part.dtype, jnp.floating):
                    np.testing.assert_allclose(whole, np.asarray(part), rtol=1e-4, atol=1e-5, err_msg=where)
                else:
                    np.testing.assert_array_equal(whole, np.asarray(part), err_msg=where)


def random_network(game: Game[Any]) -> Any:
    """Return a network with random weights of the default architecture of a game."""
    return networks.make(game, "default", "tiny", jax.random.key(2))


def search(game: Game[Any], text: str) -> Any:
    """Return a search as a function of a state and a key, with ``random_network`` as its network."""
    spec = AgentSpec.parse(text)
    network = partial(networks.predict, random_network(game)) if spec.evaluator.network else None
    return agent(spec, game, network=network).act


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", GAMES)
def test_games(name: str, function: str) -> None:
    check(partial(FUNCTIONS[function], GAMES[name]), inputs(name))


@pytest.mark.parametrize("name", ["tilewe-small", "santorini", "triominos", "tictactoe"])
def test_networks(name: str) -> None:
    observations = jax.random.bernoulli(jax.random.key(3), 0.2, (LANES[0], *observation_shape(GAMES[name]))).astype(jnp.float32)
    check(random_network(GAMES[name]), (observations,))


@pytest.mark.parametrize(
    ("name", "searches"),
    [
        *(
            (name, searches)
            for name in ("tilewe-small", "santorini", "triominos")
            for searches in SEARCHES
            if searches != HIDDEN
        ),
        ("triominos", HIDDEN),
        ("duo", "puct, playouts"),
        ("duo", "gumbel, playouts"),
    ],
)
def test_searches(name: str, searches: str) -> None:
    states, _, keys = inputs(name)
    check(search(GAMES[name], SEARCHES[searches]), (states, keys))
