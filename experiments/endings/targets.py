"""``python -m experiments.endings.targets``: price and gain of exact outcomes as targets of training, see the README.

Games of Duo official are played by the shipped weights with the settings of the preset ``duo_official_cpu``. Then networks with
random initial weights learn them, with and without exact outcomes, and predict the outcomes of the last games, which they have
not learned.
"""

import argparse
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.networks import weights
from tilewe_jax.presets import duo_official_cpu
from tilewe_jax.training import Program, agents, endings, loss, replay, selfplay

PLIES = (0, 8, 12, 16, 20, 22, 24, 26, 28, 45)
"""Bounds of the bins of plies."""


def timed(function: Any, *arguments: Any) -> tuple[Any, float]:
    """Return the result of a function on the host, and its CPU seconds."""
    started = time.process_time()
    result = jax.device_get(jax.block_until_ready(function(*arguments)))
    return result, time.process_time() - started


def results(positions: Any) -> np.ndarray:
    """Return the outcome of the game of each position for seat 0, ``[T, G]``; -1 if it has not ended in these rows."""
    won, outcome = np.array(positions.returns[..., 0]), np.full(positions.finished.shape[1], replay.UNKNOWN, np.float32)
    for row in reversed(range(len(won))):
        outcome = won[row] = np.where(positions.finished[row], won[row], outcome)
    return won


def play(program: Program, count: int) -> tuple[list[Any], float]:
    """Return the positions of iterations of self-play by the shipped weights, and the mean CPU seconds of an iteration."""
    config, game = program.config.selfplay, program.game
    network = weights.load(game, "duo_official")
    players = agents.full_and_fast(config, game, agents.evaluator(config, game))
    run = jax.jit(lambda games, key: selfplay.play(config, game, players, games, key, params=network)[:2])
    games, played, seconds = jax.device_get(program.init(0).games), [], []
    for number in range(count):
        (games, positions), spent = timed(run, games, jax.random.key(number))
        played.append(positions)
        seconds.append(spent)
    return played, float(np.mean(seconds[1:]))


def plies(game: Any, positions: Any) -> np.ndarray:
    """Return the number of pieces placed in each position."""
    in_hand = np.bitwise_count(np.asarray(positions.state.hands)).sum(axis=-1, dtype=np.int32)
    return game.config.colors * game.config.full_hand.bit_count() - in_hand  # type: ignore[no-any-return]


def learned(program: Program, parts: list[Any], steps: int, seed: int) -> Any:
    """Return the average weights of a new network after optimizer steps on positions."""
    state = program.init(seed)
    for positions in parts:
        state = replace(state, replay=_add(state.replay, positions))
    for _ in range(steps):
        state, _ = program.learn(state)
    return state.learner.average


_add = jax.jit(replay.add)


def predict(game: Any, model: Any, states: Any) -> jax.Array:
    """Return the expected outcomes of positions for seat 0."""
    predicted = jax.vmap(lambda state: loss.predict(game, model, state, jnp.full(1, -1, jnp.int32)))(states)
    expected = jax.nn.softmax(predicted.outputs.outcome_logits)
    return jnp.where(predicted.seats[:, 0] == 0, expected[:, 0], expected[:, 1])


def main() -> None:
    """Play, solve, learn and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"games": 64, "iterations": 16, "held_out": 4, "nodes": 500, "steps": 1500, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    preset = duo_official_cpu.CONFIG
    program = Program(replace(preset, selfplay=replace(preset.selfplay, num_games=args.games)), 1)
    game: Any = program.game
    played, seconds = play(program, args.iterations + args.held_out)
    solve = jax.jit(lambda positions: endings.with_exact_outcomes(game, positions, args.nodes))
    solved, solving = zip(*(timed(solve, positions) for positions in played), strict=True)
    print(f"solving takes {np.mean(solving[1:]) / seconds:.1%} of the time of the moves", flush=True)

    before, after = (jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts) for parts in (played, solved))
    is_solved, ply, actual = after.is_solved, plies(game, before), results(before)
    exact = np.where(is_solved, after.outcome_target[..., 0], actual)
    bins = [(f"{low} to {high - 1}", (ply >= low) & (ply < high)) for low, high in pairwise(PLIES)]
    for title, rows in bins:
        known = (exact != actual)[rows & is_solved & (actual >= 0)]
        print(f"| {title} | {rows.sum()} | {is_solved[rows].mean():.0%} | {known.sum() / max(1, len(known)):.1%} |", flush=True)

    # The first games are learned, and the outcomes of the last ones predicted.
    held = (np.arange(len(ply))[:, None] >= args.iterations * program.config.selfplay.unroll_length) & (actual >= 0)
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[held], before.state)
    values = np.zeros((args.seeds, 2, len(ply), args.games), np.float32)
    value_of = jax.jit(partial(predict, game))
    for seed in range(args.seeds):
        for index, parts in enumerate((played, solved)):
            model = learned(program, list(parts[: args.iterations]), args.steps, seed)
            values[seed, index][held] = value_of(model, states)
    print(f"{held.sum()} held-out positions")
    for title, rows in [*bins, ("all", held)]:
        cells = []
        for target in (actual, exact):
            score = np.mean((values - target)[:, :, rows & held] ** 2, axis=2)
            difference = score[:, 1] - score[:, 0]
            error = difference.std(ddof=1) / args.seeds**0.5 if args.seeds > 1 else 0.0
            cells.append(f"{score[:, 0].mean():.4f} | {difference.mean():+.4f} ± {error:.4f}")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
