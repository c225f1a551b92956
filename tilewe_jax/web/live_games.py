"""Games of self-play that go on side by side, for the game server to show: grids of boards in JSON lines on standard output.

    python -m tilewe_jax.web.live_games --game duo_official --games 1024 --policy most_open_corners --seconds 0.5

Each line is a grid: ``{"type": "grid", "game", "kind", "size", "step", "cells": [...], "over": [...]}``. ``cells`` has a text
for each game, with a character for each cell, the bottom row first: of a polyomino game the digit of the colour or ".", as its
views have it; of Santorini the height, or 5 and 6 for the workers of the two players. Games that are ``over`` are begun again
with the next line.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt8

from tilewe_jax.batching.reset import auto_reset, init_batch
from tilewe_jax.bits import unpack_words
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.santorini import rules as santorini
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.registry import make
from tilewe_jax.settings import from_arguments

ONE_PLY = {PolyominoGame: "most_open_corners", SantoriniGame: "one_ply"}
"""The policy that plays unless one is named."""


@dataclass(frozen=True)
class Live:
    """Play games side by side, and print a grid of their boards after each move."""

    game: str = "duo_official"
    """A polyomino game, or Santorini."""
    games: int = 1024
    """Number of games."""
    policy: str = ""
    """Built-in policy of the game that plays; by default one that looks one move ahead."""
    seconds: float = 0.5
    """Seconds from one move to the next, at least."""
    seed: int = 0


def grids(options: Live) -> Iterator[dict[str, Any]]:
    """The grid after each move, for ever. Raises ``ValueError`` for another kind of game, or an unknown policy."""
    game = make(options.game)
    if not isinstance(game, (PolyominoGame, SantoriniGame)):
        raise ValueError(f"live games are polyomino games or Santorini, and {options.game} is neither")
    policies, name = game.policies(), options.policy or ONE_PLY[type(game)]
    if name not in policies:
        raise ValueError(f"{options.game} has no policy {name!r}; it has {', '.join(policies)}")
    policy, batch = policies[name], options.games
    kind = "polyomino" if isinstance(game, PolyominoGame) else "santorini"

    @jax.jit
    def step(states: Any, key: Any) -> tuple[Any, Any, Any]:
        key_reset, key_actions = jax.random.split(key)
        states = auto_reset(game, jax.random.split(key_reset, batch), jax.vmap(game.is_terminal)(states), states)
        actions = jax.vmap(policy)(states, jax.random.split(key_actions, batch))
        states = jax.vmap(game.apply)(states, actions)
        return states, jax.vmap(partial(characters, game))(states), jax.vmap(game.is_terminal)(states)

    key = jax.random.key(options.seed)
    states: Any = init_batch(cast(Any, game), key, batch)
    number = 0
    while True:
        states, boards, over = step(states, jax.random.fold_in(key, number))
        number += 1
        yield {
            "type": "grid",
            "game": game.id,
            "kind": kind,
            "size": game.config.size,
            "step": number,
            "cells": [row.tobytes().decode() for row in np.asarray(boards)],
            "over": np.flatnonzero(jnp.asarray(over)).tolist(),
        }


def characters(game: PolyominoGame | SantoriniGame, state: Any) -> UInt8[Array, "cells"]:
    """The characters of a game, see above, as ASCII codes."""
    if isinstance(game, PolyominoGame):
        codes = jnp.full(game.config.cells, ord("."), jnp.uint8)
        for color in range(game.config.colors):
            codes = jnp.where(unpack_words(state.occupied[color], game.config.cells), np.uint8(ord("0") + color), codes)
        return codes
    pieces, heights = santorini.board_of(game.config, state)
    player = jnp.where(pieces > 0, state.current_player, 1 - state.current_player)
    digits = jnp.where(pieces != 0, 5 + player, heights.astype(jnp.int32))
    return (ord("0") + digits).astype(jnp.uint8)[::-1].ravel()


def main(arguments: list[str]) -> None:
    """Print grids until nobody reads them."""
    options = from_arguments(Live, arguments)
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
