"""Networks for games: shapes, architectures, sizes and observations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import batched, positions, rows
from tilewe_jax import networks

GAME = TicTacToe()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("duo", {"size": 5, "pieces": ("I2", "L3"), "voluntary_pass": True}),
        ("santorini", {"size": 3, "placement": "chosen"}),
        ("triominos", {"players": 3, "tiles": 10, "tray": 2}),
    ],
    ids=str,
)
def test_outputs_of_networks_have_the_shapes_of_the_game(name: str, options: dict[str, Any]) -> None:
    game = tilewe_jax.make(name, **options)
    model = networks.make(game, "default", "tiny", jax.random.key(0))

    @jax.jit
    @jax.vmap
    def ask(key: Any) -> Any:
        state = game.init(key)
        outputs = model(game.observe(state, game.current_player(state)))
        return outputs, game.gather_logits(state, outputs.logits, game.sample_actions(state, key, 5))

    outputs, logits = ask(jax.random.split(jax.random.key(1), 4))
    assert outputs.logits.shape == (4, game.num_logits)
    assert outputs.outcome_logits.shape == outputs.score_logits.shape == (4, game.num_players)
    assert logits.shape == (4, 5)
    assert np.isfinite(np.asarray(logits)).all()


def test_architectures_are_chosen_by_name() -> None:
    """Architectures are registered by class of games, and games have a default."""
    santorini, triominos = tilewe_jax.make("santorini", size=3), tilewe_jax.make("triominos")
    assert networks.architectures(santorini) == ["resnet", "mlp", "reach_resnet"]
    assert networks.architectures(triominos) == ["message_passing", "mlp"]
    assert networks.architectures(GAME) == ["mlp"]

    def structure(architecture: str) -> Any:
        return jax.tree.structure(jax.eval_shape(lambda: networks.make(santorini, architecture, "tiny", jax.random.key(0))))

    assert structure("default") == structure("resnet") != structure("mlp")
    with pytest.raises(ValueError, match=r"'gnn' .*default, resnet, mlp, reach_resnet"):
        networks.make(santorini, "gnn", "tiny", jax.random.key(0))
    with pytest.raises(ValueError, match="'mlp'"):
        networks.register_architecture("mlp", networks.registry.PolyominoMLP)

    def wrong(game: Any, size: networks.Size, key: Any) -> networks.Model:
        model = networks.make(game, "mlp", "tiny", key)
        return lambda observation: model(observation)._replace(logits=jnp.zeros(3))

    registered = networks.registry._ARCHITECTURES
    networks.register_architecture("wrong", wrong, type(GAME))
    try:
        assert networks.architectures(GAME) == ["mlp", "wrong"]
        assert "wrong" not in networks.architectures(santorini)
        with pytest.raises(ValueError, match=r"'wrong'.*wrong.*expected logits float32\[9\], got float32\[3\]"):
            networks.make(GAME, "wrong", "tiny", jax.random.key(0))
    finally:
        del registered["wrong"]


def test_sizes_grow() -> None:
    game = tilewe_jax.make("duo_official")
    counts = [
        networks.num_parameters(jax.eval_shape(lambda size=size: networks.make(game, "default", size, jax.random.key(0))))
        for size in networks.SIZES
    ]
    assert counts == sorted(counts)
    assert counts[1] < 100_000
    assert 7e6 < counts[-1] < 10e6


def test_tiles_of_slots_agree_with_the_rules() -> None:
    from tilewe_jax.games.triominos import observation

    game = tilewe_jax.make("triominos", tiles=35, tray=5)
    functions, config, compared = batched(game), game.config, 0
    tiles_of_slots = jax.jit(jax.vmap(lambda slots: observation.tiles_of_slots(config, slots)))
    for ply, (state, _) in enumerate(positions(game, 8, seed=3)):
        if ply % 5 != 3:
            continue
        parts = observation.split(config, functions.observe(state, state.current_player))
        tile, fits = map(np.asarray, tiles_of_slots(parts["slots"]))
        own = np.asarray(parts["tiles"][..., 0]) > 0
        legal = np.asarray(functions.legal_action_mask(state))
        for lane in np.flatnonzero(~np.asarray(functions.is_terminal(state))):
            position = rows(state, lane)
            actions = np.asarray(game.compact_actions(position))[: config.frontier_size * config.numbers].reshape(
                tile[lane].shape
            )
            for slot, number in np.argwhere(np.asarray(position.table.frontier)[:, None] >= 0 & (actions >= 0)):
                action = int(actions[slot, number])
                if action >= 0 and legal[lane, action]:
                    named = game.describe(position, action)[0]
                    assert fits[lane, slot, number]
                    assert own[lane, tile[lane, slot, number]]
                    assert sorted(named) == sorted("".join(map(str, config.tile_list[tile[lane, slot, number]])))
                    compared += 1
    assert compared > 20
