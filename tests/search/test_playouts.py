"""Playouts of many games in one loop."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.search.evaluators import best_of, play_out

GAMES = [
    ("tilewe", {"players": 3, "size": 6, "pieces": ("O1", "I2", "L3", "I3")}),
    ("santorini", {"size": 3}),
    ("triominos", {"players": 2}),
]
LANES = 5


def _positions(game: Any, plies: int) -> Any:
    """Positions after 0 to ``plies`` random actions, so that their games end at different times."""

    def position(key: jax.Array, length: jax.Array) -> Any:
        def move(i: jax.Array, state: Any) -> Any:
            action = game.sample_action(state, jax.random.fold_in(key, i))
            return game.apply(state, jnp.where(i < length, action, -1))

        return jax.lax.fori_loop(0, plies, move, game.init(key))

    lengths = jnp.linspace(0, plies, LANES).astype(jnp.int32)
    return jax.jit(jax.vmap(position))(jax.random.split(jax.random.key(0), LANES), lengths)


@pytest.mark.parametrize(("name", "options"), GAMES, ids=str)
def test_games_in_lanes_end_as_alone(name: str, options: dict) -> None:
    game: Any = tilewe_jax.make(name, **options)
    play = partial(play_out, game, best_of(game, 3), game.apply_deferred)
    states, keys = _positions(game, 12), jax.random.split(jax.random.key(1), LANES)
    is_played = jnp.arange(LANES, dtype=jnp.int32) != 2
    together = jax.jit(jax.vmap(lambda state, key, is_played: play(state, key, is_played=is_played)))(states, keys, is_played)
    alone = jax.jit(play)
    for lane in range(LANES):
        state, last = (jax.tree.map(lambda leaf, lane=lane: leaf[lane], tree) for tree in (states, together))
        expected = alone(state, keys[lane]) if is_played[lane] else state
        assert not is_played[lane] or game.is_terminal(last)
        jax.tree.map(np.testing.assert_array_equal, *map(_words, (last, expected)))


def _words(state: Any) -> Any:
    """The state with PRNG keys as arrays."""
    return jax.tree.map(
        lambda leaf: jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf, state
    )


def test_playouts_stop_after_max_plies() -> None:
    game: Any = tilewe_jax.make("tilewe", players=2, size=8, pieces=("O1", "I2", "L3", "I3", "T4"))
    expected = state = game.init(jax.random.key(0))

    def first_legal(state: Any, key: jax.Array) -> jax.Array:
        del key
        return jnp.argmax(game.legal_action_mask(state)).astype(jnp.int32)

    for _ in range(3):
        expected = game.apply(expected, first_legal(expected, jax.random.key(0)))
    last = jax.jit(partial(play_out, game, first_legal, game.apply, max_plies=3))(state, jax.random.key(1))
    assert not game.is_terminal(last)
    jax.tree.map(np.testing.assert_array_equal, last, expected)


@pytest.mark.parametrize(("num_samples", "method"), [(0, "playout_action"), (1, "sample_action"), (5, "best_sampled")])
def test_samples_decide_the_policy(num_samples: int, method: str) -> None:
    game: Any = tilewe_jax.make("santorini", size=3)
    position = game.init(jax.random.key(0)), jax.random.key(1)
    expected = getattr(game, method)(*position, *([num_samples] if num_samples > 1 else []))
    assert int(best_of(game, num_samples)(*position)) == int(expected) >= 0
