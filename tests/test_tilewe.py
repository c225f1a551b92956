"""The host API against traces of the package it stands in for, its tests, its README, and what its users rely on."""

from hashlib import sha1
from pathlib import Path

import pytest

from tests.support import ORACLES, traces
from tilewe_jax import tilewe
from tilewe_jax.tilewe import Board, Move

ROOT = Path(__file__).parents[1]


def digest(names: list[str]) -> str:
    return sha1(",".join(names).encode()).hexdigest()


@pytest.mark.parametrize("players", [1, 3, 4])
def test_traces(players: int) -> None:
    _, *games = traces(f"tilewe/games_{players}p.jsonl.gz")
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


def test_pieces_are_those_of_the_package() -> None:
    import json

    path = ORACLES / "tilewe" / "pieces.json"
    if not path.exists():
        pytest.skip("needs the traces")
    triples = 0
    for piece, known in enumerate(json.loads(path.read_text())["pieces"]):
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
