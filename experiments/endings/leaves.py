"""``python -m experiments.endings.leaves``: what solving the leaves of a search would cost, see the README.

Positions come from games of Duo official by the shipped weights, as in ``experiments.endings.targets``.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.endings.targets import play, plies, timed
from tilewe_jax import agent
from tilewe_jax.presets import duo_official_cpu
from tilewe_jax.search import solve
from tilewe_jax.training import Program

ROOTS, SAMPLE, MAX_NODES, MAX_MOVES = 8, 400, 50, 256
"""Number of roots of a row, of leaves that are solved, and limits of the solver."""


def seconds(function: Any, *arguments: Any) -> tuple[Any, float]:
    """Return the result of the second call of a function, which compiles nothing, and its CPU seconds."""
    timed(function, *arguments)
    return timed(function, *arguments)


def main() -> None:
    """Search positions by ply, and solve a sample of the nodes of the trees, the leaves of the simulations."""
    preset = duo_official_cpu.CONFIG
    program = Program(replace(preset, selfplay=replace(preset.selfplay, num_games=32)), 1)
    game, (played, _) = program.game, play(program, 3)

    def flat(leaf: Any) -> Any:
        return np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:])

    positions = jax.tree.map(lambda *leaves: np.concatenate([flat(leaf) for leaf in leaves]), *played)
    ply, chance = plies(game, positions), np.random.default_rng(0)
    solve_each = jax.jit(partial(jax.lax.map, partial(solve, game, max_nodes=MAX_NODES, margin=False, max_moves=MAX_MOVES)))
    for simulations in (64, 400):
        settings = f"num_simulations={simulations},reuse_subtree=false,stop_early=false,exact_endings=false"
        search = jax.jit(jax.vmap(agent(f"best:{settings}", game).search))
        for number in (21, 23, 25, 27):
            roots = chance.choice(np.flatnonzero(ply == number), ROOTS, replace=False)
            states = jax.tree.map(lambda leaf, roots=roots: leaf[roots], positions.state)
            output, searching = seconds(search, states, jax.random.split(jax.random.key(number), ROOTS))
            tree: Any = output.tree
            is_leaf = np.arange(simulations + 1) < tree.num_nodes[:, None]
            is_leaf[:, 0] = False
            sample = np.resize(chance.permutation(np.flatnonzero(is_leaf))[:SAMPLE], SAMPLE)
            leaves = jax.tree.map(lambda leaf, sample=sample: flat(leaf)[sample], tree.state)
            solution, solving = seconds(solve_each, leaves)
            cells = [f"{solution.is_supported.mean():.0%}", f"{solution.has_outcome.mean():.0%}"]
            cells += [f"{solution.num_nodes.mean():.0f}", f"{1e6 * solving / SAMPLE:.0f}"]
            cells += [f"{1e6 * searching / (ROOTS * simulations):.0f}"]
            print(f"| {simulations} | {number} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
