"""Speed of the search in simulations per CPU second of a pinned core, or per second of an accelerator, alternating with mctx.

By default the game is made up: two players alternate, all actions are candidates, the state has 300 bytes, and
the evaluator takes a few operations, so that the search itself is measured. mctx receives the same candidates, carried beside
the state; both searches use PUCT and the same evaluator. For a real game, ``bare`` is the rate of moves with the dense mask of
the legal actions after them, and ``times_bare`` the time of a simulation relative to such a move.
"""

import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewe_jax.cli.benchmarks.process import free_cores, has_accelerator, in_process

WORDS = 73
"""Words of the made-up state beside hash and ply: 300 bytes in all."""
DEPTH = 32


def measure(
    name: str | None, options: dict[str, Any], batch: int, simulations: int, candidates: int, seconds: float, seed: int
) -> dict[str, Any]:
    """Measure the search in a game, or in the made-up one for ``None``. Raises ``RuntimeError`` if the process fails."""
    settings = name, options, batch, simulations, candidates, seconds, seed
    return in_process(work, *settings, core=free_cores(1)[0])


def made_up(actions: int) -> tuple[Any, Any]:
    """Return a game and an evaluator with few operations."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from tilewe_jax.bits import hash32
    from tilewe_jax.search import Evaluation, dense_logits

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class State:
        hash: jax.Array
        ply: jax.Array
        payload: jax.Array

    class MadeUp:
        """The part of the ``Game`` contract that the search uses."""

        id, num_players, num_actions, max_steps = "made up", 2, actions, 60

        def init(self, key: Any) -> State:
            return State(jax.random.bits(key, (), np.uint32), jnp.int32(0), jnp.zeros(WORDS, jnp.uint32))

        def apply(self, state: State, action: Any) -> State:
            mixed = state.hash * jnp.uint32(2654435761) + action.astype(jnp.uint32) + 1
            return State(mixed, state.ply + 1, state.payload + 1)

        def current_player(self, state: State) -> Any:
            return state.ply % 2

        def is_terminal(self, state: State) -> Any:
            return state.ply >= self.max_steps

        def returns(self, state: State) -> Any:
            del state
            return jnp.full(2, 0.5)

        def num_legal(self, state: State) -> Any:
            del state
            return jnp.int32(actions)

        def sample_actions(self, state: State, key: Any, k: int) -> Any:
            del key
            # XLA would copy an array of constants at every step, so the actions depend on the state.
            shift = (state.hash & 1).astype(jnp.int32)
            return (jnp.arange(k, dtype=jnp.int32) + shift) % actions

    def evaluate(params: Any, state: State, key: Any) -> Evaluation:
        del params, key
        noise = (hash32(state.hash, jnp.arange(actions, dtype=jnp.int32)) >> 8).astype(jnp.float32) / 2**24
        return Evaluation(dense_logits(4 * noise), jnp.stack([noise[0], 1 - noise[0]]))

    return MadeUp(), evaluate


def work(
    name: str | None, options: dict[str, Any], batch: int, simulations: int, candidates: int, seconds: float, seed: int
) -> dict[str, Any]:
    """Measure in this process."""
    import jax

    from tilewe_jax.registry import make_game
    from tilewe_jax.search import PuctRule, Search, SearchSettings, bytes_per_node, uniform_evaluator
    from tilewe_jax.search.memory import check_memory

    if name is None:
        game, evaluate = made_up(candidates)
    else:
        game = make_game(name, options)
        evaluate = uniform_evaluator(game)
    check_memory(game, simulations + 1, candidates, batch)
    settings = SearchSettings(simulations, candidates, max_depth=DEPTH)
    search = Search(game, evaluate, PuctRule(), settings)
    key = jax.random.key(seed)
    states = jax.vmap(game.init)(jax.random.split(key, batch))

    def ours(states: Any, keys: Any) -> Any:
        result = jax.vmap(search)(states, keys)
        return result.action, result.tree  # mctx returns the tree too

    runs: dict[str, Callable[[Any, Any], Any]] = {"ours": ours}
    if importlib.util.find_spec("mctx") and game.num_players == 2:
        runs["mctx"] = _mctx(search)
    if name is not None:
        runs["bare"] = _bare(game)
    compiled, compile_seconds = {}, {}
    for run, function in runs.items():
        started = time.perf_counter()
        compiled[run] = jax.jit(function).lower(states, jax.random.split(key, batch)).compile()
        compile_seconds[run] = time.perf_counter() - started
        jax.block_until_ready(compiled[run](states, jax.random.split(key, batch)))
    clock = time.perf_counter if has_accelerator() else time.process_time
    times: dict[str, list[float]] = {run: [] for run in runs}
    wall: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(wall) < 3:
        key, step_key = jax.random.split(key)
        keys = jax.random.split(step_key, batch)
        for run, function in compiled.items():
            began, started = time.perf_counter(), clock()
            jax.block_until_ready(function(states, keys))
            times[run].append(clock() - started)
            if run == "ours":
                wall.append(time.perf_counter() - began)
    counts = {run: batch if run == "bare" else batch * simulations for run in runs}
    rates = {run: round(counts[run] / statistics.median(taken)) for run, taken in times.items()}
    figures = {
        "game": game.id,
        "options": options,
        "batch": batch,
        "simulations": simulations,
        "candidates": candidates,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "rounds": len(wall),
        "simulations_per_second": round(batch * simulations / statistics.median(wall)),
        "compile_seconds": round(compile_seconds["ours"], 2),
        "bytes_per_node": bytes_per_node(game, candidates),
        "seconds_are": "wall" if has_accelerator() else "CPU",
        "ours": rates["ours"],
    }
    if "mctx" in runs:
        figures |= {"mctx": rates["mctx"], "ratio": round(rates["ours"] / rates["mctx"], 2)}
    if "bare" in runs:
        figures |= {"bare": rates["bare"], "times_bare": round(rates["bare"] / rates["ours"], 2)}
    return figures


def _bare(game: Any) -> Callable[[Any, Any], Any]:
    """Return a function that makes a move and the mask of the legal actions after it."""
    import jax

    def one(state: Any, key: Any) -> Any:
        after = game.step(state, game.sample_action(state, key))
        return after, game.legal_action_mask(after)

    return jax.vmap(one)


def _mctx(search: Any) -> Callable[[Any, Any], Any]:
    """Return a function that does the same searches with mctx."""
    import jax
    import mctx

    from tilewe_jax.interop.mctx import CandidateSearch
    from tilewe_jax.search import sample_candidates

    settings = search.settings

    candidates = CandidateSearch(search.game, settings.num_candidates, search.evaluator, sample_candidates)

    def run(states: Any, keys: Any) -> Any:
        key_root, key = jax.random.split(keys[0])
        output = mctx.muzero_policy(
            None,
            key,
            candidates.root(None, key_root, states),
            candidates.recurrent_fn,
            settings.num_simulations,
            max_depth=settings.max_depth,
            dirichlet_fraction=0.0,
        )
        return output.action, output.search_tree

    return run
