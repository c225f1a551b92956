"""Grids of games that go on, for the game server."""

from itertools import islice

import numpy as np
import pytest

from experiments.live import Live, cells_of, grids
from tilewe_jax.games.polyomino.config import duo_official
from tilewe_jax.host_games import make_host_game
from tilewe_jax.registry import make


def test_cells_are_those_of_views() -> None:
    config = duo_official()
    position = make_host_game("duo_official").init_from_deal(None)
    for _ in range(6):
        position = position.after(position.legal_actions()[-1])
    words = -(-config.cells // 32)
    occupied = np.zeros((1, config.colors, 32 * words), np.uint8)
    for color in range(config.colors):
        for x, y in position.cells(color):  # type: ignore[attr-defined]
            occupied[0, color, config.bit((x, y))] = 1
    packed = np.packbits(occupied, axis=-1, bitorder="little").view(np.uint32)
    assert cells_of(packed, config.cells) == [position.view()["cells"]]


def test_grids() -> None:
    defaults = Live()
    assert defaults.policy in make(defaults.game).policies()
    sizes = []
    for grid in islice(grids(Live(games=2, policy="random")), 4):
        assert [len(cells) for cells in grid["cells"]] == [196, 196]
        sizes.append(sum(cells.count("0") + cells.count("1") for cells in grid["cells"]))
    assert sizes == sorted(set(sizes))
    with pytest.raises(ValueError, match="santorini is none"):
        next(grids(Live(game="santorini")))
    with pytest.raises(ValueError, match="no policy 'nosuch'"):
        next(grids(Live(policy="nosuch")))
