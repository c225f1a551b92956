"""The variants, names of actions, observations, bonuses, examples in docstrings, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewe_jax
from tests.support import assert_same, batched, positions, rows
from tilewe_jax.games.polyomino import observation
from tilewe_jax.games.polyomino.notation import cell_name, parse_cell
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS

TILEWE = tilewe_jax.make("tilewe")


@st.composite
def placements(draw: st.DrawFn) -> int:
    index = draw(st.integers(0, 90))
    width = max(x for x, _ in ORIENTATIONS[index].cells)
    height = max(y for _, y in ORIENTATIONS[index].cells)
    x, y = draw(st.integers(0, 19 - width)), draw(st.integers(0, 19 - height))
    return (index * 20 + y) * 20 + x


@given(placements())
def test_cells_and_names_lead_back_to_the_action(action: int) -> None:
    assert TILEWE.action_of(TILEWE.cells_of(action)) == action
    assert TILEWE.action_of(reversed(TILEWE.cells_of(action))) == action
    names = TILEWE.action_names(action)
    assert TILEWE.action_name(action) == names[0]
    assert [TILEWE.action_of_name(name) for name in names] == [action] * len(names)
    assert names[0].startswith(TILEWE.piece_of(action))


def test_a_known_name() -> None:
    action = TILEWE.action_of_name("W5n-a1a1")
    assert TILEWE.cells_of(action) == ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2))
    assert TILEWE.action_of_name("W5ef-a1a1") == action  # another rotation with the same cells
    assert TILEWE.action_names(action) == ("W5n-a1a1", "W5n-b1b1", "W5n-b2b2", "W5n-c2c2", "W5n-c3c3")


@given(st.integers(0, 31), st.integers(0, 31))
def test_cell_names(x: int, y: int) -> None:
    assert parse_cell(cell_name((x, y))) == (x, y)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is no move"),
        ("W5n", "is no move"),
        ("W5x-a1a1", "is no move"),
        ("Q5n-a1a1", "is no move"),
        ("W5n-a3a1", "has no cell a3"),
        ("W5n-a1t20", "does not lie on the board"),
        ("W5n-c3a1", "does not lie on the board"),
        ("pass", "is no move"),
    ],
)
def test_names_that_are_no_moves(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TILEWE.action_of_name(name)


def test_cells_that_are_no_placement() -> None:
    for cells in ([], [(0, 0), (0, 0)], [(0, 0), (2, 0)], [(x, 0) for x in range(6)]):
        with pytest.raises(ValueError, match="the shape"):
            TILEWE.action_of(cells)
    with pytest.raises(ValueError, match="the board"):
        TILEWE.action_of([(19, 0), (20, 0)])
    for action in (-1, TILEWE.num_actions):
        with pytest.raises(ValueError, match="not a placement"):
            TILEWE.cells_of(action)
    with pytest.raises(ValueError, match="the board"):
        TILEWE.cells_of(90 * 400 + 399)
    with pytest.raises(ValueError, match="pieces are O1 I2"):
        tilewe_jax.make("tilewe", pieces=("O1", "I2")).action_of([(0, 0), (1, 0), (2, 0)])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chess", {}, "there are tilewe, duo, duo_official, classic, classic_2"),
        ("tilewe", {"colour": 1}, "its options are players, size, pieces"),
        ("tilewe", {"players": 0}, "players must be 1 to 4, not 0"),
        ("tilewe", {"players": 5}, "players must be 1 to 4, not 5"),
        ("tilewe", {"players": "4"}, "players must be an integer"),
        ("duo", {"players": 2}, "no option players"),
        ("tilewe", {"size": 2}, "size must be 3 to 32, not 2"),
        ("duo", {"size": 33}, "size must be 3 to 32, not 33"),
        ("tilewe", {"pieces": ("O1", "Q7")}, "pieces must be names among O1 I2"),
        ("tilewe", {"pieces": "O1"}, "pieces must be a list of texts"),
        ("tilewe", {"pieces": ()}, "pieces must be"),
        ("tilewe", {"movegen": "magic"}, "movegen must be one of bitboard, conv"),
        ("duo", {"voluntary_pass": 1}, "voluntary_pass must be true or false"),
        ("duo", {"start_cells": [[(0, 0)]]}, "start_cells must name cells for 2 players"),
        ("duo", {"start_cells": [[(0, 0)], [(14, 0)]]}, "start_cells of player 1"),
        ("duo", {"start_cells": [[(0, 0)], []]}, "start_cells of player 1"),
        ("duo", {"start_cells": 7}, "start_cells must be"),
    ],
)
def test_what_make_refuses(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tilewe_jax.make(name, **options)


def test_games_made_alike_are_equal() -> None:
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
def test_wrong_dtypes_and_shapes_are_refused() -> None:
    state = TILEWE.init(jax.random.key(0))
    with pytest.raises(TypeError, match="integer"):
        TILEWE.step(state, jnp.float32(3))
    with pytest.raises(ValueError, match="one integer"):
        TILEWE.is_legal(state, jnp.zeros(3, jnp.int32))


def play(game, names: list[str]):
    state = game.init(jax.random.key(0))
    step, legal = jax.jit(game.step), jax.jit(game.is_legal)
    for name in names:
        action = jnp.int32(game.action_of_name(name))
        assert legal(state, action), name
        state = step(state, action)
    return state


def test_bonuses() -> None:
    """All pieces placed: +15, and +5 more where the monomino came last."""
    game = tilewe_jax.make("duo_official", size=6, pieces=("O1", "I2"))
    ((first,), (second,)) = game.config.start_cells
    assert (first, second) == ((1, 4), (4, 1))
    both = play(game, ["O1n-a1b5", "I2n-a1e2", "I2e-a1c4", "O1n-a1f4"])
    assert game.scores(both).tolist() == [3 + 15, 3 + 15 + 5]
    assert game.returns(both).tolist() == [0.0, 1.0]
    assert bool(game.is_terminal(both))


def test_two_colors_of_a_player() -> None:
    """Points add up, each colour has its bonus, and a player whose opponent is blocked moves again."""
    game = tilewe_jax.make("classic_2", size=4, pieces=("O1", "I2"))
    names = ["O1n-a1a4", "I2e-a1c4", "I2e-a1c1", "O1n-a1a1", "I2e-a1b3", "O1n-a1b2"]
    position, turns = game.host(game.init(jax.random.key(0))), []
    for name in names:
        turns.append((position.current_player, position.current_color))
        position = position.after(game.action_of_name(name))
    assert turns == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 0), (0, 2)]
    state = play(game, names)
    assert [position.position.score(color) for color in range(4)] == [3 + 15, 2, 3 + 15 + 5, 1]
    assert position.text().split("\n")[-3:] == ["blue and red: 41 points", "yellow and green: 3 points", "game over"]
    assert game.text(state) == position.text()
    assert game.scores(state).tolist() == list(position.scores()) == [41, 3]
    assert game.returns(state).tolist() == [1.0, 0.0]
    assert bool(game.is_terminal(state))


def test_the_start_piece_comes_first_on_the_border() -> None:
    """The number for W5 is that of the tests of the Software-Challenge's server."""
    for piece, moves in (("W5", 272), ("X5", 68), ("I5", 136)):
        game = tilewe_jax.make("classic_2", start_piece=piece)
        state = game.init(jax.random.key(0))
        assert game.num_symmetries == 8
        assert game.num_legal(state) == len(game.host(state).legal_actions()) == moves
        assert game.options["start_piece"] == piece
        assert tilewe_jax.make("classic_2", **game.options) == game
    with pytest.raises(ValueError, match="O1 I2"):
        tilewe_jax.make("classic_2", pieces=("O1", "I2"), start_piece="W5")


def test_observation_of_a_player_with_two_colors() -> None:
    """The colour to move comes first, or the next one of an observer who is not to move; own colours are 0 and 2."""
    game = tilewe_jax.make("classic_2", size=7, pieces=("O1", "I2", "L3"))
    observe, seen = jax.jit(game.observe), set()
    for states, _ in positions(game, 2):
        state = rows(states, 1)
        cells = np.asarray(observation.unpack_boards(game.config, state.occupied))
        for player in range(2):
            planes = dict(zip(game.channel_names, np.asarray(observe(state, jnp.int32(player))), strict=True))
            first = int(state.current_color) + (player != int(game.current_player(state)))
            for seat in range(4):
                assert (first + seat) % 2 == (player + seat) % 2
                np.testing.assert_array_equal(planes[f"cells of seat {seat}"], cells[(first + seat) % 4])
                assert planes[f"seat {seat} to move"].all() == ((first + seat) % 4 == int(state.current_color))
            seen.add((player, first % 4))
    assert seen == {(0, 0), (0, 2), (1, 1), (1, 3)}


def test_pass_is_for_good() -> None:
    game = tilewe_jax.make("duo", voluntary_pass=True, size=7)
    assert game.num_actions == 91 * 49 + 1
    state = play(game, ["O1n-a1a7", "pass", "I2e-a1b6", "I3n-a3d5"])
    assert int(state.current_color) == 0
    assert state.out.tolist() == [False, True]
    state = play(game, ["pass", "pass"])
    assert bool(game.is_terminal(state))
    assert game.returns(state).tolist() == [0.5, 0.5]
    assert not tilewe_jax.make("duo").config.voluntary_pass


def test_alone_the_return_is_the_share_of_the_score() -> None:
    game = tilewe_jax.make("tilewe", players=1)
    *_, (state, _) = positions(game, 16)
    functions = batched(game)
    np.testing.assert_allclose(functions.returns(state), np.asarray(functions.scores(state)) / 89, rtol=1e-6)


def test_observation_shows_the_position_from_the_seat() -> None:
    game = tilewe_jax.make("classic")
    history = list(positions(game, 16))
    state = rows(history[20][0], 3)
    names = game.channel_names
    cells = np.asarray(observation.unpack_boards(game.config, state.occupied))
    mask = np.asarray(game.legal_action_mask(state)).reshape(91, 20, 20)
    for player in range(4):
        planes = dict(zip(names, np.asarray(game.observe(state, jnp.int32(player))), strict=True))
        for seat in range(4):
            absolute = (player + seat) % 4
            np.testing.assert_array_equal(planes[f"cells of seat {seat}"], cells[absolute])
            assert planes[f"seat {seat} to move"].all() == (absolute == int(state.current_color))
            assert planes[f"seat {seat} is out"].all() == bool(state.out[absolute])
            for piece in ("O1", "W5"):
                assert planes[f"seat {seat} has {piece}"].all() == (piece in game.remaining_pieces(state, absolute))
        taken = cells.any(axis=0)
        assert not (planes["free to the observer"] * taken).any()
        assert (planes["open corners of the observer"] <= planes["free to the observer"]).all()
        # The monomino goes wherever a corner is open.
        if player == int(state.current_color) and "O1" in game.remaining_pieces(state, player):
            np.testing.assert_array_equal(planes["open corners of the observer"], mask[0])
    assert len(names) == len(set(names)) == game.observe(state, jnp.int32(0)).shape[0]


def test_legal_list() -> None:
    state = TILEWE.init(jax.random.key(0))
    mask = np.flatnonzero(np.asarray(TILEWE.legal_action_mask(state)))
    assert TILEWE.legal_list(state, 240).tolist() == [*mask.tolist(), *[-1] * 8]
    assert TILEWE.legal_list(state, 10).tolist() == mask[:10].tolist()


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [("tilewe", {"players": 3, "size": 7}, 8), ("duo", {"size": 9, "voluntary_pass": True}, 2), ("classic", {}, 1)],
    ids=str,
)
def test_rules_commute_with_all_symmetries(name: str, options: dict, count: int) -> None:
    """Turn and then move, or move and then turn: the same position, with the same legal actions."""
    game = tilewe_jax.make(name, **options)
    table, indices = game.action_symmetries, jnp.arange(game.num_symmetries)
    assert table.shape == (count, game.num_actions)
    assert (table[0] == np.arange(game.num_actions)).all()
    if count == 1:
        return
    functions = batched(game)
    turn = jax.jit(jax.vmap(jax.vmap(game.transform, in_axes=(None, 0)), in_axes=(0, None)))
    state, action = list(positions(game, 4, seed=1))[5]
    transformed, left = turn(state, indices), turn(functions.step(state, action), indices)
    for index in range(count):
        turned, after = (jax.tree.map(lambda leaf, index=index: leaf[:, index], states) for states in (transformed, left))
        legal = np.asarray(functions.legal_action_mask(turned))
        np.testing.assert_array_equal(legal[:, table[index]], functions.legal_action_mask(state))
        assert_same(functions.step(turned, jnp.asarray(table[index][action])), after)


def test_rules_commute_with_turning_the_board() -> None:
    """Half a turn maps Tilewe onto itself: the legal sets of a random game turn with it."""
    size = TILEWE.config.size

    def turned(action: int) -> int:
        return TILEWE.action_of([(size - 1 - x, size - 1 - y) for x, y in TILEWE.cells_of(action)])

    history = list(positions(TILEWE, 16))
    state = TILEWE.init(jax.random.key(0))
    step = jax.jit(TILEWE.step)
    for before, action in history[:24]:
        mine = {turned(a) for a in np.flatnonzero(np.asarray(batched(TILEWE).legal_action_mask(before))[5]).tolist()}
        theirs = set(np.flatnonzero(np.asarray(TILEWE.legal_action_mask(state))).tolist())
        assert mine == theirs
        state = step(state, jnp.int32(turned(int(action[5]))))
