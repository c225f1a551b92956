"""How fast the search is: simulations per CPU second of one pinned core, against mctx in the same process, in turns.

Without a game it is a made-up one: two players in turns, as many actions as candidates, a state of 300 bytes, and an evaluator
of a few operations, so that the figure is that of the search. mctx keeps all actions of a node; here it gets the candidates
that ours has, which are carried beside the state. Both use PUCT and the same evaluator. In games, ``bare`` is how often a move
and the dense mask of the legal actions after it are made, and ``times_bare`` what a simulation costs beside that.
"""

import argparse
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewe_jax.cli.benchmarks.play import has_accelerator, in_process, pin_to, pinned_cores, run_measurement

WORDS = 73
"""Words of the made-up state beside hash and ply: 300 bytes in all."""
DEPTH = 32


def measure(
    name: str | None, options: dict[str, Any], batch: int, simulations: int, candidates: int, seconds: float, seed: int
) -> dict[str, Any]:
    """Figures, as JSON. ``name`` is a game, or ``None`` for the made-up one. Raises ``RuntimeError`` where measuring fails."""
    pin = None if has_accelerator() else pinned_cores(1)[0]
    settings = name, options, batch, simulations, candidates, seconds, seed, pin
    return in_process("tilewe_jax.cli.benchmarks.search", *settings)


def made_up(actions: int) -> tuple[Any, Any]:
    """A game and its evaluator that cost next to nothing."""
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
        """What the search asks of a game, and no more."""

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
            # Actions that depend on the state, or XLA would know them all, and copy that array at every step.
            shift = (state.hash & 1).astype(jnp.int32)
            return (jnp.arange(k, dtype=jnp.int32) + shift) % actions

    def evaluate(params: Any, state: State, key: Any) -> Evaluation:
        del params, key
        noise = (hash32(state.hash, jnp.arange(actions, dtype=jnp.int32)) >> 8).astype(jnp.float32) / 2**24
        return Evaluation(dense_logits(4 * noise), jnp.stack([noise[0], 1 - noise[0]]))

    return MadeUp(), evaluate


def _work(
    name: str | None, options: dict[str, Any], batch: int, simulations: int, candidates: int, seconds: float, seed: int
) -> dict[str, Any]:
    import jax

    from tilewe_jax.game_options import make_game
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
        return result.action, result.tree  # the tree too, which mctx gives

    runs: dict[str, Callable[[Any, Any], Any]] = {"ours": ours}
    if importlib.util.find_spec("mctx") and game.num_players == 2:
        runs["mctx"] = _mctx(search)
    if name is not None:
        runs["bare"] = _bare(game)
    compiled, compile_seconds = {}, {}
    for run, function in runs.items():
        begun = time.perf_counter()
        compiled[run] = jax.jit(function).lower(states, jax.random.split(key, batch)).compile()
        compile_seconds[run] = time.perf_counter() - begun
        jax.block_until_ready(compiled[run](states, jax.random.split(key, batch)))
    cpu: dict[str, list[float]] = {run: [] for run in runs}
    wall: dict[str, list[float]] = {run: [] for run in runs}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(cpu["ours"]) < 3:
        key, now = jax.random.split(key)
        keys = jax.random.split(now, batch)
        for run, function in compiled.items():
            begun, cpu_begun = time.perf_counter(), time.process_time()
            jax.block_until_ready(function(states, keys))
            wall[run].append(time.perf_counter() - begun)
            cpu[run].append(time.process_time() - cpu_begun)
    once = {"bare": batch}  # what is no search does it once a game
    per_cpu_second = {run: round(once.get(run, batch * simulations) / statistics.median(times)) for run, times in cpu.items()}
    figures = {
        "game": game.id,
        "options": options,
        "batch": batch,
        "simulations": simulations,
        "candidates": candidates,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "rounds": len(cpu["ours"]),
        "simulations_per_second": round(batch * simulations / statistics.median(wall["ours"])),
        "compile_seconds": round(compile_seconds["ours"], 2),
        "bytes_per_node": bytes_per_node(game, candidates),
        "ours": per_cpu_second["ours"],
    }
    if "mctx" in runs:
        figures |= {"mctx": per_cpu_second["mctx"], "ratio": round(per_cpu_second["ours"] / per_cpu_second["mctx"], 2)}
    if "bare" in runs:
        figures |= {"bare": per_cpu_second["bare"], "times_bare": round(per_cpu_second["bare"] / per_cpu_second["ours"], 2)}
    return figures


def _bare(game: Any) -> Callable[[Any, Any], Any]:
    """A move and the legal actions after it, which no search can do without."""
    import jax

    def one(state: Any, key: Any) -> Any:
        after = game.step(state, game.sample_action(state, key))
        return after, game.legal_action_mask(after)

    return jax.vmap(one)


def _mctx(search: Any) -> Callable[[Any, Any], Any]:
    """The same searches by mctx."""
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("settings")
    *given, pin = json.loads(parser.parse_args().settings)
    pin_to(pin)
    print(json.dumps(run_measurement(lambda: _work(*given))))
