"""Grids of self-play games for the page."""

from itertools import islice

import jax
import pytest

import tilewe_jax
from tests.support import rows
from tilewe_jax.web.live_games import Live, grids


def test_a_grid_of_santorini_has_heights_and_workers() -> None:
    first = ""
    for step, grid in enumerate(islice(grids(Live("santorini", games=3, policy="random", seconds=0)), 4), 1):
        first = first or grid["cells"][0]
        assert (grid["kind"], grid["size"], grid["step"], len(grid["cells"])) == ("santorini", 5, step, 3)
        for text in grid["cells"]:
            assert len(text) == 25
            assert (text.count("5"), text.count("6")) == (2, 2)
            assert sum(map(int, text.replace("5", "").replace("6", ""))) <= step
    assert first[12 - 1] == first[12 + 1] == "6"  # the second player has not moved yet


def test_grids_of_polyomino_games_equal_their_views() -> None:
    game = tilewe_jax.make("duo", size=6)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    step, characters = jax.jit(jax.vmap(game.step, in_axes=(0, None))), jax.jit(game.characters)
    for _ in range(3):
        position = game.host(rows(states, 1))
        assert bytes(characters(rows(states, 1)).tolist()).decode() == (view := position.view())["cells"]
        states = step(states, position.legal_actions()[-1])
    assert set(view["cells"]) == {".", "0", "1"}


def test_games_without_grids_are_rejected() -> None:
    with pytest.raises(ValueError, match="triominos"):
        next(grids(Live("triominos")))
    with pytest.raises(ValueError, match="worst"):
        next(grids(Live("duo", policy="worst")))
