"""Matches on the host play the same games as on the device: draws, states, results and forfeits."""

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import assert_same
from tilewe_jax import agents, arena
from tilewe_jax.arena import match
from tilewe_jax.game import Game
from tilewe_jax.lanes import random_words

SMALL = {"players": 2, "size": 7, "pieces": ["O1", "I2", "I3", "L3", "L4", "T4"]}
GAMES = [
    tilewe_jax.make("duo_official"),
    tilewe_jax.make("duo", voluntary_pass=True),
    tilewe_jax.make("santorini", placement="random"),
    tilewe_jax.make("santorini", placement="chosen", size=7),
]


def positions(game: Game[Any], seed: int) -> list[Any]:
    """All positions of a random game."""
    chance, position = Random(seed), game.host(game.init(jax.random.key(seed)))
    found = [position]
    while not position.is_terminal:
        position = position.after(chance.choice(position.legal_actions()))
        found.append(position)
    return found


@pytest.mark.parametrize("game", GAMES, ids=lambda game: f"{game.id}-{'-'.join(map(str, game.options.values()))}")
def test_draws_on_the_host_equal_the_draws_on_the_device(game: Game[Any]) -> None:
    draws = game.host_draws
    assert draws
    played = positions(game, 1)
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.state_of, played))
    assert_same(jax.tree.map(lambda leaf: leaf[-1], states), game.state_of(game.host(game.state_of(played[-1]))))
    keys = jax.random.split(jax.random.key(2), (len(played), 3))

    def drawn(function: Callable[..., jax.Array]) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(jax.vmap(function, in_axes=(None, 0))))(states, keys))

    words, chosen = drawn(lambda _, key: random_words(key, 1)[0]), drawn(game.sample_action)
    assert [
        [draws.sample_action(at, int(word)) for word in row] for at, row in zip(played, words, strict=True)
    ] == chosen.tolist()
    words, chosen = drawn(lambda _, key: draws.word(key)), drawn(game.policies()["random"])
    assert [[draws.random(at, int(word)) for word in row] for at, row in zip(played, words, strict=True)] == chosen.tolist()


class Careless:
    """Plays the first legal action, and from the third of its moves on an illegal one."""

    name = "careless"

    def choose(self, game: agents.OngoingGame, seconds: float, seed: str) -> int:
        legal = game.position.legal_actions()
        return legal[0] if len(game.actions) < 5 else max(legal) + 1


def both(
    monkeypatch: pytest.MonkeyPatch, game: Game[Any], players: list[Any], games: int, **options: Any
) -> list[arena.Results]:
    """Play a match on the device and on the host."""
    results = []
    for limit in (0, games):
        monkeypatch.setattr(match, "MAX_HOST_GAMES", limit)
        made = [agents.agent(player, game) for player in players]
        results.append(arena.play_match(game, made, games, games, 3, keep=True, **options))
    return results


def assert_equal(device: arena.Results, host: arena.Results) -> None:
    assert device.records == host.records
    assert device.decisions == host.decisions
    for name in ("forfeits", "plies", "legal", "scores"):
        assert_same(device.all(name), host.all(name))


@pytest.mark.parametrize(
    ("game", "players", "options"),
    [
        (tilewe_jax.make("tilewe", **SMALL), ["random", "largest_piece"], {"opening": 2}),
        (tilewe_jax.make("tilewe", **SMALL), ["puct:num_simulations=6,num_playouts=0,reuse_subtree=true", "random"], {}),
        (tilewe_jax.make("santorini", size=4, placement="random"), ["random", "greedy"], {"opening": 1}),
        (tilewe_jax.make("santorini", size=4), ["random", Careless()], {"opening": [[1], [2, 3]]}),
    ],
)
def test_matches_on_the_host_equal_matches_on_the_device(
    game: Game[Any], players: list[Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, host = both(monkeypatch, game, players, 6, **options)
    assert_equal(device, host)
    assert device.all("forfeits").any() == any(isinstance(player, Careless) for player in players)


def test_a_match_on_the_host_compiles_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []
    compile_all = match.compile_all

    def follow(programs: Any) -> Any:
        titles.extend(program.title for program in programs)
        return compile_all(programs)

    monkeypatch.setattr(match, "compile_all", follow)
    game = tilewe_jax.make("tilewe", **SMALL)
    both(monkeypatch, game, ["random", "random"], 2)
    assert titles == [
        "the policies",
        "the moves",
        "the results",
        "the start of games",
        "the random draws",
        "the start of games",
    ]
