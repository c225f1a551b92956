"""The drop-in against traces, tests and documentation of the package ``tilewe``."""

import copy
import doctest
import json
import operator
import os
import pickle
import random
import subprocess
import sys
from hashlib import sha1
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SAMPLES, sampled_and_full, traces
from tilewe_jax import tilewe
from tilewe_jax.tilewe import Board, IllegalMoveError, Move

ROOT = Path(__file__).parents[3]


def digest(names: list[str]) -> str:
    return sha1(",".join(names).encode()).hexdigest()


@sampled_and_full
@pytest.mark.parametrize("players", [1, 3, 4])
def test_traces(players: int, full: bool) -> None:
    _, *games = traces(f"tilewe/games_{players}p.jsonl.gz", full)
    for trace in games:
        board = Board(players)
        everyone = range(players)
        for ply in trace["plies"]:
            moves = board.generate_legal_moves()
            names = [str(move) for move in moves]
            if "m" in ply:
                assert board.current_player == ply["p"]
                assert digest(names) == ply["g"]
                assert digest(sorted(names)) == ply["h"]
            assert board.finished == ("m" not in ply)
            assert [board.n_legal_moves(player) for player in everyone] == ply["n"]
            assert [board.can_play(player) for player in everyone] == [bool(can) for can in ply["c"]]
            assert [board.player_corners(player) for player in everyone] == ply["k"]
            assert [board.n_player_corners(player) for player in everyone] == [len(corners) for corners in ply["k"]]
            assert board.scores == ply["s"] == [board.player_score(player) for player in everyone]
            assert [sum(1 << piece for piece in board.remaining_pieces(player)) for player in everyone] == ply["r"]
            assert board.winners == ply["w"]
            if "L" in ply:
                assert names == ply["L"]
                for player, expected in enumerate(ply["H"]):
                    assert digest(sorted(map(str, board.generate_legal_moves(for_player=player)))) == expected
                assert all(board.is_legal(move) for move in moves)
            if "m" in ply:
                board.push(Move.from_str(ply["m"]))
        again = Board.from_moves(map(str, board.moves), players)
        assert again.scores == board.scores
        assert again.finished


def test_pieces_equal_those_of_the_package() -> None:
    triples = 0
    for piece, known in enumerate(json.loads((SAMPLES / "tilewe" / "pieces.json").read_text())["pieces"]):
        assert tilewe.PIECE_NAMES[piece] == known["name"]
        assert tilewe.n_piece_tiles(piece) == known["n_tiles"]
        assert tilewe.n_piece_contacts(piece) == known["n_contacts"]
        assert tilewe.n_piece_corners(piece) == known["n_corners"]
        for oriented in known["orientations"]:
            for name in [oriented["rotation"], *oriented["aliases"]]:
                rotation = tilewe.ROTATION_NAMES.index(name)
                assert tilewe.piece_tiles(piece, rotation) == [x + 20 * y for x, y in oriented["cells"]]
                assert tilewe.piece_contacts(piece, rotation) == [x + 20 * y for x, y in oriented["contacts"]]
                assert tilewe.piece_tile_coords(piece, rotation) == sorted(map(tuple, oriented["cells"]))
                for x, y in oriented["contacts"]:
                    move = Move(piece, rotation, x + 20 * y, tilewe.T20)
                    assert move.rotation == oriented["rotation_id"]
                    assert move == Move.from_str(f"{known['name']}{name}-{'abcde'[x]}{y + 1}t20")
            first = Move(piece, oriented["rotation_id"], tilewe.coords_to_tile(oriented["contacts"][0]), 0)
            assert first.__getstate__() >> 9 == oriented["first_triple_id"]
            triples += len(oriented["contacts"])
    assert triples == 309
    assert sum(tilewe.N_PIECE_TILES) == 89
    assert sum(tilewe.N_PIECE_CORNERS) == 112


def test_constants() -> None:
    assert (tilewe.A01, tilewe.B01, tilewe.T01, tilewe.A02, tilewe.T20) == (0, 1, 19, 20, 399)
    assert list(range(400)) == tilewe.TILES
    assert tilewe.TILE_NAMES[:2] + tilewe.TILE_NAMES[-1:] == ["a1", "b1", "t20"]
    assert all(getattr(tilewe, name[0].upper() + name[1:].zfill(2)) == tile for tile, name in enumerate(tilewe.TILE_NAMES))
    assert all(getattr(tilewe, name) == piece for piece, name in enumerate(tilewe.PIECE_NAMES))
    assert [tilewe.NORTH_F, tilewe.ROTATION_COUNT, tilewe.NO_COLOR, tilewe.NO_PIECE, tilewe.PIECE_COUNT] == [4, 8, 4, 21, 21]
    assert tilewe.N_PIECE_CONTACTS == [1, 2, 2, 3, 4, 2, 3, 4, 3, 4, 2, 3, 4, 4, 3, 4, 3, 5, 4, 3, 4]
    assert tilewe.Tile is tilewe.Piece is tilewe.Rotation is tilewe.Color is int


def test_tiles_and_coordinates() -> None:
    for tile in tilewe.TILES:
        assert tilewe.coords_to_tile(tilewe.tile_to_coords(tile)) == tile
    assert tilewe.coords_to_tile([3, 2]) == 43
    assert tilewe.tile_in_bounds(tile=0)
    assert not tilewe.tile_in_bounds(400)
    assert not tilewe.tile_in_bounds(2**32)
    assert not tilewe.coords_in_bounds((0, 20))
    assert tilewe.out_of_bounds((-1, 0))


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (
            AttributeError,
            [
                lambda: tilewe.tile_to_coords(-1),
                lambda: tilewe.coords_to_tile((20, 0)),
                lambda: tilewe.n_piece_tiles(21),
                lambda: tilewe.piece_contacts(0, 8),
                lambda: tilewe.piece_tile_coords(tilewe.V5, tilewe.NORTH, tilewe.B01),
                lambda: Move(tilewe.Z5, tilewe.NORTH, tilewe.A01, tilewe.A01),
                lambda: Move(0, 0, 0, 400),
                lambda: Move(1.0, 0, 0, 0),
                lambda: Move(0, 0, 0),
                lambda: Board(0),
                lambda: Board(5),
                lambda: Board(2).n_legal_moves(2),
                lambda: Board().is_legal("O1n-a1a1"),
                lambda: Board().push(None),
                lambda: Board().color_at(400),
            ],
        ),
        (
            TypeError,
            [
                lambda: tilewe.tile_to_coords(None),
                lambda: tilewe.coords_to_tile(3),
                lambda: tilewe.coords_to_tile((1, 2, 3)),
                lambda: tilewe.n_piece_tiles("O1"),
                lambda: Board(None),
                lambda: Board().n_legal_moves("blue"),
                lambda: Board().push(),
                lambda: Move.from_str("O1n-a1a1") < 3,
                lambda: type("Mine", (Move,), {}),
            ],
        ),
    ],
)
def test_invalid_values_and_types_raise_errors(error: type[Exception], calls: list) -> None:
    for call in calls:
        with pytest.raises(error):
            call()


@st.composite
def moves(draw) -> Move:
    piece, rotation = draw(st.sampled_from(tilewe.PIECES)), draw(st.sampled_from(tilewe.ROTATIONS))
    return Move(
        piece, rotation, draw(st.sampled_from(tilewe.piece_contacts(piece, rotation))), draw(st.sampled_from(tilewe.TILES))
    )


@given(moves(), moves())
def test_moves_are_values(a: Move, b: Move) -> None:
    assert Move.from_str(str(a)) == a == Move(a.piece, a.rotation, a.contact, a.to_tile)
    order = (a.piece, a.rotation, a.contact, a.to_tile), (b.piece, b.rotation, b.contact, b.to_tile)
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        assert compare(a, b) == compare(*order)
    assert len({a, b, Move.from_str(str(a))}) == 1 + (a != b)
    assert a != None  # noqa: E711 - False in the package
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(a, protocol)) == a
    assert copy.copy(a) == copy.deepcopy(a) == a
    with pytest.raises(AttributeError):
        a.piece = 3
    assert a.__getstate__() & 511 == a.to_tile


def test_equivalent_rotations_are_equal() -> None:
    move = Move(tilewe.W5, tilewe.EAST_F, tilewe.A01, tilewe.A01)
    assert str(move) == repr(move) == "W5n-a1a1"
    assert move.rotation == tilewe.NORTH
    assert str(Move.__new__(Move)) == "O1n-a1a1"
    for text in ("X5n-b2a1", "W5-a1a1", "W5n-a1u1", "Q5n-a1a1", "W5n-a1a21", ""):
        with pytest.raises(ValueError, match="contact"):
            Move.from_str(text)


def test_illegal_pushes_raise_the_rule_and_change_nothing() -> None:
    board = Board.from_moves(["W5n-a1a1", "O1n-a1t20", "O1n-a1t1", "O1n-a1a20"])
    before = str(board), board.moves
    for text, why in {
        "W5n-a1d4": "W5",
        "O1n-a1a1": "taken",
        "O1n-a1c1": "edge",
        "O1n-a1j10": "corner to corner",
        "I5e-a1d4": None,
        "I5e-a1t18": "beyond",
    }.items():
        move = Move.from_str(text)
        assert board.is_legal(move) == (why is None)
        if why:
            with pytest.raises(IllegalMoveError, match=why):
                board.push(move)
    assert (str(board), board.moves) == before
    assert not board.is_legal(Move.from_str("O1n-a1d4"), tilewe.GREEN)
    assert board.is_legal(Move.from_str("I2n-a1b19"), for_player=tilewe.GREEN) == board.is_legal(
        Move.from_str("I2n-a1b19"), player=tilewe.GREEN
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_all_moves_can_be_taken_back(players: int, rng: random.Random) -> None:
    board = Board(players)
    history = []
    while not board.finished:
        history.append((str(board), board.finished, board.current_player, board.n_legal_moves()))
        board.push(rng.choice(board.generate_legal_moves()))
    assert not any(
        board.can_play(player) or board.gen_moves(player) or board.player_corners(player) for player in range(players)
    )
    with pytest.raises(IllegalMoveError, match="over"):
        board.push(board.moves[-1])
    twin = pickle.loads(pickle.dumps(board))
    assert (str(twin), twin.moves) == (str(board), board.moves)
    while history:
        board.pop()
        assert (str(board), board.finished, board.current_player, board.n_legal_moves()) == history.pop()
    with pytest.raises(IndexError):
        board.pop()
    while twin.moves:
        twin.pop()
    assert twin.ply == 0


def test_text_of_a_board() -> None:
    board = Board.from_moves(["W5n-a1a1"], 2)
    lines = str(board).split("\n")
    assert lines[0] == "20 " + ". " * 20
    assert lines[19] == " 1 " + "\x1b[94mB\x1b[0m " * 2 + ". " * 18
    assert lines[20] == "   a b c d e f g h i j k l m n o p q r s t "
    assert lines[21].startswith("\x1b[94mB\x1b[0m  5 [ O1 I2 ")
    assert lines[23:] == ["Ply: 1, Turn: yellow", ""]
    tilewe.print_color = False
    try:
        assert "\x1b" not in str(board)
    finally:
        tilewe.print_color = True


def test_all_names_of_players_are_equivalent() -> None:
    board = Board.from_moves(["W5n-a1a1"])
    green = board.generate_legal_moves(for_player=tilewe.GREEN)
    assert green == board.gen_moves(tilewe.GREEN) == board.generate_legal_moves(player=3)
    assert len(green) == board.n_legal_moves(tilewe.GREEN) == 174
    assert board.n_legal_moves(None) == board.n_legal_moves(tilewe.NO_COLOR) == board.n_legal_moves() == 174
    assert board.n_legal_moves(for_player=0, unique=False) > 174
    assert board.cur_player == board.current_player == tilewe.YELLOW
    assert board.winners == [tilewe.BLUE]
    assert Board(3).winners == [0, 1, 2]


def test_random_legal_moves_equal_draws_from_the_list() -> None:
    board = Board(2)
    while not board.finished:
        random.seed(board.ply)
        drawn = random.choice(board.generate_legal_moves())
        random.seed(board.ply)
        assert board.random_legal_move() == drawn
        board.push(drawn)
    with pytest.raises(IndexError):
        board.random_legal_move()


README = """
>>> tilewe.n_piece_tiles(tilewe.X5), tilewe.n_piece_corners(tilewe.X5), tilewe.n_piece_contacts(tilewe.X5)
(5, 8, 4)
>>> tilewe.piece_tile_coords(tilewe.X5, tilewe.WEST_F)
[(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)]
>>> tilewe.piece_tile_coords(tilewe.O1)
[(0, 0)]
>>> [tilewe.TILE_NAMES[tile] for tile in tilewe.piece_contacts(tilewe.V5, tilewe.SOUTH)]
['a1', 'a3', 'c3']
>>> board = tilewe.Board(n_players=4)
>>> move = tilewe.Move(piece=tilewe.W5, rotation=tilewe.NORTH, contact=tilewe.A01, to_tile=tilewe.A01)
>>> if board.is_legal(move):
...     board.push(move)
...     print(f"{move} is legal")
W5n-a1a1 is legal
>>> [tilewe.TILE_NAMES[tile] for tile in board.player_corners(tilewe.BLUE)]
['d1', 'a3', 'b4', 'd4']
>>> board.color_at(tilewe.C03) == tilewe.BLUE, board.color_at(tilewe.A02) == tilewe.NO_COLOR
(True, True)
>>> board.pop()
>>> board.ply, board.n_remaining_pieces(tilewe.RED), len(board.generate_legal_moves(for_player=tilewe.GREEN))
(0, 21, 232)
"""


def test_the_readme_of_the_package() -> None:
    test = doctest.DocTestParser().get_doctest(README, {"tilewe": tilewe}, "README", None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_tests_of_the_package() -> None:
    """The test files of the package, unchanged, in the folder TILEWE_TESTS."""
    folder = os.environ.get("TILEWE_TESTS")
    if not folder:
        pytest.skip("needs TILEWE_TESTS, the folder with the package's tests")
    code = (
        "import sys, pytest, tilewe_jax.tilewe as t, tilewe_jax.tilewe.elo, tilewe_jax.tilewe.tournament;"
        "names = [name for name in sys.modules if name.startswith('tilewe_jax.tilewe')];"
        "sys.modules.update({name.removeprefix('tilewe_jax.'): sys.modules[name] for name in names});"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-c', '/dev/null', sys.argv[1]]))"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=True, cwd=ROOT)


def test_boards_need_neither_jax_nor_numpy() -> None:
    code = "import sys; from tilewe_jax import tilewe; tilewe.Board(); assert not {'jax', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
