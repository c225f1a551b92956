"""The two implementations of the polyomino rules against each other, and conversions between them."""

import pickle
import random
from bisect import bisect_left

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewe_jax
from tests.support import assert_same, positions, rows, slow
from tests.tilewe_jax.games.polyomino import reference
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES, SMALL
from tilewe_jax.games.polyomino.config import Config
from tilewe_jax.games.polyomino.host import BLOCK_STARTS, FITS, Position, bits
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.polyomino.position import PolyominoPosition, position_of_state
from tilewe_jax.tilewe import Board, Move
from tilewe_jax.tilewe.convert import action_of_move, board_of_state, moves_of_action, state_of_board, state_of_position

VARIANTS = [
    slow("tilewe", {"players": 1}, 600),
    slow("tilewe", {"players": 3}, 320),
    slow("tilewe", {"players": 4}, 280),
    slow("classic", {}, 280),
    slow("classic_2", {}, 280),
    slow("duo", {}, 560),
    slow("duo_official", {}, 560),
    ("classic_2", {"size": 8, "pieces": FEW_PIECES}, 150),
    ("duo", {"voluntary_pass": True, "size": 8, "pieces": FEW_PIECES}, 200),
]
"""Variants with a number of games; the slow ones have more than 12,500 plies each."""


@pytest.mark.parametrize(("name", "options", "games"), VARIANTS, ids=str)
def test_random_games_agree(name: str, options: dict, games: int) -> None:
    """Turn, scores and the set of legal actions are equal at every ply; sets are compared by a hash of 64 bits."""
    game = tilewe_jax.make(name, **options)
    config = game.config
    weights = np.random.default_rng(0).integers(0, 2**32, (2, 91, -(-config.cells // 32)), np.uint32) | np.uint32(1)

    @jax.jit
    def play(keys):
        def step(state, key):
            action = game.sample_action(state, key)
            products = game.placements(state)[None] * jnp.asarray(weights)
            outputs = action, jnp.sum(products, axis=(1, 2), dtype=jnp.uint32), state.current_color, game.scores(state)
            return game.apply(state, action), outputs

        def play_game(key):
            return jax.lax.scan(step, game.init(key), jax.random.split(key, game.max_steps))

        return jax.vmap(play_game)(keys)

    last, outputs = jax.device_get(play(jax.random.split(jax.random.key(1), games)))
    cell = np.arange(config.cells)
    shares = (weights[:, :, cell // 32] << (cell % 32).astype(np.uint32)).reshape(2, -1).tolist()
    plies = 0
    for index in range(games):
        position = Position(config)
        for action, sums, player, scores in zip(*(values[index] for values in outputs), strict=True):
            assert position.finished == (action < 0)
            if position.finished:
                break
            legal = position.actions(position.color)
            assert position.color == player
            assert list(PolyominoPosition(position).scores()) == scores.tolist()
            assert [sum(share[a] for a in legal) % 2**32 for share in shares] == sums.tolist()
            if action == config.num_placements:
                position.leave()
            else:
                position.place(position.placement(int(action)))
            plies += 1
        if index % 50 == 0:
            assert_same(state_of_position(position), rows(last, index))
    assert plies > (12_500 if games > 200 else 1_000)


@st.composite
def configs(draw) -> Config:
    """Any variant, mostly on small boards, which fill up."""
    size = draw(st.one_of(st.integers(3, 12), st.sampled_from([14, 20, 32])))
    players, each = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 1), (2, 2)]))
    colors = players * each
    cell = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    starts = draw(st.lists(st.lists(cell, min_size=1, max_size=4, unique=True).map(tuple), min_size=colors, max_size=colors))
    pieces = sorted(draw(st.sets(st.integers(0, len(PIECE_NAMES) - 1), min_size=1)))
    first = draw(st.sampled_from([None, PIECE_NAMES[pieces[-1]]]))
    stay_open, may_pass = draw(st.booleans()), draw(st.booleans())
    return Config("any", size, players, tuple(starts), each, tuple(pieces), first, stay_open, voluntary_pass=may_pass)


def decoded(legal: dict[int, int]) -> dict[int, set[tuple[int, tuple[int, int]]]]:
    """Decode ``Position.legal`` of a player to fits by orientation and cell."""
    result = {corner: {FITS[fit] for fit in bits(fits)} for corner, fits in legal.items()}
    for corner, fits in legal.items():
        assert len(result[corner]) == fits.bit_count() > 0
        assert not fits & (1 << BLOCK_STARTS[bisect_left(BLOCK_STARTS, fits.bit_length()) - 1]) - 1
    return result


def legal_by_the_rules(position: Position, player: int) -> dict[int, set[tuple[int, tuple[int, int]]]]:
    """Compute ``Position.legal`` of a player by testing every fit at every open corner."""
    config, cell = position.config, position.geometry.cell
    legal = {}
    for corner in bits(position.corners[player] & position.free(player)):
        x, y = cell(corner)
        fits = set()
        for orientation, (dx, dy) in set(FITS):
            on_board = x >= dx and y >= dy and config.fits(ORIENTATIONS[orientation], (x - dx, y - dy))
            if on_board and position.is_legal((orientation, position.geometry.bit((x - dx, y - dy))), player):
                fits.add((orientation, (dx, dy)))
        if fits:
            legal[corner] = fits
    return legal


def reference_placements(position: Position, player: int) -> set[frozenset[tuple[int, int]]]:
    """List the cells of every legal placement with the reference implementation."""
    board = reference.Board(position.config)
    board.cells = [{position.geometry.cell(bit) for bit in bits(cells)} for cells in position.occupied]
    board.hands = [set(bits(hand)) for hand in position.hands]
    return board.placements(player)


@settings(max_examples=20, deadline=None)
@given(configs(), st.randoms(use_true_random=False))
def test_incremental_fields_equal_recomputed_ones(config: Config, rng: random.Random) -> None:
    """After placements, passes, undos and copies, the legal fits equal three other computations."""
    position = Position(config)
    geometry = position.geometry

    def fields() -> dict:
        kept = {name: getattr(position, name) for name in Position.__slots__ if name not in {"geometry", "history"}}
        return {name: value.copy() if isinstance(value, list) else value for name, value in kept.items()}

    before = []
    for step in range(24):
        fresh = Position.of(config, position.occupied, position.hands, position.out, position.monomino_last, position.color)
        assert (fresh.taken, fresh.beside, fresh.corners) == (position.taken, position.beside, position.corners)
        assert list(map(decoded, fresh.legal)) == list(map(decoded, position.legal))
        player = step % config.colors
        if position.finished:
            assert not position.placements(player)
        else:
            assert decoded(position.legal[player]) == legal_by_the_rules(position, player)
            cells = {
                frozenset(map(geometry.cell, bits(geometry[orientation].cells << anchor)))
                for orientation, anchor in position.placements(player)
            }
            assert cells == reference_placements(position, player)
        placements = sorted(position.placements(position.color))
        if before and (position.finished or rng.random() < 0.3):
            position.undo()
            assert fields() == before.pop()
        elif placements:
            before.append(fields())
            if config.voluntary_pass and rng.random() < 0.1:
                position.leave()
            else:
                position.place(rng.choice(placements))
    after = fields()
    twin, position = position, position.copy()
    assert fields() == after
    while position.history:
        position.undo()
    position = twin
    assert fields() == after
    history = position.history
    position = pickle.loads(pickle.dumps(position))
    assert fields() == after
    assert position.history == history


def test_positions_become_states_and_back() -> None:
    game = tilewe_jax.make(SMALL[0], **SMALL[1])
    position = Position(game.config)
    for state, action in positions(game, 4):
        assert_same(state_of_position(position), jax.tree.map(jnp.asarray, rows(state, 0)))
        again = position_of_state(game.config, rows(state, 0))
        assert [again.actions(p) for p in range(game.num_players)] == [position.actions(p) for p in range(game.num_players)]
        assert (again.finished, again.color) == (position.finished, position.color)
        if not position.finished:
            position.place(position.placement(int(action[0])))
    assert position.finished


def test_boards_become_states_and_back() -> None:
    board = Board.from_moves(["W5n-a1a1", "O1n-a1t20"], 2)
    game = tilewe_jax.make("tilewe", players=2)
    state = state_of_board(board)
    again = board_of_state(state)
    assert str(again) == str(board)
    assert again.generate_legal_moves() == board.generate_legal_moves()
    assert again.moves == []
    with pytest.raises(IndexError):
        again.pop()
    actions = {action_of_move(move) for move in board.generate_legal_moves()}
    assert sorted(actions) == game.host(state).legal_actions()
    named = [move for action in actions for move in moves_of_action(action, board)]
    assert sorted(named) == sorted(board.generate_legal_moves())
    for action in actions:
        assert [str(move) for move in moves_of_action(action)] == list(game.action_names(action))
    duo = tilewe_jax.make("duo")
    with pytest.raises(ValueError, match="words"):
        board_of_state(duo.init(jax.random.key(0)))
    with pytest.raises(ValueError, match="I5"):
        action_of_move(Move.from_str("I5e-a1t1"))
    with pytest.raises(ValueError, match="-1"):
        moves_of_action(-1)
