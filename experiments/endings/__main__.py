"""``python -m experiments.endings check [GAME ...]``, ``measure FILE PLIES COUNT`` or ``santorini COUNT``, see the README."""

import json
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tilewe_jax
from experiments.endings.reference import best_of, random_endings
from tilewe_jax.agents.endings import EndingSolver
from tilewe_jax.formats.blokus import PASS, game_of_name
from tilewe_jax.host_games import make_host_game

CHECKED: dict[str, tuple[str, dict[str, Any], int]] = {
    "duo_official": ("duo_official", {}, 400),
    "duo_official 8x8": ("duo_official", {"size": 8}, 200),
    "duo_official, 4 pieces": ("duo_official", {"size": 7, "pieces": ["O1", "I2", "I3", "L3"]}, 200),
    "duo": ("duo", {}, 200),
    "duo with passes": ("duo", {"size": 7, "voluntary_pass": True}, 200),
    "tilewe": ("tilewe", {"players": 2, "size": 10}, 200),
    "classic_2": ("classic_2", {"size": 10}, 200),
    "classic_2, start piece": ("classic_2", {"size": 5, "pieces": ["I2", "I3", "L3"], "start_piece": "L3"}, 200),
    "santorini": ("santorini", {"size": 3}, 200),
}
"""Games, options, and numbers of endings that ``check`` compares with exhaustive search."""
MOST = 1_000
"""Maximum number of positions of an exhaustive search."""
LIMITS = (1_000, 10_000, 100_000)


def check(titles: list[str]) -> None:
    """Compare solutions with exhaustive search, by default in all games."""
    for title in titles or CHECKED:
        name, options, count = CHECKED[title]
        host = make_host_game(name, **options)
        solver = EndingSolver(tilewe_jax.make(name, **options))
        sizes, nodes, outcomes = [], [], Counter[int]()
        for actions, position, margins in islice(random_endings(host, MOST, seed=0), count):
            solution, margin = solver.solve(solver.state(actions)), best_of(list(margins.values()), position)
            assert solution.is_exact, (title, actions)
            assert solution.low == solution.high == margin, (title, actions, margin, solution)
            assert margins[int(solution.action)] == margin, (title, actions, margins, solution)
            sizes.append(len(margins))
            nodes.append(int(solution.num_nodes))
            outcomes[int(np.sign(margin))] += 1
        print(
            f"| {title} | {count} | {outcomes[1]}/{outcomes[0]}/{outcomes[-1]} | {np.median(sizes):.0f}"
            f" | {np.median(nodes):.0f} | {max(nodes)} |",
            flush=True,
        )


def measure(path: str, plies: list[int], count: int) -> None:
    """Measure nodes and CPU milliseconds of positions of recorded games, by ply, for the outcome and for the margin."""
    import jax

    from tilewe_jax.search import solve

    blokus = game_of_name("duo_official")
    game: Any = tilewe_jax.make("duo_official")
    lines = Path(path).read_text().splitlines()
    games = [[blokus.action(move) for move in json.loads(line)["moves"] if move != PASS] for line in lines]
    games = [games[index] for index in np.random.default_rng(0).permutation(len(games))]
    states = EndingSolver(game)
    start = states.state([])
    programs: dict[tuple[bool, int], Any] = {}
    for margin in (False, True):
        for size in (256, 1024):

            def run(state: Any, margin: bool = margin, size: int = size) -> Any:
                return solve(game, state, max_nodes=LIMITS[-1], margin=margin, max_moves=size)

            programs[margin, size] = jax.jit(run).lower(start).compile()
    for ply in plies:
        chosen = [states.state(actions[:ply]) for actions in games if len(actions) > ply][:count]
        for margin in (False, True):
            nodes, milliseconds = [], []
            exact = []
            for state in chosen:
                started = time.process_time()
                solution = jax.device_get(programs[margin, 256](state))
                if not solution.is_supported:
                    solution = jax.device_get(programs[margin, 1024](state))
                milliseconds.append(1e3 * (time.process_time() - started))
                nodes.append(int(solution.num_nodes))
                exact.append(bool(solution.is_exact))
            within = [np.mean([e and n <= limit for e, n in zip(exact, nodes, strict=True)]) for limit in LIMITS]
            cells = [f"{share:.0%}" for share in within]
            cells += [f"{np.median(nodes):,.0f}", f"{np.quantile(nodes, 0.9):,.0f}"]
            cells += [f"{np.median(milliseconds):,.1f}", f"{np.quantile(milliseconds, 0.9):,.0f}"]
            print(f"| {ply} | {len(chosen)} | {'margin' if margin else 'outcome'} | {' | '.join(cells)} |", flush=True)


def santorini(count: int, max_nodes: int = 2_000) -> None:
    """Measure forced wins in Santorini before the end of games between greedy players, after four random moves."""
    import jax

    game: Any = tilewe_jax.make("santorini")
    host, solver, chance = make_host_game("santorini"), EndingSolver(game, max_nodes), Random(0)
    greedy = jax.jit(game.policies()["greedy"])
    solver.solve(solver.state([]))  # compiles
    results: dict[int, list[tuple[bool, int, float]]] = {}
    for number in range(count):
        position, actions = host.init_from_deal(None), list[int]()
        while not position.is_terminal:
            if len(actions) < 4:
                actions.append(chance.choice(position.legal_actions()))
            else:
                actions.append(int(greedy(solver.state(actions), jax.random.key(number))))
            position = position.after(actions[-1])
        for before in (4, 6, 8, 10):
            if len(actions) - before > 4:
                state = solver.state(actions[:-before])
                started = time.process_time()
                solution = solver.solve(state)
                seconds = time.process_time() - started
                results.setdefault(before, []).append((bool(solution.is_exact), int(solution.num_nodes), seconds))
    for before, rows in results.items():
        exact, nodes, times = (np.array(column) for column in zip(*rows, strict=True))
        cells = [f"{exact.mean():.0%}", f"{np.median(nodes):,.0f}", f"{1e6 * times.sum() / nodes.sum():.0f}"]
        print(f"| {before} | {len(rows)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2:])
    elif sys.argv[1] == "santorini":
        santorini(int(sys.argv[2]))
    else:
        measure(sys.argv[2], [int(ply) for ply in sys.argv[3].split(",")], int(sys.argv[4]))
