"""Games of self-play that go on side by side, for the game server to show: grids of boards in JSON lines on standard output.

    python -m experiments.live --game duo_official --games 256 --policy most_open_corners --seconds 0.5

Each line is a grid: ``{"type": "grid", "game", "kind": "polyomino", "size", "step", "cells": [...], "over": [...]}``.
``cells`` has a text for each game, as views of polyomino games have it; games that are ``over`` are begun again with the next
line.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.parsing import parse
from tilewe_jax.batching.reset import auto_reset, init_batch
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.registry import make


@dataclass(frozen=True)
class Live:
    """Play games side by side, and print a grid of their boards after each move."""

    game: str = "duo_official"
    """A polyomino game."""
    games: int = 256
    """Number of games."""
    policy: str = "most_open_corners"
    """Built-in policy that plays."""
    seconds: float = 0.5
    """Seconds from one move to the next, at least."""
    seed: int = 0


def grids(options: Live) -> Iterator[dict[str, Any]]:
    """The grid after each move, for ever. Raises ``ValueError`` for another kind of game, or an unknown policy."""
    game = make(options.game)
    if not isinstance(game, PolyominoGame):
        raise ValueError(f"live games are polyomino games, and {options.game} is none")
    policies = game.policies()
    if options.policy not in policies:
        raise ValueError(f"{options.game} has no policy {options.policy!r}; it has {', '.join(policies)}")
    policy, batch = policies[options.policy], options.games

    @jax.jit
    def step(states: Any, key: Any) -> tuple[Any, Any, Any]:
        key_reset, key_actions = jax.random.split(key)
        states = auto_reset(game, jax.random.split(key_reset, batch), jax.vmap(game.is_terminal)(states), states)
        actions = jax.vmap(policy)(states, jax.random.split(key_actions, batch))
        states = jax.vmap(game.apply)(states, actions)
        return states, states.occupied, jax.vmap(game.is_terminal)(states)

    key = jax.random.key(options.seed)
    states = init_batch(game, key, batch)
    number = 0
    while True:
        states, occupied, over = step(states, jax.random.fold_in(key, number))
        number += 1
        yield {
            "type": "grid",
            "game": game.id,
            "kind": "polyomino",
            "size": game.config.size,
            "step": number,
            "cells": cells_of(np.asarray(occupied), game.config.cells),
            "over": np.flatnonzero(jnp.asarray(over)).tolist(),
        }


def cells_of(occupied: np.ndarray, cells: int) -> list[str]:
    """The boards of packed cells by colour, ``[batch, colors, words]``: for each cell "." or the digit of its colour."""
    flags = np.unpackbits(np.ascontiguousarray(occupied).view(np.uint8), axis=-1, bitorder="little")[..., :cells]
    digits = np.full((len(flags), cells), ord("."), np.uint8)
    for color in range(flags.shape[1]):
        digits[flags[:, color].astype(np.bool_)] = ord("0") + color
    return [row.tobytes().decode() for row in digits]


def main(arguments: list[str]) -> None:
    """Print grids until nobody reads them."""
    options = parse(Live, arguments, "experiments.live")
    begun = time.monotonic()
    for grid in grids(options):
        time.sleep(max(0.0, options.seconds - (time.monotonic() - begun)))
        begun = time.monotonic()
        try:
            print(json.dumps(grid, separators=(",", ":")), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter must not try again when it ends
            return


if __name__ == "__main__":
    main(sys.argv[1:])
