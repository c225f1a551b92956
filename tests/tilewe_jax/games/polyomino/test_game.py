"""Variants, names of actions, observations, scores, symmetries, and error messages."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewe_jax
from tests.support import assert_same, batched, positions, rows
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES, SMALL
from tilewe_jax.games.polyomino import observation
from tilewe_jax.games.polyomino.notation import cell_name, parse_cell
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.tilewe.convert import state_of_position

TILEWE = tilewe_jax.make("tilewe")


@st.composite
def placements(draw: st.DrawFn) -> int:
    index = draw(st.integers(0, 90))
    width = max(x for x, _ in ORIENTATIONS[index].cells)
    height = max(y for _, y in ORIENTATIONS[index].cells)
    x, y = draw(st.integers(0, 19 - width)), draw(st.integers(0, 19 - height))
    return (index * 20 + y) * 20 + x


@given(placements())
def test_cells_and_names_identify_actions(action: int) -> None:
    assert TILEWE.action_of(TILEWE.cells_of(action)) == action
    assert TILEWE.action_of(reversed(TILEWE.cells_of(action))) == action
    names = TILEWE.action_names(action)
    assert TILEWE.action_name(action) == names[0]
    assert [TILEWE.action_of_name(name) for name in names] == [action] * len(names)
    assert names[0].startswith(TILEWE.piece_of(action))


def test_names_of_rotations_and_contacts() -> None:
    action = TILEWE.action_of_name("W5n-a1a1")
    assert TILEWE.cells_of(action) == ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2))
    assert TILEWE.action_of_name("W5ef-a1a1") == action  # another rotation with the same cells
    assert TILEWE.action_names(action) == ("W5n-a1a1", "W5n-b1b1", "W5n-b2b2", "W5n-c2c2", "W5n-c3c3")


@given(st.integers(0, 31), st.integers(0, 31))
def test_cell_names(x: int, y: int) -> None:
    assert parse_cell(cell_name((x, y))) == (x, y)


@pytest.mark.parametrize("name", ["", "W5n", "W5x-a1a1", "Q5n-a1a1", "W5n-a3a1", "W5n-a1t20", "W5n-c3a1", "pass"])
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=name[:2] or repr(name)):
        TILEWE.action_of_name(name)


def test_invalid_placements_are_rejected() -> None:
    for cells in ([], [(0, 0), (0, 0)], [(0, 0), (2, 0)], [(x, 0) for x in range(6)]):
        with pytest.raises(ValueError, match="shape"):
            TILEWE.action_of(cells)
    with pytest.raises(ValueError, match="20 x 20"):
        TILEWE.action_of([(19, 0), (20, 0)])
    for action in (-1, TILEWE.num_actions, 90 * 400 + 399):
        with pytest.raises(ValueError, match=str(action)):
            TILEWE.cells_of(action)
    with pytest.raises(ValueError, match="O1 I2"):
        tilewe_jax.make("tilewe", pieces=("O1", "I2")).action_of([(0, 0), (1, 0), (2, 0)])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chess", {}, "classic_2"),
        ("tilewe", {"colour": 1}, "players, size, pieces"),
        ("tilewe", {"players": 0}, "1 to 4, not 0"),
        ("tilewe", {"players": "4"}, "integer"),
        ("duo", {"players": 2}, "players"),
        ("tilewe", {"size": 2}, "3 to 32, not 2"),
        ("tilewe", {"pieces": ("O1", "Q7")}, "Q7"),
        ("tilewe", {"pieces": "O1"}, "pieces"),
        ("tilewe", {"pieces": ()}, "pieces"),
        ("tilewe", {"movegen": "magic"}, "bitboard, conv"),
        ("duo", {"voluntary_pass": 1}, "voluntary_pass"),
        ("duo", {"start_cells": [[(0, 0)]]}, "2 colours"),
        ("duo", {"start_cells": [[(0, 0)], [(14, 0)]]}, "colour 1"),
        ("duo", {"start_cells": 7}, "start_cells"),
        ("classic_2", {"pieces": ("O1", "I2"), "start_piece": "W5"}, "O1 I2"),
    ],
)
def test_invalid_options_are_rejected(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tilewe_jax.make(name, **options)


def test_equal_options_make_equal_games() -> None:
    assert tilewe_jax.make("tilewe") == tilewe_jax.make("tilewe", players=4, size=20)
    assert tilewe_jax.make("tilewe", players=2) != tilewe_jax.make("tilewe")
    odd = tilewe_jax.make("duo", size=9, pieces=["I2", "O1"], start_cells=[[(1, 1)], [(7, 7), (7, 1)]], movegen="conv")
    assert odd.options == {
        "size": 9,
        "movegen": "conv",
        "pieces": ["O1", "I2"],
        "start_cells": [[[1, 1]], [[7, 7], [7, 1]]],
    }
    assert tilewe_jax.make(odd.id, **odd.options) == odd


@pytest.mark.untyped
def test_wrong_dtypes_and_shapes_are_rejected() -> None:
    state = TILEWE.init(jax.random.key(0))
    with pytest.raises(TypeError, match="integer"):
        TILEWE.step(state, jnp.float32(3))
    with pytest.raises(ValueError, match="one integer"):
        TILEWE.is_legal(state, jnp.zeros(3, jnp.int32))


def play(game, names: list[str]):
    """The state after legal actions, which are played on the host."""
    position = game.host(game.init(jax.random.key(0)))
    for name in names:
        position = position.after(game.action_of_name(name))
    return state_of_position(position.position)


def test_bonuses() -> None:
    game = tilewe_jax.make("duo_official", size=6, pieces=("O1", "I2"))
    ((first,), (second,)) = game.config.start_cells
    assert (first, second) == ((1, 4), (4, 1))
    both = play(game, ["O1n-a1b5", "I2n-a1e2", "I2e-a1c4", "O1n-a1f4"])
    assert game.scores(both).tolist() == [3 + 15, 3 + 15 + 5]
    assert game.returns(both).tolist() == [0.0, 1.0]
    assert bool(game.is_terminal(both))


def test_two_colors_of_a_player() -> None:
    """Points of both colours count, each with its bonus, and a player with a blocked opponent moves again."""
    game = tilewe_jax.make("classic_2", size=4, pieces=("O1", "I2"))
    names = ["O1n-a1a4", "I2e-a1c4", "I2e-a1c1", "O1n-a1a1", "I2e-a1b3", "O1n-a1b2"]
    position, turns = game.host(game.init(jax.random.key(0))), []
    for action in map(game.action_of_name, names):
        turns.append((position.current_player, position.current_color))
        position = position.after(action)
    assert turns == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 0), (0, 2)]
    state = play(game, names)
    assert [position.position.score(color) for color in range(4)] == [3 + 15, 2, 3 + 15 + 5, 1]
    assert [int(line.split()[-2]) for line in position.text().split("\n")[-3:-1]] == [41, 3]
    assert game.text(state) == position.text()
    assert game.scores(state).tolist() == list(position.scores()) == [41, 3]
    assert game.returns(state).tolist() == [1.0, 0.0]
    assert bool(game.is_terminal(state))


def test_start_pieces_cover_the_border() -> None:
    """The tests of the Software-Challenge's server have the number for W5."""
    for piece, moves in (("W5", 272), ("X5", 68)):
        game = tilewe_jax.make("classic_2", start_piece=piece)
        state = game.init(jax.random.key(0))
        assert game.num_symmetries == 8
        assert game.num_legal(state) == len(game.host(state).legal_actions()) == moves
        assert game.options["start_piece"] == piece
        assert tilewe_jax.make("classic_2", **game.options) == game


@pytest.mark.parametrize(("name", "options"), [("classic_2", {"size": 7, "pieces": ("O1", "I2", "L3")}), SMALL], ids=str)
def test_observations_show_the_position_from_the_seat(name: str, options: dict) -> None:
    """Seat 0 is the observer's colour that is to move or comes first in turn."""
    game = tilewe_jax.make(name, **options)
    colors = game.config.colors
    observe, first_colors = batched(game).observe, set()
    for states, _ in positions(game, 4):
        state = rows(states, 1)
        cells = np.asarray(observation.unpack_boards(game.config, state.occupied))
        masks = np.asarray(batched(game).legal_action_mask(states))[1].reshape(91, 7, 7)
        for player in range(game.num_players):
            planes = dict(zip(game.channel_names, np.asarray(observe(states, jnp.full(4, player, jnp.int32)))[1], strict=True))
            current, mover = int(state.current_color), int(state.current_color) % game.num_players
            first = (current + (player - mover) % game.num_players) % colors
            for seat in range(colors):
                color = (first + seat) % colors
                np.testing.assert_array_equal(planes[f"cells of seat {seat}"], cells[color])
                assert planes[f"seat {seat} to move"].all() == (color == current)
                assert planes[f"seat {seat} is out"].all() == bool(state.out[color])
                assert planes[f"seat {seat} has L3"].all() == ("L3" in game.remaining_pieces(state, color))
            open_corners = planes["open corners of the observer"]
            assert not (planes["free to the observer"] * cells.any(axis=0)).any()
            assert (open_corners <= planes["free to the observer"]).all()
            if first == current and not state.out[first] and "O1" in game.remaining_pieces(state, first):
                np.testing.assert_array_equal(open_corners, masks[0])  # The single cell fits on every open corner.
            first_colors.add((player, first))
    assert len(planes) == len(game.channel_names) == len(set(game.channel_names))
    assert len(first_colors) == colors


def test_passes_are_final() -> None:
    game = tilewe_jax.make("duo", voluntary_pass=True, size=7, pieces=FEW_PIECES)
    assert game.num_actions == 91 * 49 + 1
    state = play(game, ["O1n-a1a7", "pass", "I2e-a1b6", "L3n-a2d5"])
    assert int(state.current_color) == 0
    assert state.out.tolist() == [False, True]
    state = play(game, ["pass", "pass"])
    assert bool(game.is_terminal(state))
    assert game.returns(state).tolist() == [0.5, 0.5]
    assert not tilewe_jax.make("duo").config.voluntary_pass


def test_single_players_get_the_fraction_of_the_score() -> None:
    game = tilewe_jax.make("tilewe", players=1, size=5, pieces=("O1", "I2", "L3"))
    state = play(game, ["L3n-a1a1", "I2n-a1b3"])
    assert game.returns(state).tolist() == [0.0]
    np.testing.assert_allclose(game.returns(replace(state, out=jnp.array([True]))), 5 / 6)


def test_legal_list() -> None:
    game = tilewe_jax.make("duo", size=3, pieces=("O1", "I2"))
    state = game.init(jax.random.key(0))
    legal = game.host(state).legal_actions()
    assert game.legal_list(state, len(legal) + 2).tolist() == [*legal, -1, -1]


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        (*SMALL, 8),
        ("duo", {"size": 7, "pieces": FEW_PIECES, "voluntary_pass": True}, 2),
    ],
    ids=str,
)
def test_rules_commute_with_symmetries(name: str, options: dict, count: int) -> None:
    """A transformed position has the transformed legal actions, and its successor is the transformed successor."""
    game = tilewe_jax.make(name, **options)
    table, indices = game.action_symmetries, jnp.arange(game.num_symmetries)
    assert table.shape == (count, game.num_actions)
    assert (table[0] == np.arange(game.num_actions)).all()
    assert tilewe_jax.make("classic").num_symmetries == 1
    functions = batched(game)
    transform = jax.jit(jax.vmap(jax.vmap(game.transform, in_axes=(None, 0)), in_axes=(0, None)))
    state, action = list(positions(game, 4, seed=1))[5]
    transformed, expected = transform(state, indices), transform(functions.step(state, action), indices)
    half_turn = [(6 - x, 6 - y) for x, y in game.cells_of(int(action[0]))]
    assert count < 8 or game.action_of(half_turn) in table[:, action[0]]
    for index in range(count):
        image, successor = (jax.tree.map(lambda leaf, index=index: leaf[:, index], tree) for tree in (transformed, expected))
        legal = np.asarray(functions.legal_action_mask(image))
        np.testing.assert_array_equal(legal[:, table[index]], functions.legal_action_mask(state))
        assert_same(functions.step(image, jnp.asarray(table[index][action])), successor)
