"""Program that plays many self-play games and writes grids of their boards to standard output, for the game server.

    python -m tilewe_jax.web.live_games --game duo_official --games 1024 --policy most_open_corners --seconds 0.5

Each line is ``{"type": "grid", "game", "kind", "size", "step", "cells": [...], "over": [...]}``. ``cells`` has one text a game,
see ``Game.characters``. Games in ``over`` have ended and restart with the next line.
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

from tilewe_jax.arguments import from_arguments
from tilewe_jax.batching.reset import auto_reset, init_batch
from tilewe_jax.game import state_shapes
from tilewe_jax.registry import make


@dataclass(frozen=True)
class Live:
    """Play games in parallel and print a grid of their boards after each move."""

    game: str = "duo_official"
    """Game that implements ``Game.characters``."""
    games: int = 1024
    """Number of games."""
    policy: str = ""
    """Name of a policy of the game; by default its ``quick_policy``."""
    seconds: float = 0.5
    """Minimum time between moves, in seconds."""
    seed: int = 0


def grids(options: Live) -> Iterator[dict[str, Any]]:
    """Yield the grid after each move, without end. Raises ``ValueError`` for a game without grids or an unknown policy."""
    game = make(options.game)
    if not jax.eval_shape(game.characters, state_shapes(game)).size:
        raise ValueError(f"game must have a square board, got {options.game}")
    policies, name = game.policies(), options.policy or game.quick_policy
    if name not in policies:
        raise ValueError(f"policy of {options.game} must be one of {', '.join(policies)}, got {name!r}")
    policy, batch = policies[name], options.games

    @jax.jit
    def step(states: Any, key: Any) -> tuple[Any, Any, Any]:
        key_reset, key_actions = jax.random.split(key)
        states = auto_reset(game, jax.random.split(key_reset, batch), jax.vmap(game.is_terminal)(states), states)
        actions = jax.vmap(policy)(states, jax.random.split(key_actions, batch))
        states = jax.vmap(game.apply)(states, actions)
        return states, jax.vmap(game.characters)(states), jax.vmap(game.is_terminal)(states)

    key = jax.random.key(options.seed)
    states: Any = init_batch(game, key, batch)
    view = game.host(jax.tree.map(lambda leaf: leaf[0], states)).view()
    number = 0
    while True:
        states, boards, over = step(states, jax.random.fold_in(key, number))
        number += 1
        yield {
            "type": "grid",
            "game": game.id,
            "kind": view["kind"],
            "size": view["size"],
            "step": number,
            "cells": [row.tobytes().decode() for row in np.asarray(boards)],
            "over": np.flatnonzero(jnp.asarray(over)).tolist(),
        }


def main(arguments: list[str]) -> None:
    """Print grids until the reader closes the pipe."""
    options = from_arguments(Live, arguments)
    started = time.monotonic()
    for grid in grids(options):
        time.sleep(max(0.0, options.seconds - (time.monotonic() - started)))
        started = time.monotonic()
        try:
            print(json.dumps(grid, separators=(",", ":")), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter must not flush again at its end
            return


if __name__ == "__main__":
    main(sys.argv[1:])
