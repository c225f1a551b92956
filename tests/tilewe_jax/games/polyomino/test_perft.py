"""Numbers of action sequences, published or from third-party implementations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import slow, traces
from tilewe_jax.cli.benchmarks.perft import Perft

KNOWN = [
    slow("tilewe", {"players": 1}, (232, 38_916)),
    slow("tilewe", {"players": 2}, (232, 40_368)),
    ("tilewe", {"players": 4}, (232, 40_368, 4_682_688)),
    ("duo", {}, (116, 13_456, 2_987_464)),
    ("duo_official", {}, (414, 171_396, 89_204_762)),
    ("classic", {}, (58, 3_364, 195_112)),
    slow("classic", {}, (58, 3_364, 195_112, 11_316_496)),
    ("classic_2", {"size": 4, "pieces": ("O1", "I2", "L3")}, (6, 36, 216, 1_296, 3_195, 4_753, 3_378)),
]


@pytest.mark.parametrize(("name", "options", "leaves"), KNOWN, ids=str)
def test_from_the_start(name: str, options: dict, leaves: tuple[int, ...]) -> None:
    game = tilewe_jax.make(name, **options)
    counter = Perft(game)
    root = game.init(jax.random.key(0))
    assert [counter.leaves(root, depth) for depth in range(1, len(leaves) + 1)] == list(leaves)


def test_tiny_game_by_exhaustion() -> None:
    """A single player on 3 x 3 with O1 and I2, counted by hand.

    O1 in a corner (4 ways) opens only the middle: I2 covers it and one of its two neighbours that are not next to O1. I2 along
    a side from a corner (8 ways) opens one cell for O1.
    """
    game = tilewe_jax.make("tilewe", players=1, size=3, pieces=("O1", "I2"))
    counter = Perft(game, batch=16)
    root = game.init(jax.random.key(0))
    assert counter.leaves(root, 0) == 1
    assert counter.leaves(root, 1) == 4 + 8
    assert counter.leaves(root, 2) == 4 * 2 + 8 * 1
    assert counter.leaves(root, 3) == 0


@pytest.mark.parametrize(
    ("variant", "players"),
    [
        ("tilewe", 4),
        *(slow("tilewe", players) for players in (1, 2, 3)),
        slow("duo", 2),
        ("duo_official", 2),
        slow("classic", 4),
    ],
)
def test_from_positions_where_players_meet(variant: str, players: int) -> None:
    game = tilewe_jax.make(variant, **({"players": players} if variant == "tilewe" else {}))
    counter = Perft(game)
    apply = jax.jit(game.step)
    compared = 0
    for position in traces("perft/positions.jsonl.gz"):
        name = {"duo_modified": "duo"}.get(position["variant"], position["variant"])
        if (name, position["players"]) != (variant, players):
            continue
        assert game.config.size == position["board"]
        state = game.init(jax.random.key(0))
        for cells in position["moves"]:
            action = game.action_of(map(tuple, cells))
            after = apply(state, jnp.int32(action))
            assert not np.array_equal(after.occupied, state.occupied)
            state = after
        assert int(state.current_color) == position["player"]
        for depth, leaves in enumerate(position["perft"], 1):
            assert counter.leaves(state, depth) == leaves
        compared += 1
    assert compared
