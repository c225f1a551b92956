"""The programs that are compiled for a GPU: what a user of it runs most, each as a function and its arguments."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

PROGRAMS = ("stream", "step", "mask", "search", "selfplay")
"""Names of the programs."""
STEPS = 8
"""Steps of a stream and moves of a round of self-play."""
DESCENT_TURNS = 4
"""How often loops in a simulation are assumed to run, those that descend in the tree or resolve passes."""


@dataclass(frozen=True)
class Program:
    """A function to compile."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    """Shapes of its arguments."""
    batch: int
    """Games at once."""
    turns: tuple[int, int] = (1, 1)
    """How often loops of unknown length are assumed to run: those with loops inside, and those without."""
    donated: tuple[int, ...] = ()
    """The arguments whose memory the results may use."""
    loops_to_step: int = 0
    """Number of nested loops around the code of one step; 0 where the whole program is one step."""


def make(name: str, game: Any, batch: int, network: str, num_simulations: int, num_candidates: int) -> Program:
    """A program of ``PROGRAMS`` for a game.

    Args:
        name: which.
        game: the game.
        batch: games at once.
        network: size of the network of searches, which has the architecture that is the game's own.
        num_simulations: simulations a search.
        num_candidates: candidate actions a node.
    """
    if name in ("stream", "step", "mask"):
        return _play(name, game, batch)
    return _search(name, game, batch, network, num_simulations, num_candidates)


def _play(name: str, game: Any, batch: int) -> Program:
    import jax
    import jax.numpy as jnp

    from tilewe_jax import batching
    from tilewe_jax.batching.reset import init_batch

    key = jax.eval_shape(lambda: jax.random.key(0))
    if name == "stream":
        stream = jax.eval_shape(lambda key: batching.init_stream(game, key, batch, 1 << 30), key)

        def run(stream: Any) -> Any:
            stream, played = batching.run_stream(game, stream, STEPS)
            return stream, jnp.sum(played.actions >= 0), jnp.sum(played.ended)

        return Program(name, run, (stream,), batch, donated=(0,), loops_to_step=1)
    state = jax.eval_shape(lambda key: init_batch(game, key, batch), key)
    if name == "step":
        action = jax.ShapeDtypeStruct((batch,), jnp.int32)
        return Program(name, jax.vmap(game.step), (state, action), batch, donated=(0,))
    return Program(name, jax.vmap(game.legal_action_mask), (state,), batch)


def _search(name: str, game: Any, batch: int, network: str, num_simulations: int, num_candidates: int) -> Program:
    import jax
    import jax.numpy as jnp

    from tilewe_jax import networks
    from tilewe_jax.batching.reset import init_batch
    from tilewe_jax.cli.benchmarks.gpu.estimate import NETWORK
    from tilewe_jax.search import network_evaluator
    from tilewe_jax.training import agents, selfplay
    from tilewe_jax.training.config import SelfplayConfig

    key = jax.eval_shape(lambda: jax.random.key(0))
    model = jax.eval_shape(lambda key: networks.make(game, "default", network, key), key)
    config = SelfplayConfig(num_games=batch, unroll_length=STEPS)
    config = replace(config, search=replace(config.search, num_simulations=num_simulations, num_candidates=num_candidates))

    def predict(model: Any, observation: Any) -> Any:
        with jax.named_scope(NETWORK):
            return networks.predict(model, observation, dtype=jnp.bfloat16)

    evaluator = network_evaluator(game)
    turns = num_simulations + 1, DESCENT_TURNS
    if name == "search":

        def search(model: Any, state: Any, key: Any) -> Any:
            searcher, network = agents.searcher(config, game, evaluator, num_simulations), jax.tree_util.Partial(predict, model)
            return jax.vmap(lambda state, key: searcher(state, key, network))(state, jax.random.split(key, batch))

        state = jax.eval_shape(lambda key: init_batch(game, key, batch), key)
        return Program(name, search, (model, state, key), batch, turns, loops_to_step=1)

    def play(model: Any, games: Any, key: Any) -> Any:
        network = jax.tree_util.Partial(predict, model)
        return selfplay.play(config, game, agents.full_and_fast(config, game, evaluator), games, key, params=network)

    games = jax.eval_shape(lambda key: selfplay.begin(config, game, key, batch), key)
    return Program(name, play, (model, games, key), batch, turns, donated=(1,), loops_to_step=1)
